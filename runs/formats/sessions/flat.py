"""Sessions in columns: `session query document rank score system [topic [searcher]]`, one document a line.

    s1 1 LA010189-0001 1 12.4 A 301 u7
    s1 1 LA010190-0067 2 11.9 A 301 u7
    s1 2 - 0 0 A 301 u7
    s1 3 FT911-2330 1 7.25 A 301 u7

The queries of a session are numbered from 1. A query that returned nothing is a line with document
- and rank 0; where a number is left out, its query returned nothing either. Ranks decide, scores do
  not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from metrics.engine.arrays import Flags, Ints
from metrics.engine.judgement.ranking import spans_equal
from metrics.engine.sessions.blocks import Query, Session, SessionBlock
from runs.errors import PROBLEMS_SHOWN, FileReport, FileTooLarge
from runs.formats.limits import Limits
from runs.formats.scanning.columns import DOCUMENT, LABEL, TOPIC, Columns, Layout
from runs.formats.scanning.notes import NEW_TOPIC
from runs.formats.scanning.pieces import (
    Opener,
    PieceReader,
    ensure_grouped,
    group_by_topic,
    keep_rows,
    topic_segments,
)
from runs.formats.scanning.scan import find_duplicates
from runs.formats.sessions.listing import MAX_RANK

SESSIONS = Layout(columns=6, topic=0, document=2, number=4, label=1, rank=3)
_SCORE = "a finite decimal number"
_NAMES = ("system", "topic", "searcher")
_DASH, _LF = ord("-"), 10


def read(
    open_sessions: Opener, report: FileReport, limits: Limits, seed: int, grouped: bool = True
) -> Iterator[SessionBlock]:
    """Yield the sessions of a file in blocks; what is wrong goes to the report.

    Raises TopicsInterleaved where the lines of a session do not follow each other and `grouped`
    said that they do.
    """
    reader, seen, queries, documents = (
        PieceReader(SESSIONS, limits, seed, report),
        set[bytes](),
        0,
        0,
    )
    for columns in reader.read(open_sessions(), whole=not grouped):
        columns = keep_rows(columns, _good(reader, columns))
        columns = columns if grouped else group_by_topic(columns)
        if len(columns.line):
            ensure_grouped(topic_segments(columns)[0], seen)
            if len(seen) > limits.sessions:
                raise FileTooLarge(
                    f"more than {limits.sessions:,} sessions", code="too_many_sessions"
                )
            piece = _Piece.of(reader, columns)
            queries += int(piece.query_starts[-1])
            # A line may stand for a thousand queries.
            if queries > limits.queries:
                raise FileTooLarge(f"more than {limits.queries:,} queries", code="too_many_queries")
            documents += len(piece.query)
            if documents > limits.session_documents:
                raise FileTooLarge(
                    f"more than {limits.session_documents:,} documents", code="too_many_documents"
                )
            yield piece.block()


def _good(reader: PieceReader, columns: Columns) -> Flags:
    """Return which rows are good; what is wrong with the others is reported."""
    good: Flags = reader.check_rows(columns, _SCORE, "bad_score")
    marker = _is_marker(columns)
    bad_rank = good & (
        (columns.rank < 0) | (columns.rank > MAX_RANK) | ((columns.rank == 0) & ~marker)
    )
    say = "the rank must be a whole number from 1 on; 0 stands with document - for a query that returned nothing"
    reader.add(columns.line[bad_rank], "bad_rank", say)
    most = reader.limits.queries_per_session
    bad_number = good & (_numbers(columns, most) == 0)
    reader.add(
        columns.line[bad_number],
        "bad_query_number",
        f"the query must be a whole number from 1 to {most:,}",
    )
    good &= ~bad_rank & ~bad_number
    return good


def _is_marker(columns: Columns) -> Flags:
    """Return which rows say that a query returned nothing."""
    start, end = columns.spans[:, 2 * DOCUMENT], columns.spans[:, 2 * DOCUMENT + 1]
    marker: Flags = (columns.rank == 0) & (end - start == 1) & (columns.data[start] == _DASH)
    return marker


def _numbers(columns: Columns, most: int) -> Ints:
    """Return the query number of each row, 0 where it is none."""
    starts, ends = columns.spans[:, 2 * LABEL], columns.spans[:, 2 * LABEL + 1]
    new = np.ones(len(starts), np.bool_)
    new[1:] = ~spans_equal(columns.data, starts[1:], ends[1:], columns.data, starts[:-1], ends[:-1])
    rows = np.flatnonzero(new)
    texts = (columns.text(row, LABEL) for row in rows.tolist())
    read = [
        int(text) if text.isdigit() and len(text) <= 9 and int(text) <= most else 0
        for text in texts
    ]
    return np.repeat(np.array(read, np.int64), np.diff(np.append(rows, len(starts))))


@dataclass(frozen=True, slots=True)
class _Piece:
    """Some whole sessions, rows sorted by session, query and rank, without the lines of queries that found nothing.

    Shapes: `columns` and `query` (over all sessions) have one entry per document; `names` one per
    session.
    """

    reader: PieceReader
    columns: Columns
    query: Ints
    names: list[Session]
    query_starts: Ints

    @classmethod
    def of(cls, reader: PieceReader, columns: Columns) -> _Piece:
        starts = np.flatnonzero(columns.notes & NEW_TOPIC)
        session = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(columns.line))))
        names = _names(reader, columns, starts, session)
        number = _numbers(columns, reader.limits.queries_per_session)
        query_starts = np.append(0, np.cumsum(np.maximum.reduceat(number, starts)))
        query = query_starts[session] + number - 1
        rows = np.flatnonzero(~_is_marker(columns))
        if (np.diff(query[rows]) < 0).any() or (
            np.diff(columns.rank[rows])[np.diff(query[rows]) == 0] <= 0
        ).any():
            rows = rows[np.lexsort((columns.rank[rows], query[rows]))]
        return cls(reader, columns.take(rows), query[rows], names, query_starts)

    def block(self) -> SessionBlock:
        columns, spans, queries = self.columns, self.columns.spans, int(self.query_starts[-1])
        counts = np.bincount(self.query, minlength=queries)
        self._check(np.append(0, np.cumsum(counts)), counts)
        return SessionBlock(
            sessions=self.names,
            queries=[Query()] * queries,
            query_starts=self.query_starts,
            document_starts=np.append(0, np.cumsum(counts)),
            scanned=np.full(queries, -1),
            ranks=columns.rank.astype(np.int64),
            scores=columns.number,
            data=columns.data,
            doc_starts=spans[:, 2],
            doc_ends=spans[:, 3],
            doc_hashes=columns.hashes,
        )

    def _check(self, document_starts: Ints, counts: Ints) -> None:
        reader, columns, limits = self.reader, self.columns, self.reader.limits
        if counts.max(initial=0) > limits.documents_per_query:
            message = f"more than {limits.documents_per_query:,} documents for a query"
            raise FileTooLarge(message, code="too_many_documents")
        same = (np.diff(self.query) == 0) & (np.diff(columns.rank) == 0)
        reader.add(
            columns.line[1:][same], "bad_rank", "the rank is given to two documents of the query"
        )
        first, second = find_duplicates(columns, document_starts)
        for earlier, row in zip(
            first[:PROBLEMS_SHOWN].tolist(), second[:PROBLEMS_SHOWN].tolist(), strict=True
        ):
            shown = columns.text(row, DOCUMENT)[:100].decode(errors="replace")
            say = f"document {shown!r} is listed twice for one query, first in line"
            reader.report.problem(
                int(columns.line[row]), "duplicate_document", f"{say} {columns.line[earlier]}"
            )
        reader.count_rest("duplicate_document", len(second))
        empty = int(np.count_nonzero(counts == 0))
        if empty:
            reader.report.warning(0, "empty_query", f"{empty} queries returned nothing", empty)


def _names(reader: PieceReader, columns: Columns, starts: Ints, session: Ints) -> list[Session]:
    """Whose sessions these are; what comes after the score must be the same in all lines of one."""
    begins = columns.spans[:, 5]
    newlines = np.flatnonzero(columns.data == _LF)
    ends = newlines[np.searchsorted(newlines, begins)]
    first = starts[session]
    same = spans_equal(columns.data, begins, ends, columns.data, begins[first], ends[first])
    fields = {
        row: columns.data[begins[row] : ends[row]].tobytes().split() for row in starts.tolist()
    }
    for row in np.flatnonzero(~same).tolist():
        # Only the white space may differ.
        if columns.data[begins[row] : ends[row]].tobytes().split() != fields[int(first[row])]:
            say = "system, topic or searcher differs from the first line of the session"
            reader.report.problem(int(columns.line[row]), "mixed_session", say)
            reader.report.stop_when_full(int(columns.line[row]))
    more = np.array([row for row in starts.tolist() if len(fields[row]) > len(_NAMES)], np.int64)
    reader.add(
        columns.line[more], "extra_columns", "columns after the first 8 are ignored", warn=True
    )
    return [
        _session(columns.text(row, TOPIC), *fields[row][: len(_NAMES)]) for row in starts.tolist()
    ]


def _session(
    session_id: bytes, system: bytes = b"", topic_id: bytes = b"", searcher: bytes = b""
) -> Session:
    return Session(session_id, topic_id or session_id, searcher, system)
