"""Entries: the runs that take part in the phases of campaigns."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q

from runs.models.accounts.accounts import User
from runs.models.campaigns.campaigns import Participation, Phase
from runs.models.checked import StoredJSON
from runs.models.submissions.runs import Run
from runs.models.text import check_line


class Entry(models.Model):
    """A run that takes part in a phase. The run is the collection's; what is the campaign's is here.

    `arrived_at` is when the last byte of the request had arrived, and `late` was fixed then.
    Entries that count for a team have priorities 1, 2, 3 ... without gaps, the others none.
    """

    class Role(models.TextChoices):
        COMPETING = "competing"
        BASELINE = "baseline"
        OUT_OF_COMPETITION = "out_of_competition"

    class State(models.TextChoices):
        ENTERED = "entered"
        WITHDRAWN = "withdrawn"
        DISQUALIFIED = "disqualified"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    phase = models.ForeignKey(Phase, on_delete=models.PROTECT, related_name="entries")
    participation = models.ForeignKey(
        Participation,
        null=True,
        on_delete=models.PROTECT,
        related_name="entries",
        help_text="empty: the organisers",
    )
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="entries")
    number = models.PositiveIntegerField(help_text="in its phase, from 1")
    entered_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    arrived_at = models.DateTimeField()
    late = models.BooleanField(default=False)
    role = models.CharField(max_length=20, choices=Role.choices, default=Role.COMPETING)
    label = models.CharField(
        max_length=100, blank=True, validators=[check_line], help_text="of a baseline"
    )
    run_type = models.CharField(max_length=31, blank=True)
    priority = models.IntegerField(null=True)
    answers = StoredJSON(default=dict, blank=True)
    chosen = models.BooleanField(
        default=False, db_default=False, help_text="by its team, for the official leaderboard"
    )
    published = models.BooleanField(
        default=False,
        db_default=False,
        help_text="of a phase afterwards: by its team, for all who see the leaderboard",
    )
    paper = models.CharField(
        max_length=500,
        blank=True,
        default="",
        db_default="",
        validators=[check_line],
        help_text="address or DOI of the paper about the run",
    )
    state = models.CharField(max_length=12, choices=State.choices, default=State.ENTERED)
    state_reason = models.CharField(max_length=500, blank=True, validators=[check_line])
    state_changed_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "entries"
        ordering = ("phase", "number")
        constraints = (
            models.UniqueConstraint(fields=("phase", "run"), name="one_entry_per_run"),
            models.UniqueConstraint(fields=("phase", "number"), name="one_entry_per_number"),
            models.UniqueConstraint(
                fields=("phase", "participation", "priority"),
                condition=Q(state="entered"),
                name="one_entry_per_priority",
            ),
            models.CheckConstraint(
                condition=~Q(role="competing") | Q(participation__isnull=False),
                name="a_team_competes",
            ),
            models.CheckConstraint(
                condition=Q(state="entered") | Q(priority=None),
                name="only_entered_runs_have_priorities",
            ),
        )

    def __str__(self) -> str:
        return f"entry {self.number} of {self.phase}"

    @property
    def paper_address(self) -> str:
        """Return where the paper is, through the resolver of DOIs if that is what is stored."""
        return f"https://doi.org/{self.paper}" if self.paper.startswith("10.") else self.paper
