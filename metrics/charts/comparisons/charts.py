"""The charts of compared runs, which are named in the request or stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from metrics.charts.comparisons.power import power_figure
from metrics.charts.comparisons.ranks import ranks_figure
from metrics.charts.comparisons.significance import significance_figure
from metrics.charts.comparisons.topic_groups import groups_figure
from metrics.charts.comparisons.topic_scatter import TopicPair, topic_scatter_figure
from metrics.charts.comparisons.two_orders import two_orders_figure
from metrics.charts.figure import Figure
from metrics.charts.values.curves_together import curves_together_figure
from metrics.charts.values.recall_together import recall_together_figure
from metrics.charts.values.two_rankings import two_rankings_figure
from metrics.engine.errors import StatisticsError
from metrics.engine.significance.families import Family
from metrics.questions.addresses import pair_address, topic_of_pair_address
from metrics.services.boards.board_question import active_qrels
from metrics.services.boards.curves_together import (
    TogetherQuery,
    choose_together,
    read_curves_together,
    read_recall_together,
)
from metrics.services.boards.difference import DifferenceQuery, read_difference
from metrics.services.boards.topic_selection import SelectionQuery
from metrics.services.comparisons.comparison import (
    Compared,
    ComparisonQuery,
    read_rank_intervals,
    refuse_groups_of_many,
    refuse_weights,
)
from metrics.services.comparisons.design import DesignQuery, read_design
from metrics.services.comparisons.orders import OrdersQuery, compare_orders
from metrics.services.comparisons.shown_pairs import names_of
from metrics.services.comparisons.stored import Answer, look_up_comparison, stored_selection
from metrics.services.comparisons.topic_groups import compare_in_groups
from metrics.services.question import measure_in, run_id_in
from metrics.services.values.curves import CurveQuery, RecallQuery
from metrics.services.values.two_rankings import (
    TwoRankingsQuery,
    read_two_rankings,
    titles_of_both,
)
from runs.errors import InvalidInput
from runs.models import Collection
from runs.services.collections.collections import read_topic_titles

Query = Mapping[str, str]


def _significance(answer: Answer, query: Query) -> Figure:
    compared, family = _chosen(answer, query)
    return significance_figure(answer, compared, family, address=pair_address(answer, compared))


def _ranks(answer: Answer, query: Query) -> Figure:
    compared, _ = _chosen(answer, query)
    return ranks_figure(answer, compared, read_rank_intervals(compared, answer.query.options))


def _groups(answer: Answer, query: Query) -> Figure:
    compared, _ = _chosen(answer, query)
    return groups_figure(answer, compared, compare_in_groups(answer, compared))


ANSWER_CHARTS: dict[str, Callable[[Answer, Query], Figure]] = {
    "significance": _significance,
    "ranks": _ranks,
}


def _chosen(answer: Answer, query: Query) -> tuple[Compared, Family]:
    """Return the named measure and test of the answer, or its first ones."""
    collection = answer.entrants.qrels.collection
    measure = measure_in(query, "measures", answer.results[0].measure.name, collection)

    compared = next((part for part in answer.results if part.measure == measure), None)
    if compared is None:
        raise InvalidInput(
            f"{measure.name} is not part of this comparison",
            code="unknown_measure",
            pointer="measures",
        )

    test = query.get("tests") or compared.families[0].test

    family = next((part for part in compared.families if part.test == test), None)
    if family is None:
        raise InvalidInput(
            f"{test[:40]!r} is not part of this comparison", code="unknown_test", pointer="tests"
        )

    return compared, family


def _of_comparison(
    draw: Callable[[Answer, Query], Figure],
) -> Callable[[Collection, Query], Figure]:
    """Return the chart of a comparison that is computed at once, or was stored by a worker."""

    def figure(collection: Collection, query: Query) -> Figure:
        question = ComparisonQuery.read(query, collection)
        refuse_groups_of_many(question)
        refuse_weights(question)

        answer = look_up_comparison(collection=collection, query=question)
        if not isinstance(answer, Answer):
            message = (
                "this comparison must run in the background: queue it with POST, "
                "and request its charts when it is done"
            )
            raise StatisticsError(message, code="nothing_to_draw", pointer="runs")

        return draw(answer, {"measures": question.measures[0].name})

    return figure


def _curves(collection: Collection, query: Query, reader: Any) -> Figure:
    chosen = choose_together(
        collection=collection, query=TogetherQuery.read(query, collection, reader)
    )
    together = read_curves_together(
        evaluations=chosen,
        query=CurveQuery.read(query),
        selection=SelectionQuery.read(query).select(chosen[0]),
    )
    return curves_together_figure(together)


def _precision_recall(collection: Collection, query: Query, reader: Any) -> Figure:
    chosen = choose_together(
        collection=collection, query=TogetherQuery.read(query, collection, reader)
    )
    together = read_recall_together(
        evaluations=chosen,
        query=RecallQuery.read(query),
        selection=SelectionQuery.read(query).select(chosen[0]),
    )
    return recall_together_figure(together)


def _rankings(collection: Collection, query: Query) -> Figure:
    question = TwoRankingsQuery.read(query)
    runs = TogetherQuery(question.runs, scores=question.scores)
    evaluations = choose_together(collection=collection, query=runs)
    if len(evaluations) != 2:
        message = (
            f"the chart shows two rankings: runs=<id of a>,<id of b>; found {len(evaluations)}"
        )
        raise StatisticsError(
            message,
            code="too_few_runs" if len(evaluations) < 2 else "too_many_runs",
            pointer="runs",
        )

    rankings = read_two_rankings(a=evaluations[0], b=evaluations[1], topic_id=question.topic)
    titles = titles_of_both(collection, rankings)
    return two_rankings_figure(rankings, titles).drawn_from(collection, evaluations[0].qrels)


def _topic_scatter(collection: Collection, query: Query) -> Figure:
    """Draw the values of two runs on each topic; their comparison is where the points lead."""
    question = ComparisonQuery.read(query, collection)
    refuse_weights(question)
    measure = question.measures[0]
    # Attributes may have changed since a stored comparison selected its topics.
    stored = run_id_in(query, "comparison")
    difference = read_difference(
        collection=collection,
        query=DifferenceQuery(
            measure, question.runs, scores=question.scores, topics=question.topics
        ),
        selection=stored_selection(UUID(stored), active_qrels(collection)) if stored else None,
    )
    names = names_of([difference.a.run, difference.b.run])
    values = zip(
        difference.topic_ids,
        difference.a.values.tolist(),
        difference.b.values.tolist(),
        strict=True,
    )
    figure = topic_scatter_figure(
        [TopicPair(*topic) for topic in values],
        measure=measure,
        names=(names[difference.a.run], names[difference.b.run]),
        address=topic_of_pair_address(collection.slug, question, query),
        titles=read_topic_titles(collection, difference.topic_ids),
    )

    figure = figure.of_topics(difference.selection)
    return figure.drawn_from(collection, difference.qrels, measure=measure.name)


def _orders(collection: Collection, query: Query) -> Figure:
    """Draw the first pair of orders: of two measures, or of one under two versions."""
    answer = compare_orders(collection=collection, query=OrdersQuery.read(query, collection))
    return two_orders_figure(collection, answer, answer.pairs[0])


def _power(collection: Collection, query: Query) -> Figure:
    return power_figure(
        read_design(collection=collection, query=DesignQuery.read(query, collection))
    )


COMPARED_CHARTS: dict[str, Callable[[Collection, Query], Figure]] = {
    **{name: _of_comparison(draw) for name, draw in ANSWER_CHARTS.items()},
    "groups": _of_comparison(_groups),
    "rankings": _rankings,
    "topic-scatter": _topic_scatter,
    "orders": _orders,
    "power": _power,
}

# Charts of several runs. The reader matters: a filter may be about the reader's own runs.
TOGETHER_CHARTS: dict[str, Callable[[Collection, Query, Any], Figure]] = {
    "curves": _curves,
    "precision-recall": _precision_recall,
}
