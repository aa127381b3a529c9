"""Runs and session sets: their description and state, and actions to withdraw and restore them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
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
from runs.services.submissions import restore, withdraw


class StateFilter(admin.SimpleListFilter):
    """Filter by the state of the current evaluation."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[Any, str]]:
        # The state that submitters of blind collections see is not one of an evaluation.
        return [(state, state) for state in RUN_STATES[1:]]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any] | None:
        return queryset.filter(state=self.value()) if self.value() else queryset


class SubmissionAdmin(ReadOnlyAdmin):
    """What both kinds share. They are uploaded through the pages and the API, which check their files."""

    list_select_related = ("team", "collection", "submitted_by")
    search_fields = ("tag", "team__slug", "collection__slug", "submitted_by__username", "sha256")
    date_hierarchy = "created_at"
    actions: Any = ("withdraw", "restore")

    def get_queryset(self, request: HttpRequest) -> Any:
        return with_states(super().get_queryset(request))

    def view_on_site(self, made: Any) -> str | None:
        return (
            None
            if made.deleted_at
            else reverse(f"{made.KEY.replace('_', '-')}-page", args=[made.pk])
        )

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
        address = reverse(f"admin:metrics_{made.evaluations.model._meta.model_name}_changelist")
        return format_html(
            '<a href="{}?{}__id__exact={}">every evaluation</a>', address, made.KEY, made.pk
        )

    @admin.action(description="Withdraw", permissions=["withdraw"])
    def withdraw(self, request: HttpRequest, chosen: QuerySet[Any]) -> HttpResponse | None:
        question = (
            f"Withdraw these {self.opts.verbose_name_plural}? They leave leaderboards and comparisons. "
            "Their files are deleted after a day."
        )
        return self.carry_out(
            request, chosen.filter(deleted_at=None), _withdraw, done="Withdrawn", question=question
        )

    @admin.action(description="Restore withdrawn submissions", permissions=["withdraw"])
    def restore(self, request: HttpRequest, chosen: QuerySet[Any]) -> HttpResponse | None:
        return self.carry_out(request, chosen, _restore, done="Restored")


def _withdraw(made: Any, origin: Origin) -> None:
    withdraw(made=made, cancel=cancel_evaluations, origin=origin)


def _restore(made: Any, origin: Origin) -> None:
    restore(made=made, enqueue=restore_evaluations, origin=origin)


@admin.register(Run)
class RunAdmin(SubmissionAdmin):
    list_display = (
        "tag", "team", "collection", "state", "submitted", "submitted_by", "bytes", "topics", "documents",
        "tied_documents",
    )  # fmt: skip
    list_filter = (StateFilter, ("deleted_at", admin.EmptyFieldListFilter), "collection")


@admin.register(SessionSet)
class SessionSetAdmin(SubmissionAdmin):
    list_display = (
        "tag", "team", "collection", "state", "submitted", "submitted_by", "judged_by", "bytes", "sessions", "queries",
        "searchers",
    )  # fmt: skip
    list_filter = (
        StateFilter,
        ("deleted_at", admin.EmptyFieldListFilter),
        "judged_by",
        "format",
        "collection",
    )
