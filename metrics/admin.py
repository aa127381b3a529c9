"""The administration of evaluations and comparisons: what waits, what failed and why."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from metrics.models import Comparison, Evaluation, SessionEvaluation
from runs.admin import ReadOnlyAdmin


@admin.register(Evaluation)
class EvaluationAdmin(ReadOnlyAdmin):
    list_display = ("run", "collection", "version", "state", "attempts", "error_code", "error", "seconds", "since")
    list_select_related = ("run__team", "run__collection", "qrels")
    list_filter = ("state", "error_code", "scores", "engine_version", "run__collection")
    search_fields = ("run__tag", "run__team__slug", "run__collection__slug", "error_code", "error_message")
    exclude = ("lease_token",)
    date_hierarchy = "created_at"

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).defer("qrels__topic_ids")

    @admin.display(ordering="run__collection__slug")
    def collection(self, evaluation: Evaluation) -> str:
        return evaluation.run.collection.slug

    @admin.display(description="qrels", ordering="qrels__version")
    def version(self, evaluation: Evaluation) -> str:
        return f"v{evaluation.qrels.version}"

    @admin.display(description="reason")
    def error(self, evaluation: Evaluation) -> str:
        return evaluation.error_message[:120]


@admin.register(SessionEvaluation)
class SessionEvaluationAdmin(ReadOnlyAdmin):
    list_display = ("session_set", "collection", "qrels", "judged_by", "state", "attempts", "error_code", "since")
    list_select_related = ("session_set__team", "session_set__collection", "qrels__collection")
    list_filter = ("state", "error_code", "judged_by", "engine_version", "session_set__collection")
    search_fields = ("session_set__tag", "session_set__team__slug", "error_code", "error_message")
    exclude = ("lease_token", "means")
    date_hierarchy = "created_at"

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).defer("means", "qrels__topic_ids")

    @admin.display(ordering="session_set__collection__slug")
    def collection(self, evaluation: SessionEvaluation) -> str:
        return str(evaluation.session_set.collection)


@admin.register(Comparison)
class ComparisonAdmin(ReadOnlyAdmin):
    list_display = ("id", "qrels", "state", "progress", "attempts", "error_code", "seconds", "size", "since", "read_at")
    list_select_related = ("qrels__collection",)
    list_filter = ("state", "error_code", "engine_version", "qrels__collection")
    search_fields = ("id", "qrels__collection__slug", "error_code", "error_message")
    exclude = ("lease_token", "content")
    date_hierarchy = "created_at"

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).defer("content", "qrels__topic_ids")
