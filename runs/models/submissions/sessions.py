"""Session sets: logs of searchers' sessions with systems, for a collection's topics."""

from __future__ import annotations

from django.db import models

from runs.models.accounts.accounts import Team
from runs.models.checked import StoredJSON
from runs.models.collections.collections import Collection
from runs.models.submissions.submissions import Submission, SubmissionQuerySet, by_date, one_per_tag

_ENDINGS = {"jsonl": "jsonl", "trec-xml": "xml", "columns": "txt"}


class SessionSetQuerySet(SubmissionQuerySet["SessionSet"]):
    """Session sets."""


class SessionSet(Submission):
    """Metadata of a submitted session log with queries and rankings.

    `judged_by` says where to look for the judgements of a session: under its topic, its own id or
    the id of each query, or in the log itself, where the searchers wrote their own.
    """

    class JudgedBy(models.TextChoices):
        TOPIC = "topic"
        SESSION = "session"
        QUERY = "query"
        OWN = "own"

    KEY, WAY = "session_set", "judged_by"
    SEALED = (
        *Submission.SEALED,
        "format", "sessions", "queries", "empty_queries", "searchers", "judged_documents",
    )  # fmt: skip

    collection = models.ForeignKey(
        Collection, on_delete=models.PROTECT, related_name="session_sets"
    )
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="session_sets")
    judged_by = models.CharField(max_length=10, choices=JudgedBy.choices, default=JudgedBy.TOPIC)
    format = models.CharField(max_length=20)
    grouped = models.BooleanField(help_text="whether the file lists each session in one piece")
    sessions = models.IntegerField()
    queries = models.IntegerField()
    empty_queries = models.IntegerField(help_text="queries that returned nothing")
    searchers = models.IntegerField(help_text="0 where the log names none")
    systems = StoredJSON(
        help_text="names in order of first appearance; none where the log names none"
    )
    judged_documents = models.BigIntegerField(
        help_text="judgements that the searchers wrote into the log"
    )

    objects = SessionSetQuerySet.as_manager()

    class Meta(Submission.Meta):
        constraints = (one_per_tag("one_session_set_per_tag"),)
        indexes = (by_date("session_sets_by_date"),)

    @property
    def way(self) -> str:
        return self.judged_by

    @property
    def file_name(self) -> str:
        return f"{self.tag}.{_ENDINGS[self.format]}"
