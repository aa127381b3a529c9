"""The page on which members of a team edit the parameters and costs of many runs: as cells or CSV."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from metrics.engine.errors import EvalHubError
from runs.api.tracking.parameter_table import (
    change_by_table,
    changeable_runs,
    content_of,
    table_of,
)
from runs.errors import InvalidInput
from runs.formats.parameter_lines import written_value
from runs.formats.parameter_table import TableRow, read_table
from runs.models import Collection, Scope
from runs.services.tracking.edits import Edit
from runs.web.access import visible_collection
from runs.web.forms import FormPage, Refusal, fields_of, redirect_to, refusal_of, render_form

# More cells are edited as CSV alone.
_MAX_CELLS = 3_000
# Runs of which a check lists the changes.
_MAX_LISTED = 20


class EditParametersPage(FormPage):
    """Check a table of parameters, which stores nothing, or store it."""

    scopes = {"POST": Scope.SUBMIT}
    reads = ("filter", "runs")
    fields = ("action", "table", "before", "file")

    def get(self, request: Request, slug: str) -> HttpResponse:
        collection = visible_collection(request, slug)
        table = table_of(self._runs(request, collection))
        return _page(request, collection, {"table": table, "before": table})

    def post(self, request: Request, slug: str) -> HttpResponse:
        collection = visible_collection(request, slug)
        dry_run = request.data.get("action") == "check"
        fields = fields_of(request, "table", "before")
        file = request.FILES.get("file")
        try:
            if file:
                with file:
                    fields = {"table": content_of(file).decode("utf-8-sig", "replace")}
                    file.seek(0)
                    rows = read_table(content_of(file))
            else:
                rows = _edited_rows(fields.get("table", ""), fields.get("before", ""))
            edits = change_by_table(request, collection, rows, dry_run=dry_run)
        except (EvalHubError, APIException) as error:
            return _page(request, collection, fields, refusal_of(error))

        if dry_run:
            return _page(request, collection, fields, checked=edits)

        plural = "" if len(edits) == 1 else "s"
        messages.success(request._request, f"Parameters of {len(edits):,} run{plural} changed.")
        return redirect_to(request, request.get_full_path())

    def _runs(self, request: Request, collection: Collection) -> Any:
        parameters = request.query_params
        ids = [_run_id(text) for text in parameters.get("runs", "").split(",") if text.strip()]
        return changeable_runs(request, collection, parameters.get("filter", ""), ids or None)


def _run_id(text: str) -> UUID:
    try:
        return UUID(text.strip())
    except ValueError as error:
        raise InvalidInput(f"{text[:40]!r} is not the id of a run", pointer="runs") from error


def _edited_rows(table: str, before: str) -> list[TableRow]:
    """Return the rows of a table without the values that its page had already.

    What others have changed since then stays.
    """
    rows = read_table(table.encode())
    try:
        shown = {(row.run, row.team, row.tag): row.values for row in read_table(before.encode())}
    except EvalHubError:
        return rows

    edited = []
    for row in rows:
        old = shown.get((row.run, row.team, row.tag), {})
        values = {
            key: value
            for key, value in row.values.items()
            if key not in old or (type(old[key]), old[key]) != (type(value), value)
        }
        edited.append(replace(row, values=values))
    return edited


@dataclass(frozen=True)
class TableCell:
    """A cell of the table: its text, and the label of its field; a name of the run has none."""

    text: str
    label: str = ""


def _cells_of(table: str) -> tuple[list[str], list[list[TableCell]]]:
    """Return the names of the columns of a table and its cells.

    There are none if it has too many, or rows of different lengths.
    """
    try:
        head, *rows = list(csv.reader(io.StringIO(table, newline=""))) or [[]]
    except csv.Error:
        return [], []

    fits = len(rows) * len(head) <= _MAX_CELLS and all(len(row) == len(head) for row in rows)
    if not fits or "tag" not in head:
        return [], []

    tag = head.index("tag")
    cells = [
        [
            TableCell(text, "" if name in ("run", "team", "tag") else f"{name} of {row[tag]}")
            for name, text in zip(head, row, strict=True)
        ]
        for row in rows
    ]
    return head, cells


def _changes_of(edits: list[Edit]) -> list[tuple[str, list[tuple[str, str, str]]]]:
    """Return the tag of each run with its changed values, before and after, as texts."""
    return [
        (
            edit.run.tag,
            [
                (name, _text_of(before), _text_of(after))
                for pairs in edit.differing.values()
                for name, (before, after) in pairs.items()
            ],
        )
        for edit in edits[:_MAX_LISTED]
    ]


def _text_of(value: Any) -> str:
    return "not set" if value is None else written_value(value)


def _page(
    request: Request,
    collection: Collection,
    fields: dict[str, str],
    refusal: Refusal | None = None,
    *,
    checked: list[Edit] | None = None,
) -> HttpResponse:
    head, rows = _cells_of(fields.get("table", ""))
    context = {
        "collection": collection,
        "form_values": fields,
        "head": head,
        "rows": rows,
        "checked": checked is not None,
        "changed": len(checked or ()),
        "changes": _changes_of(checked or []),
    }

    return render_form(request, "runs/edit_parameters.html", context, refusal)
