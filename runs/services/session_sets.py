"""Submitting, changing and deleting session sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.db import transaction

from metrics.engine.errors import EvalHubError
from metrics.engine.sessions.blocks import Session, SessionBlock
from runs.errors import Conflict, FileTooLarge, InvalidInput, StoredFileCorrupt
from runs.formats.limits import Limits
from runs.formats.sessions.reading import SessionsSummary, read_session_at, read_sessions, use_sessions
from runs.formats.trec_run import TAG
from runs.models import AuditEvent, Collection, SessionSet, Team, User
from runs.services.audit import SYSTEM, Origin, changed, record
from runs.services.files import HASH_SEED, FileSource, keep_file, read_stored, stored_path, storing, upload_limits
from runs.services.reports import report_as_json, warn_of_outside
from runs.services.submissions import bury, live_namesake, store_once, unbury

# Every system is a row of a board.
MAX_SYSTEMS = 1_000
_BY = SessionSet.JudgedBy


@dataclass(frozen=True)
class SessionSubmission:
    """What somebody sends: a session log for a collection, in the name of a team; no format means to recognise it."""

    collection: Collection
    team: Team
    user: User
    upload: Path
    tag: str | None = None
    format: str | None = None
    judged_by: str = _BY.TOPIC
    description: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    origin: Origin = SYSTEM


@dataclass(frozen=True)
class CheckedSessions:
    """A submission that can be accepted; `judged_documents` counts the judgements that the searchers made."""

    summary: SessionsSummary
    tag: str
    sha256: str
    size: int
    systems: list[str]
    judged_documents: int

    @property
    def report(self) -> dict[str, Any]:
        return report_as_json(self.summary.report)

    @property
    def topics(self) -> int:
        return len({session.topic_id for session in self.summary.sessions})

    @property
    def searchers(self) -> int:
        return len({session.searcher for session in self.summary.sessions} - {b""})


def check_session_set(*, submission: SessionSubmission) -> CheckedSessions:
    """Read the log to its end; InvalidFile with every problem, or the summary with every warning.

    InvalidInput where it is to be judged by its own judgements and has none.
    """
    source = FileSource(submission.upload, upload_limits())
    try:
        summary, judged = use_sessions(
            source.open, _count_judged, format=submission.format, limits=upload_limits(), seed=HASH_SEED
        )
    finally:
        source.close()
    summary.report.check()
    systems = _names(session.system for session in summary.sessions)
    if len(systems) > MAX_SYSTEMS:
        raise FileTooLarge(f"more than {MAX_SYSTEMS:,} systems", code="too_many_systems")
    if submission.judged_by == _BY.OWN and not judged:
        message = "judged_by=own needs judgements in the log, and it has none: 'judged' of a query in JSON"
        raise InvalidInput(message, code="no_own_judgements", pointer="/judged_by")
    _warn_of_topics(submission, summary)
    return CheckedSessions(summary, _tag(submission, systems), source.sha256, source.size, systems, judged)


def submit_session_set(
    *, submission: SessionSubmission, enqueue: Callable[[SessionSet], object]
) -> tuple[SessionSet, bool]:
    """Check and store a session log; `enqueue` is called in the same transaction.

    Returns the set and whether it is new: the same file under the same tag by the same team, judged the same way, is
    the one that is already there. Raises what `check_session_set` does, Conflict (the tag names another) or
    LimitReached (the team's quota of the day is used up); then nothing is stored.
    """
    checked = check_session_set(submission=submission)
    existing = _existing(submission, checked)
    with storing():
        # Of an existing one this heals the store where the file has gone missing.
        keep_file(submission.upload, checked.sha256)
        if existing:
            return existing, False
        return store_once(
            submission,
            AuditEvent.Action.SESSION_SET_SUBMITTED,
            make=lambda collection: _create(collection, submission, checked),
            find=lambda: _existing(submission, checked),
            enqueue=enqueue,
        )


def change_session_set(
    *,
    session_set: SessionSet,
    changes: dict[str, Any],
    enqueue: Callable[[SessionSet], object],
    origin: Origin = SYSTEM,
) -> None:
    """Change what is said of a set, or what it is judged by; then `enqueue` is called in the same transaction.

    InvalidInput where its own judgements are asked for and it has none.
    """
    if changes.get("judged_by") == _BY.OWN and not session_set.judged_documents:
        message = f"session set {session_set} has no judgements of its own"
        raise InvalidInput(message, code="no_own_judgements", pointer="/judged_by")
    with transaction.atomic():
        before, after = changed(session_set, changes)
        SessionSet.objects.filter(pk=session_set.pk).update(**after)
        if after:
            action = AuditEvent.Action.SESSION_SET_CHANGED
            record(origin, action, session_set, collection=session_set.collection, before=before, after=after)
        if "judged_by" in after:
            session_set.judged_by = after["judged_by"]
            enqueue(session_set)


def delete_session_set(*, session_set: SessionSet, origin: Origin = SYSTEM) -> None:
    """Take a set away."""
    bury(session_set, AuditEvent.Action.SESSION_SET_DELETED, origin)


def restore_session_set(
    *, session_set: SessionSet, enqueue: Callable[[SessionSet], object], origin: Origin = SYSTEM
) -> None:
    """Bring back a set that was taken away, while its file is there; `enqueue` is called in the same transaction."""
    unbury(session_set, [session_set.sha256], AuditEvent.Action.SESSION_SET_RESTORED, enqueue, origin)


def read_session_set(session_set: SessionSet, use: Callable[[Iterator[SessionBlock]], Any]) -> Any:
    """What `use` makes of the blocks of a stored set, which it must read to the end; StoredFileCorrupt otherwise."""
    form = _form(session_set)
    return read_stored(session_set.sha256, lambda opener: use(read_sessions(opener, **form, seed=HASH_SEED)))


def find_session(session_set: SessionSet, place: int) -> tuple[SessionBlock, int]:
    """A block of a stored set with the session at a place, from 0, and which of its sessions that is; the file is read
    no further. StoredFileCorrupt where it is not there."""
    source = FileSource(stored_path(session_set.sha256), Limits())
    try:
        found = read_session_at(source.open, place, **_form(session_set))
    except (FileNotFoundError, EvalHubError):
        found = None
    finally:
        source.close()
    if found is None:
        raise StoredFileCorrupt(f"the stored file {session_set.sha256[:12]} is missing or cannot be read")
    return found


def _form(session_set: SessionSet) -> dict[str, Any]:
    return {"format": session_set.format, "grouped": session_set.grouped}


def _existing(submission: SessionSubmission, checked: CheckedSessions) -> SessionSet | None:
    found = live_namesake(SessionSet, submission, checked.tag)
    if found and (found.sha256, found.format) != (checked.sha256, checked.summary.format):
        message = f"team {submission.team} already has another session set with tag {checked.tag!r}; choose a new tag"
        raise Conflict(message, code="tag_taken", pointer="/tag")
    if found and found.judged_by != submission.judged_by:
        message = f"session set {found} is judged by {found.judged_by}; PATCH it to change that, or choose a new tag"
        raise Conflict(message, code="tag_taken", pointer="/judged_by")
    return found


def _create(collection: Collection, submission: SessionSubmission, checked: CheckedSessions) -> SessionSet:
    summary = checked.summary
    return SessionSet.objects.create(
        collection=collection,
        team=submission.team,
        submitted_by=submission.user,
        tag=checked.tag,
        description=submission.description,
        metadata=submission.metadata,
        judged_by=submission.judged_by,
        sha256=checked.sha256,
        size=checked.size,
        format=summary.format,
        grouped=summary.grouped,
        sessions=len(summary.sessions),
        queries=sum(summary.queries),
        empty_queries=summary.empty_queries,
        documents=summary.documents,
        topics=checked.topics,
        searchers=checked.searchers,
        systems=checked.systems,
        judged_documents=checked.judged_documents,
        warnings=checked.report,
    )


def _count_judged(blocks: Iterator[SessionBlock]) -> int:
    return sum(len(query.judged) for block in blocks for query in block.queries)


def _names(names: Iterator[bytes]) -> list[str]:
    """Each name once, in order of first appearance; those that the log leaves out are no names."""
    return [name.decode() for name in dict.fromkeys(names) if name]


def _tag(submission: SessionSubmission, systems: list[str]) -> str:
    """The given one, or the only system's name where that will do."""
    if submission.tag:
        return submission.tag
    return systems[0] if len(systems) == 1 and TAG.fullmatch(systems[0]) else "sessions"


def _warn_of_topics(submission: SessionSubmission, summary: SessionsSummary) -> None:
    """As for runs: compared with the collection's topic list, never with the judgements."""
    listed = list(submission.collection.topics.order_by("position").values_list("topic_id", flat=True))
    if listed and submission.judged_by == _BY.TOPIC:
        found: list[Session] = summary.sessions
        warn_of_outside(summary.report, _names(session.topic_id for session in found), listed)
