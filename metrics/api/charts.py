"""The API of charts.

Every chart is available as SVG, PNG and PDF, as its Vega-Lite specification, and its table as CSV.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from copy import copy
from uuid import UUID

from django.core.cache import cache
from django.http import Http404, HttpResponse
from django.utils.cache import patch_cache_control
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.views import APIView

from metrics.charts.boards.charts import COLLECTION_CHART_READS, COLLECTION_CHARTS
from metrics.charts.figure import Figure
from metrics.charts.look import PALETTES, SIZES, Look
from metrics.charts.rendering import FORMATS, render
from metrics.charts.values.charts import RUN_CHART_READS, RUN_CHARTS, RunChartRequest
from metrics.engine.measures.external import PREFIX
from metrics.models import Evaluation, SessionEvaluation
from metrics.questions.answer_cache import cached, everybody, of_collection
from metrics.questions.declared import Reads, declared, names_of, parameter
from metrics.questions.parameters import query_of
from metrics.services.values.values import EvaluationQuery, find_evaluation
from metrics.services.work import begin_drawing
from runs.models import Collection
from runs.parameters import choice_in
from runs.web.access import scored_collection, scored_run
from runs.web.parameters import refusals

_CACHE_SECONDS = 600


CHART_PARAMETERS = (
    parameter("theme", "colours; default: light", choices=tuple(PALETTES)),
    parameter("size", "default: column", choices=tuple(SIZES)),
)
CHART_RESPONSES = {
    (200, form.content_type.partition(";")[0]): OpenApiResponse(OpenApiTypes.BINARY)
    for form in FORMATS.values()
}
_OF_A_RUN = (*CHART_PARAMETERS, *declared(EvaluationQuery))


def every_parameter(reads: Reads) -> list[OpenApiParameter]:
    """Return the parameters of all charts of an address, each once with the charts that read it."""
    described: dict[str, OpenApiParameter] = {}
    charts: dict[str, list[str]] = {}
    for chart, parameters in reads.items():
        for option in parameters:
            described.setdefault(option.name, option)
            charts.setdefault(option.name, []).append(chart)

    for name, option in described.items():
        if len(charts[name]) < len(reads):
            described[name] = copy(option)
            described[name].description = f"of {', '.join(charts[name])}: {option.description}"

    return list(described.values())


class RunChart(APIView):
    """A chart of one run: curve, precision-recall, distribution, topics or ranking."""

    @extend_schema(
        responses=CHART_RESPONSES,
        parameters=[
            *every_parameter(RUN_CHART_READS),
            *_OF_A_RUN,
        ],
    )
    def get(self, request: Request, run: UUID, chart: str, form: str) -> HttpResponse:
        submitted_run = scored_run(request, run)
        check_chart(request, RUN_CHART_READS, chart, form, _OF_A_RUN)
        query = query_of(request, submitted_run.collection)
        look = look_in(query)
        evaluation = find_evaluation(run=submitted_run, query=EvaluationQuery.read(query))
        question = RunChartRequest(submitted_run, evaluation, query)

        # A second run named in the request may be withdrawn before the next request, a table may
        # change values of the same evaluation, and attributes of topics may be replaced.
        key = None
        names = (*query.values(), *submitted_run.collection.measures)
        if not (query.get("other") or query.get("topics") or any(PREFIX in name for name in names)):
            key = chart_key(question.evaluation, f"{chart}.{form}", query)
        collection = submitted_run.collection
        return picture(key, form, look, collection, lambda: RUN_CHARTS[chart](question))


class CollectionChart(APIView):
    """A chart of a collection: means, the runs of one page of the leaderboard with their intervals;
    what-if, the first of the requested combinations beside the official order; heat-map, runs
    against topics; parameter and parallel, parameters of runs against a measure; importance, what
    goes with a measure; frontier, effectiveness against cost; or of compared runs: significance,
    ranks, curves, precision-recall, topic-scatter, and the rankings of two for one topic."""

    @extend_schema(
        responses=CHART_RESPONSES,
        parameters=[
            *every_parameter(COLLECTION_CHART_READS),
            *CHART_PARAMETERS,
        ],
    )
    @cached(of_collection, shared_by=everybody)
    def get(self, request: Request, collection: str, chart: str, form: str) -> HttpResponse:
        test_collection = scored_collection(request, collection)
        check_chart(request, COLLECTION_CHART_READS, chart, form)
        query = query_of(request, test_collection)
        look = look_in(query)

        # The leaderboard changes with every run: a chart is cached only with the tag of the
        # leaderboard.
        return picture(
            None,
            form,
            look,
            test_collection,
            lambda: COLLECTION_CHARTS[chart](test_collection, query, request.user),
        )


def check_chart(
    request: Request,
    reads: Reads,
    chart: str,
    form: str,
    others: tuple[OpenApiParameter, ...] = CHART_PARAMETERS,
) -> None:
    """Raise Http404 for an unknown chart or format, InvalidInput for parameters of other charts."""
    if chart not in reads or form not in FORMATS:
        charts = f"{', '.join(reads)}; the formats are {', '.join(FORMATS)}"
        raise Http404(f"there is no chart {chart[:40]}.{form[:10]}; the charts are {charts}")

    for refusal in refusals(request.query_params, names_of((*reads[chart], *others))):
        raise refusal


def look_in(query: Mapping[str, str]) -> Look:
    return Look(
        theme=choice_in(query, "theme", tuple(PALETTES)) or "light",
        size=choice_in(query, "size", tuple(SIZES)) or "column",
    )


def picture(
    key: str | None, form: str, look: Look, collection: Collection, make: Callable[[], Figure]
) -> HttpResponse:
    """Return a response with a chart.

    With a key it is cached for a while, here and by the browser.
    """
    content, name = (cache.get(key) if key else None) or (None, "")
    if content is None:
        begin_drawing()
        figure = make()
        if not figure.source:
            figure = figure.drawn_from(collection)

        content, name = render(figure, look, form), figure.file_name(form)
        if key:
            cache.set(key, (content, name), _CACHE_SECONDS)

    response = HttpResponse(content, content_type=FORMATS[form].content_type)
    # Pages show it, too: only the table is always a file.
    disposition = "attachment" if form == "csv" else "inline"
    response["Content-Disposition"] = f'{disposition}; filename="{name}"'
    if key:
        patch_cache_control(response, private=True, max_age=_CACHE_SECONDS)

    return response


def chart_key(
    evaluation: Evaluation | SessionEvaluation, name: str, query: Mapping[str, str]
) -> str:
    identity = repr((type(evaluation).__name__, evaluation.pk, name, sorted(query.items())))
    return f"picture:{hashlib.sha256(identity.encode()).hexdigest()}"
