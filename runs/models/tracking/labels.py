"""Labels: movable names of runs, such as `main` or `production`."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import models
from django.db.models import Q
from django.utils import timezone

from runs.models.accounts.accounts import Team, User
from runs.models.audit.trail import Immutable
from runs.models.collections.collections import Collection
from runs.models.submissions.runs import Run
from runs.models.submissions.submissions import seen_by
from runs.models.text import check_text

# The name of a label.
NAME_RULE = r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}"
NAME_RULE_MESSAGE = "a label has up to 40 letters, digits, dots, underscores and hyphens"


class LabelQuerySet(models.QuerySet["Label"]):
    def visible_to(self, user: Any) -> LabelQuerySet:
        """Return labels of runs that the user sees: of own teams in a blind collection."""
        return self.filter(seen_by(user, "run__"))


class Label(models.Model):
    """A name for one of a team's runs in a collection; it is moved from run to run."""

    collection = models.ForeignKey(Collection, on_delete=models.CASCADE, related_name="labels")
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="labels")
    name = models.CharField(max_length=40)
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="labels")
    moved_at = models.DateTimeField(default=timezone.now, editable=False)
    moved_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")

    objects = LabelQuerySet.as_manager()

    class Meta:
        ordering = ("collection", "name", "team")
        constraints = (
            models.UniqueConstraint(
                fields=("collection", "team", "name"), name="one_label_per_name"
            ),
        )

    def __str__(self) -> str:
        return f"{self.collection}/{self.team}/{self.name}"


class LabelMoveQuerySet(models.QuerySet["LabelMove"]):
    def update(self, **changes: Any) -> int:
        # The deletion of an account removes its name from the moves.
        if set(changes) == {"by"}:
            return super().update(**changes)
        raise Immutable("the moves of labels cannot be changed")


class LabelMove(models.Model):
    """One move of a label, never changed. `from_run` is None at its start, `to_run` at its end."""

    collection = models.ForeignKey(Collection, on_delete=models.CASCADE, related_name="label_moves")
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=40)
    from_run = models.ForeignKey(Run, null=True, on_delete=models.PROTECT, related_name="+")
    to_run = models.ForeignKey(Run, null=True, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(default=timezone.now, editable=False)
    by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    note = models.CharField(max_length=300, blank=True, validators=[check_text])

    from_run_id: UUID | None
    to_run_id: UUID | None

    objects = LabelMoveQuerySet.as_manager()

    class Meta:
        ordering = ("-at", "-id")
        indexes = (
            models.Index(
                fields=("collection", "team", "name", "-at", "-id"), name="moves_of_label"
            ),
        )
        constraints = (
            models.CheckConstraint(
                condition=Q(from_run__isnull=False) | Q(to_run__isnull=False),
                name="label_moved_somewhere",
            ),
        )

    def __str__(self) -> str:
        return f"{self.collection}/{self.team}/{self.name} to {self.to_run_id or 'no run'}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Store a new row. Raise Immutable for an existing one."""
        if not self._state.adding:
            raise Immutable("the moves of labels cannot be changed")
        super().save(*args, **kwargs)
