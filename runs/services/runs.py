"""Submitting and deleting runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from metrics.engine.errors import Conflict
from runs.formats.trec_run import RunSummary, check_run
from runs.models import Collection, Run, Team, User
from runs.services.files import HASH_SEED, FileSource, keep_file, upload_limits
from runs.services.reports import report_as_json

_TOPICS_NAMED = 10


@dataclass(frozen=True)
class Submission:
    """What somebody sends: an uploaded file for a collection, in the name of a team."""

    collection: Collection
    team: Team
    user: User
    upload: Path
    tag: str | None = None
    description: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class CheckedRun:
    """A submission that can be accepted."""

    summary: RunSummary
    tag: str
    sha256: str
    size: int


def check_submission(*, submission: Submission) -> CheckedRun:
    """Read the file to its end; InvalidFile with every problem, or the summary with every warning."""
    source = FileSource(submission.upload, upload_limits())
    try:
        summary = check_run(source.open, tag=submission.tag, limits=upload_limits(), seed=HASH_SEED)
    finally:
        source.close()
    summary.report.check()
    _warn_of_topics(submission.collection, summary)
    return CheckedRun(summary, summary.tag or "run", source.sha256, source.size)


def submit_run(*, submission: Submission, enqueue: Callable[[Run], object]) -> tuple[Run, bool]:
    """Check and store a run; `enqueue` is called in the same transaction.

    Returns the run and whether it is new: the same file under the same tag by the same team is the run that is
    already there. Raises InvalidFile, FileTooLarge or Conflict (the tag names another file); then nothing is stored.
    """
    checked = check_submission(submission=submission)
    existing = _existing(submission, checked)
    if existing:
        return existing, False
    keep_file(submission.upload, checked.sha256)
    try:
        with transaction.atomic():
            # Against an activation or a change of the collection in this moment: whoever comes second sees the other.
            collection = Collection.objects.select_for_update().get(pk=submission.collection.pk)
            run = _create(collection, submission, checked)
            enqueue(run)
    except IntegrityError:
        existing = _existing(submission, checked)
        if existing is None:
            raise
        return existing, False
    return run, True


def delete_run(*, run: Run) -> None:
    """Take a run away: its row stays as a tombstone, its tag becomes free."""
    Run.objects.filter(pk=run.pk, deleted_at=None).update(deleted_at=timezone.now())


def _existing(submission: Submission, checked: CheckedRun) -> Run | None:
    same_tag = Run.objects.filter(
        collection=submission.collection, team=submission.team, tag=checked.tag, deleted_at=None
    )
    run = same_tag.first()
    if run and run.sha256 != checked.sha256:
        message = f"team {submission.team} already has another run with tag {checked.tag!r}; choose a new tag"
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
        warnings=report_as_json(summary.report),
    )


def _warn_of_topics(collection: Collection, summary: RunSummary) -> None:
    """Compare with the collection's topic list, which is public; never with the judgements, which may be blind."""
    listed = list(collection.topics.values_list("topic_id", flat=True))
    if not listed:
        return
    known = set(listed)
    outside = [topic for topic in summary.topics if topic not in known]
    missing = [topic for topic in listed if topic not in summary.topics]
    for code, topics, say in (
        ("topic_outside", outside, "not in the collection's topic list"),
        ("topic_missing", missing, "without a document; they count 0"),
    ):
        if topics:
            named = ", ".join(topics[:_TOPICS_NAMED]) + (", ..." if len(topics) > _TOPICS_NAMED else "")
            summary.report.warning(0, code, f"{len(topics)} topics {say}: {named}", len(topics))
