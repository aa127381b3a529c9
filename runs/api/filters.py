"""Filters of the lists of runs, of session sets and of the audit trail."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import django_filters
from django.db.models import F, QuerySet

from metrics.engine import ENGINE_VERSION
from metrics.services.queue.session_status import sets_in_state
from metrics.services.queue.status import RECEIVED, RUN_STATES
from runs.models import AuditEvent, Collection, Run, SessionSet


class MomentFilter(django_filters.IsoDateTimeFilter):  # type: ignore[misc]
    """A moment, taken to UTC first: one that has no UTC is out of range on every database alike."""

    def filter(self, rows: QuerySet[Any], value: datetime | None) -> QuerySet[Any]:
        filtered: QuerySet[Any] = super().filter(rows, value.astimezone(UTC) if value else value)
        return filtered


class RunFilter(django_filters.FilterSet):  # type: ignore[misc]
    team = django_filters.CharFilter(field_name="team__slug")
    tag = django_filters.CharFilter(lookup_expr="icontains")
    status = django_filters.ChoiceFilter(choices=[(state, state) for state in RUN_STATES], method="with_status")
    submitted_after = MomentFilter(field_name="created_at", lookup_expr="gte")
    submitted_before = MomentFilter(field_name="created_at", lookup_expr="lt")

    class Meta:
        model = Run
        fields = ("team", "tag", "status", "submitted_after", "submitted_before")

    def with_status(self, runs: QuerySet[Run], name: str, value: str) -> QuerySet[Run]:
        """Runs whose evaluation under the active judgements is in a state; without judgements they are queued.

        Blind runs are received, whatever became of them.
        """
        scored = Collection.objects.scored_for(self.request.user)
        if value == RECEIVED:
            return runs.exclude(collection__in=scored)
        runs = runs.filter(collection__in=scored)
        current = {
            "evaluations__qrels__active": True,
            "evaluations__scores": F("collection__scores"),
            "evaluations__engine_version": ENGINE_VERSION,
        }
        if value == "queued":
            return runs.exclude(pk__in=runs.filter(**current).exclude(evaluations__state="queued").values("pk"))
        return runs.filter(**current, evaluations__state=value)


class SessionSetFilter(django_filters.FilterSet):  # type: ignore[misc]
    team = django_filters.CharFilter(field_name="team__slug")
    tag = django_filters.CharFilter(lookup_expr="icontains")
    judged_by = django_filters.ChoiceFilter(choices=SessionSet.JudgedBy.choices)
    status = django_filters.ChoiceFilter(choices=[(state, state) for state in RUN_STATES], method="with_status")
    submitted_after = MomentFilter(field_name="created_at", lookup_expr="gte")
    submitted_before = MomentFilter(field_name="created_at", lookup_expr="lt")

    class Meta:
        model = SessionSet
        fields = ("team", "tag", "judged_by", "status", "submitted_after", "submitted_before")

    def with_status(self, sets: QuerySet[SessionSet], name: str, value: str) -> QuerySet[SessionSet]:
        """As for runs: without judgements they are queued, and blind ones are received."""
        scored = Collection.objects.scored_for(self.request.user)
        if value == RECEIVED:
            return sets.exclude(collection__in=scored)
        return sets_in_state(sets.filter(collection__in=scored), value)


class AuditFilter(django_filters.FilterSet):  # type: ignore[misc]
    action = django_filters.ChoiceFilter(choices=AuditEvent.Action.choices)
    actor = django_filters.CharFilter()
    collection = django_filters.CharFilter(field_name="collection__slug")
    object_type = django_filters.CharFilter()
    object_id = django_filters.CharFilter()
    after = MomentFilter(field_name="time", lookup_expr="gte")
    before = MomentFilter(field_name="time", lookup_expr="lt")

    class Meta:
        model = AuditEvent
        fields = ("action", "actor", "collection", "object_type", "object_id", "after", "before")
