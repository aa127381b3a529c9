"""The API of values as tables for R, pandas and spreadsheets: of all runs, and of one run."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypedDict
from uuid import UUID

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from metrics.api.answers import MeasureCautions, RunName, cautions_of, numbers, run_name
from metrics.exports.formats import FORMATS
from metrics.exports.values.matrix import MATRIX_EXPORTS, columns_of
from metrics.exports.values.run_values import RUN_VALUE_EXPORTS
from metrics.questions.answer_cache import cached, everybody, of_collection
from metrics.questions.declared import TOPICS, declared
from metrics.questions.parameters import query_of
from metrics.services.boards.matrix import MatrixFileQuery, MatrixQuery, read_matrix
from metrics.services.boards.topic_selection import SelectionQuery, flags_of
from metrics.services.snapshots import read_in_snapshot
from metrics.services.values.values import RunValuesQuery, find_evaluation, read_values
from runs.web.access import scored_collection, scored_run
from runs.web.shapes import shape


class CollectionValues(TypedDict):
    """The values of several runs by topic."""

    collection: str
    qrels: int
    scores: str
    cautions: MeasureCautions
    runs: list[RunName]
    topics: list[str]
    topics_filter: NotRequired[Annotated[str, "the topics that are selected, if not all"]]
    values: Annotated[
        dict[str, list[list[float | None]]],
        "by measure: for each run, in the order of `runs`, its values in the order of `topics`; "
        "null is undefined",
    ]


class CollectionValuesView(APIView):
    """The values of every evaluated run by topic, under the active judgements, in one request."""

    @extend_schema(responses=shape(CollectionValues), parameters=[*declared(MatrixQuery)])
    @cached(of_collection, shared_by=everybody)
    def get(self, request: Request, collection: str) -> Response:
        test_collection = scored_collection(request, collection)
        query = MatrixQuery.read(query_of(request, test_collection), test_collection)
        matrix = read_matrix(collection=test_collection, query=query)

        answer = CollectionValues(
            collection=test_collection.slug,
            qrels=matrix.qrels.version,
            scores=matrix.scores,
            cautions=cautions_of(matrix.cautions),
            runs=[run_name(evaluation.run) for evaluation in matrix.evaluations],
            topics=matrix.topic_ids,
            values={
                name: [numbers(row) for row in values.tolist()]
                for name, values in matrix.values.items()
            },
        )

        if matrix.selection:
            answer["topics_filter"] = matrix.selection.text

        return Response(answer)


class CollectionValuesExport(APIView):
    """The same values as a file: csv, or parquet where the server has pyarrow.

    An undefined value is an empty cell.
    """

    @extend_schema(
        responses={
            (200, "text/csv"): OpenApiTypes.STR,
            (200, "application/vnd.apache.parquet"): OpenApiTypes.BINARY,
        },
        parameters=[*declared(MatrixFileQuery)],
    )
    def get(self, request: Request, collection: str, kind: str) -> HttpResponse:
        test_collection = scored_collection(request, collection)
        query = MatrixFileQuery.read(query_of(request, test_collection), test_collection)
        matrix = read_in_snapshot(lambda: read_matrix(collection=test_collection, query=query))
        export = MATRIX_EXPORTS[kind]
        response = HttpResponse(
            export.render(columns_of(matrix, query.layout)), content_type=export.content_type
        )
        response["Content-Disposition"] = (
            f'attachment; filename="{test_collection.slug}-values.{kind}"'
        )

        return response


class RunValuesExport(APIView):
    """A run's values for every topic as a file: csv at full precision, or trec_eval's lines,
    `trec_eval -q`."""

    @extend_schema(
        responses={(200, "text/csv"): OpenApiTypes.STR},
        parameters=[*declared(RunValuesQuery), TOPICS],
    )
    def get(self, request: Request, run: UUID, kind: str) -> HttpResponse:
        submitted_run = scored_run(request, run)
        parameters = query_of(request)
        query = RunValuesQuery.read(parameters, submitted_run.collection)
        selection_query = SelectionQuery.read(parameters)
        evaluation = find_evaluation(run=submitted_run, query=query.evaluation)
        selected = flags_of(selection_query.select(evaluation))
        values = read_values(evaluation=evaluation, measures=query.measures, selected=selected)
        text = "".join(RUN_VALUE_EXPORTS[kind](submitted_run, values))

        return HttpResponse(text, headers=FORMATS[kind].headers(f"{submitted_run.pk}-values"))
