"""Experiments: named sets of runs, such as those of one parameter study."""

from __future__ import annotations

import uuid
from typing import Any

from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from runs.models.accounts.accounts import Team, User
from runs.models.submissions.runs import Run
from runs.models.submissions.submissions import seen_by
from runs.models.text import check_line, check_text

# The short name of an experiment.
SLUG_RULE = r"[a-z0-9][a-z0-9_-]{0,63}"


class ExperimentQuerySet(models.QuerySet["Experiment"]):
    def visible_to(self, user: Any) -> ExperimentQuerySet:
        """Return those of the user's teams, and shared ones if the user sees all their live runs.

        An experiment with a run that is blind for the user, or of a collection that the user does
        not see, is left out: its goal and its notes may be about this run.
        """
        visible = seen_by(user, "run__")
        live = ExperimentRun.objects.filter(experiment=OuterRef("pk"), run__deleted_at=None)
        all_visible = Exists(live.filter(visible)) & ~Exists(live.exclude(visible))
        shared = Q(all_visible, visibility=Experiment.Visibility.COLLECTION)

        return self.filter(Q(team__in=Team.objects.visible_to(user)) | shared)


class Experiment(models.Model):
    """A named set of runs of any collections, with a goal and notes. Its team changes it."""

    class Visibility(models.TextChoices):
        TEAM = "team"
        COLLECTION = "collection"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="experiments")
    slug = models.CharField(
        max_length=64,
        validators=[
            RegexValidator(rf"\A{SLUG_RULE}\Z", "use lower-case letters, digits, '_' and '-'")
        ],
    )
    name = models.CharField(max_length=200, validators=[check_line])
    goal = models.TextField(blank=True, max_length=10_000, validators=[check_text])
    visibility = models.CharField(
        max_length=10, choices=Visibility.choices, default=Visibility.TEAM
    )
    baseline = models.ForeignKey(
        Run, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    runs: models.ManyToManyField[Run, ExperimentRun] = models.ManyToManyField(
        Run, through="ExperimentRun", related_name="experiments"
    )
    created_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = ExperimentQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at", "id")
        constraints = (
            models.UniqueConstraint(fields=("team", "slug"), name="one_experiment_per_slug"),
        )

    def __str__(self) -> str:
        return f"{self.team}/{self.slug}"


class ExperimentRun(models.Model):
    """A run of an experiment. A withdrawn one stays in it, hidden until it is restored."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="pairs")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="+")
    added_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    added_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("added_at", "id")
        constraints = (
            models.UniqueConstraint(fields=("experiment", "run"), name="one_run_per_experiment"),
        )

    def __str__(self) -> str:
        return f"{self.run} in {self.experiment}"
