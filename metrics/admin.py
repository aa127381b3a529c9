"""Evaluations, comparisons and workers in the administration."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse

from metrics.models import (
    Comparison,
    DispatcherRound,
    Evaluation,
    Job,
    SessionEvaluation,
    VectorUpdate,
)
from metrics.services.queue.rounds import ALIVE_SECONDS
from metrics.services.upkeep.repeating import cancel_comparison, repeat_evaluation
from runs.admin.parts import ReadOnlyAdmin
from runs.services.audit.trail import Origin

_ERROR_SHOWN = 120


class JobAdmin(ReadOnlyAdmin):
    """The columns and fields that all kinds of jobs share."""

    date_hierarchy = "created_at"
    exclude: ClassVar[Any] = ("lease_token",)
    # Long columns, which no list shows.
    long: ClassVar[tuple[str, ...]] = ("qrels__topic_ids", "traceback")

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).annotate(now=Now()).defer(*self.long)

    @admin.display(description="reason")
    def error(self, job: Job) -> str:
        return job.error_message[:_ERROR_SHOWN]

    @admin.display(description="lease", ordering="lease_until")
    def lease(self, job: Any) -> str:
        """Return how long the worker still has the lease, by the database's clock."""
        if job.lease_until is None:
            return ""

        seconds = (job.lease_until - job.now).total_seconds()
        return f"{seconds:.0f} s" if seconds > 0 else f"ended {-seconds:.0f} s ago"

    @admin.display(description="seconds", ordering="seconds")
    def took(self, job: Job) -> str:
        return "" if job.seconds is None else f"{job.seconds:.2f}"


class EvaluationsAdmin(JobAdmin):
    """Evaluations, of runs and of session sets: by state, reason and engine."""

    actions: Any = ("repeat",)

    @admin.action(description="Evaluate again")
    def repeat(self, request: HttpRequest, chosen: QuerySet[Any]) -> HttpResponse | None:
        question = "Evaluate these again? They are not on the leaderboards until it is done."
        return self.carry_out(request, chosen, _repeat, done="Queued again", question=question)


def _repeat(evaluation: Evaluation | SessionEvaluation, origin: Origin) -> None:
    repeat_evaluation(evaluation=evaluation, origin=origin)


@admin.register(Evaluation)
class EvaluationAdmin(EvaluationsAdmin):
    list_display = (
        "run", "collection", "version", "state", "attempts", "lease", "error_code", "error", "took",
        "since", "engine_version",
    )  # fmt: skip
    list_select_related = ("run__team", "run__collection", "qrels__collection")
    list_filter = (
        "state",
        "error_code",
        "qrels__active",
        "scores",
        "engine_version",
        "run__collection",
    )
    search_fields = (
        "run__tag",
        "run__team__slug",
        "run__collection__slug",
        "error_code",
        "error_message",
    )

    @admin.display(ordering="run__collection__slug")
    def collection(self, evaluation: Evaluation) -> str:
        return evaluation.run.collection.slug

    @admin.display(description="qrels", ordering="qrels__version")
    def version(self, evaluation: Evaluation) -> str:
        return f"v{evaluation.qrels.version}" + ("" if evaluation.qrels.active else ", stale")


@admin.register(SessionEvaluation)
class SessionEvaluationAdmin(EvaluationsAdmin):
    list_display = (
        "session_set", "collection", "qrels", "judged_by", "state", "attempts", "lease",
        "error_code", "error", "took", "since",
    )  # fmt: skip
    list_select_related = ("session_set__team", "session_set__collection", "qrels__collection")
    list_filter = ("state", "error_code", "judged_by", "engine_version", "session_set__collection")
    search_fields = ("session_set__tag", "session_set__team__slug", "error_code", "error_message")
    exclude = ("lease_token", "means")
    long = (*EvaluationsAdmin.long, "means")

    @admin.display(ordering="session_set__collection__slug")
    def collection(self, evaluation: SessionEvaluation) -> str:
        return str(evaluation.session_set.collection)


@admin.register(Comparison)
class ComparisonAdmin(JobAdmin):
    """Stored comparisons: their size, and cancelling one that takes too long."""

    list_display = (
        "id", "qrels", "state", "done_so_far", "attempts", "lease", "error_code", "took", "size",
        "since", "read_at",
    )  # fmt: skip
    list_select_related = ("qrels__collection",)
    list_filter = ("state", "error_code", "engine_version", "qrels__collection")
    search_fields = ("id", "qrels__collection__slug", "error_code", "error_message")
    exclude = ("lease_token", "content")
    long = (*JobAdmin.long, "content")
    actions = ("cancel",)

    @admin.display(description="progress", ordering="progress")
    def done_so_far(self, comparison: Comparison) -> str:
        return f"{100 * comparison.progress:.0f}%"

    @admin.action(description="Cancel")
    def cancel(self, request: HttpRequest, chosen: QuerySet[Comparison]) -> HttpResponse | None:
        question = "Cancel these comparisons? Users who wait for one are notified, and can request it again."
        return self.carry_out(request, chosen, _cancel, done="Cancelled", question=question)


def _cancel(comparison: Comparison, origin: Origin) -> None:
    cancel_comparison(comparison=comparison, origin=origin)


@admin.register(VectorUpdate)
class VectorUpdateAdmin(JobAdmin):
    """The jobs that store vectors of measures that were added to collections."""

    list_display = ("qrels", "state", "attempts", "lease", "error_code", "error", "since")
    list_select_related = ("qrels__collection",)
    list_filter = ("state", "error_code", "qrels__collection")
    search_fields = ("qrels__collection__slug", "error_code", "error_message")


@admin.register(DispatcherRound)
class DispatcherRoundAdmin(ReadOnlyAdmin):
    """The workers of the last hour."""

    list_display = ("worker", "at", "alive", "failed")
    ordering = ("-at",)

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).annotate(now=Now())

    @admin.display(boolean=True)
    def alive(self, last_round: Any) -> bool:
        age = last_round.now - last_round.at
        return bool(age.total_seconds() < ALIVE_SECONDS)
