"""The judgements of one topic."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from runs.errors import InvalidInput, NotFound
from runs.models import Qrels
from runs.services.collections.qrels import load_judgements


@dataclass(frozen=True)
class JudgedTopic:
    """The number of documents at each level, and the first documents with their levels.

    Both begin with the highest level.
    """

    levels: list[tuple[int, int]]
    documents: list[tuple[str, int]]

    @property
    def judged(self) -> int:
        return sum(count for _, count in self.levels)

    @property
    def relevant(self) -> int:
        return sum(count for level, count in self.levels if level >= 1)


def read_judged_topic(*, qrels: Qrels, topic_id: str, most: int = 0) -> JudgedTopic:
    """Return the judgements of a topic with `most` of its documents.

    Raise NotFound for a topic that is not judged, InvalidInput for judgements of single queries.
    """
    if qrels.keyed_by != Qrels.KeyedBy.TOPIC:
        message = (
            f"qrels v{qrels.version} judges single queries of sessions; only judgements of "
            "topics can be shown"
        )
        raise InvalidInput(message, code="unknown_qrels", pointer="qrels")

    judgements = load_judgements(qrels)
    topic = judgements.topic_index.get(topic_id.encode())
    if topic is None:
        message = f"topic {topic_id[:40]!r} has no judgements in qrels v{qrels.version}"
        raise NotFound(message, code="unknown_topic", pointer="topic")

    rows = np.flatnonzero(judgements.topics == topic)
    levels, counts = np.unique(judgements.levels[rows], return_counts=True)
    first = rows[np.argsort(-judgements.levels[rows], kind="stable")][:most]
    spans = zip(
        judgements.doc_starts[first].tolist(), judgements.doc_ends[first].tolist(), strict=True
    )
    names = [judgements.data[start:end].tobytes().decode(errors="replace") for start, end in spans]
    return JudgedTopic(
        list(zip(levels.tolist(), counts.tolist(), strict=True))[::-1],
        list(zip(names, judgements.levels[first].tolist(), strict=True)),
    )
