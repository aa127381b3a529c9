"""Artifacts: files that belong to a run, such as its configuration and its log."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import Q
from django.utils import timezone

from runs.models.accounts.accounts import User
from runs.models.submissions.runs import Run
from runs.models.submissions.submissions import seen_by

# The name of an artifact is the end of its address, and the name of a file on many systems.
NAME_RULE = r"[A-Za-z0-9_][A-Za-z0-9_ .+=@()-]{0,199}"


class ArtifactQuerySet(models.QuerySet["Artifact"]):
    def live(self) -> ArtifactQuerySet:
        """Return artifacts that are not deleted, of runs that are not withdrawn."""
        return self.filter(deleted_at=None, run__deleted_at=None)

    def visible_to(self, user: Any) -> ArtifactQuerySet:
        """Return artifacts of runs that the user sees."""
        return self.filter(seen_by(user, "run__"), deleted_at=None)


class Artifact(models.Model):
    """A file that belongs to a run; stored by its SHA-256 like the run, and never changed."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="artifacts")
    name = models.CharField(max_length=200)
    sha256 = models.CharField(max_length=64, db_index=True, help_text="of the file as it was sent")
    size = models.BigIntegerField(help_text="bytes")
    created_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    deleted_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = ArtifactQuerySet.as_manager()

    class Meta:
        ordering = ("name", "id")
        constraints = (
            models.UniqueConstraint(
                fields=("run", "name"), condition=Q(deleted_at=None), name="one_artifact_per_name"
            ),
        )

    def __str__(self) -> str:
        return f"{self.run_id}/{self.name}"
