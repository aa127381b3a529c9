"""Runs and session sets: what they are, what became of them, and taking them away or back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.html import format_html

from metrics.services.queue.queueing import cancel_evaluations, restore_evaluations
from metrics.services.queue.status import RUN_STATES, with_states
from runs.admin.parts import ReadOnlyAdmin
from runs.models import Run, SessionSet
from runs.services.audit import Origin
from runs.services.runs import delete_run, restore_run
from runs.services.session_sets import delete_session_set, restore_session_set


class StateFilter(admin.SimpleListFilter):
    """The state of the evaluation that counts."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[Any, str]]:
        # What submitters of blind collections are told is none of its own.
        return [(state, state) for state in RUN_STATES[1:]]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any] | None:
        return queryset.filter(state=self.value()) if self.value() else queryset


class SubmissionAdmin(ReadOnlyAdmin):
    """What both have in common. They come through the pages and the API, which check their files."""

    list_select_related = ("team", "collection", "submitted_by")
    search_fields = ("tag", "team__slug", "collection__slug", "submitted_by__username", "sha256")
    date_hierarchy = "created_at"
    actions: Any = ("withdraw", "restore")
    # Where its page is, the list of its evaluations, and how that list names it.
    page: str
    evaluations: str
    named: str

    def view_on_site(self, made: Any) -> str | None:
        return None if made.deleted_at else reverse(self.page, args=[made.pk])

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> Any:
        return (*super().get_readonly_fields(request, obj), "all_evaluations")

    @admin.display(ordering="state")
    def state(self, made: Any) -> str:
        return "withdrawn" if made.deleted_at else str(made.state)

    @admin.display(description="size", ordering="size")
    def bytes(self, made: Any) -> str:
        return filesizeformat(made.size)

    @admin.display(description="submitted", ordering="created_at")
    def submitted(self, made: Any) -> Any:
        return made.created_at

    @admin.display(description="evaluations")
    def all_evaluations(self, made: Any) -> str:
        address = f"{reverse(self.evaluations)}?{self.named}__id__exact={made.pk}"
        return format_html('<a href="{}">every evaluation</a>', address)


@admin.register(Run)
class RunAdmin(SubmissionAdmin):
    list_display = (
        "tag", "team", "collection", "state", "submitted", "submitted_by", "bytes", "topics", "documents",
        "tied_documents",
    )  # fmt: skip
    list_filter = (StateFilter, ("deleted_at", admin.EmptyFieldListFilter), "collection")
    page, evaluations, named = "run-page", "admin:metrics_evaluation_changelist", "run"

    def get_queryset(self, request: HttpRequest) -> Any:
        return with_states(super().get_queryset(request))

    @admin.action(description="Withdraw", permissions=["withdraw"])
    def withdraw(self, request: HttpRequest, chosen: QuerySet[Run]) -> HttpResponse | None:
        question = "Withdraw these runs? They leave boards and comparisons; their files go after a day, for good."
        return self.carry_out(
            request, chosen.filter(deleted_at=None), _withdraw_run, done="Withdrawn", question=question
        )

    @admin.action(description="Restore what was withdrawn", permissions=["withdraw"])
    def restore(self, request: HttpRequest, chosen: QuerySet[Run]) -> HttpResponse | None:
        return self.carry_out(request, chosen, _restore_run, done="Restored")


@admin.register(SessionSet)
class SessionSetAdmin(SubmissionAdmin):
    list_display = (
        "tag", "team", "collection", "state", "submitted", "submitted_by", "judged_by", "bytes", "sessions", "queries",
        "searchers",
    )  # fmt: skip
    list_filter = (StateFilter, ("deleted_at", admin.EmptyFieldListFilter), "judged_by", "format", "collection")
    page, evaluations, named = "session-set-page", "admin:metrics_sessionevaluation_changelist", "session_set"

    def get_queryset(self, request: HttpRequest) -> Any:
        return with_states(super().get_queryset(request))

    @admin.action(description="Withdraw", permissions=["withdraw"])
    def withdraw(self, request: HttpRequest, chosen: QuerySet[SessionSet]) -> HttpResponse | None:
        question = (
            "Withdraw these session sets? They leave boards and comparisons; their files go after a day, for good."
        )
        return self.carry_out(
            request, chosen.filter(deleted_at=None), _withdraw_set, done="Withdrawn", question=question
        )

    @admin.action(description="Restore what was withdrawn", permissions=["withdraw"])
    def restore(self, request: HttpRequest, chosen: QuerySet[SessionSet]) -> HttpResponse | None:
        return self.carry_out(request, chosen, _restore_set, done="Restored")


def _withdraw_run(run: Run, origin: Origin) -> None:
    with transaction.atomic():
        delete_run(run=run, origin=origin)
        cancel_evaluations(run)


def _restore_run(run: Run, origin: Origin) -> None:
    restore_run(run=run, enqueue=restore_evaluations, origin=origin)


def _withdraw_set(session_set: SessionSet, origin: Origin) -> None:
    with transaction.atomic():
        delete_session_set(session_set=session_set, origin=origin)
        cancel_evaluations(session_set)


def _restore_set(session_set: SessionSet, origin: Origin) -> None:
    restore_session_set(session_set=session_set, enqueue=restore_evaluations, origin=origin)
