"""Check sessions while they are read, one by one, and put them together into SessionBlocks."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from metrics.engine.arrays import Bytes, Ints, Positions
from metrics.engine.judgement.ranking import RankedBlock, hash_spans
from metrics.engine.measures.definition import MAX_LEVEL
from metrics.engine.sessions.blocks import Query, Session, SessionBlock
from runs.errors import FileReport, FileTooLarge
from runs.formats.limits import Limits

# Characters of ids and texts in a block.
BLOCK = 4 * 1024 * 1024
MAX_TEXT = 100_000
MAX_RANK = 10**9
# Attributes of a searcher, and characters of the name or the text of one.
MAX_ATTRIBUTES, MAX_ATTRIBUTE = 50, 100
_LF, _SPACE, _DELETE = 10, 32, 127
_NOT_IN_ID = re.compile(r"[\x00-\x20\x7f\ud800-\udfff]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_NOT_IN_TEXT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]")


@dataclass(slots=True)
class QueryText:
    """A query as it was read.

    `ranks` None are 1, 2, 3 and so on; `scores` None and `scanned` -1 are unknown.
    """

    line: int
    text: str = ""
    time: float | None = None
    documents: list[str] = field(default_factory=list)
    ranks: list[int] | None = None
    scores: list[float] | None = None
    clicked: list[str] = field(default_factory=list)
    judged: dict[str, int] = field(default_factory=dict)
    scanned: int = -1


@dataclass(slots=True)
class SessionText:
    """A session as it was read; unknown fields are empty."""

    line: int
    session_id: str = ""
    topic_id: str = ""
    searcher: str = ""
    system: str = ""
    attributes: dict[str, float | str] = field(default_factory=dict)
    known: list[str] = field(default_factory=list)
    queries: list[QueryText] = field(default_factory=list)


class SessionList:
    """Collects sessions until there are enough for a block.

    Sessions with problems are left out; the problems go to the report.
    """

    def __init__(self, report: FileReport, limits: Limits, seed: int) -> None:
        self.report = report
        self.limits = limits
        self._seed = seed
        self._lines: dict[str, int] = {}
        self._sessions: list[SessionText] = []
        self._size = 0
        self._queries = 0
        self._documents = 0

    def add(self, session: SessionText) -> None:
        """Check and add a session.

        Raise FileTooLarge beyond a limit, InvalidFile if the list of problems is full.
        """
        self._check_size(session)
        is_valid = True

        for line, code, message in self._problems_of(session):
            is_valid = False
            self.report.problem(line, code, message)
            self.report.stop_when_full(line)

        for query in session.queries:
            self._warn(query)

        if is_valid:
            self._sessions.append(session)
            self._queries += len(session.queries)
            self._size += sum(map(_size, session.queries)) + sum(map(len, session.known)) + 1

    def take(self, rest: bool = False) -> Iterator[SessionBlock]:
        """Yield a block if there are enough sessions for one, with `rest` also of fewer ones."""
        if self._size >= BLOCK or (rest and self._sessions):
            sessions, self._sessions, self._size = self._sessions, [], 0
            yield self._block(sessions)

    def check_queries(self, queries: int) -> None:
        """Raise FileTooLarge for more queries than a session, or all sessions, may have."""
        limits = self.limits
        _check_count(
            queries, limits.queries_per_session, "queries in a session", "too_many_queries"
        )
        _check_count(queries + self._queries, limits.queries, "queries", "too_many_queries")

    def check_documents(self, documents: int) -> None:
        """Raise FileTooLarge for more documents than a query may have."""
        _check_count(
            documents,
            self.limits.documents_per_query,
            "documents for a query",
            "too_many_documents",
        )

    def _check_size(self, session: SessionText) -> None:
        _check_count(len(self._lines) + 1, self.limits.sessions, "sessions", "too_many_sessions")
        self.check_queries(len(session.queries))

        # Known documents, clicks and judgements have the limits of documents.
        sizes = [
            len(ids)
            for query in session.queries
            for ids in (query.documents, query.clicked, query.judged)
        ]

        sizes.append(len(session.known))
        self.check_documents(max(sizes, default=0))
        self._documents += sum(sizes)
        limit = self.limits.session_documents
        _check_count(
            self._documents, limit, "documents, clicks and judgements", "too_many_documents"
        )

    def _problems_of(self, session: SessionText) -> Iterator[tuple[int, str, str]]:
        line, name = session.line, session.session_id
        if not name:
            yield line, "missing_session_id", "the session has no id"
        elif name in self._lines:
            yield (
                line,
                "duplicate_session",
                f"session {_quote(name)} is already in line {self._lines[name]}",
            )

        self._lines.setdefault(name, line)
        if not session.queries:
            yield line, "no_queries", f"session {_quote(name)} has no query"

        for code, noun, text in (
            ("bad_session_id", "session id", name),
            ("bad_topic_id", "topic id", session.topic_id),
            ("bad_searcher", "searcher", session.searcher),
            ("bad_system", "system", session.system),
        ):
            if fault := _fault_of_id(text, self.limits.id_length):
                yield line, code, f"{noun} {_quote(text)} has {fault}"

        if session.attributes:
            yield from (
                (line, "bad_attributes", message) for message in _faults_of_attributes(session)
            )

        for code, message in _problems_of_ids(session.known, self.limits.id_length):
            yield line, code, message

        if len(set(session.known)) < len(session.known):
            yield line, "duplicate_document", "a known document is listed twice"

        for query in session.queries:
            yield from (
                (query.line, *problem)
                for problem in _problems_of_query(query, self.limits.id_length)
            )

    def _warn(self, query: QueryText) -> None:
        listed = set(query.documents) if query.clicked else set()
        unlisted = next((doc for doc in query.clicked if doc not in listed), None)
        if unlisted is not None:
            message = f"the clicked document {_quote(unlisted)} is not in the list of its query"
            self.report.warning(query.line, "clicked_not_listed", message)

        if not query.documents:
            self.report.warning(query.line, "empty_query", "the query returned nothing")

    def _block(self, sessions: list[SessionText]) -> SessionBlock:
        queries = [query for session in sessions for query in session.queries]
        documents = [doc for query in queries for doc in query.documents]
        data, starts, ends = _spans(documents)
        ranks = [
            np.arange(1, len(query.documents) + 1) if query.ranks is None else query.ranks
            for query in queries
        ]

        scores = [
            np.full(len(query.documents), np.nan) if query.scores is None else query.scores
            for query in queries
        ]
        return SessionBlock(
            sessions=[_session(session) for session in sessions],
            queries=[_query(query) for query in queries],
            query_starts=_starts([len(session.queries) for session in sessions]),
            document_starts=_starts([len(query.documents) for query in queries]),
            scanned=np.array([query.scanned for query in queries], np.int64),
            ranks=np.concatenate(
                [np.zeros(0, np.int64), *(np.array(part, np.int64) for part in ranks)]
            ),
            scores=np.concatenate([np.zeros(0), *(np.array(part, np.float64) for part in scores)]),
            data=data,
            doc_starts=starts,
            doc_ends=ends,
            doc_hashes=hash_spans(data, starts, ends, self._seed),
            known=self._known(sessions) if any(session.known for session in sessions) else None,
        )

    def _known(self, sessions: list[SessionText]) -> RankedBlock:
        """Return the known documents, a topic for each session."""
        documents = [doc for session in sessions for doc in session.known]
        data, starts, ends = _spans(documents)

        return RankedBlock(
            data,
            [b""] * len(sessions),
            _starts([len(session.known) for session in sessions]),
            np.zeros(len(documents)),
            starts,
            ends,
            hash_spans(data, starts, ends, self._seed),
        )


def _spans(documents: list[str]) -> tuple[Bytes, Positions, Positions]:
    """Return all document ids in one array, and where each begins and ends.

    Ids do not have newlines.
    """
    data = np.frombuffer("\n".join([*documents, ""]).encode() or b"\n", np.uint8)
    ends = np.flatnonzero(data == _LF)[: len(documents)]

    return data, np.append(0, ends[:-1] + 1)[: len(documents)], ends


def _check_count(count: int, limit: int, noun: str, code: str) -> None:
    if count > limit:
        raise FileTooLarge(f"more than {limit:,} {noun}", code=code)


def _size(query: QueryText) -> int:
    """Return the approximate number of characters in a query."""
    return len(query.text) + sum(
        sum(map(len, ids)) for ids in (query.documents, query.clicked, query.judged)
    )


def _fault_of_id(text: str, limit: int) -> str | None:
    if _NOT_IN_ID.search(text):
        return "white space, a control character or half a surrogate pair"
    if len(text) * 4 > limit and len(text.encode()) > limit:
        return f"more than {limit:,} bytes"
    return None


def _faults_of_attributes(session: SessionText) -> Iterator[str]:
    if not session.searcher:
        yield "attributes of a searcher need a searcher: name one, or leave them out"

    if len(session.attributes) > MAX_ATTRIBUTES:
        yield f"a searcher has more than {MAX_ATTRIBUTES} attributes"

    for name, value in session.attributes.items():
        texts = [name, *([value] if isinstance(value, str) else [])]
        if not all(texts) or any(
            len(text) > MAX_ATTRIBUTE or _NOT_IN_TEXT.search(text) for text in texts
        ):
            yield (
                f"attribute {_quote(name)} is empty, longer than {MAX_ATTRIBUTE} characters "
                "or has a control character"
            )


def _problems_of_query(query: QueryText, id_length: int) -> Iterator[tuple[str, str]]:
    documents = query.documents
    if len(query.text) > MAX_TEXT:
        yield "text_too_long", f"the query has more than {MAX_TEXT:,} characters"

    if match := _NOT_IN_TEXT.search(query.text):
        yield (
            "control_character",
            f"the query has {match[0]!r}, a control character or half a surrogate pair",
        )

    # All ids are checked at once; only if this finds a problem, each id is checked.
    if (
        "" in documents
        or _NOT_IN_ID.search("".join(documents))
        or max(map(len, documents), default=0) * 4 > id_length
    ):
        yield from _problems_of_ids(documents, id_length)

    if query.judged:
        yield from _problems_of_ids(list(query.judged), id_length)

    # A clicked document that is not listed only causes a warning, but its id must be text.
    if bad := next((name for name in query.clicked if _SURROGATE.search(name)), None):
        yield "bad_doc_id", f"clicked document id {_quote(bad)} has half a surrogate pair"

    if len(set(documents)) < len(documents):
        first_places: dict[str, int] = {}
        for place, name in enumerate(documents, 1):
            if first_places.setdefault(name, place) != place:
                yield (
                    "duplicate_document",
                    f"document {_quote(name)} is listed twice for one query, "
                    f"in places {first_places[name]} and {place}",
                )

    yield from _problems_of_numbers(query)


def _problems_of_ids(documents: list[str], limit: int) -> Iterator[tuple[str, str]]:
    for name in documents:
        fault = _fault_of_id(name, limit) if name else "no characters"
        if fault:
            yield "bad_doc_id", f"document id {_quote(name)} has {fault}"


def _problems_of_numbers(query: QueryText) -> Iterator[tuple[str, str]]:
    documents, ranks, scores = query.documents, query.ranks, query.scores
    if ranks is not None:
        ascending = all(
            rank < next_rank for rank, next_rank in zip([0, *ranks], ranks, strict=False)
        )
        if len(ranks) != len(documents) or not ascending or max(ranks, default=0) > MAX_RANK:
            yield (
                "bad_rank",
                "ranks are as many whole numbers as documents, from 1 on, "
                "each larger than the one before",
            )

    if scores is not None and (
        len(scores) != len(documents) or not all(map(math.isfinite, scores))
    ):
        yield "bad_score", "scores are as many finite numbers as documents"

    if any(abs(level) > MAX_LEVEL for level in query.judged.values()):
        yield "bad_level", f"a level is a whole number from -{MAX_LEVEL} to {MAX_LEVEL}"


def _session(session: SessionText) -> Session:
    attributes = ""
    if session.attributes:
        # JSON writes tabs and line ends as escapes.
        attributes = json.dumps(session.attributes, ensure_ascii=False, separators=(",", ":"))

    return Session(
        session.session_id.encode(),
        session.topic_id.encode() or session.session_id.encode(),
        session.searcher.encode(),
        session.system.encode(),
        attributes.encode(),
    )


def _query(query: QueryText) -> Query:
    clicked = tuple(doc.encode() for doc in query.clicked)
    return Query(
        query.text,
        query.time,
        clicked,
        {doc.encode(): level for doc, level in query.judged.items()},
    )


def _starts(sizes: list[int]) -> Ints:
    return np.append(0, np.cumsum(np.array(sizes, np.int64)))


def _quote(text: str) -> str:
    return repr(text[:100])
