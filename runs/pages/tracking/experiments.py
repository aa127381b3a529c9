"""The page of all experiments: those that the reader sees, and the form that makes one, perhaps of chosen runs."""

from __future__ import annotations

from typing import Any, cast
from uuid import UUID

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.text import slugify
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from metrics.engine.errors import EvalHubError
from runs.api.tracking.experiments import ExperimentSerializer
from runs.errors import InvalidInput
from runs.models import Experiment, Run, Scope, Team, User
from runs.services.tracking.experiments import MAX_RUNS, change_runs, create_experiment
from runs.web.access import experiments_of, visible_experiment
from runs.web.forms import FormPage, Refusal, fields_of, refusal_of, see
from runs.web.origin import origin_of
from runs.web.parameters import text_of

VISIBILITIES = {
    Experiment.Visibility.TEAM.value: ("Our team", "its members see the experiment and its notes"),
    Experiment.Visibility.COLLECTION.value: (
        "Shared", "everyone who sees all of its runs; the organisers of their collections can share it",
    ),
}  # fmt: skip
_OF_A_PAGE = 50
# In the choice of one to which runs are added.
_OFFERED = 200
_FIELDS = ("name", "slug", "team", "goal", "visibility")


class ExperimentsPage(FormPage):
    """The experiments that the reader sees. `runs` are runs to group: into a new experiment, or one that is there."""

    signed_in = False
    scopes = {"POST": Scope.SUBMIT}
    reads = ("runs", "page")
    fields = (*_FIELDS, "action", "runs", "experiment")

    def get(self, request: Request) -> HttpResponse:
        return _page(request, text_of(request.query_params).get("runs", ""))

    def post(self, request: Request) -> HttpResponse:
        chosen = str(request.data.get("runs", ""))
        try:
            made = (
                _add(request, chosen)
                if request.data.get("action") == "add"
                else _create(request, chosen)
            )
        except (EvalHubError, APIException) as error:
            return _page(request, chosen, refusal_of(error))
        return see(request, reverse("experiment-page", args=[made]))


def _create(request: Request, chosen: str) -> UUID:
    given = fields_of(request, *_FIELDS)
    given["slug"] = given.get("slug") or slugify(given.get("name", ""))[:64].strip("-_")
    serializer = ExperimentSerializer(
        data={**given, "runs": _ids_in(chosen)}, context={"request": request}
    )
    serializer.is_valid(raise_exception=True)
    asked = serializer.validated_data
    fields = {name: asked[name] for name in ("slug", "name", "goal", "visibility")}
    user, origin = cast(User, request.user), origin_of(request)
    made = create_experiment(
        team=asked["team"], user=user, fields=fields, runs=asked["runs"], origin=origin
    )
    messages.success(request._request, f"Experiment {made.name} created.")
    return made.pk


def _add(request: Request, chosen: str) -> UUID:
    try:
        key = UUID(str(request.data.get("experiment", "")))
    except ValueError as error:
        raise InvalidInput("choose an experiment", pointer="/experiment") from error
    found, runs = visible_experiment(request, key), [UUID(run) for run in _ids_in(chosen)]
    user, origin = cast(User, request.user), origin_of(request)
    new, _ = change_runs(experiment=found, user=user, add=runs, pointer="/runs", origin=origin)
    messages.success(request._request, added(new, len(runs)))
    return found.pk


def added(new: int, wanted: int) -> str:
    """Return in words how many runs were added, and how many were there already."""
    there = (
        f"; {wanted - new:,} {'was' if wanted - new == 1 else 'were'} in it already"
        if new < wanted
        else ""
    )
    return f"{new:,} run{'' if new == 1 else 's'} added{there}."


def _ids_in(text: str) -> list[str]:
    """Return the ids in a list with commas. Raise InvalidInput for what is not one, and for too many."""
    parts = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if len(parts) > MAX_RUNS:
        message = f"{len(parts):,} runs; an experiment has at most {MAX_RUNS:,}"
        raise InvalidInput(message, code="too_many_runs", pointer="/runs")
    for part in parts:
        try:
            UUID(part)
        except ValueError as error:
            raise InvalidInput(f"{part[:40]!r} is not the id of a run", pointer="/runs") from error
    return parts


def _page(request: Request, chosen: str, refused: Refusal | None = None) -> HttpResponse:
    seen = experiments_of(request.user)
    try:
        ids = _ids_in(chosen)
    except InvalidInput as error:
        ids, refused = [], refused or refusal_of(error)
    runs = (
        list(Run.objects.visible_to(request.user).filter(pk__in=ids).only("tag").order_by("tag"))
        if ids
        else []
    )
    teams = list(Team.objects.of(request.user))
    shared = [team for team in teams if team.personal_of_id is None]
    proposed = {
        "team": (shared or teams)[0].slug if teams else "",
        "visibility": Experiment.Visibility.TEAM.value,
    }
    context: dict[str, Any] = {
        "page": Paginator(seen, _OF_A_PAGE).get_page(request.query_params.get("page")),
        "runs": runs,
        "chosen": ",".join(str(run.pk) for run in runs),
        "own": list(seen.filter(team__in=teams)[:_OFFERED]) if runs else [],
        "teams": teams,
        "visibilities": VISIBILITIES,
        "given": fields_of(request, *_FIELDS) if refused and request.method == "POST" else proposed,
        "refused": refused,
        "wrong": refused.fields if refused else {},
    }
    return render(
        request._request,
        "runs/experiments.html",
        context,
        status=refused.status if refused else 200,
    )
