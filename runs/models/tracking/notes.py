"""Notes: dated texts of members about runs, collections and experiments."""

from __future__ import annotations

import uuid
from typing import Any

from django.db import models
from django.db.models import Q
from django.utils import timezone

from runs.models.accounts.accounts import User
from runs.models.collections.collections import Collection
from runs.models.submissions.runs import Run
from runs.models.text import check_text
from runs.models.tracking.experiments import Experiment

# The subjects of notes: each is a column of a note, and exactly one is set.
SUBJECTS: dict[str, type[models.Model]] = {
    "run": Run,
    "collection": Collection,
    "experiment": Experiment,
}


def _one_subject() -> Q:
    """Return the condition that exactly one subject is set."""
    condition = Q()
    for name in SUBJECTS:
        condition |= Q(**{f"{other}__isnull": other != name for other in SUBJECTS})
    return condition


class NoteQuerySet(models.QuerySet["Note"]):
    def visible_to(self, user: Any) -> NoteQuerySet:
        """Return notes about subjects that the user sees."""
        condition = Q(pk__in=[])
        for name, model in SUBJECTS.items():
            subjects = model._default_manager.visible_to(user)  # type: ignore[attr-defined]
            condition |= Q(**{f"{name}__in": subjects})

        return self.filter(condition)

    def about(self, subject: models.Model) -> NoteQuerySet:
        """Return notes about one subject."""
        return self.filter(**{subject_name(subject): subject.pk})


class Note(models.Model):
    """A dated text about one subject. All who see the subject read it; its author changes it."""

    # Random: the author of two notes must not learn how many were written in between elsewhere.
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    run = models.ForeignKey(
        Run, null=True, blank=True, on_delete=models.CASCADE, related_name="notes"
    )
    collection = models.ForeignKey(
        Collection, null=True, blank=True, on_delete=models.CASCADE, related_name="notes"
    )
    experiment = models.ForeignKey(
        Experiment, null=True, blank=True, on_delete=models.CASCADE, related_name="notes"
    )
    author = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    text = models.TextField(max_length=10_000, validators=[check_text])
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    edited_at = models.DateTimeField(null=True, editable=False)

    author_id: int | None
    run_id: uuid.UUID | None
    experiment_id: uuid.UUID | None

    objects = NoteQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at", "-id")
        constraints = (
            models.CheckConstraint(condition=_one_subject(), name="note_about_one_subject"),
        )

    def __str__(self) -> str:
        return f"note {self.pk} about {self.kind} {self.subject}"

    @property
    def kind(self) -> str:
        """Return the name of its subject's column."""
        return next(name for name in SUBJECTS if getattr(self, f"{name}_id") is not None)

    @property
    def subject(self) -> Any:
        return getattr(self, self.kind)


def subject_name(subject: models.Model) -> str:
    """Return the column of notes about a subject."""
    return next(name for name, model in SUBJECTS.items() if isinstance(subject, model))
