"""Releases: the acts that show the results of a phase to more people, planned or done."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q
from django.utils import timezone

from runs.models.accounts.accounts import User
from runs.models.campaigns.campaigns import Phase
from runs.models.checked import StoredJSON
from runs.models.collections.collections import Qrels
from runs.models.collections.disclosure import Disclosure
from runs.models.text import check_line


class Release(models.Model):
    """A step of disclosure of a phase: planned, done for good, or cancelled. To its largest audience so far its results
    are released again when judgements are newer.

    `official` has the ids of the entries that stood on the official board then; with the selection
    `best` they depend on the values under its `qrels`, the version that was active.
    """

    class Audience(models.IntegerChoices):
        TEAMS = Disclosure.TEAMS, "teams"
        PARTICIPANTS = Disclosure.PARTICIPANTS, "participants"
        PUBLIC = Disclosure.PUBLIC, "public"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    phase = models.ForeignKey(Phase, on_delete=models.PROTECT, related_name="releases")
    audience = models.PositiveSmallIntegerField(choices=Audience.choices)
    planned_at = models.DateTimeField(
        null=True, blank=True, help_text="empty: when an organiser does it"
    )
    done_at = models.DateTimeField(null=True, blank=True)
    cancelled_at = models.DateTimeField(null=True, blank=True)
    qrels = models.ForeignKey(
        Qrels, null=True, blank=True, on_delete=models.PROTECT, related_name="releases"
    )
    with_run_files = models.BooleanField(
        default=False, help_text="whether its audience may download the runs"
    )
    note = models.CharField(max_length=500, blank=True, validators=[check_line])
    official = StoredJSON(default=list, blank=True)
    planned_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("phase", "audience", "created_at")
        constraints = (
            models.UniqueConstraint(
                fields=("phase", "audience"),
                condition=Q(cancelled_at=None, done_at=None),
                name="one_planned_release_per_audience",
            ),
            models.CheckConstraint(
                condition=Q(done_at=None) | Q(cancelled_at=None),
                name="what_is_done_is_not_cancelled",
            ),
        )
        indexes = (
            models.Index(
                fields=("planned_at",),
                condition=Q(done_at=None, cancelled_at=None),
                name="planned_releases",
            ),
        )

    def __str__(self) -> str:
        return f"release of {self.phase} to {self.get_audience_display()}"
