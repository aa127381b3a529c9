"""Runs and session sets: their description and state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.html import format_html

from metrics.services.queue.status import RUN_STATES, with_states
from runs.admin.parts import ReadOnlyAdmin
from runs.models import Run, SessionSet


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
    """Runs or session sets. They are uploaded through the pages and the API, which check files."""

    list_select_related = ("team", "collection", "submitted_by")
    search_fields = ("tag", "team__slug", "collection__slug", "submitted_by__username", "sha256")
    date_hierarchy = "created_at"
    readonly_fields = ("all_evaluations",)

    def get_queryset(self, request: HttpRequest) -> Any:
        return with_states(super().get_queryset(request))

    def view_on_site(self, submission: Any) -> str | None:
        if submission.deleted_at:
            return None
        return reverse(f"{submission.KEY.replace('_', '-')}-page", args=[submission.pk])

    @admin.display(ordering="state")
    def state(self, submission: Any) -> str:
        return "withdrawn" if submission.deleted_at else str(submission.state)

    @admin.display(description="size", ordering="size")
    def bytes(self, submission: Any) -> str:
        return filesizeformat(submission.size)

    @admin.display(description="submitted", ordering="created_at")
    def submitted(self, submission: Any) -> Any:
        return submission.created_at

    @admin.display(description="evaluations")
    def all_evaluations(self, submission: Any) -> str:
        address = reverse(
            f"admin:metrics_{submission.evaluations.model._meta.model_name}_changelist"
        )
        return format_html(
            '<a href="{}?{}__id__exact={}">every evaluation</a>',
            address,
            submission.KEY,
            submission.pk,
        )


@admin.register(Run)
class RunAdmin(SubmissionAdmin):
    list_display = (
        "tag", "team", "collection", "state", "submitted", "submitted_by", "bytes", "topics",
        "documents", "tied_documents",
    )  # fmt: skip
    list_filter = (StateFilter, ("deleted_at", admin.EmptyFieldListFilter), "collection")


@admin.register(SessionSet)
class SessionSetAdmin(SubmissionAdmin):
    list_display = (
        "tag", "team", "collection", "state", "submitted", "submitted_by", "judged_by", "bytes",
        "sessions", "queries", "searchers",
    )  # fmt: skip
    list_filter = (
        StateFilter,
        ("deleted_at", admin.EmptyFieldListFilter),
        "judged_by",
        "format",
        "collection",
    )
