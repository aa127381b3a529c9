"""Runs: one system's rankings for a collection's topics; and systems: sequences of runs."""

from __future__ import annotations

import hashlib
from typing import Any, Self

from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone

from runs.models.accounts.accounts import Team
from runs.models.checked import StoredJSON
from runs.models.collections.collections import Collection
from runs.models.collections.disclosure import in_team_of
from runs.models.submissions.submissions import Submission, SubmissionQuerySet, by_date, one_per_tag
from runs.models.text import check_line, check_text

# Of an empty file, which a run without a ranking has.
NO_RANKING = hashlib.sha256(b"").hexdigest()
# Of these, and of means over replicates, which have no file.
WITHOUT_RANKING = (NO_RANKING, "")
# The name of a system: with its version behind it, it is a tag.
SYSTEM_RULE = r"[A-Za-z0-9][A-Za-z0-9._-]{0,53}"
SYSTEM_RULE_MESSAGE = (
    "a system has 1 to 54 letters, digits, '.', '_' and '-', and begins with a letter or digit"
)


class SystemQuerySet(models.QuerySet["System"]):
    def visible_to(self, user: Any) -> SystemQuerySet:
        """Return systems of the user's teams, and those with a run that the user sees.

        Staff see all.
        """
        if user.is_authenticated and user.is_staff:
            return self

        runs = Run.objects.visible_to(user).filter(system__isnull=False)
        return self.filter(in_team_of(user) | Q(pk__in=runs.values("system")))

    def owned_by(self, user: Any) -> SystemQuerySet:
        """Return the systems that the user may change: of the user's teams, or all for staff."""
        if user.is_authenticated and user.is_staff:
            return self
        return self.filter(in_team_of(user))


class System(models.Model):
    """A named sequence of a team's runs: its versions, counted from 1 in each collection."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="systems")
    slug = models.CharField(
        max_length=54, validators=[RegexValidator(rf"\A{SYSTEM_RULE}\Z", SYSTEM_RULE_MESSAGE)]
    )
    name = models.CharField(max_length=200, blank=True, validators=[check_line])
    description = models.TextField(blank=True, max_length=20_000, validators=[check_text])
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = SystemQuerySet.as_manager()

    class Meta:
        ordering = ("slug", "team")
        constraints = (
            models.UniqueConstraint(fields=("team", "slug"), name="one_system_per_slug"),
        )

    def __str__(self) -> str:
        return f"{self.team}/{self.slug}"


class RunQuerySet(SubmissionQuerySet["Run"]):
    """Runs."""

    def ranked(self) -> Self:
        """Leave out runs whose values come from tables alone, or are means over replicates."""
        return self.exclude(sha256__in=WITHOUT_RANKING)

    def with_files(self) -> Self:
        """Leave out the runs whose values are means over their replicates."""
        return self.exclude(sha256="")

    def in_rows(self) -> Self:
        """Leave out replicates: leaderboards have one row for the run that they belong to."""
        return self.filter(replicate_of=None)


class Run(Submission):
    """Metadata of a submitted run. The rankings and the known documents are in files.

    The file of a run that has values from tables alone is empty. A run without a file has
    `replicates`: runs of one system that differ by seed, fold or index. Its value for a topic is
    the mean of theirs.
    """

    KEY, WAY = "run", "collection__scores"
    SEALED = (*Submission.SEALED, "lines", "tied_documents", "known_sha256", "known_documents")

    collection = models.ForeignKey(Collection, on_delete=models.PROTECT, related_name="runs")
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="runs")
    ir_metadata = StoredJSON(null=True, blank=True)
    # Processes of the release before go on submitting while it is replaced.
    costs = StoredJSON(default=dict, blank=True, db_default={})
    lines = models.BigIntegerField()
    tied_documents = models.BigIntegerField()
    grouped = models.BooleanField(help_text="whether the file lists each topic in one piece")
    known_sha256 = models.CharField(
        max_length=64,
        blank=True,
        help_text="of the file of known documents, empty where none came with the run",
    )
    known_documents = models.IntegerField(default=0)
    known_warnings = StoredJSON(default=dict, blank=True)
    system = models.ForeignKey(
        System, null=True, blank=True, on_delete=models.PROTECT, related_name="runs"
    )
    version = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="of its system in its collection, from 1; kept when the run is withdrawn",
    )
    versioned_at = models.DateTimeField(
        null=True, editable=False, help_text="when it became this version"
    )
    replicate_of = models.ForeignKey(
        "self",
        null=True,
        blank=True,
        editable=False,
        on_delete=models.CASCADE,
        related_name="replicates",
        help_text="the run without a file whose values are the means of its replicates",
    )
    removal_reason = models.CharField(
        max_length=500,
        blank=True,
        default="",
        db_default="",
        editable=False,
        validators=[check_line],
        help_text="why organisers took it out of its collection",
    )

    objects = RunQuerySet.as_manager()

    class Meta(Submission.Meta):
        constraints = (
            one_per_tag("one_run_per_tag"),
            models.UniqueConstraint(
                fields=("system", "collection", "version"), name="one_run_per_version"
            ),
            models.CheckConstraint(
                condition=Q(system__isnull=True, version__isnull=True)
                | Q(system__isnull=False, version__isnull=False),
                name="version_of_a_system",
            ),
        )
        indexes = (
            by_date("runs_by_date"),
            # Whether a leaderboard has changed is read from this index alone.
            models.Index(
                fields=(
                    "collection",
                    "team",
                    "deleted_at",
                    "created_at",
                    "system",
                    "version",
                    "versioned_at",
                ),
                name="runs_of_board",
            ),
        )

    @property
    def way(self) -> str:
        return self.collection.scores

    @property
    def has_ranking(self) -> bool:
        """Return whether it ranks documents; otherwise tables or replicates have its values."""
        return self.sha256 not in WITHOUT_RANKING

    @property
    def file_name(self) -> str:
        return f"{self.tag}.run"

    @property
    def has_replicates(self) -> bool:
        """Return whether its values are means over its replicates: it has no file."""
        return not self.sha256

    @property
    def replicate(self) -> str | None:
        """Return the name of the replicates that it belongs to."""
        return self.replicate_of.tag if self.replicate_of else None

    @property
    def files(self) -> list[str]:
        return [sha256 for sha256 in (self.sha256, self.known_sha256) if sha256]
