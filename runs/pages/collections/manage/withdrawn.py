"""The withdrawn runs and session sets of a collection, and taking runs out of it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import transaction
from django.http import Http404
from rest_framework.request import Request

from metrics.services.queue.queueing import cancel_evaluations, restore_evaluations
from runs.api.serializers import RemovalSerializer
from runs.errors import InvalidInput
from runs.models import Collection, Run, SessionSet
from runs.pages.collections.manage.sections import ChangingSection
from runs.services.submissions.submissions import remove, restore
from runs.web.access import withdrawn_submission
from runs.web.origin import origin_of

_MAX_ROWS = 200
_KINDS: dict[str, Any] = {model.KEY: model for model in (Run, SessionSet)}


class WithdrawnPage(ChangingSection):
    """Take a run out of the collection, and restore what was withdrawn.

    Organisers restore what they took out, the members of its team what they withdrew themselves.
    """

    address, template = "manage-withdrawn-page", "runs/manage/withdrawn.html"
    reads = ("run",)
    fields = ("action", "kind", "id", "run", "reason")

    def section_context(self, request: Request, collection: Collection) -> dict[str, Any]:
        withdrawn: list[Any] = []
        own: set[UUID] = set()
        for model in _KINDS.values():
            rows = model._default_manager.filter(collection=collection).exclude(deleted_at=None)
            rows = rows.select_related("team", "submitted_by").defer("warnings", "metadata")
            submissions = list(rows[:_MAX_ROWS])
            withdrawn += submissions
            owned = model.objects.owned_by(request.user).filter(
                pk__in=[row.pk for row in submissions]
            )
            own.update(owned.values_list("pk", flat=True))

        withdrawn.sort(key=lambda submission: submission.deleted_at, reverse=True)
        lines = []
        for submission in withdrawn[:_MAX_ROWS]:
            reason = getattr(submission, "removal_reason", "")
            restorable = bool(reason) or submission.pk in own
            lines.append((submission, restorable, reason))

        return {
            "lines": lines,
            "run": request.data.get("run") or request.query_params.get("run", ""),
            "reason": request.data.get("reason", ""),
        }

    def change(self, request: Request, collection: Collection) -> str:
        if request.data.get("action") == "remove":
            return self._remove(request, collection)

        try:
            model, key = _KINDS[str(request.data.get("kind"))], UUID(str(request.data.get("id")))
        except (KeyError, ValueError) as error:
            raise Http404("there is no such submission") from error

        submission: Any = withdrawn_submission(request, model, key)
        restore(submission=submission, enqueue=restore_evaluations, origin=origin_of(request))
        return f"{submission.tag} of team {submission.team} restored."

    def _remove(self, request: Request, collection: Collection) -> str:
        serializer = RemovalSerializer(data={"reason": request.data.get("reason", "")})
        serializer.is_valid(raise_exception=True)
        try:
            key = UUID(str(request.data.get("run", "")).strip())
        except ValueError as error:
            raise InvalidInput("write the id of a run, as on its page", pointer="/run") from error

        with transaction.atomic():
            runs = Run.objects.filter(collection=collection, deleted_at=None)
            rows = runs.select_for_update(of=("self",)).select_related("team", "collection")
            run = rows.filter(pk=key).first()
            if run is None:
                raise InvalidInput("the collection has no such run", pointer="/run")

            remove(
                run=run,
                reason=serializer.validated_data["reason"],
                cancel=cancel_evaluations,
                origin=origin_of(request),
            )

        return (
            f"{run.tag} of team {run.team} taken out of the collection. You can restore it below."
        )
