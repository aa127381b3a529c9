"""Filters of the list of runs."""

from __future__ import annotations

from datetime import UTC, datetime

import django_filters
from django.db.models import F, QuerySet

from metrics.engine import ENGINE_VERSION
from runs.models import Run

_STATES = ("queued", "evaluating", "evaluated", "failed", "cancelled")


class MomentFilter(django_filters.IsoDateTimeFilter):  # type: ignore[misc]
    """A moment, taken to UTC first: one that has no UTC is out of range on every database alike."""

    def filter(self, runs: QuerySet[Run], value: datetime | None) -> QuerySet[Run]:
        filtered: QuerySet[Run] = super().filter(runs, value.astimezone(UTC) if value else value)
        return filtered


class RunFilter(django_filters.FilterSet):  # type: ignore[misc]
    team = django_filters.CharFilter(field_name="team__slug")
    tag = django_filters.CharFilter(lookup_expr="icontains")
    status = django_filters.ChoiceFilter(choices=[(state, state) for state in _STATES], method="with_status")
    submitted_after = MomentFilter(field_name="created_at", lookup_expr="gte")
    submitted_before = MomentFilter(field_name="created_at", lookup_expr="lt")

    class Meta:
        model = Run
        fields = ("team", "tag", "status", "submitted_after", "submitted_before")

    def with_status(self, runs: QuerySet[Run], name: str, value: str) -> QuerySet[Run]:
        """Runs whose evaluation under the active judgements is in a state; without judgements they are queued."""
        current = {
            "evaluations__qrels__active": True,
            "evaluations__scores": F("collection__scores"),
            "evaluations__engine_version": ENGINE_VERSION,
        }
        if value == "queued":
            return runs.exclude(pk__in=runs.filter(**current).exclude(evaluations__state="queued").values("pk"))
        return runs.filter(**current, evaluations__state=value)
