"""The pages on which members of a team describe, withdraw and restore its submissions."""

from __future__ import annotations

import re
from typing import Any, ClassVar, cast
from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpResponse
from django.urls import reverse
from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.serializers import BaseSerializer

from metrics.engine.errors import EvalHubError
from metrics.services.queue.queueing import (
    cancel_evaluations,
    queue_evaluation,
    queue_replicated,
    restore_evaluations,
)
from runs.api.serializers import RunSerializer
from runs.api.submissions.session_serializers import SessionSetSerializer
from runs.api.tracking.labels import LabelSerializer
from runs.errors import Conflict, InvalidInput
from runs.models import Label, Run, Scope, SessionSet, User
from runs.models.tracking.labels import NAME_RULE, NAME_RULE_MESSAGE
from runs.services.submissions.replicates import change_replicate
from runs.services.submissions.session_sets import change_session_set
from runs.services.submissions.submissions import restore, withdraw
from runs.services.tracking.edits import change_run
from runs.services.tracking.labels import delete_label, move_label
from runs.web.access import lock_row, owned_submission, withdrawn_submission
from runs.web.forms import FormPage, Refusal, fields_of, redirect_to, refusal_of, render_form
from runs.web.origin import origin_of


class ChangePage(FormPage):
    """Describe, withdraw or restore one submission."""

    model: ClassVar[type[Any]]
    serializer_class: ClassVar[type[BaseSerializer[Any]]]
    scopes = {"POST": Scope.SUBMIT}
    fields: tuple[str, ...] = ("action", "description")

    def get(self, request: Request, **key: UUID) -> HttpResponse:
        return self._page(request, self._submission(request, key))

    def post(self, request: Request, **key: UUID) -> HttpResponse:
        submission = self._submission(request, key)
        try:
            with transaction.atomic():
                lock_row(self.model, submission.pk)
                # It may have been changed before it was locked.
                return self._change(request, self._submission(request, key))
        except (EvalHubError, APIException) as error:
            return self._page(request, submission, refusal_of(error))

    def _change(self, request: Request, submission: Any) -> HttpResponse:
        action, origin = request.data.get("action"), origin_of(request)
        if action == "describe" and not submission.deleted_at:
            serializer = self.serializer_class(
                submission, fields_of(request, "description"), partial=True
            )
            serializer.is_valid(raise_exception=True)
            change: Any = change_run if self.model is Run else change_session_set
            change(
                submission=submission,
                changes=serializer.validated_data,
                enqueue=queue_evaluation,
                origin=origin,
            )
        elif action == "withdraw" and not submission.deleted_at:
            withdraw(
                submission=submission,
                cancel=cancel_evaluations,
                without_labels=request.data.get("drop_labels") == "yes",
                origin=origin,
            )

            messages.success(request, f"{submission.tag} withdrawn. You can restore it for a day.")
            return redirect_to(request, request.path)
        elif action == "restore" and submission.deleted_at:
            restore(submission=submission, enqueue=restore_evaluations, origin=origin)
        else:
            raise InvalidInput(
                "this has been changed meanwhile; load the page again", pointer="/action"
            )

        return redirect_to(request, self._address(submission))

    def _submission(self, request: Request, key: dict[str, UUID]) -> Any:
        pk = key[self.model.KEY]
        try:
            return owned_submission(request, self.model, pk)
        except Http404:
            return withdrawn_submission(request, self.model, pk)

    def _address(self, submission: Any) -> str:
        return reverse(f"{submission.KEY.replace('_', '-')}-page", args=[submission.pk])

    def _page(
        self, request: Request, submission: Any, refusal: Refusal | None = None
    ) -> HttpResponse:
        fields = fields_of(request, "description", "label", "note", "replicate") if refusal else {}
        context = {
            "submission": submission,
            "address": self._address(submission),
            "form_values": {"description": submission.description, **fields},
            **self._labels_context(submission),
        }

        return render_form(request, "runs/change.html", context, refusal)

    def _labels_context(self, submission: Any) -> dict[str, Any]:
        """Return the labels for the page of a run."""
        return {}


class RunChangePage(ChangePage):
    """Change a run, too, by letting labels of its team name it, or by deleting labels."""

    model, serializer_class = Run, RunSerializer
    fields = (*ChangePage.fields, "drop_labels", "label", "expected", "note", "replicate")

    def _change(self, request: Request, submission: Any) -> HttpResponse:
        action = request.data.get("action")
        if action == "replicate" and not submission.deleted_at:
            return self._change_replicate(request, submission)
        if action not in ("label", "delete-label") or submission.deleted_at:
            return super()._change(request, submission)

        fields = fields_of(request, "label", "expected", "note")
        name = fields.get("label", "")
        if not re.fullmatch(NAME_RULE, name):
            raise InvalidInput(NAME_RULE_MESSAGE, pointer="/label")

        serializer = LabelSerializer(
            data={
                "run": submission.pk,
                "expected": fields.get("expected") or None,
                "note": fields.get("note", ""),
            }
        )

        serializer.is_valid(raise_exception=True)
        expected, note = serializer.validated_data["expected"], serializer.validated_data["note"]

        user, origin = cast(User, request.user), origin_of(request)
        try:
            if action == "label":
                move_label(
                    run=submission,
                    name=name,
                    user=user,
                    expected=expected,
                    note=note,
                    origin=origin,
                )
                done = f"Label {name} names {submission.tag} now."
            else:
                labels = Label.objects.filter(
                    collection=submission.collection, team=submission.team
                )
                label = labels.filter(name=name).first()
                if label is None:
                    raise Conflict(
                        f"label {name} no longer exists", code="conflict", pointer="/label"
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

        messages.success(request, done)
        return redirect_to(request, f"{request.path}#labels")

    def _change_replicate(self, request: Request, run: Run) -> HttpResponse:
        name = request.data.get("replicate") or None
        serializer = self.serializer_class(run, {"replicate": name}, partial=True)
        serializer.is_valid(raise_exception=True)
        change_replicate(run=run, name=name, renew=queue_replicated, origin=origin_of(request))

        done = (
            f"{run.tag} is a replicate of {name} now."
            if name
            else f"{run.tag} is a single run now."
        )
        messages.success(request, done)
        return redirect_to(request, request.path)

    def _labels_context(self, submission: Any) -> dict[str, Any]:
        rows = Label.objects.filter(collection=submission.collection, team=submission.team)
        labels = list(rows.select_related("run", "moved_by").order_by("name"))
        own_labels = [label.name for label in labels if label.run_id == submission.pk]
        return {"labels": labels, "own_labels": own_labels}


class SessionSetChangePage(ChangePage):
    model, serializer_class = SessionSet, SessionSetSerializer
