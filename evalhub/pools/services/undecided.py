"""Whether an order of two runs holds whatever their unjudged documents are, and which decide it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evalhub.pools.services.rankings import Rankings, read_rankings
from metrics.engine.analysis.bounds import (
    USUAL_RANKS,
    DifferenceBounds,
    OpenDocument,
    bound_difference,
    is_bounded,
    worth_of_ranks,
)
from metrics.engine.errors import MeasureError
from metrics.engine.judgement.judging import Judgements
from metrics.engine.measures.grammar import Measure
from metrics.services.boards.difference import DifferenceQuery, Side, read_difference
from metrics.services.question import SCORES, OneMeasure, Question, RunIds, parameter
from metrics.services.values.effort import begin_reading_file
from metrics.services.values.sampled import check_suits
from runs.attention import keep_going
from runs.errors import InvalidInput
from runs.models import Collection, Qrels
from runs.services.collections.qrels import load_judgements


@dataclass(frozen=True)
class UndecidedQuery(Question):
    """Two runs and a measure with bounds."""

    measure: Measure = parameter(
        OneMeasure(
            "P@k, CG@k, DCG@k or RBP with rel, which have exact bounds; default: the collection's "
            "first of these",
            names=lambda collection: bounded_measures(collection) or ["P@10"],
        )
    )
    runs: list[str] = parameter(RunIds("the ids of a and b, separated by a comma"))
    scores: str | None = parameter(SCORES)


@dataclass(frozen=True)
class Undecided:
    """Both runs, the bounds of a minus b, and the topics by the numbers of its documents.

    `level` is the top level, which an unjudged document can have at most, and `ranks` the ranks
    that were looked at.
    """

    query: UndecidedQuery
    qrels: Qrels
    a: Side
    b: Side
    bounds: DifferenceBounds
    topic_ids: list[str]
    level: int
    ranks: int


def bounded_measures(collection: Collection) -> list[str]:
    """Return the collection's measures with exact bounds."""
    names = collection.measures
    return [name for name in names if is_bounded(collection.measure(name))]


def read_undecided(*, collection: Collection, query: UndecidedQuery) -> Undecided:
    """Return whether the order of two runs depends on unjudged documents, and on which.

    Raise MeasureError for a measure without exact bounds, StatisticsError for another number of
    runs or an unknown run, InvalidInput for judgements of single queries.
    """
    measure = query.measure
    if not is_bounded(measure):
        message = (
            f"{measure} has no exact bounds: use P@k, CG@k, DCG@k or RBP(rel=1), or compare on "
            "judged documents alone"
        )
        raise MeasureError(message, code="no_bounds", pointer="measure")

    difference = read_difference(
        collection=collection,
        query=DifferenceQuery(measure=measure, runs=query.runs, scores=query.scores),
    )
    qrels = difference.qrels
    if qrels.keyed_by != Qrels.KeyedBy.TOPIC:
        message = "judgements of single queries have no bounds of topics"
        raise InvalidInput(message, code="unknown_qrels")

    pair = [difference.a.run, difference.b.run]
    for run in pair:
        begin_reading_file(run.size, "runs")

    check_suits([measure], qrels, "measure")
    judgements = load_judgements(qrels)
    topic_ids = [topic.decode() for topic in judgements.topic_ids]
    ranks = measure.cutoff if isinstance(measure.cutoff, int) else USUAL_RANKS
    rankings = read_rankings(runs=pair, topics=topic_ids, depth=ranks)
    level = max(1, *map(int, qrels.levels))

    return Undecided(
        query=query,
        qrels=qrels,
        a=difference.a,
        b=difference.b,
        bounds=bound_difference(
            (difference.a.mean or 0.0) - (difference.b.mean or 0.0),
            len(topic_ids),
            worth_of_ranks(measure, level, ranks),
            _open_documents(rankings, judgements),
        ),
        topic_ids=topic_ids,
        level=level,
        ranks=ranks,
    )


def _open_documents(rankings: Rankings, judgements: Judgements) -> list[OpenDocument]:
    """Return the documents of either run that are not judged; a level below 0 is not a judgement."""
    ranks: dict[int, list[int | None]] = {}
    for side, ranked in enumerate(rankings.ranked):
        topics, columns = np.nonzero(ranked >= 0)
        numbers = ranked[topics, columns].tolist()
        for number, column in zip(numbers, columns.tolist(), strict=True):
            ranks.setdefault(number, [None, None])[side] = column + 1

    open_documents = []
    for number, (first, second) in ranks.items():
        keep_going()
        topic, doc_id = rankings.topic_of[number], rankings.doc_ids[number]
        row = judgements.places.get((topic, doc_id))
        if row is None or judgements.levels[row] < 0:
            open_documents.append(OpenDocument(topic, doc_id, (first, second)))
    return open_documents
