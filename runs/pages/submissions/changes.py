"""The pages on which the members of a team change a submission of theirs: its description, withdrawing, restoring."""

from __future__ import annotations

import re
from typing import Any, ClassVar, cast
from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from metrics.engine.errors import EvalHubError
from metrics.services.queue.queueing import (
    cancel_evaluations,
    queue_evaluation,
    restore_evaluations,
)
from runs.api.submissions.submissions import RUNS, SESSION_SETS, Kind
from runs.api.tracking.labels import LabelSerializer
from runs.errors import Conflict, InvalidInput
from runs.models import Label, Scope, User
from runs.models.tracking.labels import NAME_RULE, NAME_RULE_MESSAGE
from runs.services.submissions.submissions import restore, withdraw
from runs.services.tracking.labels import delete_label, move_label
from runs.web.access import owned_submission, withdrawn_submission
from runs.web.forms import FormPage, Refusal, fields_of, refusal_of, see
from runs.web.origin import origin_of


class ChangePage(FormPage):
    """Describe, withdraw or restore one submission."""

    kind: ClassVar[Kind[Any]]
    scopes = {"POST": Scope.SUBMIT}
    fields: tuple[str, ...] = ("action", "description")

    def get(self, request: Request, **key: UUID) -> HttpResponse:
        return self._page(request, self._found(request, key))

    def post(self, request: Request, **key: UUID) -> HttpResponse:
        made = self._found(request, key)
        try:
            with transaction.atomic():
                self.kind.model.objects.select_for_update().filter(pk=made.pk).values_list(
                    "pk"
                ).first()
                return self._change(request, self._found(request, key))
        except (EvalHubError, APIException) as error:
            return self._page(request, made, refusal_of(error))

    def _change(self, request: Request, made: Any) -> HttpResponse:
        action, origin = request.data.get("action"), origin_of(request)
        if action == "describe" and not made.deleted_at:
            serializer = self.kind.change_serializer(
                made, fields_of(request, "description"), partial=True
            )
            serializer.is_valid(raise_exception=True)
            changes = cast(Any, serializer).validated_data
            self.kind.change(
                submission=made, changes=changes, enqueue=queue_evaluation, origin=origin
            )
        elif action == "withdraw" and not made.deleted_at:
            without = request.data.get("drop_labels") == "yes"
            withdraw(
                submission=made, cancel=cancel_evaluations, without_labels=without, origin=origin
            )
            messages.success(
                request._request, f"{made.tag} withdrawn. You can restore it for a day."
            )
            return see(request, request.path)
        elif action == "restore" and made.deleted_at:
            restore(submission=made, enqueue=restore_evaluations, origin=origin)
        else:
            raise InvalidInput(
                "this has been changed meanwhile; load the page again", pointer="/action"
            )
        return see(request, self._address(made))

    def _found(self, request: Request, key: dict[str, UUID]) -> Any:
        pk = key[self.kind.model.KEY]
        try:
            return owned_submission(request, self.kind.model, pk)
        except Http404:
            return withdrawn_submission(request, self.kind.model, pk)

    def _address(self, made: Any) -> str:
        return reverse(f"{made.KEY.replace('_', '-')}-page", args=[made.pk])

    def _page(self, request: Request, made: Any, refused: Refusal | None = None) -> HttpResponse:
        stored = {"description": made.description}
        context = {
            "made": made,
            "address": self._address(made),
            "given": {**stored, **fields_of(request, "description", "label", "note")}
            if refused
            else stored,
            "refused": refused,
            "wrong": refused.fields if refused else {},
            **self._beside(made),
        }
        return render(
            request._request, "runs/change.html", context, status=refused.status if refused else 200
        )

    def _beside(self, made: Any) -> dict[str, Any]:
        """Return what else of the submission is changed on its page."""
        return {}


class RunChangePage(ChangePage):
    """Change a run, too, by letting labels of its team name it, or by deleting labels."""

    kind = RUNS
    fields = (*ChangePage.fields, "drop_labels", "label", "expected", "note")

    def _change(self, request: Request, made: Any) -> HttpResponse:
        action = request.data.get("action")
        if action not in ("label", "delete-label") or made.deleted_at:
            return super()._change(request, made)
        given = fields_of(request, "label", "expected", "note")
        name, user, origin = given.get("label", ""), cast(User, request.user), origin_of(request)
        if not re.fullmatch(NAME_RULE, name):
            raise InvalidInput(NAME_RULE_MESSAGE, pointer="/label")
        asked = {
            "run": made.pk,
            "expected": given.get("expected") or None,
            "note": given.get("note", ""),
        }
        serializer = LabelSerializer(data=asked)
        serializer.is_valid(raise_exception=True)
        expected, note = serializer.validated_data["expected"], serializer.validated_data["note"]
        try:
            if action == "label":
                move_label(
                    run=made, name=name, user=user, expected=expected, note=note, origin=origin
                )
                done = f"Label {name} names {made.tag} now."
            else:
                label = Label.objects.filter(
                    collection=made.collection, team=made.team, name=name
                ).first()
                if label is None:
                    raise Conflict(
                        f"there is no label {name} any more", code="conflict", pointer="/label"
                    )
                delete_label(label=label, user=user, expected=expected, note=note, origin=origin)
                done = f"Label {name} deleted."
        except Conflict as error:
            if error.code != "label_moved":
                raise
            message = (
                f"label {name} names another run than when you read this page; decide again below"
            )
            raise Conflict(message, code="label_moved", pointer="/label") from error
        messages.success(request._request, done)
        return see(request, f"{request.path}#labels")

    def _beside(self, made: Any) -> dict[str, Any]:
        found = Label.objects.filter(collection=made.collection, team=made.team).select_related(
            "run", "moved_by"
        )
        labels = list(found.order_by("name"))
        return {
            "labels": labels,
            "of_run": [label.name for label in labels if label.run_id == made.pk],
        }


class SessionSetChangePage(ChangePage):
    kind = SESSION_SETS
