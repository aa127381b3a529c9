"""The API of parameters as CSV: a row for each run, to download and to upload."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from metrics.services.boards.conditions import visible_board
from metrics.services.boards.matching import matching_runs
from runs.api.collections.collections import upload_fields
from runs.api.tracking.edits import EditedRuns, edited_run
from runs.errors import FileTooLarge, InvalidInput
from runs.formats.parameter_table import (
    COST,
    MAX_BYTES,
    MAX_ROWS,
    PARAM,
    Key,
    TableRow,
    read_table,
    write_table,
)
from runs.models import Collection, Run, Scope
from runs.services.tracking.edits import Edit, edits_of_table, save_edits, values_of
from runs.web.access import note_filter, visible_collection
from runs.web.origin import origin_of
from runs.web.parameters import KnownFields, text_of
from runs.web.shapes import shape
from runs.web.uploads import FILE_PARSERS, RawFileParser, query_fields


class CsvParser(RawFileParser):
    media_type = "text/csv"


class ParameterTableSerializer(KnownFields, serializers.Serializer[Any]):
    """A CSV with a row for each run."""

    file = serializers.FileField(allow_empty_file=True)
    dry_run = serializers.BooleanField(required=False, default=False)


class ParameterTable(APIView):
    """Parameters and costs as CSV: those of visible runs to read, of own ones to change."""

    scopes = {"POST": Scope.SUBMIT}
    problems = (403,)
    problems_of_bodies = (422,)
    parser_classes = (*FILE_PARSERS, CsvParser)

    @extend_schema(
        operation_id="parameter_table_retrieve",
        responses={(200, "text/csv"): OpenApiTypes.STR},
        parameters=[
            OpenApiParameter(
                "filter", description="the runs that a filter of the leaderboard selects"
            )
        ],
    )
    def get(self, request: Request, collection: str) -> HttpResponse:
        visible = visible_collection(request, collection)
        runs = readable_runs(request, visible, text_of(request.query_params).get("filter", ""))
        disposition = f'attachment; filename="{visible.slug}-parameters.csv"'
        return HttpResponse(
            table_of(runs),
            content_type="text/csv; charset=utf-8",
            headers={"Content-Disposition": disposition},
        )

    @extend_schema(
        operation_id="parameter_table_create",
        request={
            "multipart/form-data": ParameterTableSerializer,
            "text/csv": OpenApiTypes.BINARY,
        },
        responses=shape(EditedRuns),
        parameters=query_fields(ParameterTableSerializer),
    )
    def post(self, request: Request, collection: str) -> Response:
        """Set the parameters and costs of the runs that a CSV names: all or none."""
        visible = visible_collection(request, collection)
        with upload_fields(request, ParameterTableSerializer) as fields:
            rows = read_table(content_of(fields["file"]))
            edits = change_by_table(request, visible, rows, dry_run=fields["dry_run"])

        return Response(
            EditedRuns(
                dry_run=fields["dry_run"],
                runs=len(rows),
                changed=len(edits),
                results=[edited_run(edit) for edit in edits],
            )
        )


def content_of(file: Any) -> bytes:
    """Return the content of an uploaded CSV. Raise FileTooLarge beyond the limit."""
    if file.size > MAX_BYTES:
        raise FileTooLarge(f"the CSV is larger than the limit of {MAX_BYTES:,} bytes")
    content: bytes = file.read()
    return content


def readable_runs(request: Request, collection: Collection, filter_text: str) -> list[Run]:
    """Return the runs that the reader sees and a filter selects, as on the page of parameters."""
    note_filter(request, collection, filter_text)
    visible = visible_board(collection, request.user).runs

    return _rows(matching_runs(collection, filter_text, request.user, visible))


def changeable_runs(
    request: Request, collection: Collection, filter_text: str, ids: list[UUID] | None = None
) -> list[Run]:
    """Return the runs of the user's teams that a filter selects, or those named by ids."""
    note_filter(request, collection, filter_text)
    own = matching_runs(collection, filter_text, request.user, _own(request, collection))
    if ids is not None:
        own = own.filter(pk__in=ids)

    return _rows(own)


def _rows(selected: QuerySet[Run]) -> list[Run]:
    runs = list(selected.select_related("team").order_by("created_at", "pk")[: MAX_ROWS + 1])
    if len(runs) > MAX_ROWS:
        message = f"more than {MAX_ROWS:,} runs; select fewer with filter"
        raise InvalidInput(message, code="too_many_runs", pointer="filter")
    return runs


def _visible(request: Request, collection: Collection) -> QuerySet[Run]:
    return Run.objects.visible_to(request.user).filter(collection=collection).order_by()


def _own(request: Request, collection: Collection) -> QuerySet[Run]:
    own = Run.objects.visible_to(request.user).owned_by(request.user)
    return own.filter(collection=collection).order_by()


def table_of(runs: list[Run]) -> str:
    """Return the CSV of these runs: parameters first, then costs, by name."""
    values = [values_of(run) for run in runs]
    keys: set[Key] = set().union(*values)
    ordered = sorted(keys, key=lambda key: ((PARAM, COST).index(key[0]), key[1]))
    rows = ((run.team.slug, run.tag, own) for run, own in zip(runs, values, strict=True))
    return write_table(ordered, rows)


def change_by_table(
    request: Request, collection: Collection, rows: list[TableRow], *, dry_run: bool
) -> list[Edit]:
    """Store the values of a table in one transaction, or with `dry_run` nothing.

    Return the edits that change a run.
    """
    with transaction.atomic():
        edits = edits_of_table(
            collection=collection,
            visible=_visible(request, collection),
            own=_own(request, collection),
            rows=rows,
        )
        changing = [edit for edit in edits if edit.differing]
        if not dry_run:
            save_edits(collection, changing, origin_of(request))

    return changing
