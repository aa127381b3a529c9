"""The pages on which the members of a team change a submission of theirs: its description, withdrawing, restoring."""

from __future__ import annotations

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
from metrics.services.queue.queueing import cancel_evaluations, queue_evaluation, restore_evaluations
from runs.api.access import owned, withdrawn
from runs.api.origin import origin_of
from runs.api.submissions import RUNS, SESSION_SETS, Kind
from runs.errors import InvalidInput
from runs.models import Scope
from runs.pages.forms import FormPage, Refusal, fields_of, refusal_of, see
from runs.services.submissions import restore, withdraw


class ChangePage(FormPage):
    """Describe, withdraw or restore one submission."""

    kind: ClassVar[Kind[Any]]
    scopes = {"POST": Scope.SUBMIT}
    fields = ("action", "description")

    def get(self, request: Request, **key: UUID) -> HttpResponse:
        return self._page(request, self._found(request, key))

    def post(self, request: Request, **key: UUID) -> HttpResponse:
        made = self._found(request, key)
        try:
            with transaction.atomic():
                self.kind.model.objects.select_for_update().filter(pk=made.pk).values_list("pk").first()
                return self._change(request, self._found(request, key))
        except (EvalHubError, APIException) as error:
            return self._page(request, made, refusal_of(error))

    def _change(self, request: Request, made: Any) -> HttpResponse:
        action, origin = request.data.get("action"), origin_of(request)
        if action == "describe" and not made.deleted_at:
            serializer = self.kind.change_serializer(made, fields_of(request, "description"), partial=True)
            serializer.is_valid(raise_exception=True)
            changes = cast(Any, serializer).validated_data
            self.kind.change(made=made, changes=changes, enqueue=queue_evaluation, origin=origin)
        elif action == "withdraw" and not made.deleted_at:
            withdraw(made=made, cancel=cancel_evaluations, origin=origin)
            messages.success(request._request, f"{made.tag} withdrawn. You can restore it for a day.")
            return see(request, request.path)
        elif action == "restore" and made.deleted_at:
            restore(made=made, enqueue=restore_evaluations, origin=origin)
        else:
            raise InvalidInput("this has been changed meanwhile; load the page again", pointer="/action")
        return see(request, self._address(made))

    def _found(self, request: Request, key: dict[str, UUID]) -> Any:
        pk = key[self.kind.model.KEY]
        try:
            return owned(request, self.kind.model, pk)
        except Http404:
            return withdrawn(request, self.kind.model, pk)

    def _address(self, made: Any) -> str:
        return reverse(f"{made.KEY.replace('_', '-')}-page", args=[made.pk])

    def _page(self, request: Request, made: Any, refused: Refusal | None = None) -> HttpResponse:
        stored = {"description": made.description}
        context = {
            "made": made,
            "address": self._address(made),
            "given": {**stored, **fields_of(request, "description")} if refused else stored,
            "refused": refused,
            "wrong": refused.fields if refused else {},
        }
        return render(request._request, "runs/change.html", context, status=refused.status if refused else 200)


class RunChangePage(ChangePage):
    kind = RUNS


class SessionSetChangePage(ChangePage):
    kind = SESSION_SETS
