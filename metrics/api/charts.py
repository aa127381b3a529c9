"""The API of charts: every picture of a run as SVG, PNG and PDF, and as the Vega-Lite specification behind them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.core.cache import cache
from django.http import Http404, HttpResponse
from django.urls import reverse
from django.utils.cache import patch_cache_control
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.views import APIView

from metrics.api.comparisons.addresses import pair_page
from metrics.api.comparisons.charts import COMPARED_CHARTS
from metrics.api.parameters import (
    COMPARISON,
    CONFIDENCE,
    DEPTH,
    FILTER,
    MEASURE_NAMES,
    ORDER,
    PAGE,
    RECALL,
    SCORES,
    SORT,
    VERSION,
    WHAT_IF,
    parameter,
)
from metrics.charts.boards.means import means_figure
from metrics.charts.boards.what_if import what_if_figure
from metrics.charts.figure import Figure
from metrics.charts.look import PALETTES, SIZES, Look
from metrics.charts.rendering import FORMATS, render
from metrics.charts.values.curves import curve_figure
from metrics.charts.values.distribution import distribution_figure
from metrics.charts.values.precision_recall import precision_recall_figure
from metrics.charts.values.rankings import ranking_figure
from metrics.charts.values.topics import paired_topics_figure, topics_figure
from metrics.models import Evaluation, SessionEvaluation
from metrics.questions.boards import board_query, what_if_query
from metrics.questions.parameters import choice_in, flag_in, measure_in, query_of, share_in
from metrics.questions.rankings import topic_in
from metrics.questions.run_ids import run_id_in
from metrics.questions.unchanged import of_board, of_collection, unchanged
from metrics.questions.values import curve_query, evaluation_in, recall_query
from metrics.services.boards.fingerprints import Fingerprint
from metrics.services.boards.leaderboard import read_leaderboard
from metrics.services.boards.mean_intervals import mean_intervals
from metrics.services.boards.what_if import ask_what_if
from metrics.services.values.curves import read_curves, read_precision_recall
from metrics.services.values.difference import DifferenceQuery, read_difference
from metrics.services.values.rankings import read_ranking
from metrics.services.values.values import read_values
from runs.api.access import scored_collection, scored_run
from runs.api.parameters import refusals
from runs.errors import InvalidInput
from runs.models import Collection, Run

_KEPT_SECONDS = 600


@dataclass(frozen=True)
class Asked:
    """Whose chart is asked for, and the query string as text."""

    run: Run
    evaluation: Evaluation
    query: Mapping[str, str]


def _curve(asked: Asked) -> Figure:
    query = curve_query(asked.query)
    if len(query.measures) > 1:
        raise InvalidInput("one chart shows one measure; ask for each", code="too_many_measures", pointer="measure")
    drawn = read_curves(evaluation=asked.evaluation, query=query)[0]
    return curve_figure(drawn.curve, measure=drawn.measure, run=asked.run.tag, confidence=query.confidence)


def _precision_recall(asked: Asked) -> Figure:
    query = recall_query(asked.query)
    curves = read_precision_recall(evaluation=asked.evaluation, query=query)
    if not curves:
        raise InvalidInput("no level above 0 occurs in the judgements", pointer="rel")
    return precision_recall_figure(curves, run=asked.run.tag, confidence=query.confidence)


def _distribution(asked: Asked) -> Figure:
    collection = asked.run.collection
    measure = measure_in(asked.query, "measure", collection.measures[0], collection.documents)
    values = read_values(evaluation=asked.evaluation, measures=[measure])
    return distribution_figure(values.vectors[measure.name], measure=measure.name, run=asked.run.tag)


def _topics(asked: Asked) -> Figure:
    collection = asked.run.collection
    measure = measure_in(asked.query, "measure", collection.measures[0], collection.documents)
    version = asked.evaluation.qrels.version
    other = run_id_in(asked.query, "other")
    if other is None:
        ranking = f"{reverse('ranking-page', args=[asked.run.pk])}?qrels={version}&topic="
        values = read_values(evaluation=asked.evaluation, measures=[measure])
        topics = list(zip(values.topic_ids, values.vectors[measure.name].tolist(), strict=True))
        return topics_figure(topics, measure=measure.name, run=asked.run.tag, ranking=ranking)
    query = DifferenceQuery(measure, [str(asked.run.pk), other], scores=asked.evaluation.scores)
    found = read_difference(collection=asked.run.collection, query=query)
    names = {"run": found.a.run.tag, "other": found.b.run.tag}
    differences = list(zip(found.qrels.topic_ids, found.topics.values.tolist(), strict=True))
    runs = f"{asked.run.pk},{other}"
    ranking = f"{pair_page(asked.run.collection.slug, measure.name, asked.query)}&runs={runs}&topic="
    return paired_topics_figure(differences, measure=measure.name, **names, ranking=ranking)


def _ranking(asked: Asked) -> Figure:
    ranking = read_ranking(evaluation=asked.evaluation, topic_id=topic_in(asked.query))
    return ranking_figure(ranking, run=asked.run.tag)


_Draw = Callable[[Collection, Mapping[str, str], Any], Figure]
RUN_CHARTS: dict[str, Callable[[Asked], Figure]] = {
    "curve": _curve,
    "precision-recall": _precision_recall,
    "distribution": _distribution,
    "topics": _topics,
    "ranking": _ranking,
}


def _what_if(collection: Collection, query: Mapping[str, str]) -> Figure:
    answer = ask_what_if(collection=collection, query=what_if_query(query, collection))
    return what_if_figure(answer, answer.combinations[0])


def _means(collection: Collection, query: Mapping[str, str], reader: Any) -> Figure:
    board = read_leaderboard(collection=collection, query=board_query(query, collection, reader))
    board = replace(board, measures=[board.sort])
    confidence = share_in(query, "confidence", 0.95)
    intervals = mean_intervals(board, confidence)
    if not intervals:
        raise InvalidInput(f"no ranked run here has an interval of {board.sort.name}", code="nothing_to_draw")
    return means_figure(board, intervals, confidence)


def _for_all(draw: Callable[[Collection, Mapping[str, str]], Figure]) -> _Draw:
    """A chart that is the same whoever asks."""
    return lambda collection, query, _reader: draw(collection, query)


# Of a collection, the query string as text, and whoever asks: a filter may be about the reader's own runs.
COLLECTION_CHARTS: dict[str, _Draw] = {
    "means": _means,
    "what-if": _for_all(_what_if),
    **{name: _for_all(draw) for name, draw in COMPARED_CHARTS.items()},
}

Reads = Mapping[str, tuple[OpenApiParameter, ...]]
CHART_PARAMETERS = (
    parameter("theme", "colours; light where left out", choices=tuple(PALETTES)),
    parameter("size", "column where left out", choices=tuple(SIZES)),
    parameter("live", "true: with what only a pointer can use, for json", OpenApiTypes.BOOL),
)
_OF_A_RUN = (*CHART_PARAMETERS, SCORES, VERSION)
_MEASURE = parameter("measure", "a measure; the collection's first where left out")


# The parameters of each chart, beside those of all; another chart's are refused.
RUN_CHART_READS: Reads = {
    "curve": (parameter("measure", "a measure that has a curve, nDCG where left out"), DEPTH, CONFIDENCE),
    "precision-recall": RECALL,
    "distribution": (_MEASURE,),
    "topics": (
        _MEASURE,
        parameter("other", "another run, whose values are taken away from this one's"),
        parameter("family", "with other: as in a comparison, for where the bars lead"),
        parameter("baseline", "with other: as in a comparison, for where the bars lead"),
        parameter("comparison", "with other: the stored comparison to which the bars lead"),
    ),
    "ranking": (parameter("topic", "the topic"),),
}
COLLECTION_CHART_READS: Reads = {
    "means": (MEASURE_NAMES, SORT, ORDER, *PAGE, FILTER, CONFIDENCE, SCORES),
    "what-if": WHAT_IF,
    "significance": COMPARISON,
    "ranks": COMPARISON,
    "curves": (
        parameter("measures", "one of nDCG, DCG, CG, P ...; nDCG where left out"),
        parameter("measure", "the same as measures, of which one is given"),
        DEPTH,
        parameter("runs", "run ids separated by commas, 8 at most"),
        SCORES,
    ),
    "rankings": (parameter("runs", "the ids of two runs"), parameter("topic", "the topic"), SCORES),
}


def every_parameter(reads: Reads) -> list[OpenApiParameter]:
    """The parameters of all charts of an address, each said once with the charts that read it."""
    found: dict[str, OpenApiParameter] = {}
    for read in reads.values():
        found |= {one.name: one for one in read if one.name not in found}
    for name, one in found.items():
        charts = [chart for chart, read in reads.items() if name in (each.name for each in read)]
        if len(charts) < len(reads):
            found[name] = copy(one)
            found[name].description = f"of {', '.join(charts)}: {one.description}"
    return list(found.values())


class RunChart(APIView):
    """A chart of one run: curve, precision-recall, distribution, topics or ranking."""

    @extend_schema(
        responses={(200, form.content_type): OpenApiResponse(OpenApiTypes.BINARY) for form in FORMATS.values()},
        parameters=[
            *every_parameter(RUN_CHART_READS),
            *_OF_A_RUN,
        ],
    )
    def get(self, request: Request, run: UUID, chart: str, form: str) -> HttpResponse:
        found = scored_run(request, run)
        check_chart(request, RUN_CHART_READS, chart, form, _OF_A_RUN)
        query = query_of(request)
        look = look_in(query)
        asked = Asked(found, evaluation_in(query, found), query)
        # A run that is named beside this one may be gone when the picture is asked for again.
        key = None if query.get("other") else chart_key(asked.evaluation, f"{chart}.{form}", query)
        return picture(key, form, lambda: RUN_CHARTS[chart](asked).draw(look))


def _of_collection(request: Request, collection: str, chart: str, form: str) -> Fingerprint | None:
    # What a filter shows of a board may be the reader's own.
    return of_board(request, collection) if chart == "means" else of_collection(request, collection)


class CollectionChart(APIView):
    """A chart of a collection: means, the runs of one page of the leaderboard with their intervals; what-if, the first
    of the combinations asked for beside the official order; or of compared runs: significance, ranks, curves, and the
    rankings of two for one topic."""

    @extend_schema(
        responses={(200, form.content_type): OpenApiResponse(OpenApiTypes.BINARY) for form in FORMATS.values()},
        parameters=[
            *every_parameter(COLLECTION_CHART_READS),
            *CHART_PARAMETERS,
        ],
    )
    @unchanged(_of_collection, snapshot=True)
    def get(self, request: Request, collection: str, chart: str, form: str) -> HttpResponse:
        found = scored_collection(request, collection)
        check_chart(request, COLLECTION_CHART_READS, chart, form)
        query = query_of(request)
        look = look_in(query)
        # The board changes with every run: only what says so with its tag is remembered.
        return picture(None, form, lambda: COLLECTION_CHARTS[chart](found, query, request.user).draw(look))


def check_chart(
    request: Request, reads: Reads, chart: str, form: str, others: tuple[OpenApiParameter, ...] = CHART_PARAMETERS
) -> None:
    """Http404 for a chart or a format that there is not, InvalidInput for a parameter that only other charts read."""
    if chart not in reads or form not in FORMATS:
        known = f"{', '.join(reads)}; the formats are {', '.join(FORMATS)}"
        raise Http404(f"there is no chart {chart[:40]}.{form[:10]}; the charts are {known}")
    for refusal in refusals(request.query_params, [one.name for one in (*reads[chart], *others)]):
        raise refusal


def look_in(query: Mapping[str, str]) -> Look:
    return Look(
        theme=choice_in(query, "theme", tuple(PALETTES)) or "light",
        size=choice_in(query, "size", tuple(SIZES)) or "column",
        live=flag_in(query, "live"),
    )


def picture(key: str | None, form: str, draw: Callable[[], Any]) -> HttpResponse:
    """The answer with a chart in it; what has a key is remembered for a while, here and by the browser."""
    content = cache.get(key) if key else None
    if content is None:
        content = render(draw, form)
        if key:
            cache.set(key, content, _KEPT_SECONDS)
    response = HttpResponse(content, content_type=FORMATS[form].content_type)
    patch_cache_control(response, private=True, max_age=_KEPT_SECONDS if key else 0)
    return response


def chart_key(evaluation: Evaluation | SessionEvaluation, name: str, query: Mapping[str, str]) -> str:
    asked = repr((type(evaluation).__name__, evaluation.pk, name, sorted(query.items())))
    return f"chart:{hashlib.sha256(asked.encode()).hexdigest()}"
