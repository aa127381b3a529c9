"""The charts of one run: what each is drawn from, and the parameters that it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

from django.urls import reverse

from metrics.charts.figure import Figure
from metrics.charts.values.curves import curve_figure
from metrics.charts.values.distribution import distribution_figure
from metrics.charts.values.precision_recall import precision_recall_figure
from metrics.charts.values.rankings import ranking_figure
from metrics.charts.values.topics import paired_topics_figure, topics_figure
from metrics.models import Evaluation
from metrics.questions.addresses import topic_of_pair_address
from metrics.questions.declared import (
    COMPARISON,
    CONFIDENCE,
    DEPTH,
    RECALL,
    TOPICS,
    Reads,
    declared,
    parameter,
)
from metrics.services.boards.board_question import active_qrels
from metrics.services.boards.difference import DifferenceQuery, read_difference
from metrics.services.boards.topic_selection import SelectionQuery, TopicSelection, flags_of
from metrics.services.comparisons.comparison import ComparisonQuery
from metrics.services.comparisons.stored import stored_selection
from metrics.services.question import measure_in, run_id_in
from metrics.services.values.curves import (
    CurveQuery,
    RecallQuery,
    read_curves,
    read_precision_recall,
)
from metrics.services.values.rankings import RankingQuery, read_ranking, titles_of_relevant
from metrics.services.values.values import read_values
from runs.errors import InvalidInput
from runs.models import Run
from runs.services.collections.collections import read_topic_titles


@dataclass(frozen=True)
class RunChartRequest:
    """The evaluation that a chart is drawn from, and the query string as text.

    Readers of a share link see no titles of topics: their chart is not `titled`.
    """

    run: Run
    evaluation: Evaluation
    query: Mapping[str, str]
    titled: bool = True

    @cached_property
    def selection(self) -> TopicSelection | None:
        """The topics that the chart is drawn from, None for all."""
        return SelectionQuery.read(self.query).select(self.evaluation)

    def source_of(self, figure: Figure, measure: str = "") -> Figure:
        """Return the chart with its source."""
        return figure.drawn_from(self.run.collection, self.evaluation.qrels, measure=measure)


def _curve(request: RunChartRequest) -> Figure:
    query = CurveQuery.read(request.query)
    if len(query.measures) > 1:
        raise InvalidInput(
            "a chart shows one measure; request one chart per measure",
            code="too_many_measures",
            pointer="measure",
        )

    selection = request.selection
    evaluated = read_curves(
        evaluation=request.evaluation, query=query, selected=flags_of(selection)
    )[0]
    figure = curve_figure(
        evaluated.curve, measure=evaluated.measure, run=request.run.tag, confidence=query.confidence
    )

    return request.source_of(figure.of_topics(selection), evaluated.measure.name)


def _precision_recall(request: RunChartRequest) -> Figure:
    query = RecallQuery.read(request.query)
    selection = request.selection
    curves = read_precision_recall(
        evaluation=request.evaluation, query=query, selected=flags_of(selection)
    )
    if not curves:
        raise InvalidInput("no level above 0 occurs in the judgements", pointer="rel")

    figure = precision_recall_figure(curves, run=request.run.tag, query=query)
    return request.source_of(figure.of_topics(selection))


def _distribution(request: RunChartRequest) -> Figure:
    collection = request.run.collection
    measure = measure_in(request.query, "measure", collection.measures[0], collection)
    selection = request.selection
    values = read_values(
        evaluation=request.evaluation, measures=[measure], selected=flags_of(selection)
    )
    figure = distribution_figure(
        values.vectors[measure.name], measure=measure.name, run=request.run.tag
    )
    return request.source_of(figure.of_topics(selection), measure.name)


def _topics(request: RunChartRequest) -> Figure:
    run, evaluation = request.run, request.evaluation
    collection = run.collection
    measure = measure_in(request.query, "measure", collection.measures[0], collection)

    other = run_id_in(request.query, "other")
    if other is None:
        ranking = (
            f"{reverse('ranking-page', args=[run.pk])}?qrels={evaluation.qrels.version}&topic="
        )
        selection = request.selection
        values = read_values(
            evaluation=evaluation, measures=[measure], selected=flags_of(selection)
        )
        figure = topics_figure(
            list(zip(values.topic_ids, values.vectors[measure.name].tolist(), strict=True)),
            measure=measure.name,
            run=run.tag,
            ranking=ranking,
            titles=read_topic_titles(collection, values.topic_ids) if request.titled else {},
        )
        return request.source_of(figure.of_topics(selection), measure.name)

    # The bars lead to the comparison of the two runs, with its parameters.
    text = {**request.query, "measures": measure.name, "runs": f"{run.pk},{other}"}
    text.pop("measure", None)
    question = ComparisonQuery.read(text, collection)

    # Attributes may have changed since a stored comparison selected its topics.
    stored = run_id_in(request.query, "comparison")
    difference = read_difference(
        collection=collection,
        query=DifferenceQuery(
            measure, [str(run.pk), other], scores=evaluation.scores, topics=question.topics
        ),
        selection=stored_selection(UUID(stored), active_qrels(collection)) if stored else None,
    )
    topics = list(zip(difference.topic_ids, difference.topics.values.tolist(), strict=True))
    figure = paired_topics_figure(
        topics,
        measure=measure.name,
        run=difference.a.run.tag,
        other=difference.b.run.tag,
        ranking=topic_of_pair_address(collection.slug, question, request.query),
        titles=read_topic_titles(collection, difference.topic_ids),
    )

    return request.source_of(figure.of_topics(difference.selection), measure.name)


def _ranking(request: RunChartRequest) -> Figure:
    query = RankingQuery.read(request.query)
    ranking = read_ranking(evaluation=request.evaluation, topic_id=query.topic)
    titles = titles_of_relevant(request.run.collection, ranking)
    return request.source_of(ranking_figure(ranking, run=request.run.tag, titles=titles))


RUN_CHARTS: dict[str, Callable[[RunChartRequest], Figure]] = {
    "curve": _curve,
    "precision-recall": _precision_recall,
    "distribution": _distribution,
    "topics": _topics,
    "ranking": _ranking,
}


_MEASURE = parameter("measure", "a measure; default: the collection's first")
# The parameters of a comparison of two runs, which the chart of their differences names otherwise.
_OF_A_PAIR = ("measures", "measure", "runs", "scores")

# The parameters of each chart, in addition to those of all; those of another chart are refused.
RUN_CHART_READS: Reads = {
    "curve": (
        parameter("measure", "a measure that has a curve, default: nDCG"),
        DEPTH,
        CONFIDENCE,
        TOPICS,
    ),
    "precision-recall": (*RECALL, TOPICS),
    "distribution": (_MEASURE, TOPICS),
    "topics": (
        _MEASURE,
        parameter("other", "another run, whose values are subtracted from this one's"),
        parameter("comparison", "with other: the stored comparison to which the bars lead"),
        *(option for option in COMPARISON if option.name not in _OF_A_PAIR),
    ),
    "ranking": declared(RankingQuery, "topic"),
}
