"""Known documents: combine what a user knew and expected before the search with the judged view."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from metrics.engine.judgement.judged import JudgedRun, Known, RecallBase
from metrics.engine.judgement.judging import Judgements
from metrics.engine.judgement.ranking import RankedBlock


@dataclass(frozen=True)
class KnownDocuments:
    """The documents a user knew, and how many relevant ones were expected.

    `documents` has one row for each, with meaningless scores; `expected` has the topics for which a
    number was given.
    """

    documents: RankedBlock
    expected: Mapping[bytes, int]


def mark_known(run: JudgedRun, judgements: Judgements, known: KnownDocuments) -> JudgedRun:
    """Add what its user knew to the judged view of a run; `judgements` are those of the view.

    Unjudged documents are not relevant, so a known document outside the judgements is ignored.
    """
    index = judgements.topic_index
    topic_of = np.array(
        [index.get(topic_id, -1) for topic_id in known.documents.topic_ids], np.int64
    )
    _, judgement_rows = judgements.find(known.documents, topic_of)
    is_known = np.zeros(len(judgements.levels), np.bool_)
    is_known[judgement_rows] = True
    base = RecallBase.of(judgements.topics[is_known], judgements.levels[is_known], run.n_topics)

    expected = np.array(
        [known.expected.get(topic_id, 0) for topic_id in judgements.topic_ids], np.int64
    )
    return replace(run, known=Known(is_known[run.judgement], base, expected))
