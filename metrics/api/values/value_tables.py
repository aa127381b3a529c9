"""The API of value tables: measures that other programs compute, and their values."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, TypedDict

from django.db.models import QuerySet
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.views import APIView

from metrics.questions.value_tables import (
    MeasureChangeSerializer,
    MeasureDeclarationSerializer,
    ValueTableSerializer,
    sender_of,
    tables_seen_by,
)
from metrics.services.values.value_tables import (
    change_measure,
    check_table,
    declare_measure,
    delete_measure,
    find_measure,
    import_table,
    table_lines,
)
from runs.api.collections.collections import FILE, either, upload_fields
from runs.models import (
    Collection,
    ExternalMeasure,
    Scope,
    Team,
    ValueTable,
    can_see_scores,
)
from runs.services.storage.reports import FileReport, grouped, report_as_json
from runs.web import idempotency
from runs.web.access import check_scores, managed_collection, visible_collection
from runs.web.fields import JSONObject
from runs.web.lists import AnswerList
from runs.web.origin import origin_of
from runs.web.permissions import Access
from runs.web.shapes import OneOf, shape
from runs.web.uploads import FILE_PARSERS, query_fields


class DeclaredMeasure(TypedDict):
    """A measure with values from tables."""

    name: Annotated[str, "as other addresses take it: x: and the declared name"]
    direction: Annotated[str, OneOf(ExternalMeasure.Direction.values), "which values are better"]
    low: Annotated[float | None, "no value is lower"]
    high: Annotated[float | None, "no value is higher"]
    unit: str
    description: str
    aggregate: Annotated[
        str, OneOf(ExternalMeasure.Aggregation.values), "the value of a run from those of topics"
    ]
    missing: Annotated[
        str, OneOf(ExternalMeasure.Missing.values), "the value of a topic that tables lack"
    ]
    source: Annotated[
        str,
        OneOf(ExternalMeasure.Source.values),
        "who gives values: the organisers, or each team those of its own runs",
    ]
    version: Annotated[int, "the number of the last table with values of it; 0 for none"]
    created_at: datetime


class UploadedTable(TypedDict):
    """An uploaded table."""

    number: Annotated[int, "within its collection, from 1"]
    note: str
    tool: Annotated[str, "the program that computed the values"]
    tool_version: str
    provenance: JSONObject
    sha256: Annotated[str, "of the file"]
    measures: Annotated[dict[str, int], "the number of values of each measure"]
    runs: int
    values: int
    warnings: FileReport
    created_by: Annotated[str | None, "a user name; null for an account that is gone"]
    created_at: datetime


class CheckedTable(TypedDict):
    """What a dry run found."""

    sha256: str
    measures: dict[str, int]
    runs: int
    values: int
    warnings: FileReport


def declared_measure(measure: ExternalMeasure) -> DeclaredMeasure:
    return DeclaredMeasure(
        name=str(measure),
        direction=measure.direction,
        low=measure.low,
        high=measure.high,
        unit=measure.unit,
        description=measure.description,
        aggregate=measure.aggregate,
        missing=measure.missing,
        source=measure.source,
        version=measure.version,
        created_at=measure.created_at,
    )


def uploaded_table(table: ValueTable) -> UploadedTable:
    return UploadedTable(
        number=table.number,
        note=table.note,
        tool=table.tool,
        tool_version=table.tool_version,
        provenance=table.provenance,
        sha256=table.sha256,
        measures=table.measures,
        runs=table.runs,
        values=table.values,
        warnings=grouped(table.warnings),
        created_by=table.created_by.username if table.created_by else None,
        created_at=table.created_at,
    )


def _may_declare(request: Request, body: Any, collection: str) -> bool:
    return Collection.objects.managed_by(request.user).filter(slug=collection).exists()


def _may_send(request: Request, body: Any, collection: str) -> bool:
    return Collection.objects.visible_to(request.user).filter(slug=collection).exists()


class MeasureDeclarations(AnswerList[ExternalMeasure]):
    """The measures of value tables of a collection; POST declares one."""

    serializer_class = shape(DeclaredMeasure)
    answer = staticmethod(declared_measure)
    scopes = {"POST": Scope.MANAGE}
    queryset = ExternalMeasure.objects.none()

    def get_queryset(self) -> QuerySet[ExternalMeasure]:
        collection = visible_collection(self.request, self.kwargs["collection"])
        return collection.external_measures.order_by("name")

    @extend_schema(
        request=MeasureDeclarationSerializer,
        responses={201: shape(DeclaredMeasure)},
        parameters=[idempotency.PARAMETER],
    )
    @idempotency.idempotent(_may_declare)
    def post(self, request: Request, collection: str) -> Response:
        managed = managed_collection(request, collection)
        serializer = MeasureDeclarationSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        measure = declare_measure(
            collection=managed,
            fields=serializer.validated_data,
            origin=origin_of(request),
            accept=lambda measure: idempotency.remember(
                request, lambda: _declared_response(request, measure)
            ),
        )
        return _declared_response(request, measure)


def _declared_response(request: Request, measure: ExternalMeasure) -> Response:
    address = reverse(
        "measure-declaration", args=[measure.collection.slug, measure.name], request=request
    )
    return Response(
        declared_measure(measure), status.HTTP_201_CREATED, headers={"Location": address}
    )


class MeasureDeclaration(APIView):
    """A measure of value tables. PATCH changes its texts, or all of it while it has no values;
    DELETE deletes it with its values."""

    scopes = {"PATCH": Scope.MANAGE, "DELETE": Scope.MANAGE}

    @extend_schema(responses=shape(DeclaredMeasure))
    def get(self, request: Request, collection: str, declared: str) -> Response:
        return Response(
            declared_measure(find_measure(visible_collection(request, collection), declared))
        )

    @extend_schema(request=MeasureChangeSerializer, responses=shape(DeclaredMeasure))
    def patch(self, request: Request, collection: str, declared: str) -> Response:
        measure = find_measure(managed_collection(request, collection), declared)
        serializer = MeasureChangeSerializer(data=request.data, partial=True)
        serializer.is_valid(raise_exception=True)
        measure = change_measure(
            measure=measure, fields=serializer.validated_data, origin=origin_of(request)
        )
        return Response(declared_measure(measure))

    @extend_schema(request=None, responses={204: None})
    def delete(self, request: Request, collection: str, declared: str) -> Response:
        measure = find_measure(managed_collection(request, collection), declared)
        delete_measure(measure=measure, origin=origin_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class DeclaredValues(APIView):
    """The present values of a measure as a table, as it is uploaded.

    While judgements are blind, members of a team read what it reported of its own runs.
    """

    @extend_schema(responses=FILE)
    def get(self, request: Request, collection: str, declared: str) -> HttpResponse:
        test_collection = visible_collection(request, collection)
        measure = find_measure(test_collection, declared)
        teams = None
        if measure.source == ExternalMeasure.Source.REPORTED and not can_see_scores(
            request.user, test_collection
        ):
            teams = Team.objects.of(request.user)
        else:
            check_scores(request, test_collection)

        name = f"{collection}-{measure.name}.tsv"
        response = HttpResponse(
            "".join(table_lines(measure, teams)), content_type="text/tab-separated-values"
        )
        response["Content-Disposition"] = f'attachment; filename="{name}"'
        return response


class ValueTableList(AnswerList[ValueTable]):
    """The value tables of a collection, the last one first; POST uploads one.

    Organisers give values of any run, members of a team those of its own runs for measures with
    the source `reported`. While judgements are blind, others see their own tables alone.
    """

    serializer_class = shape(UploadedTable)
    answer = staticmethod(uploaded_table)
    scopes = {"POST": Scope.SUBMIT}
    access = {"POST": Access.SIGNED_IN}
    parser_classes = FILE_PARSERS
    queryset = ValueTable.objects.none()

    def get_queryset(self) -> QuerySet[ValueTable]:
        collection = visible_collection(self.request, self.kwargs["collection"])
        return tables_seen_by(self.request.user, collection)

    @extend_schema(
        request={"multipart/form-data": ValueTableSerializer},
        responses={
            201: shape(UploadedTable),
            200: either("TableOrCheck", shape(UploadedTable), shape(CheckedTable)),
        },
        parameters=[*query_fields(ValueTableSerializer), idempotency.PARAMETER],
    )
    @idempotency.idempotent(_may_send)
    def post(self, request: Request, collection: str) -> Response:
        test_collection = visible_collection(request, collection)
        sender = sender_of(request, test_collection)
        with upload_fields(request, ValueTableSerializer) as fields:
            path = fields.pop("file").path
            if fields.pop("dry_run"):
                table = check_table(collection=test_collection, upload=path, sender=sender)
                return Response(
                    CheckedTable(
                        sha256=table.sha256,
                        measures=table.measures,
                        runs=table.runs,
                        values=table.values,
                        warnings=report_as_json(table.report),
                    )
                )

            stored = import_table(
                collection=test_collection,
                upload=path,
                sender=sender,
                fields=fields,
                origin=origin_of(request),
                accept=lambda table: idempotency.remember(
                    request, lambda: Response(uploaded_table(table), status.HTTP_201_CREATED)
                ),
            )

        return Response(uploaded_table(stored), status.HTTP_201_CREATED)
