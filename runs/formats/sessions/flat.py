"""Sessions in columns, one document a line.

    session query document rank score system [topic [searcher]]

    s1 1 LA010189-0001 1 12.4 A 301 u7
    s1 1 LA010190-0067 2 11.9 A 301 u7
    s1 2 - 0 0 A 301 u7
    s1 3 FT911-2330 1 7.25 A 301 u7

The queries of a session are numbered from 1. A query that returned nothing is a line with document
"-" and rank 0; if a number is left out, its query returned nothing either. Ranks decide, not
scores.
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
    """Yield the sessions of a file in blocks; problems go to the report.

    Raise TopicsInterleaved if `grouped` is wrong: the lines of a session do not follow each other.
    """
    reader, session_ids = PieceReader(SESSIONS, limits, seed, report), set[bytes]()
    query_count, document_count = 0, 0

    for columns in reader.read(open_sessions(), whole=not grouped):
        columns = keep_rows(columns, _valid_rows(reader, columns))
        columns = columns if grouped else group_by_topic(columns)
        if len(columns.line):
            ensure_grouped(topic_segments(columns)[0], session_ids)
            if len(session_ids) > limits.sessions:
                raise FileTooLarge(
                    f"more than {limits.sessions:,} sessions", code="too_many_sessions"
                )

            sessions = _Sessions.of(reader, columns)
            query_count += int(sessions.query_starts[-1])

            # A single line may imply a thousand queries.
            if query_count > limits.queries:
                raise FileTooLarge(f"more than {limits.queries:,} queries", code="too_many_queries")

            document_count += len(sessions.query)
            if document_count > limits.session_documents:
                raise FileTooLarge(
                    f"more than {limits.session_documents:,} documents", code="too_many_documents"
                )

            yield sessions.block()


def _valid_rows(reader: PieceReader, columns: Columns) -> Flags:
    """Return which rows are valid, and report the problems of the others."""
    valid: Flags = reader.check_rows(columns, _SCORE, "bad_score")
    marker = _is_marker(columns)
    bad_rank = valid & (
        (columns.rank < 0) | (columns.rank > MAX_RANK) | ((columns.rank == 0) & ~marker)
    )
    message = (
        "the rank must be a whole number from 1 on; "
        "0 stands with document - for a query that returned nothing"
    )
    reader.add(columns.line[bad_rank], "bad_rank", message)
    limit = reader.limits.queries_per_session
    bad_number = valid & (_numbers(columns, limit) == 0)
    reader.add(
        columns.line[bad_number],
        "bad_query_number",
        f"the query must be a whole number from 1 to {limit:,}",
    )

    valid &= ~bad_rank & ~bad_number
    return valid


def _is_marker(columns: Columns) -> Flags:
    """Return which rows mark a query that returned nothing."""
    start, end = columns.spans[:, 2 * DOCUMENT], columns.spans[:, 2 * DOCUMENT + 1]
    marker: Flags = (columns.rank == 0) & (end - start == 1) & (columns.data[start] == _DASH)
    return marker


def _numbers(columns: Columns, limit: int) -> Ints:
    """Return the query number of each row, 0 if it is not a number up to `limit`."""
    data, starts, ends = columns.data, columns.spans[:, 2 * LABEL], columns.spans[:, 2 * LABEL + 1]

    # Equal texts follow each other: each is read once.
    is_new = np.ones(len(starts), np.bool_)
    is_new[1:] = ~spans_equal(data, starts[1:], ends[1:], data, starts[:-1], ends[:-1])
    rows = np.flatnonzero(is_new)
    texts = (columns.text(row, LABEL) for row in rows.tolist())
    numbers = [
        int(text) if text.isdigit() and len(text) <= 9 and int(text) <= limit else 0
        for text in texts
    ]

    return np.repeat(np.array(numbers, np.int64), np.diff(np.append(rows, len(starts))))


@dataclass(frozen=True, slots=True)
class _Sessions:
    """Some whole sessions: their documents sorted by session, query and rank.

    Shapes: `columns` and `query` (over all sessions) have one entry per document; `sessions` one
    per session.
    """

    reader: PieceReader
    columns: Columns
    query: Ints
    sessions: list[Session]
    query_starts: Ints

    @classmethod
    def of(cls, reader: PieceReader, columns: Columns) -> _Sessions:
        starts = np.flatnonzero(columns.notes & NEW_TOPIC)
        session = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(columns.line))))
        sessions = _read_sessions(reader, columns, starts, session)
        number = _numbers(columns, reader.limits.queries_per_session)
        query_starts = np.append(0, np.cumsum(np.maximum.reduceat(number, starts)))
        query = query_starts[session] + number - 1

        rows = np.flatnonzero(~_is_marker(columns))
        query_steps, rank_steps = np.diff(query[rows]), np.diff(columns.rank[rows])
        if (query_steps < 0).any() or (rank_steps[query_steps == 0] <= 0).any():
            rows = rows[np.lexsort((columns.rank[rows], query[rows]))]

        return cls(reader, columns.take(rows), query[rows], sessions, query_starts)

    def block(self) -> SessionBlock:
        columns, spans, queries = self.columns, self.columns.spans, int(self.query_starts[-1])
        counts = np.bincount(self.query, minlength=queries)
        self._check_ranking(np.append(0, np.cumsum(counts)), counts)

        return SessionBlock(
            sessions=self.sessions,
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

    def _check_ranking(self, document_starts: Ints, counts: Ints) -> None:
        reader, columns, limits = self.reader, self.columns, self.reader.limits
        if counts.max(initial=0) > limits.documents_per_query:
            message = f"more than {limits.documents_per_query:,} documents for a query"
            raise FileTooLarge(message, code="too_many_documents")

        tied = (np.diff(self.query) == 0) & (np.diff(columns.rank) == 0)
        reader.add(
            columns.line[1:][tied], "bad_rank", "the rank is given to two documents of the query"
        )
        first, second = find_duplicates(columns, document_starts)
        for earlier, row in zip(
            first[:PROBLEMS_SHOWN].tolist(), second[:PROBLEMS_SHOWN].tolist(), strict=True
        ):
            document = columns.text(row, DOCUMENT)[:100].decode(errors="replace")
            message = (
                f"document {document!r} is listed twice for one query, "
                f"first in line {columns.line[earlier]}"
            )
            reader.report.problem(int(columns.line[row]), "duplicate_document", message)

        reader.count_rest("duplicate_document", len(second))
        empty = int(np.count_nonzero(counts == 0))
        if empty:
            reader.report.warning(0, "empty_query", f"{empty} queries returned nothing", empty)


def _read_sessions(
    reader: PieceReader, columns: Columns, starts: Ints, session: Ints
) -> list[Session]:
    """Return the sessions that begin at the rows `starts`.

    The columns after the score must be the same in all lines of a session; otherwise this is
    reported.
    """
    # The rest of each line, after its score.
    data, begins = columns.data, columns.spans[:, 5]
    newlines = np.flatnonzero(data == _LF)
    ends = newlines[np.searchsorted(newlines, begins)]
    first = starts[session]
    identical = spans_equal(data, begins, ends, data, begins[first], ends[first])

    def read_fields(row: int) -> list[bytes]:
        return data[begins[row] : ends[row]].tobytes().split()

    fields = {row: read_fields(row) for row in starts.tolist()}
    for row in np.flatnonzero(~identical).tolist():
        # The white space may differ.
        if read_fields(row) != fields[int(first[row])]:
            message = "system, topic or searcher differs from the first line of the session"
            reader.report.problem(int(columns.line[row]), "mixed_session", message)
            reader.report.stop_when_full(int(columns.line[row]))

    longer = np.array([row for row in fields if len(fields[row]) > len(_NAMES)], np.int64)
    reader.add(
        columns.line[longer], "extra_columns", "columns after the first 8 are ignored", warn=True
    )
    return [
        _session(columns.text(row, TOPIC), *fields[row][: len(_NAMES)]) for row in starts.tolist()
    ]


def _session(
    session_id: bytes, system: bytes = b"", topic_id: bytes = b"", searcher: bytes = b""
) -> Session:
    return Session(session_id, topic_id or session_id, searcher, system)
