"""The runs and session sets of a collection that their teams withdrew."""

from __future__ import annotations

from itertools import chain
from typing import Any
from uuid import UUID

from django.http import Http404
from rest_framework.request import Request

from metrics.services.queue.queueing import restore_evaluations
from runs.api.access import withdrawn
from runs.api.origin import origin_of
from runs.models import Collection, Run, SessionSet
from runs.pages.manage.sections import ChangingSection
from runs.services.submissions import restore

_SHOWN = 200
_KINDS: dict[str, Any] = {model.KEY: model for model in (Run, SessionSet)}


class WithdrawnPage(ChangingSection):
    """Restore what was withdrawn; the members of the team that submitted it may, and staff."""

    address, template = "manage-withdrawn-page", "runs/manage/withdrawn.html"
    fields = ("kind", "id")

    def about(self, request: Request, collection: Collection) -> dict[str, Any]:
        gone: list[Any] = []
        for model in _KINDS.values():
            rows = model._default_manager.filter(collection=collection).exclude(deleted_at=None)
            gone += rows.select_related("team", "submitted_by").defer("warnings", "metadata")[
                :_SHOWN
            ]
        own = set(chain.from_iterable(
            model.objects.owned_by(request.user).filter(pk__in=[one.pk for one in gone]).values_list("pk", flat=True)
            for model in (Run, SessionSet)
        ))  # fmt: skip
        gone.sort(key=lambda made: made.deleted_at, reverse=True)
        return {"lines": [(made, made.pk in own) for made in gone[:_SHOWN]]}

    def change(self, request: Request, collection: Collection) -> str:
        try:
            model, key = _KINDS[str(request.data.get("kind"))], UUID(str(request.data.get("id")))
        except (KeyError, ValueError) as error:
            raise Http404("there is no such submission") from error
        made: Any = withdrawn(request, model, key)
        restore(made=made, enqueue=restore_evaluations, origin=origin_of(request))
        return f"{made.tag} of team {made.team} restored."
