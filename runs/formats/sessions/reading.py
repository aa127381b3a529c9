"""Session files of every supported format, recognised by their content."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from metrics.engine.sessions.blocks import Session, SessionBlock
from runs.errors import FileReport, FileTooLarge, UnsupportedFile
from runs.formats.limits import DEFAULT_LIMITS, Limits
from runs.formats.scanning.pieces import Opener, TopicsInterleaved
from runs.formats.sessions import flat as sessions_flat
from runs.formats.sessions import jsonl as sessions_jsonl
from runs.formats.sessions import xml as sessions_xml

T = TypeVar("T")
Format = Callable[[Opener, FileReport, Limits, int, bool], Iterator[SessionBlock]]

FORMATS: dict[str, Format] = {
    "jsonl": sessions_jsonl.read,
    "trec-xml": sessions_xml.read,
    "columns": sessions_flat.read,
}
_BOM, _UTF16 = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")
_START = 4096


@dataclass
class SessionsSummary:
    """The properties of a session file that need no judgements.

    `queries` has the number of queries of each session, in the order of `sessions`; `grouped` is
    needed for reading the file again.
    """

    report: FileReport
    format: str
    sessions: list[Session] = field(default_factory=list)
    queries: list[int] = field(default_factory=list)
    documents: int = 0
    empty_queries: int = 0
    grouped: bool = True


def check_sessions(
    open_sessions: Opener,
    *,
    format: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
    seed: int = 0,
) -> SessionsSummary:
    """Read a session file to its end and report all problems and warnings.

    `summary.report.check()` raises InvalidFile. Raise UnsupportedFile for an unknown format,
    FileTooLarge beyond a limit.
    """
    return use_sessions(open_sessions, _exhaust, format=format, limits=limits, seed=seed)[0]


def use_sessions(
    open_sessions: Opener,
    use: Callable[[Iterator[SessionBlock]], T],
    *,
    format: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
    seed: int = 0,
) -> tuple[SessionsSummary, T]:
    """Return the report of a session file and the result of `use` for its valid sessions.

    The file is read once, or twice if the lines of sessions are interleaved. `use` must read all
    blocks; `seed` must be that of the judgements by which they are judged.
    """
    name = _choose_format(open_sessions, format)
    try:
        return _use(name, open_sessions, use, limits, seed, grouped=True)
    except TopicsInterleaved:
        return _use(name, open_sessions, use, limits, seed, grouped=False)


def read_sessions(
    open_sessions: Opener,
    *,
    format: str,
    grouped: bool = True,
    limits: Limits = DEFAULT_LIMITS,
    seed: int = 0,
) -> Iterator[SessionBlock]:
    """Yield the blocks of a session file that was checked before.

    Raise InvalidFile if it is damaged after all.
    """
    report = FileReport()
    for block in FORMATS[format](open_sessions, report, limits, seed, grouped):
        report.check()
        yield block

    report.check()


def read_session_at(
    open_sessions: Opener,
    place: int,
    *,
    format: str,
    grouped: bool = True,
    limits: Limits = DEFAULT_LIMITS,
) -> tuple[SessionBlock, int] | None:
    """Return the block with the session at a place, from 0, and its index in the block.

    The file was checked before, and is read no further than needed.
    """
    if format == "jsonl":
        block = next(sessions_jsonl.read_one(open_sessions, place, FileReport(), limits), None)
        return (block, 0) if block else None

    for block in read_sessions(open_sessions, format=format, grouped=grouped, limits=limits):
        if place < len(block.sessions):
            return block, place
        place -= len(block.sessions)

    return None


def detect_format(start: bytes) -> str:
    """Return the format that a file's first bytes show: columns if neither JSON nor XML."""
    text = start.removeprefix(_BOM).lstrip()
    if text.startswith(b"{"):
        return "jsonl"
    return "trec-xml" if text.startswith(b"<") else "columns"


def _choose_format(open_sessions: Opener, format: str | None) -> str:
    if format is not None and format not in FORMATS:
        formats = ", ".join(FORMATS)
        raise UnsupportedFile(
            f"no session format {format!r}; known are {formats}", pointer="format"
        )

    start = open_sessions().read(_START)
    if start.startswith(_UTF16):
        report = FileReport()
        report.problem(1, "undecodable_bytes", "the file is UTF-16; send it as UTF-8")
        report.check()

    return format or detect_format(start)


def _use(
    name: str,
    open_sessions: Opener,
    use: Callable[[Iterator[SessionBlock]], T],
    limits: Limits,
    seed: int,
    grouped: bool,
) -> tuple[SessionsSummary, T]:
    summary = SessionsSummary(FileReport(), name, grouped=grouped)
    result = use(
        _summarized(
            FORMATS[name](open_sessions, summary.report, limits, seed, grouped), summary, limits
        )
    )

    if not summary.sessions and not summary.report.problems:
        summary.report.problem(
            0, "empty_sessions", f"the file contains no sessions (read as {name})"
        )

    return summary, result


def _summarized(
    blocks: Iterator[SessionBlock], summary: SessionsSummary, limits: Limits
) -> Iterator[SessionBlock]:
    """Yield the blocks, and add each to the summary before.

    Raise FileTooLarge if the summary would take too much memory.
    """
    id_bytes = 0

    for block in blocks:
        sizes = np.diff(block.document_starts)
        summary.sessions += block.sessions
        summary.queries += np.diff(block.query_starts).tolist()
        summary.documents += int(sizes.sum())
        id_bytes += sum(
            len(session.session_id)
            + len(session.topic_id)
            + len(session.searcher)
            + len(session.system)
            + len(session.attributes)
            for session in block.sessions
        )
        if id_bytes > limits.session_ids:
            raise FileTooLarge(
                f"more than {limits.session_ids:,} bytes of ids of sessions, topics, "
                "searchers and systems",
                code="too_large_at_once",
            )

        summary.empty_queries += int(np.count_nonzero(sizes == 0))
        yield block


def _exhaust(blocks: Iterator[SessionBlock]) -> None:
    for _ in blocks:
        pass
