"""The API of comparisons, computed immediately or by a worker, as JSON or as a table."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.views import APIView

from metrics.api.charts import CHART_PARAMETERS, CHART_RESPONSES, check_chart, look_in, picture
from metrics.api.comparisons import answers
from metrics.api.comparisons.serializers import body_of, parameters_in
from metrics.charts.comparisons.charts import ANSWER_CHARTS
from metrics.exports.comparisons import EXPORTS
from metrics.exports.formats import FORMATS
from metrics.models import Comparison
from metrics.questions.answer_cache import cached, everybody, of_collection
from metrics.questions.comparisons import stored_comparison
from metrics.questions.declared import COMPARISON, PAIRS, parameter
from metrics.questions.parameters import query_of
from metrics.questions.run_ids import without_labels
from metrics.services.comparisons.comparison import (
    ComparisonQuery,
    refuse_groups_of_many,
    refuse_weights,
)
from metrics.services.comparisons.shown_pairs import PairSelection
from metrics.services.comparisons.stored import (
    Answer,
    Outlook,
    answer_comparison,
    check_not_failed,
    look_up_comparison,
    queue_comparison,
    read_stored_comparison,
)
from metrics.services.comparisons.workload import begin_results, begin_results_file
from metrics.services.question import run_id_in, run_ids_in
from runs.api.collections.collections import either
from runs.models import Collection, Scope
from runs.web.access import scored_collection
from runs.web.shapes import shape

NAMED = parameter(
    "runs",
    "run ids separated by commas: only their pairs, with the p values of the whole comparison",
)
_OF_AN_ANSWER = (
    parameter("measures", "one of its measures, default: the first"),
    parameter("tests", "one of its tests, default: the first"),
    NAMED,
)
ComparisonSerializer = body_of(ComparisonQuery, "AskedComparison")
# The status of a comparison that no worker could compute.
FAILED = (409,)


class ComparisonView(APIView):
    """Differences between runs under some measures and tests, with intervals, p values and effect
    sizes.

    A worker computes comparisons that take longer than a second: the answer is 202 with the address
    of the result, and the same request finds the result later. POST takes the parameters as JSON,
    for more runs than fit an address, and always leaves the work to a worker.
    """

    scopes = {"POST": Scope.READ}
    problems = FAILED

    @extend_schema(
        responses={200: shape(answers.Comparison), 202: shape(answers.WaitingComparison)},
        parameters=[*COMPARISON, *PAIRS],
    )
    @cached(of_collection, shared_by=everybody)
    def get(self, request: Request, collection: str) -> Response | Callable[[], Response]:
        test_collection = scored_collection(request, collection)
        parameters = query_of(request, test_collection)
        query = ComparisonQuery.read(parameters, test_collection)
        refuse_groups_of_many(query)
        selection = PairSelection.of(parameters, query)

        answer = look_up_comparison(collection=test_collection, query=query)
        if isinstance(answer, Outlook):
            return lambda: _accepted(
                request, queue_comparison(collection=test_collection, query=query)
            )

        if isinstance(answer, Comparison):
            check_not_failed(answer)
            return _accepted(request, answer)

        begin_results(answer.entrants.pairs.number, selection.limit, answer.query)
        progress = _status(request, answer.stored) if answer.stored else None

        return Response(
            answers.comparison_answer(
                test_collection, answer, selection, request.build_absolute_uri(), progress
            )
        )

    @extend_schema(
        request=ComparisonSerializer,
        responses={200: shape(answers.WaitingComparison), 202: shape(answers.WaitingComparison)},
    )
    def post(self, request: Request, collection: str) -> Response:
        test_collection = scored_collection(request, collection)
        serializer = ComparisonSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        parameters = parameters_in(serializer.validated_data)
        query = ComparisonQuery.read(
            without_labels(parameters, test_collection, request.user), test_collection
        )
        refuse_groups_of_many(query)
        refuse_weights(query)

        return _accepted(request, queue_comparison(collection=test_collection, query=query))


class StoredComparisonView(APIView):
    """A comparison that a worker computes: its progress, and then its result."""

    @extend_schema(
        responses=either(
            "StoredComparison", shape(answers.Comparison), shape(answers.WaitingComparison)
        ),
        parameters=[NAMED, *PAIRS],
    )
    def get(self, request: Request, comparison: UUID) -> Response:
        stored = stored_comparison(request, comparison)
        if stored.state != Comparison.State.COMPARED:
            return Response(answers.WaitingComparison(comparison=_status(request, stored)))

        collection = stored.qrels.collection
        answer = _read(request, stored)
        selection = PairSelection.of(query_of(request, collection), answer.query)
        begin_results(answer.entrants.pairs.number, selection.limit, answer.query)
        url, progress = request.build_absolute_uri(), _status(request, stored)

        return Response(answers.comparison_answer(collection, answer, selection, url, progress))


class ComparisonExport(APIView):
    """A comparison as a file: csv has every pair, md and tex a table of means for one test."""

    problems = FAILED

    @extend_schema(
        responses={(200, "text/csv"): OpenApiTypes.STR, 202: shape(answers.WaitingComparison)},
        parameters=[*COMPARISON, PAIRS[0]],
    )
    def get(self, request: Request, collection: str, kind: str) -> HttpResponseBase:
        test_collection = scored_collection(request, collection)
        query = ComparisonQuery.read(query_of(request, test_collection), test_collection)
        refuse_weights(query)
        answer = answer_comparison(collection=test_collection, query=query)
        if isinstance(answer, Comparison):
            return _accepted(request, answer)

        return _file(request, test_collection, answer, kind)


class StoredComparisonExport(APIView):
    """A comparison by a worker as a file, or its progress if it is not finished."""

    problems = FAILED

    @extend_schema(
        responses={(200, "text/csv"): OpenApiTypes.STR, 202: shape(answers.WaitingComparison)},
        parameters=[NAMED, PAIRS[0]],
    )
    def get(self, request: Request, comparison: UUID, kind: str) -> HttpResponseBase:
        stored = stored_comparison(request, comparison)
        check_not_failed(stored)
        if stored.state != Comparison.State.COMPARED:
            return _accepted(request, stored)

        return _file(request, stored.qrels.collection, _read(request, stored), kind)


class StoredComparisonChart(APIView):
    """A chart of a comparison by a worker: significance or ranks."""

    problems = FAILED

    @extend_schema(
        responses={
            **CHART_RESPONSES,
            202: shape(answers.WaitingComparison),
        },
        parameters=[
            *_OF_AN_ANSWER,
            *CHART_PARAMETERS,
        ],
    )
    def get(self, request: Request, comparison: UUID, chart: str, form: str) -> HttpResponseBase:
        stored = stored_comparison(request, comparison)
        check_chart(request, dict.fromkeys(ANSWER_CHARTS, _OF_AN_ANSWER), chart, form)
        collection = stored.qrels.collection
        query = query_of(request, collection)
        look = look_in(query)

        check_not_failed(stored)
        if stored.state != Comparison.State.COMPARED:
            return _accepted(request, stored)

        answer = _read(request, stored)
        # It is not cached: compared runs may be withdrawn.
        return picture(None, form, look, collection, lambda: ANSWER_CHARTS[chart](answer, query))


def _read(request: Request, stored: Comparison) -> Answer:
    """Return a stored comparison, with all pairs or those of the runs that the request names."""
    runs = run_ids_in(query_of(request, stored.qrels.collection))
    return read_stored_comparison(stored).of(runs)


def _status(request: Request, stored: Comparison) -> answers.ComparisonStatus:
    return answers.status_answer(stored, reverse("stored-comparison", [stored.pk], request=request))


def _accepted(request: Request, stored: Comparison) -> Response:
    """Return a response with the address and the progress of a comparison."""
    progress = _status(request, stored)
    headers = {"Location": progress["url"]}
    code: int = status.HTTP_200_OK
    if stored.state in (Comparison.State.QUEUED, Comparison.State.COMPARING):
        code = status.HTTP_202_ACCEPTED
        headers["Retry-After"] = "1"

    return Response(answers.WaitingComparison(comparison=progress), code, headers=headers)


def _file(request: Request, collection: Collection, answer: Answer, kind: str) -> HttpResponseBase:
    selection = PairSelection(run=run_id_in(query_of(request, collection), "run"), limit=None)
    begin_results_file(answer.entrants.pairs.number, answer.query)

    table, export = EXPORTS[kind](collection, answer, selection), FORMATS[kind]
    headers = export.headers(f"{collection.slug}-comparison")

    return StreamingHttpResponse(export.render(table), headers=headers)
