"""The difference of two runs by topic."""

from __future__ import annotations

import math
from dataclasses import dataclass

from metrics.engine.analysis.differences import Differences, differences
from metrics.engine.arrays import Floats
from metrics.engine.errors import StatisticsError
from metrics.engine.measures.grammar import Measure
from metrics.models import Evaluation
from metrics.services.boards.board_question import active_qrels
from metrics.services.boards.selection import select_evaluations
from metrics.services.boards.topic_selection import (
    TopicFilter,
    Topics,
    TopicSelection,
    select_topics,
)
from metrics.services.question import SCORES, Choice, OneMeasure, Question, RunIds, parameter
from metrics.services.values.common_values import refuse_pooled
from metrics.services.values.judged_views import vectors_of
from runs.models import Collection, Qrels, Run

ORDERS = ("topic", "difference")


@dataclass(frozen=True)
class DifferenceQuery(Question):
    """The parameters of a difference of run a and run b; `order` is that of the topics."""

    measure: Measure = parameter(
        OneMeasure("the measure to compare by; default: the collection's first")
    )
    runs: list[str] = parameter(RunIds("the ids of a and b, separated by a comma"))
    order: str = parameter(
        Choice("topic, or difference: largest a - b first", default=ORDERS[0], choices=ORDERS)
    )
    scores: str | None = parameter(SCORES)
    topics: TopicFilter | None = parameter(Topics())


@dataclass(frozen=True)
class Side:
    """One of the two runs, with its values in the order of the topics, and their mean."""

    run: Run
    values: Floats
    mean: float | None
    topics: int


@dataclass(frozen=True)
class Difference:
    """Both sides, a - b by topic, and the places of the topics in the requested order.

    The topics are those of `topic_ids`, which a `selection` has chosen from the judgements.
    """

    query: DifferenceQuery
    qrels: Qrels
    scores: str
    a: Side
    b: Side
    topics: Differences
    order: list[int]
    topic_ids: list[str]
    selection: TopicSelection | None


def read_difference(
    *,
    collection: Collection,
    query: DifferenceQuery,
    selection: TopicSelection | None = None,
) -> Difference:
    """Return the values of two evaluated runs under one measure.

    They are of the topics of the `selection`, without one of those that the query selects.

    Raise StatisticsError for another number of runs or an unknown run.
    """
    if len(set(query.runs)) != 2 or len(query.runs) != 2:
        few = len(set(query.runs)) < 2
        message = (
            f"a difference needs two runs: runs=<id of a>,<id of b>; found {len(set(query.runs))}"
        )
        raise StatisticsError(
            message, code="too_few_runs" if few else "too_many_runs", pointer="runs"
        )

    qrels, scores = active_qrels(collection), query.scores or collection.scores
    pair = select_evaluations(
        collection=collection, qrels=qrels, scores=scores, runs=query.runs, most=2
    )
    selection = selection or select_topics(qrels, query.topics, scores)
    if selection:
        refuse_pooled([query.measure])

    vectors = vectors_of([evaluation.pk for evaluation in pair], [query.measure])

    def side(evaluation: Evaluation) -> Side:
        vector = vectors[evaluation.pk, query.measure.name]
        if selection is None:
            return Side(evaluation.run, vector.values, vector.mean, vector.topics)
        values = vector.values[selection.selected]
        return Side(evaluation.run, values, *query.measure.aggregate(values))

    a, b = (side(evaluation) for evaluation in pair)
    lower = query.measure.definition.lower_is_better
    topics = differences(a.values, b.values, lower_is_better=lower)
    values: list[float] = topics.values.tolist()
    order = list(range(len(values)))

    if query.order == "difference":
        order.sort(key=lambda index: (math.isnan(values[index]), -values[index]))

    topic_ids = qrels.topic_ids if selection is None else selection.among(qrels.topic_ids)
    return Difference(query, qrels, scores, a, b, topics, order, topic_ids, selection)
