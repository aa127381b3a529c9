"""Session sets: logs of searchers' sessions with one system or several, for a collection's topics."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q
from django.utils import timezone

from runs.models.accounts import Team, User
from runs.models.collections import Collection
from runs.models.submissions import SubmissionQuerySet


class SessionSetQuerySet(SubmissionQuerySet["SessionSet"]):
    """Session sets."""


class SessionSet(models.Model):
    """Metadata of a submitted session log. Queries and rankings are in the file named by `sha256`, never in rows.

    `judged_by` says what the judgements of a session are found under: its topic, its own id, each query's, or in the
    log itself, where the searchers wrote their own.
    """

    class JudgedBy(models.TextChoices):
        TOPIC = "topic"
        SESSION = "session"
        QUERY = "query"
        OWN = "own"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    collection = models.ForeignKey(Collection, on_delete=models.PROTECT, related_name="session_sets")
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="session_sets")
    submitted_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    tag = models.CharField(max_length=64)
    description = models.TextField(blank=True, max_length=20_000)
    metadata = models.JSONField(default=dict, blank=True)
    judged_by = models.CharField(max_length=10, choices=JudgedBy.choices, default=JudgedBy.TOPIC)
    sha256 = models.CharField(max_length=64, db_index=True, help_text="of the decompressed file")
    size = models.BigIntegerField(help_text="bytes, decompressed")
    format = models.CharField(max_length=20)
    grouped = models.BooleanField(help_text="whether the file lists each session in one piece")
    sessions = models.IntegerField()
    queries = models.IntegerField()
    empty_queries = models.IntegerField(help_text="queries that returned nothing")
    documents = models.BigIntegerField()
    topics = models.IntegerField()
    searchers = models.IntegerField(help_text="0 where the log names none")
    systems = models.JSONField(help_text="names in order of first appearance; none where the log names none")
    judged_documents = models.BigIntegerField(help_text="judgements that the searchers wrote into the log")
    warnings = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    deleted_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = SessionSetQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at", "id")
        constraints = (
            models.UniqueConstraint(
                fields=("collection", "team", "tag"), condition=Q(deleted_at=None), name="one_session_set_per_tag"
            ),
        )
        indexes = (models.Index(fields=("collection", "-created_at", "id"), name="session_sets_by_date"),)

    def __str__(self) -> str:
        return f"{self.team}/{self.tag}"
