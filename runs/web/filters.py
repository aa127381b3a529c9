"""Filters of the lists of runs, of session sets and of the audit trail."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import django_filters
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db.models import QuerySet

from metrics.services.queue.status import RECEIVED, RUN_STATES, in_state
from runs.models import AuditEvent, Collection, Run, SessionSet


def choice_filter(words: Iterable[str], **options: Any) -> django_filters.ChoiceFilter:
    """Return a filter by one of some words; the error of another word lists them."""
    choices = [(word, word) for word in words]
    listed = ", ".join(word for word, _ in choices)
    messages = {"invalid_choice": f"'%(value)s' is not one of {listed}"}
    return django_filters.ChoiceFilter(choices=choices, error_messages=messages, **options)


class MomentField(django_filters.fields.IsoDateTimeField):  # type: ignore[misc]
    """A date-time that must not be empty: an empty one would be ignored and everything answered."""

    def clean(self, value: Any) -> Any:
        if value == "":
            raise ValidationError(
                "name a moment, such as 2026-11-22T12:00:00Z, or leave the parameter out"
            )
        return super().clean(value)


class MomentFilter(django_filters.IsoDateTimeFilter):  # type: ignore[misc]
    """A date-time, converted to UTC first.

    One without a UTC equivalent is then out of range on every database alike.
    """

    field_class = MomentField

    def filter(self, rows: QuerySet[Any], value: datetime | None) -> QuerySet[Any]:
        filtered: QuerySet[Any] = super().filter(rows, value.astimezone(UTC) if value else value)
        return filtered


class SubmissionFilter(django_filters.FilterSet):  # type: ignore[misc]
    team = django_filters.CharFilter(field_name="team__slug")
    tag = django_filters.CharFilter(lookup_expr="icontains")
    sha256 = django_filters.CharFilter(
        validators=[
            RegexValidator(
                r"\A[0-9a-f]{64}\Z",
                "give the SHA-256 of the decompressed file, 64 digits of 0-9a-f",
            )
        ]
    )
    status = choice_filter(RUN_STATES, method="with_status")
    submitted_after = MomentFilter(field_name="created_at", lookup_expr="gte")
    submitted_before = MomentFilter(field_name="created_at", lookup_expr="lt")

    def with_status(self, submissions: QuerySet[Any], name: str, value: str) -> QuerySet[Any]:
        """Return the submissions with a current evaluation in a state; without one they are queued.

        Blind ones are received, in any state of their evaluation.
        """
        scored = Collection.objects.scored_for(self.request.user)
        if value == RECEIVED:
            return submissions.exclude(collection__in=scored)

        return in_state(submissions.filter(collection__in=scored), value)


class RunFilter(SubmissionFilter):
    system = django_filters.CharFilter(field_name="system__slug")
    replicate_of = django_filters.UUIDFilter(field_name="replicate_of")

    class Meta:
        model = Run
        fields = (
            "team",
            "tag",
            "sha256",
            "status",
            "submitted_after",
            "submitted_before",
            "system",
            "replicate_of",
        )


class SessionSetFilter(SubmissionFilter):
    judged_by = choice_filter(SessionSet.JudgedBy.values)

    class Meta:
        model = SessionSet
        fields = (
            "team",
            "tag",
            "sha256",
            "judged_by",
            "status",
            "submitted_after",
            "submitted_before",
        )


class AuditFilter(django_filters.FilterSet):  # type: ignore[misc]
    action = choice_filter(AuditEvent.Action.values)
    actor = django_filters.CharFilter()
    collection = django_filters.CharFilter(field_name="collection__slug")
    object_type = django_filters.CharFilter()
    object_id = django_filters.CharFilter()
    after = MomentFilter(field_name="time", lookup_expr="gte")
    before = MomentFilter(field_name="time", lookup_expr="lt")

    class Meta:
        model = AuditEvent
        fields = ("action", "actor", "collection", "object_type", "object_id", "after", "before")
