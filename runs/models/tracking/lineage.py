"""The origins of runs: other runs, and addresses of code, models, papers and data."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import models
from django.db.models import F, Q

from runs.formats.links import MAX_COMMIT, MAX_TITLE, MAX_URL
from runs.models.collections.collections import exists_for
from runs.models.collections.disclosure import in_team_of
from runs.models.submissions.runs import Run
from runs.models.submissions.submissions import seen_by, unveiled


class RunParentQuerySet(models.QuerySet["RunParent"]):
    def visible_to(self, user: Any) -> RunParentQuerySet:
        """Return edges between two runs that the user sees; the parent may be withdrawn.

        If the parent was deleted nobody knows who saw it: only the team of the child sees the edge.
        """
        parent = (
            Q(parent__isnull=False)
            & exists_for(user, "parent__collection__")
            & unveiled(user, "parent__")
        )

        deleted = Q(parent=None) & in_team_of(user, "child__")
        return self.filter(parent | deleted, seen_by(user, "child__"))


class RunParent(models.Model):
    """An edge of the graph of runs: the child was made from the parent.

    The name of the parent is kept when it is deleted.
    """

    class Relation(models.TextChoices):
        RERANKED = "reranked"
        FUSED = "fused"
        TRAINED = "trained"
        EXPANDED = "expanded"
        DERIVED = "derived"

    child = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="parent_edges")
    parent = models.ForeignKey(
        Run, null=True, on_delete=models.SET_NULL, related_name="child_edges"
    )
    parent_name = models.CharField(
        max_length=200, help_text="team/tag of the parent when the edge was made"
    )
    relation = models.CharField(max_length=10, choices=Relation.choices, default=Relation.DERIVED)
    weight = models.FloatField(null=True)
    position = models.PositiveSmallIntegerField(default=0)

    parent_id: UUID | None

    objects = RunParentQuerySet.as_manager()

    class Meta:
        ordering = ("child", "position", "id")
        constraints = (
            models.UniqueConstraint(
                fields=("child", "parent", "relation"), name="one_edge_per_relation"
            ),
            models.CheckConstraint(
                condition=~Q(child=F("parent")), name="no_run_is_its_own_parent"
            ),
        )

    def __str__(self) -> str:
        return f"{self.child_id} {self.relation} from {self.parent_name}"


class RunLink(models.Model):
    """An address that belongs to a run."""

    class Kind(models.TextChoices):
        CODE = "code"
        MODEL = "model"
        PAPER = "paper"
        DATA = "data"

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="links")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    url = models.CharField(max_length=MAX_URL)
    commit = models.CharField(max_length=MAX_COMMIT, blank=True)
    title = models.CharField(max_length=MAX_TITLE, blank=True)
    position = models.PositiveSmallIntegerField(default=0)

    class Meta:
        ordering = ("run", "position", "id")

    def __str__(self) -> str:
        return f"{self.kind} {self.url}"
