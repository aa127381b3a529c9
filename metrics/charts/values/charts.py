"""The charts of one run: what each is drawn from, and the parameters that it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from django.urls import reverse

from metrics.charts.figure import Figure
from metrics.charts.values.curves import curve_figure
from metrics.charts.values.distribution import distribution_figure
from metrics.charts.values.precision_recall import precision_recall_figure
from metrics.charts.values.rankings import ranking_figure
from metrics.charts.values.topics import paired_topics_figure, topics_figure
from metrics.models import Evaluation
from metrics.questions.addresses import pair_page
from metrics.questions.declared import (
    CONFIDENCE,
    DEPTH,
    RECALL,
    Reads,
    parameter,
)
from metrics.questions.rankings import topic_in
from metrics.services.boards.difference import DifferenceQuery, read_difference
from metrics.services.question import measure_in, run_id_in
from metrics.services.values.curves import (
    CurveQuery,
    RecallQuery,
    read_curves,
    read_precision_recall,
)
from metrics.services.values.rankings import read_ranking
from metrics.services.values.values import read_values
from runs.errors import InvalidInput
from runs.models import Run


@dataclass(frozen=True)
class Asked:
    """The evaluation of a chart, and the query string as text."""

    run: Run
    evaluation: Evaluation
    query: Mapping[str, str]

    def source_of(self, figure: Figure, measure: str = "") -> Figure:
        """Return the chart with its source."""
        return figure.drawn_from(
            self.run.collection, self.evaluation.qrels.version, measure=measure
        )


def _curve(asked: Asked) -> Figure:
    query = CurveQuery.read(asked.query)
    if len(query.measures) > 1:
        raise InvalidInput(
            "a chart shows one measure; request one chart per measure",
            code="too_many_measures",
            pointer="measure",
        )
    drawn = read_curves(evaluation=asked.evaluation, query=query)[0]
    figure = curve_figure(
        drawn.curve, measure=drawn.measure, run=asked.run.tag, confidence=query.confidence
    )
    return asked.source_of(figure, drawn.measure.name)


def _precision_recall(asked: Asked) -> Figure:
    query = RecallQuery.read(asked.query)
    curves = read_precision_recall(evaluation=asked.evaluation, query=query)
    if not curves:
        raise InvalidInput("no level above 0 occurs in the judgements", pointer="rel")
    return asked.source_of(precision_recall_figure(curves, run=asked.run.tag, query=query))


def _distribution(asked: Asked) -> Figure:
    collection = asked.run.collection
    measure = measure_in(asked.query, "measure", collection.measures[0], collection.documents)
    values = read_values(evaluation=asked.evaluation, measures=[measure])
    figure = distribution_figure(
        values.vectors[measure.name], measure=measure.name, run=asked.run.tag
    )
    return asked.source_of(figure, measure.name)


def _topics(asked: Asked) -> Figure:
    collection = asked.run.collection
    measure = measure_in(asked.query, "measure", collection.measures[0], collection.documents)
    version = asked.evaluation.qrels.version
    other = run_id_in(asked.query, "other")
    if other is None:
        ranking = f"{reverse('ranking-page', args=[asked.run.pk])}?qrels={version}&topic="
        values = read_values(evaluation=asked.evaluation, measures=[measure])
        topics = list(zip(values.topic_ids, values.vectors[measure.name].tolist(), strict=True))
        figure = topics_figure(topics, measure=measure.name, run=asked.run.tag, ranking=ranking)
        return asked.source_of(figure, measure.name)
    query = DifferenceQuery(measure, [str(asked.run.pk), other], scores=asked.evaluation.scores)
    found = read_difference(collection=asked.run.collection, query=query)
    names = {"run": found.a.run.tag, "other": found.b.run.tag}
    differences = list(zip(found.qrels.topic_ids, found.topics.values.tolist(), strict=True))
    runs = f"{asked.run.pk},{other}"
    ranking = (
        f"{pair_page(asked.run.collection.slug, measure.name, asked.query)}&runs={runs}&topic="
    )
    figure = paired_topics_figure(differences, measure=measure.name, **names, ranking=ranking)
    return asked.source_of(figure, measure.name)


def _ranking(asked: Asked) -> Figure:
    ranking = read_ranking(evaluation=asked.evaluation, topic_id=topic_in(asked.query))
    return asked.source_of(ranking_figure(ranking, run=asked.run.tag))


RUN_CHARTS: dict[str, Callable[[Asked], Figure]] = {
    "curve": _curve,
    "precision-recall": _precision_recall,
    "distribution": _distribution,
    "topics": _topics,
    "ranking": _ranking,
}


_MEASURE = parameter("measure", "a measure; default: the collection's first")


# The parameters of each chart, beside those of all; another chart's are refused.
RUN_CHART_READS: Reads = {
    "curve": (parameter("measure", "a measure that has a curve, default: nDCG"), DEPTH, CONFIDENCE),
    "precision-recall": RECALL,
    "distribution": (_MEASURE,),
    "topics": (
        _MEASURE,
        parameter("other", "another run, whose values are subtracted from this one's"),
        parameter("family", "with other: as in a comparison, for where the bars lead"),
        parameter("baseline", "with other: as in a comparison, for where the bars lead"),
        parameter("comparison", "with other: the stored comparison to which the bars lead"),
    ),
    "ranking": (parameter("topic", "the topic"),),
}
