"""Runs: one system's rankings for a collection's topics."""

from __future__ import annotations

from django.db import models

from runs.models.accounts import Team
from runs.models.checked import StoredJSON
from runs.models.collections import Collection
from runs.models.submissions import Submission, SubmissionQuerySet, by_date, one_per_tag


class RunQuerySet(SubmissionQuerySet["Run"]):
    """Runs."""


class Run(Submission):
    """Metadata of a submitted run. The documents its user knew are, like the rankings, in a file."""

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
        max_length=64, blank=True, help_text="of the file of known documents, empty where none came with the run"
    )
    known_documents = models.IntegerField(default=0)
    known_warnings = StoredJSON(default=dict, blank=True)

    objects = RunQuerySet.as_manager()

    class Meta(Submission.Meta):
        constraints = (one_per_tag("one_run_per_tag"),)
        indexes = (by_date("runs_by_date"),)

    @property
    def way(self) -> str:
        return self.collection.scores

    @property
    def file_name(self) -> str:
        return f"{self.tag}.run"

    @property
    def files(self) -> list[str]:
        return [self.sha256, self.known_sha256] if self.known_sha256 else [self.sha256]
