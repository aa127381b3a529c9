"""Runs: one system's rankings for a collection's topics."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q
from django.utils import timezone

from runs.models.accounts import Team, User
from runs.models.collections import Collection
from runs.models.submissions import SubmissionQuerySet


class RunQuerySet(SubmissionQuerySet["Run"]):
    """Runs."""


class Run(models.Model):
    """Metadata of a submitted run. The rankings are in the file named by `sha256`, never in rows, and so are, by
    `known_sha256`, the documents its user knew."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    collection = models.ForeignKey(Collection, on_delete=models.PROTECT, related_name="runs")
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="runs")
    submitted_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    tag = models.CharField(max_length=64)
    description = models.TextField(blank=True, max_length=20_000)
    metadata = models.JSONField(default=dict, blank=True)
    ir_metadata = models.JSONField(null=True, blank=True)
    sha256 = models.CharField(max_length=64, db_index=True, help_text="of the decompressed file")
    size = models.BigIntegerField(help_text="bytes, decompressed")
    lines = models.BigIntegerField()
    documents = models.BigIntegerField()
    topics = models.IntegerField()
    tied_documents = models.BigIntegerField()
    grouped = models.BooleanField(help_text="whether the file lists each topic in one piece")
    warnings = models.JSONField(default=dict)
    known_sha256 = models.CharField(
        max_length=64, blank=True, help_text="of the file of known documents, empty where none came with the run"
    )
    known_documents = models.IntegerField(default=0)
    known_warnings = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    deleted_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = RunQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at", "id")
        constraints = (
            models.UniqueConstraint(
                fields=("collection", "team", "tag"), condition=Q(deleted_at=None), name="one_run_per_tag"
            ),
        )
        indexes = (models.Index(fields=("collection", "-created_at", "id"), name="runs_by_date"),)

    def __str__(self) -> str:
        return f"{self.team}/{self.tag}"
