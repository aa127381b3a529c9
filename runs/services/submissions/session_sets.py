"""Submitting, changing and reading session sets."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from metrics.engine.errors import EvalHubError
from metrics.engine.sessions.blocks import SessionBlock
from runs.errors import (
    Conflict,
    FileTooLarge,
    InvalidInput,
    LeftOff,
    StorageUnavailable,
    StoredFileCorrupt,
)
from runs.formats.limits import Limits
from runs.formats.sessions.reading import read_session_at, read_sessions, use_sessions
from runs.formats.trec_run import TAG
from runs.models import SessionSet
from runs.services.audit.trail import SYSTEM, Origin
from runs.services.storage.files import (
    HASH_SEED,
    FileSource,
    StoredSource,
    missing_file,
    read_stored,
    upload_limits,
)
from runs.services.storage.reports import report_as_json, warn_of_outside
from runs.services.storage.stores.chosen import the_store
from runs.services.submissions.submissions import Upload, change

# Every system is a row of a leaderboard.
MAX_SYSTEMS = 1_000
# The largest logs take more than half a gigabyte: a process reads one at a time.
_READING = threading.Lock()
_BY = SessionSet.JudgedBy


@dataclass(frozen=True, kw_only=True)
class SessionSetUpload(Upload[SessionSet]):
    """A session log; without a format it is recognised."""

    format: str | None = None
    judged_by: str = _BY.TOPIC

    def check(self) -> SessionSet:
        """Raise InvalidInput if the set is to be judged by its own judgements and has none."""
        source = FileSource(self.file, upload_limits())
        try:
            with _READING:
                summary, judged_documents = use_sessions(
                    source.open,
                    _count_judged,
                    format=self.format,
                    limits=upload_limits(),
                    seed=HASH_SEED,
                )
        finally:
            source.close()

        summary.report.check()

        systems = _names(session.system for session in summary.sessions)
        if len(systems) > MAX_SYSTEMS:
            raise FileTooLarge(f"more than {MAX_SYSTEMS:,} systems", code="too_many_systems")

        if self.judged_by == _BY.OWN and not judged_documents:
            raise InvalidInput(
                "judged_by=own needs judgements in the log ('judged' of a query in JSON), "
                "which has none",
                code="no_own_judgements",
                pointer="/judged_by",
            )

        topics = _names(session.topic_id for session in summary.sessions)

        # As for runs: compare with the collection's topic list, never with the judgements.
        listed = list(
            self.collection.topics.order_by("position").values_list("topic_id", flat=True)
        )
        if listed and self.judged_by == _BY.TOPIC:
            warn_of_outside(summary.report, topics, listed)

        only_system = systems[0] if len(systems) == 1 and TAG.fullmatch(systems[0]) else None
        return SessionSet(
            **self.columns(),
            tag=self.tag or only_system or "sessions",
            judged_by=self.judged_by,
            sha256=source.sha256,
            size=source.size,
            format=summary.format,
            grouped=summary.grouped,
            sessions=len(summary.sessions),
            queries=sum(summary.queries),
            empty_queries=summary.empty_queries,
            documents=summary.documents,
            topics=len({session.topic_id for session in summary.sessions}),
            searchers=len({session.searcher for session in summary.sessions} - {b""}),
            systems=systems,
            judged_documents=judged_documents,
            warnings=report_as_json(summary.report),
        )

    def check_same(self, existing: SessionSet, session_set: SessionSet) -> None:
        super().check_same(existing, session_set)
        if existing.format != session_set.format:
            raise Conflict(
                f"team {self.team} already has another session set with tag {session_set.tag!r}; "
                "choose a new tag",
                code="tag_taken",
                pointer="/tag",
            )

        if existing.judged_by != session_set.judged_by:
            raise Conflict(
                f"session set {existing} is judged by {existing.judged_by}; "
                "change it with PATCH, or choose a new tag",
                code="tag_taken",
                pointer="/judged_by",
            )


def change_session_set(
    *,
    submission: SessionSet,
    changes: dict[str, Any],
    enqueue: Callable[[SessionSet], object],
    origin: Origin = SYSTEM,
) -> None:
    """Change the description of a set, or its `judged_by`.

    Raise InvalidInput if it is to be judged by its own judgements and has none.
    """
    if changes.get("judged_by") == _BY.OWN and not submission.judged_documents:
        message = f"session set {submission} has no judgements of its own"
        raise InvalidInput(message, code="no_own_judgements", pointer="/judged_by")

    change(submission=submission, changes=changes, enqueue=enqueue, origin=origin)


def read_session_set(session_set: SessionSet, use: Callable[[Iterator[SessionBlock]], Any]) -> Any:
    """Return the result of `use` for the blocks of a stored set.

    `use` must read them to the end. Raise StoredFileCorrupt if they cannot be read.
    """
    log_format = _log_format(session_set)
    return read_stored(
        session_set.sha256, lambda opener: use(read_sessions(opener, **log_format, seed=HASH_SEED))
    )


def find_session(session_set: SessionSet, place: int) -> tuple[SessionBlock, int]:
    """Return the block that has the session at a place, from 0, and its index in the block.

    The file is read no further. Raise StoredFileCorrupt if it cannot be read.
    """
    location = _read_session_at(session_set, place)

    # A damaged local copy is fetched again.
    if location is None and the_store().forget_copy(session_set.sha256):
        location = _read_session_at(session_set, place)

    if location is None:
        raise StoredFileCorrupt(f"the stored file {session_set.sha256[:12]} cannot be read")

    return location


def _read_session_at(session_set: SessionSet, place: int) -> tuple[SessionBlock, int] | None:
    source = StoredSource(session_set.sha256, Limits())
    try:
        return read_session_at(source.open, place, **_log_format(session_set))
    except FileNotFoundError as error:
        raise missing_file(session_set.sha256) from error
    except (LeftOff, StorageUnavailable):
        raise
    except EvalHubError:
        return None
    finally:
        source.close()


def _log_format(session_set: SessionSet) -> dict[str, Any]:
    return {"format": session_set.format, "grouped": session_set.grouped}


def _count_judged(blocks: Iterator[SessionBlock]) -> int:
    return sum(len(query.judged) for block in blocks for query in block.queries)


def _names(names: Iterator[bytes]) -> list[str]:
    """Return each name once, in order of first appearance, without missing names."""
    return [name.decode() for name in dict.fromkeys(names) if name]
