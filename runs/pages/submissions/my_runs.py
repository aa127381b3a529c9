"""The page of the reader's runs: those of the reader's teams over all collections, never ranked."""

from __future__ import annotations

from typing import Any, cast
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.core.paginator import Paginator
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from metrics.engine.errors import EvalHubError
from metrics.services.queue.queueing import cancel_evaluations, restore_evaluations
from metrics.services.queue.status import RUN_STATES, statuses
from runs.api.submissions.my_runs import MyRunFilter, experiments_by_run, runs_of
from runs.errors import InvalidInput, NotFound
from runs.models import Collection, Run, Scope
from runs.services.submissions.submissions import restore, withdraw
from runs.web.access import withdrawn_submission
from runs.web.forms import FormPage, Refusal, refusal_of, see
from runs.web.origin import origin_of

_OF_A_PAGE = 50
_WITHDRAWN_SHOWN = 20
# In the choice of a collection.
_OFFERED = 500
_ASKED = ("collection", "status", "filter")
_LONG = ("metadata", "costs", "ir_metadata", "warnings", "known_warnings")


class MyRunsPage(FormPage):
    """The runs of the reader's teams. `action` withdraws the chosen ones, restores one, or groups them."""

    scopes = {"POST": Scope.SUBMIT}
    reads = (*_ASKED, "page")
    fields = ("action", "runs", "drop_labels", *_ASKED)

    def get(self, request: Request) -> HttpResponse:
        return _page(request, {name: str(request.query_params.get(name, "")) for name in _ASKED})

    def post(self, request: Request) -> HttpResponse:
        asked = {name: str(request.data.get(name, "")) for name in _ASKED}
        action = str(request.data.get("action", ""))
        try:
            chosen = _ids_in(cast(QueryDict, request.data).getlist("runs"))
            if action == "group":
                return see(
                    request, f"{reverse('experiments-page')}?runs={','.join(map(str, chosen))}#new"
                )
            if action == "restore":
                made = withdrawn_submission(request, Run, chosen[0])
                restore(submission=made, enqueue=restore_evaluations, origin=origin_of(request))
                done = f"{made.tag} restored."
            elif action == "withdraw":
                done = _withdraw(request, chosen)
            else:
                raise InvalidInput("press one of the buttons", pointer="/action")
        except (EvalHubError, APIException) as error:
            return _page(request, asked, refusal_of(error))
        messages.success(request._request, done)
        kept = urlencode({name: text for name, text in asked.items() if text})
        return see(request, f"{reverse('my-runs-page')}{f'?{kept}' if kept else ''}")


def _ids_in(texts: list[Any]) -> list[UUID]:
    """Return the chosen ids. Raise InvalidInput for none, and for what is not an id."""
    try:
        found = list(dict.fromkeys(UUID(str(text)) for text in texts))
    except ValueError as error:
        raise InvalidInput("choose runs of the list", pointer="/runs") from error
    if not found:
        raise InvalidInput("select runs first", code="required", pointer="/runs")
    return found


def _withdraw(request: Request, chosen: list[UUID]) -> str:
    """Withdraw all of these runs, or none. Raise Conflict for one with labels, unless these are to be deleted, too."""
    with transaction.atomic():
        # In the order of their keys, so that two requests never wait for each other.
        Run.objects.select_for_update().filter(pk__in=chosen).order_by("pk").values_list(
            "pk"
        ).last()
        runs = list(runs_of(request.user).filter(pk__in=chosen).order_by("pk"))
        if len(runs) < len(chosen):
            raise NotFound(
                "one of these runs is not yours, or was withdrawn meanwhile; load the page again"
            )
        for run in runs:
            without = request.data.get("drop_labels") == "yes"
            withdraw(
                submission=run,
                cancel=cancel_evaluations,
                without_labels=without,
                origin=origin_of(request),
            )
    return f"{len(runs):,} run{'' if len(runs) == 1 else 's'} withdrawn. For a day, each can be restored below."


def _page(request: Request, asked: dict[str, str], refused: Refusal | None = None) -> HttpResponse:
    own = runs_of(request.user).defer(*_LONG)
    runs: QuerySet[Run] = own
    try:
        runs = _filtered(request, own, asked)
    except EvalHubError as error:
        # All are shown, and above them what is wrong with the filter.
        refused = refused or refusal_of(error)
    page = Paginator(runs, _OF_A_PAGE).get_page(request.query_params.get("page"))
    shown = list(page)
    known = statuses(shown, request.user)
    grouped = experiments_by_run(request.user, [run.pk for run in shown])
    gone = (
        runs_of(request.user, withdrawn=True)
        .defer(*_LONG)
        .order_by("-deleted_at")[:_WITHDRAWN_SHOWN]
    )
    kept = urlencode({name: text for name, text in asked.items() if text})
    context: dict[str, Any] = {
        "page": page,
        "kept": f"{kept}&" if kept else "",
        "lines": [
            (run, known[str(run.pk)], run.labels.all(), grouped.get(run.pk, [])) for run in shown
        ],
        "withdrawn": list(gone),
        "asked": asked,
        "any": own.exists() if not shown else True,
        "collections": list(
            Collection.objects.visible_to(request.user)
            .filter(pk__in=own.order_by().values("collection"))
            .only("slug", "name")[:_OFFERED]
        ),
        "states": RUN_STATES,
        "refused": refused,
        "wrong": refused.fields if refused else {},
    }
    response = render(
        request._request, "runs/my_runs.html", context, status=refused.status if refused else 200
    )
    response["Cache-Control"] = "no-store"
    return response


def _filtered(request: Request, own: QuerySet[Run], asked: dict[str, str]) -> QuerySet[Run]:
    """Return the runs that the form asks for. Raise InvalidInput for a filter that cannot be read."""
    given = {name: text for name, text in asked.items() if text}
    found = MyRunFilter(given, queryset=own, request=request)
    if not found.form.is_valid():
        name, errors = next(iter(found.form.errors.items()))
        raise InvalidInput(f"{name}: {errors[0]}", pointer=f"/{name}")
    runs: QuerySet[Run] = found.qs
    return runs
