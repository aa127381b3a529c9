"""The page on which the members of a team describe a system of theirs, and add and remove its versions."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from metrics.engine.errors import EvalHubError
from runs.api.tracking.systems import change_system_from
from runs.errors import InvalidInput
from runs.models import Run, Scope, System
from runs.web.access import owned_system
from runs.web.forms import FormPage, Refusal, fields_of, refusal_of, see
from runs.web.naming import named_run

_OFFERED = 100
_DONE = {"describe": "Changes saved.", "add": "Versions added.", "remove": "Runs taken out."}


class SystemChangePage(FormPage):
    """Describe a system, add runs of its team as versions, take versions out."""

    scopes = {"POST": Scope.MANAGE}
    fields = ("action", "name", "description", "runs", "others")

    def get(self, request: Request, team: str, system: str) -> HttpResponse:
        return _page(request, owned_system(request, team, system))

    def post(self, request: Request, team: str, system: str) -> HttpResponse:
        found, action = owned_system(request, team, system), str(request.data.get("action", ""))
        try:
            if action not in _DONE:
                raise InvalidInput("press one of the buttons of this page", pointer="/action")
            chosen = request._request.POST.getlist("runs")
            others, seen = str(request.data.get("others", "")).split(), _runs_of(request, found)
            chosen += [str(named_run(name, seen, "/others")) for name in others]
            if action == "describe":
                given: dict[str, Any] = fields_of(request, "name", "description")
            elif not chosen:
                raise InvalidInput("select the runs first", pointer="/runs")
            else:
                given = {action: chosen}
            change_system_from(request, team, system, given)
        except (EvalHubError, APIException) as error:
            return _page(request, found, refusal_of(error))
        messages.success(request._request, _DONE[action])
        return see(request, reverse("system-page", args=[team, system]))


def _runs_of(request: Request, system: System) -> QuerySet[Run]:
    """Return the runs that can be versions of a system."""
    return (
        Run.objects.visible_to(request.user).filter(team=system.team).select_related("collection")
    )


def _page(request: Request, system: System, refused: Refusal | None = None) -> HttpResponse:
    seen = _runs_of(request, system)
    stored = {"name": system.name, "description": system.description}
    context = {
        "system": system,
        "given": {**stored, **fields_of(request, "name", "description", "others")}
        if refused
        else stored,
        "free": list(seen.filter(system=None).order_by("-created_at")[:_OFFERED]),
        "versions": list(
            seen.filter(system=system).order_by("collection__slug", "-version")[:_OFFERED]
        ),
        "most": _OFFERED,
        "refused": refused,
        "wrong": refused.fields if refused else {},
    }
    return render(
        request._request,
        "runs/system_change.html",
        context,
        status=refused.status if refused else 200,
    )
