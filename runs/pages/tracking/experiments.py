"""The page of the visible experiments, with a form that makes one, perhaps of chosen runs."""

from __future__ import annotations

from typing import cast
from uuid import UUID

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
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
from runs.web.forms import FormPage, Refusal, fields_of, redirect_to, refusal_of, render_form
from runs.web.origin import origin_of
from runs.web.parameters import text_of

VISIBILITIES = {
    Experiment.Visibility.TEAM.value: ("Our team", "its members see the experiment and its notes"),
    Experiment.Visibility.COLLECTION.value: (
        "Shared",
        "everyone who sees all of its runs; the organisers of their collections can share it",
    ),
}
_EXPERIMENTS_OF_A_PAGE = 50
# In the choice of the experiment to which runs are added.
_MAX_CHOICES = 200
_FIELDS = ("name", "slug", "team", "goal", "visibility")


class ExperimentsPage(FormPage):
    """The experiments that the reader sees. `runs` are to go into a new one, or an existing one."""

    signed_in = False
    scopes = {"POST": Scope.SUBMIT}
    reads = ("runs", "page")
    fields = (*_FIELDS, "action", "runs", "experiment")

    def get(self, request: Request) -> HttpResponse:
        return _page(request, text_of(request.query_params).get("runs", ""))

    def post(self, request: Request) -> HttpResponse:
        runs = str(request.data.get("runs", ""))
        try:
            act = _add if request.data.get("action") == "add" else _create
            experiment = act(request, runs)
        except (EvalHubError, APIException) as error:
            return _page(request, runs, refusal_of(error))

        return redirect_to(request, reverse("experiment-page", args=[experiment.pk]))


def _create(request: Request, runs: str) -> Experiment:
    form = fields_of(request, *_FIELDS)
    form["slug"] = form.get("slug") or slugify(form.get("name", ""))[:64].strip("-_")
    serializer = ExperimentSerializer(
        data={**form, "runs": _ids_in(runs)}, context={"request": request}
    )
    serializer.is_valid(raise_exception=True)

    body = serializer.validated_data
    experiment = create_experiment(
        team=body["team"],
        user=cast(User, request.user),
        fields={name: body[name] for name in ("slug", "name", "goal", "visibility")},
        runs=body["runs"],
        origin=origin_of(request),
    )

    messages.success(request, f"Experiment {experiment.name} created.")
    return experiment


def _add(request: Request, runs: str) -> Experiment:
    try:
        key = UUID(str(request.data.get("experiment", "")))
    except ValueError as error:
        raise InvalidInput("choose an experiment", pointer="/experiment") from error

    experiment = visible_experiment(request, key)
    ids = [UUID(run) for run in _ids_in(runs)]
    new, _ = change_runs(
        experiment=experiment,
        user=cast(User, request.user),
        add=ids,
        pointer="/runs",
        origin=origin_of(request),
    )

    messages.success(request, describe_added(new, len(ids)))
    return experiment


def describe_added(new: int, total: int) -> str:
    """Return in words how many runs were added, and how many of them were in it before."""
    plural = "" if new == 1 else "s"
    if new == total:
        return f"{new:,} run{plural} added."
    verb = "was" if total - new == 1 else "were"
    return f"{new:,} run{plural} added; {total - new:,} {verb} in it already."


def _ids_in(text: str) -> list[str]:
    """Return the ids between commas. Raise InvalidInput for too many, and for any other text."""
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


def _page(request: Request, chosen: str, refusal: Refusal | None = None) -> HttpResponse:
    try:
        ids = _ids_in(chosen)
    except InvalidInput as error:
        ids, refusal = [], refusal or refusal_of(error)

    runs: list[Run] = []
    if ids:
        visible = Run.objects.visible_to(request.user)
        runs = list(visible.filter(pk__in=ids).only("tag").order_by("tag"))

    # A new experiment belongs to a shared team, if the reader is in one.
    teams = list(Team.objects.of(request.user))
    shared = [team for team in teams if team.personal_of_id is None]
    fields = {
        "team": (shared or teams)[0].slug if teams else "",
        "visibility": Experiment.Visibility.TEAM.value,
    }

    if refusal and request.method == "POST":
        fields = fields_of(request, *_FIELDS)

    experiments = experiments_of(request.user)
    pages = Paginator(experiments, _EXPERIMENTS_OF_A_PAGE)
    context = {
        "page": pages.get_page(request.query_params.get("page")),
        "runs": runs,
        "chosen": ",".join(str(run.pk) for run in runs),
        "own": list(experiments.filter(team__in=teams)[:_MAX_CHOICES]) if runs else [],
        "teams": teams,
        "visibilities": VISIBILITIES,
        "form_values": fields,
    }

    return render_form(request, "runs/experiments.html", context, refusal)
