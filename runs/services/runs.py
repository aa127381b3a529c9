"""Submitting, changing and deleting runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db import transaction

from runs.errors import Conflict
from runs.formats.trec_run import RunSummary, check_run, say_contradicted
from runs.models import AuditEvent, Collection, Qrels, Run, Team, User
from runs.services.audit import SYSTEM, Origin, changed, record
from runs.services.files import HASH_SEED, FileSource, keep_file, storing, upload_limits
from runs.services.known_documents import CheckedKnown, check_known
from runs.services.reports import named, report_as_json, warn_of_outside, warn_where_none_matches
from runs.services.submissions import bury, live_namesake, store_once, unbury

_CONTRADICTED = "warnings__counts__rank_contradicts_score"


@dataclass(frozen=True)
class Submission:
    """What somebody sends: an uploaded file for a collection, in the name of a team; `known` are known documents."""

    collection: Collection
    team: Team
    user: User
    upload: Path
    known: Path | None = None
    tag: str | None = None
    description: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    origin: Origin = SYSTEM


@dataclass(frozen=True)
class CheckedRun:
    """A submission that can be accepted."""

    summary: RunSummary
    tag: str
    sha256: str
    size: int
    known: CheckedKnown | None = None

    @property
    def report(self) -> dict[str, Any]:
        return report_as_json(self.summary.report)

    @property
    def known_sha256(self) -> str:
        return self.known.sha256 if self.known else ""

    @property
    def known_documents(self) -> int:
        return self.known.summary.count if self.known else 0

    @property
    def known_warnings(self) -> dict[str, Any]:
        return report_as_json(self.known.summary.report) if self.known else {}


def check_submission(*, submission: Submission) -> CheckedRun:
    """Read the files to their ends; InvalidFile with every problem of one, or the summary with every warning."""
    source = FileSource(submission.upload, upload_limits())
    try:
        summary = check_run(source.open, tag=submission.tag, limits=upload_limits(), seed=HASH_SEED)
    finally:
        source.close()
    summary.report.check()
    known = check_known(upload=submission.known) if submission.known else None
    _warn_of_topics(submission.collection, summary, known)
    return CheckedRun(summary, summary.tag or "run", source.sha256, source.size, known)


def submit_run(*, submission: Submission, enqueue: Callable[[Run], object]) -> tuple[Run, bool]:
    """Check and store a run; `enqueue` is called in the same transaction.

    Returns the run and whether it is new: the same file and known documents under the same tag by the same team are
    the run that is already there. Raises InvalidFile, FileTooLarge, Conflict (the tag names others) or LimitReached
    (the team's quota of the day is used up); then nothing is stored.
    """
    checked = check_submission(submission=submission)
    existing = _existing(submission, checked)
    with storing():
        # Of an existing one this heals the store where the file has gone missing.
        _keep(submission, checked)
        if existing:
            return existing, False
        return store_once(
            submission,
            AuditEvent.Action.RUN_SUBMITTED,
            make=lambda collection: _create(collection, submission, checked),
            find=lambda: _existing(submission, checked),
            enqueue=enqueue,
        )


def change_run(*, run: Run, changes: dict[str, Any], origin: Origin = SYSTEM) -> None:
    """Change what is said of a run: its description and metadata."""
    with transaction.atomic():
        before, after = changed(run, changes)
        Run.objects.filter(pk=run.pk).update(**after)
        if after:
            action = AuditEvent.Action.RUN_CHANGED
            record(origin, action, run, collection=run.collection, before=before, after=after)


def contradicted_ranks(runs: Iterable[UUID]) -> dict[UUID, str]:
    """What is to be said of those runs whose rank column contradicts their scores."""
    rows = Run.objects.filter(pk__in=runs).values_list("pk", _CONTRADICTED, "documents")
    return {pk: say_contradicted(lines, documents) for pk, lines, documents in rows if lines}


def delete_run(*, run: Run, origin: Origin = SYSTEM) -> None:
    """Take a run away."""
    bury(run, AuditEvent.Action.RUN_DELETED, origin)


def restore_run(*, run: Run, enqueue: Callable[[Run], object], origin: Origin = SYSTEM) -> None:
    """Bring back a run that was taken away, while its files are there; `enqueue` is called in the same transaction."""
    unbury(run, [run.sha256, run.known_sha256], AuditEvent.Action.RUN_RESTORED, enqueue, origin)


def _keep(submission: Submission, checked: CheckedRun) -> None:
    keep_file(submission.upload, checked.sha256)
    if submission.known:
        keep_file(submission.known, checked.known_sha256)


def _existing(submission: Submission, checked: CheckedRun) -> Run | None:
    run = live_namesake(Run, submission, checked.tag)
    if run and run.sha256 != checked.sha256:
        message = f"team {submission.team} already has another run with tag {checked.tag!r}; choose a new tag"
        raise Conflict(message, code="tag_taken", pointer="/tag")
    if run and run.known_sha256 != checked.known_sha256:
        message = f"run {checked.tag!r} of team {submission.team} has other known documents; choose a new tag"
        raise Conflict(message, code="tag_taken", pointer="/tag")
    return run


def _create(collection: Collection, submission: Submission, checked: CheckedRun) -> Run:
    summary = checked.summary
    return Run.objects.create(
        collection=collection,
        team=submission.team,
        submitted_by=submission.user,
        tag=checked.tag,
        description=submission.description,
        metadata=submission.metadata,
        ir_metadata=summary.metadata,
        sha256=checked.sha256,
        size=checked.size,
        lines=summary.lines,
        documents=summary.documents,
        topics=len(summary.topics),
        tied_documents=summary.tied_documents,
        grouped=summary.grouped,
        warnings=checked.report,
        known_sha256=checked.known_sha256,
        known_documents=checked.known_documents,
        known_warnings=checked.known_warnings,
    )


def _warn_of_topics(collection: Collection, summary: RunSummary, known: CheckedKnown | None) -> None:
    """Compare with the collection's topic list, which is public; never with judgements that are or may become blind."""
    report, found = summary.report, list(summary.topics)
    listed = list(collection.topics.order_by("position").values_list("topic_id", flat=True))
    if not listed:
        open_ones = Qrels.objects.filter(collection=collection, collection__blind=False, active=True)
        judged = open_ones.values_list("topic_ids", flat=True).first() or []
        warn_where_none_matches(report, found, judged, "judged in the collection")
        return
    warn_of_outside(report, found, listed)
    missing = [topic for topic in listed if topic not in summary.topics]
    if 0 < len(missing) < len(listed):
        say = (
            f"{len(missing):,} of the collection's {len(listed):,} topics have no document ({named(missing)}); "
            "those that are judged count 0"
        )
        report.warning(0, "topic_missing", say, len(missing))
    if known:
        warn_of_outside(known.summary.report, known.summary.topics, listed)
