"""Experiments and notes."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse

from runs.admin.parts import ReadOnlyAdmin, number_of
from runs.models import Experiment, ExperimentRun, Note


@admin.register(Experiment)
class ExperimentAdmin(ReadOnlyAdmin):
    """Experiments with the number of their runs."""

    list_display = ("slug", "name", "team", "visibility", "runs", "created_by", "created_at")
    list_select_related = ("team", "created_by")
    list_filter = ("visibility",)
    search_fields = ("slug", "name", "team__slug")
    date_hierarchy = "created_at"
    fields = ("team", "slug", "name", "goal", "visibility", "baseline", "created_by", "created_at")

    def get_queryset(self, request: HttpRequest) -> Any:
        run_count = number_of(ExperimentRun.objects.all(), "experiment")
        return super().get_queryset(request).annotate(run_count=run_count)

    def view_on_site(self, experiment: Any) -> str:
        return reverse("experiment-page", args=[experiment.pk])

    @admin.display(ordering="run_count")
    def runs(self, experiment: Any) -> int:
        return int(experiment.run_count)


@admin.register(Note)
class NoteAdmin(ReadOnlyAdmin):
    """Notes, which only their authors write."""

    list_display = ("id", "about", "author", "created_at", "edited_at")
    list_select_related = ("author", "run__team", "collection", "experiment__team")
    search_fields = ("text", "author__username")
    date_hierarchy = "created_at"
    fields = ("about", "author", "text", "created_at", "edited_at")
    readonly_fields = ("about",)

    @admin.display
    def about(self, note: Any) -> str:
        return f"{note.kind} {note.subject}"
