"""The page on which members of a team describe a system, and add and remove its versions."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpResponse
from django.urls import reverse
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from metrics.engine.errors import EvalHubError
from runs.api.tracking.systems import change_system_from
from runs.errors import InvalidInput
from runs.models import Run, Scope, System
from runs.web.access import owned_system
from runs.web.forms import FormPage, Refusal, fields_of, redirect_to, refusal_of, render_form
from runs.web.naming import named_run

_MAX_CHOICES = 100
_MESSAGES = {"describe": "Changes saved.", "add": "Versions added.", "remove": "Runs taken out."}


class SystemChangePage(FormPage):
    """Describe a system, add runs of its team as versions, take versions out."""

    scopes = {"POST": Scope.MANAGE}
    fields = ("action", "name", "description", "runs", "others")

    def get(self, request: Request, team: str, system: str) -> HttpResponse:
        return _page(request, owned_system(request, team, system))

    def post(self, request: Request, team: str, system: str) -> HttpResponse:
        owned = owned_system(request, team, system)
        action = str(request.data.get("action", ""))
        try:
            if action not in _MESSAGES:
                raise InvalidInput("press one of the buttons of this page", pointer="/action")

            # The listed runs that were ticked, and others that were typed.
            runs = request.POST.getlist("runs")
            possible = _possible_runs(request, owned)
            for name in str(request.data.get("others", "")).split():
                runs.append(str(named_run(name, possible, "/others")))

            if action == "describe":
                changes: dict[str, Any] = fields_of(request, "name", "description")
            elif not runs:
                raise InvalidInput("select the runs first", pointer="/runs")
            else:
                changes = {action: runs}

            change_system_from(request, team, system, changes)
        except (EvalHubError, APIException) as error:
            return _page(request, owned, refusal_of(error))

        messages.success(request, _MESSAGES[action])
        return redirect_to(request, reverse("system-page", args=[team, system]))


def _possible_runs(request: Request, system: System) -> QuerySet[Run]:
    """Return the runs that can be versions of a system."""
    visible = Run.objects.visible_to(request.user)
    return visible.filter(team=system.team).select_related("collection")


def _page(request: Request, system: System, refusal: Refusal | None = None) -> HttpResponse:
    fields = {"name": system.name, "description": system.description}
    if refusal:
        fields |= fields_of(request, "name", "description", "others")

    runs = _possible_runs(request, system)
    free = runs.filter(system=None).order_by("-created_at")
    versions = runs.filter(system=system).order_by("collection__slug", "-version")
    context = {
        "system": system,
        "form_values": fields,
        "free": list(free[:_MAX_CHOICES]),
        "versions": list(versions[:_MAX_CHOICES]),
        "most": _MAX_CHOICES,
    }

    return render_form(request, "runs/system_change.html", context, refusal)
