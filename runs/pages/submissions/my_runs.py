"""The page of the runs of the reader's teams in all collections, never ranked."""

from __future__ import annotations

from typing import Any, cast
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.core.paginator import Paginator
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpResponse, QueryDict
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
from runs.web.forms import FormPage, Refusal, redirect_to, refusal_of, render_form
from runs.web.origin import origin_of

_RUNS_OF_A_PAGE = 50
_MAX_WITHDRAWN = 20
# In the choice of a collection.
_MAX_COLLECTIONS = 500
_FILTERS = ("collection", "status", "filter")
_LONG_COLUMNS = ("metadata", "costs", "ir_metadata", "warnings", "known_warnings")


class MyRunsPage(FormPage):
    """The runs of the reader's teams. `action` withdraws or groups chosen ones, or restores one."""

    scopes = {"POST": Scope.SUBMIT}
    reads = (*_FILTERS, "page")
    fields = ("action", "runs", "drop_labels", *_FILTERS)

    def get(self, request: Request) -> HttpResponse:
        return _page(request, {name: str(request.query_params.get(name, "")) for name in _FILTERS})

    def post(self, request: Request) -> HttpResponse:
        filters = {name: str(request.data.get(name, "")) for name in _FILTERS}
        action = str(request.data.get("action", ""))
        try:
            ids = _ids_in(cast(QueryDict, request.data).getlist("runs"))
            if action == "group":
                runs = ",".join(str(pk) for pk in ids)
                return redirect_to(request, f"{reverse('experiments-page')}?runs={runs}#new")

            if action == "restore":
                run = withdrawn_submission(request, Run, ids[0])
                restore(submission=run, enqueue=restore_evaluations, origin=origin_of(request))
                done = f"{run.tag} restored."
            elif action == "withdraw":
                done = _withdraw(request, ids)
            else:
                raise InvalidInput("press one of the buttons", pointer="/action")
        except (EvalHubError, APIException) as error:
            return _page(request, filters, refusal_of(error))

        messages.success(request, done)
        query = urlencode({name: text for name, text in filters.items() if text})
        return redirect_to(request, f"{reverse('my-runs-page')}{f'?{query}' if query else ''}")


def _ids_in(texts: list[Any]) -> list[UUID]:
    """Return the chosen ids. Raise InvalidInput for none, and for a text that is not an id."""
    try:
        ids = list(dict.fromkeys(UUID(str(text)) for text in texts))
    except ValueError as error:
        raise InvalidInput("choose runs of the list", pointer="/runs") from error

    if not ids:
        raise InvalidInput("select runs first", code="required", pointer="/runs")
    return ids


def _withdraw(request: Request, ids: list[UUID]) -> str:
    """Withdraw all of these runs, or none. Raise Conflict for one with labels that stay."""
    with transaction.atomic():
        # In the order of their keys, so that two requests never wait for each other.
        rows = Run.objects.select_for_update().filter(pk__in=ids).order_by("pk")
        rows.values_list("pk").last()
        runs = list(runs_of(request.user).filter(pk__in=ids).order_by("pk"))
        if len(runs) < len(ids):
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

    plural = "" if len(runs) == 1 else "s"
    return f"{len(runs):,} run{plural} withdrawn. For a day, each can be restored below."


def _page(
    request: Request, filters: dict[str, str], refusal: Refusal | None = None
) -> HttpResponse:
    own = runs_of(request.user).defer(*_LONG_COLUMNS)
    matching: QuerySet[Run] = own
    try:
        matching = _filter(request, own, filters)
    except EvalHubError as error:
        # The page shows all runs, and above them what is wrong with the filter.
        refusal = refusal or refusal_of(error)

    page = Paginator(matching, _RUNS_OF_A_PAGE).get_page(request.query_params.get("page"))
    runs = list(page)
    states = statuses(runs, request.user)
    experiments = experiments_by_run(request.user, [run.pk for run in runs])

    withdrawn = runs_of(request.user, withdrawn=True).defer(*_LONG_COLUMNS)
    collections = Collection.objects.visible_to(request.user).filter(
        pk__in=own.order_by().values("collection")
    )

    query = urlencode({name: text for name, text in filters.items() if text})

    context: dict[str, Any] = {
        "page": page,
        "query_prefix": f"{query}&" if query else "",
        "lines": [
            (run, states[str(run.pk)], run.labels.all(), experiments.get(run.pk, []))
            for run in runs
        ],
        "withdrawn": list(withdrawn.order_by("-deleted_at")[:_MAX_WITHDRAWN]),
        "filters": filters,
        "any": own.exists() if not runs else True,
        "collections": list(collections.only("slug", "name")[:_MAX_COLLECTIONS]),
        "states": RUN_STATES,
    }

    response = render_form(request, "runs/my_runs.html", context, refusal)
    response["Cache-Control"] = "no-store"
    return response


def _filter(request: Request, own: QuerySet[Run], filters: dict[str, str]) -> QuerySet[Run]:
    """Return the runs that match. Raise InvalidInput for a filter that cannot be read."""
    values = {name: text for name, text in filters.items() if text}
    run_filter = MyRunFilter(values, queryset=own, request=request)
    if not run_filter.form.is_valid():
        name, errors = next(iter(run_filter.form.errors.items()))
        raise InvalidInput(f"{name}: {errors[0]}", pointer=f"/{name}")

    matching: QuerySet[Run] = run_filter.qs
    return matching
