"""Read the documents of one topic of a run, in the order of the tie rule, with judgements."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from metrics.engine.judgement.gains import LINEAR, GainMap
from metrics.engine.judgement.judged import JudgedRun
from metrics.engine.judgement.judging import ScoreType, order_topic
from metrics.engine.judgement.ranking import RankedBlock
from metrics.models import Evaluation
from metrics.services.question import (
    MAX_LIMIT,
    Gains,
    Integer,
    Question,
    TopicId,
    nested,
    parameter,
)
from metrics.services.values.effort import begin_reading_file
from metrics.services.values.judged_views import load_view
from metrics.services.values.values import EvaluationQuery
from runs.attention import keep_going
from runs.errors import NotFound
from runs.formats.trec_run import read_run
from runs.models import Collection
from runs.services.collections.documents import read_titles
from runs.services.storage.files import read_stored
from runs.services.submissions.replicates import check_has_file

# Sums of gains end at this rank; the list of documents goes to its end.
MAX_SUMS = 1000


@dataclass(frozen=True)
class RankingQuery(Question):
    """A topic of a run, and the ranks to list.

    Gains and their sums are of the gain map.
    """

    topic: str = parameter(TopicId("the topic; it must be a judged one"))
    gains: GainMap = parameter(Gains("gain map for gain and sum; default: linear", default=LINEAR))
    offset: int = parameter(Integer("ranks to skip", default=0))
    limit: int = parameter(
        Integer(f"ranks to answer, at most {MAX_LIMIT}", default=100, low=1, high=MAX_LIMIT)
    )
    evaluation: EvaluationQuery = nested(EvaluationQuery)


@dataclass(frozen=True)
class RankedDocument:
    """One document of a ranking.

    `level` is None if it is unjudged, `tied` says whether another document has its score.
    """

    rank: int
    doc_id: str
    score: float
    level: int | None
    gain: float
    tied: bool


@dataclass(frozen=True)
class Ranking:
    """A topic's complete ranking, with its sums of gains and those of the ideal ranking.

    The sums are those at ranks 1 to MAX_SUMS at most.
    """

    topic_id: str
    documents: list[RankedDocument]
    cumulated: list[float]
    ideal: list[float]


def titles_of_relevant(collection: Collection, ranking: Ranking) -> dict[str, str]:
    """Return the titles of the documents with a gain, as far as there are sums of it."""
    drawn = ranking.documents[: len(ranking.cumulated)]
    documents = read_titles(collection, (drawn.doc_id for drawn in drawn if drawn.gain > 0))
    return {doc_id: document.title for doc_id, document in documents.items()}


def read_ranking(*, evaluation: Evaluation, topic_id: str, gains: GainMap = LINEAR) -> Ranking:
    """Return the ranking of one judged topic from the stored file, which is read to its end.

    Raise NotFound for a topic without judgements, and for a run without a ranking. A topic that the
    run does not answer has no documents.
    """
    topic_ids: list[str] = evaluation.qrels.topic_ids
    if topic_id not in topic_ids:
        message = f"topic {topic_id[:40]!r} has no judgements in qrels v{evaluation.qrels.version}"
        raise NotFound(message, code="unknown_topic", pointer="topic")

    topic, run = topic_ids.index(topic_id), evaluation.run
    check_has_file(run)
    if not run.has_ranking:
        message = f"run {run.tag} has no ranking: its values come from tables"
        raise NotFound(message, code="no_ranking")
    begin_reading_file(run.size, "topic")
    scores: ScoreType = "float32" if evaluation.scores == "float32" else "float64"
    listed = read_stored(
        run.sha256,
        lambda stored: _read_topic(
            read_run(stored, grouped=run.grouped), topic_id.encode(), scores
        ),
    )

    view = load_view(evaluation)
    documents = _with_levels(listed, view, topic, gains)
    depth = max(1, min(len(documents), MAX_SUMS))
    own_gains = np.zeros(depth)
    own_gains[: len(documents)] = [document.gain for document in documents[:depth]]
    ideal = view.ideal_gains(gains)
    best = ideal.gain[ideal.topic == topic][:depth]
    ideal_sums = np.cumsum(np.pad(best, (0, depth - len(best))))

    return Ranking(topic_id, documents, np.cumsum(own_gains).tolist(), ideal_sums.tolist())


Listed = list[tuple[str, float]]


def _read_topic(blocks: Iterable[RankedBlock], topic_id: bytes, scores: ScoreType) -> Listed:
    """Return documents and scores of the topic, best first.

    Every block is read, because the file's hash is known at its end.
    """
    listed: Listed = []
    for block in blocks:
        keep_going()
        if topic_id in block.topic_ids:
            rows = order_topic(block, topic_id, scores)
            text = block.data.tobytes()
            spans = zip(block.doc_starts[rows].tolist(), block.doc_ends[rows].tolist(), strict=True)
            ids = [text[start:end].decode(errors="replace") for start, end in spans]
            listed = list(zip(ids, block.scores[rows].astype(scores).tolist(), strict=True))

    return listed


def _with_levels(
    listed: Listed, view: JudgedRun, topic: int, gains: GainMap
) -> list[RankedDocument]:
    rows = np.flatnonzero(view.topic == topic)
    levels = dict(zip(view.rank[rows].tolist(), view.level[rows].tolist(), strict=True))
    gain_of_rank = dict(zip(levels, gains.of(view.level[rows]).tolist(), strict=True))
    scores = [score for _, score in listed]

    # A document is tied with its neighbour.
    tied = [
        (index > 0 and scores[index - 1] == score)
        or (index + 1 < len(scores) and scores[index + 1] == score)
        for index, score in enumerate(scores)
    ]

    return [
        RankedDocument(
            rank, doc_id, score, levels.get(rank), gain_of_rank.get(rank, 0.0), tied[rank - 1]
        )
        for rank, (doc_id, score) in enumerate(listed, 1)
    ]
