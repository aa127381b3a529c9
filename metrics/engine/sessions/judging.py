"""Judging sessions: compare the blocks of a session file with the judgements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple

import numpy as np

from metrics.engine.arrays import Floats, Ints
from metrics.engine.judgement.judging import Judgements
from metrics.engine.judgement.ranking import RankedBlock, spans_equal
from metrics.engine.sessions.blocks import SessionBlock
from metrics.engine.sessions.judged import JudgedSessions, KnownBefore

JudgedBy = Literal["topic", "session", "query"]

_NO_ROWS = np.zeros(0, np.int64)


class _Columns(NamedTuple):
    """Judged sessions: four columns of documents, four of queries, and the sessions' sizes."""

    query: Ints
    rank: Ints
    judgement: Ints
    document: Ints
    length: Ints
    scanned: Ints
    topic: Ints
    time: Floats
    sizes: Ints


def judge_sessions(
    blocks: Iterable[SessionBlock], judgements: Judgements, by: JudgedBy = "topic"
) -> JudgedSessions:
    """Keep the judged documents of the sessions.

    `by` says what the topic_id of a judgement is: that of the session's topic, the session's own
    id, or the `query_key` of a query. `blocks` is read once, so a file of any length is judged in
    the memory of one block."""
    parts: list[list[Any]] = [[_NO_ROWS] for _ in _Columns._fields]
    known: list[tuple[Ints, Ints]] = []
    sessions = queries = 0
    for block in blocks:
        columns = _judge_block(block, judgements, by)
        columns = columns._replace(query=columns.query + queries)
        for part, column in zip(parts, columns, strict=True):
            part.append(column)
        queries += len(block.queries)

        # Judgements of single queries do not hold for a whole session.
        if block.known is not None and by != "query":
            session, document = _judge_known(block, block.known, judgements, by)
            known.append((session + sessions, document))

        sessions += len(block.sessions)

    columns = _Columns(*(_joined(part) for part in parts))
    return JudgedSessions(
        query=columns.query,
        rank=columns.rank,
        level=judgements.levels[columns.judgement],
        judgement=columns.judgement,
        document=columns.document,
        length=columns.length,
        scanned=columns.scanned,
        topic=columns.topic,
        starts=np.append(0, np.cumsum(columns.sizes)),
        recall_base=judgements.recall_base,
        subtopics=judgements.subtopics,
        known=_known_before(known, judgements) if known else None,
        time=None if np.isnan(columns.time).all() else columns.time,
    )


def _joined(parts: list[Any]) -> Any:
    """Return the parts one after another. Empty their list: a log is not in memory twice."""
    column = np.concatenate(parts)
    parts.clear()
    return column


def _judge_known(
    block: SessionBlock, known: RankedBlock, judgements: Judgements, by: JudgedBy
) -> tuple[Ints, Ints]:
    """Return the session and the judgement of each known document that is judged, in order."""
    index = judgements.topic_index
    keys = (
        (session.topic_id if by == "topic" else session.session_id) for session in block.sessions
    )
    rows, judgement = judgements.find(
        known, np.array([index.get(key, -1) for key in keys], np.int64)
    )
    return known.topics_of(rows), judgement.astype(np.int64)


def _known_before(known: list[tuple[Ints, Ints]], judgements: Judgements) -> KnownBefore:
    session, document = (np.concatenate(column) for column in zip(*known, strict=True))
    return KnownBefore(session, document, judgements.levels[document])


def query_key(session_id: bytes, number: int) -> bytes:
    """Return the topic_id of a query's judgements: 's7:2' is the second query of session s7."""
    return b"%s:%d" % (session_id, number)


def _judge_block(block: SessionBlock, judgements: Judgements, by: JudgedBy) -> _Columns:
    index = judgements.topic_index
    topic = np.array([index.get(key, -1) for key in _keys(block, by)], np.int64)
    rankings = block.as_rankings()
    rows, judgement = judgements.find(rankings, topic)
    query = rankings.topics_of(rows)
    order = np.lexsort((block.ranks[rows], query))
    rows, judgement, query = rows[order], judgement[order].astype(np.int64), query[order]
    document = judgement if by != "query" else _documents(block, rows, query, judgements, judgement)

    return _Columns(
        query=query,
        rank=block.ranks[rows],
        judgement=judgement,
        document=document,
        length=_lengths(block),
        scanned=block.scanned,
        topic=topic,
        time=np.array([np.nan if query.time is None else query.time for query in block.queries]),
        sizes=np.diff(block.query_starts),
    )


def _keys(block: SessionBlock, by: JudgedBy) -> Iterator[bytes]:
    """Yield the topic_id that each query's judgements have."""
    for session, queries in zip(block.sessions, np.diff(block.query_starts).tolist(), strict=True):
        for number in range(1, queries + 1):
            if by == "query":
                yield query_key(session.session_id, number)
            else:
                yield session.topic_id if by == "topic" else session.session_id


def _lengths(block: SessionBlock) -> Ints:
    """Return the last rank of each query, 0 where nothing was found."""
    length = np.zeros(len(block.queries), np.int64)
    has_documents = np.flatnonzero(np.diff(block.document_starts))
    if len(has_documents):
        length[has_documents] = np.maximum.reduceat(
            block.ranks, block.document_starts[:-1][has_documents]
        )
    return length


def _documents(
    block: SessionBlock, rows: Ints, query: Ints, judgements: Judgements, judgement: Ints
) -> Ints:
    """Return the first judgement of each row's document in its session.

    Equal hashes propose, bytes decide; ids made to share a hash are distinguished one by one.
    """
    session = np.searchsorted(block.query_starts, query, side="right") - 1
    order = np.lexsort((block.doc_hashes[rows], session))
    key, owner = block.doc_hashes[rows][order], session[order]
    new = np.ones(len(rows), np.bool_)
    new[1:] = (key[1:] != key[:-1]) | (owner[1:] != owner[:-1])
    first = np.empty(len(rows), np.int64)
    first[order] = order[np.flatnonzero(new)][np.cumsum(new) - 1]
    starts, ends = block.doc_starts[rows], block.doc_ends[rows]
    if spans_equal(block.data, starts, ends, block.data, starts[first], ends[first]).all():
        return judgement[first]

    judgement_of: dict[tuple[int, bytes], int] = {}
    text, spans = block.data.tobytes(), zip(starts.tolist(), ends.tolist(), strict=True)
    names = [
        (owner, text[start:end])
        for owner, (start, end) in zip(session.tolist(), spans, strict=True)
    ]

    return np.array(
        [
            judgement_of.setdefault(name, row)
            for name, row in zip(names, judgement.tolist(), strict=True)
        ],
        np.int64,
    )
