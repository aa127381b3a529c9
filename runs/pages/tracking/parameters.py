"""The page that edits the parameters and costs of a run, as lines `key = value`."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from rest_framework.request import Request

from runs.api.submissions.submissions import tag_of
from runs.errors import ChangedMeanwhile, Unprocessable
from runs.formats.parameter_lines import (
    edited,
    read_lines,
    shown_values,
    write_lines,
    written_value,
)
from runs.formats.parameters import flatten, read_costs
from runs.models import Run, Scope
from runs.services.tracking.edits import Changed, PastEdit, edit_of, history_of, save_edits
from runs.web.access import lock_row, owned_run
from runs.web.forms import FormPage, redirect_to
from runs.web.origin import origin_of
from runs.web.views import problem_of

# Names of values that are not searched.
_MAX_NAMES = 10
_MAX_EDITS = 20


class RunParametersPage(FormPage):
    """Edit the parameters and costs of a run of the reader's team, and see earlier edits."""

    scopes = {"POST": Scope.SUBMIT}
    fields = ("parameters", "costs", "read")

    def get(self, request: Request, run_id: UUID) -> HttpResponse:
        run = owned_run(request, run_id)
        return _page(request, run, write_lines(shown_values(run.metadata)), write_lines(run.costs))

    def post(self, request: Request, run_id: UUID) -> HttpResponse:
        parameters, costs = (str(request.data.get(name, "")) for name in ("parameters", "costs"))
        with transaction.atomic():
            lock_row(Run, run_id)
            run = owned_run(request, run_id)
            try:
                if request.data.get("read", tag_of(run)) != tag_of(run):
                    message = (
                        "this run has been changed since you read it; "
                        "compare with what it has now, below"
                    )
                    raise ChangedMeanwhile(message)

                edit = edit_of(
                    run,
                    metadata=edited(run.metadata, read_lines(parameters, "parameters")),
                    costs=read_costs(read_lines(costs, "costs")),
                )
                save_edits(run.collection, [edit], origin_of(request))
            except (Unprocessable, ChangedMeanwhile) as error:
                return _page(request, run, parameters, costs, error)

        return redirect_to(request, reverse("run-parameters-page", args=[run.pk]))


def shown_edits(run: Run) -> list[tuple[PastEdit, list[tuple[str, str | None, str | None]]]]:
    """Return the latest edits of a run, each with its changes as texts."""
    edits = history_of(run)[-_MAX_EDITS:]
    return [(edit, [_texts_of(change) for change in edit.changes]) for edit in edits]


def _texts_of(change: Changed) -> tuple[str, str | None, str | None]:
    """Return the name of a changed value, and the value before and after; None if it was unset."""
    before = None if change.before is None else written_value(change.before)
    after = None if change.after is None else written_value(change.after)
    return change.name, before, after


def _page(
    request: Request, run: Run, parameters: str, costs: str, error: Exception | None = None
) -> HttpResponse:
    status, refused = problem_of(error) if error else (200, "")
    context: dict[str, Any] = {
        "run": run,
        "parameters": parameters,
        "costs": costs,
        "rows": min(25, max(6, parameters.count("\n") + 2)),
        "read": tag_of(run),
        "refused": refused,
        "left_out": flatten(run.metadata).left_out[:_MAX_NAMES],
        "edits": shown_edits(run),
    }

    if isinstance(error, ChangedMeanwhile):
        context["now"] = write_lines({**shown_values(run.metadata), **run.costs})
    return render(request, "runs/parameters.html", context, status=status)
