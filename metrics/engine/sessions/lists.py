"""Sessions as rankings: a session, or each of its queries, as a topic of a run."""

from __future__ import annotations

import numpy as np

from metrics.engine.arrays import Ints
from metrics.engine.errors import MeasureError
from metrics.engine.judgement.judged import JudgedRun, Known, RecallBase
from metrics.engine.sessions.judged import JudgedSessions, spread
from metrics.engine.sessions.settings import Setting
from metrics.engine.sessions.slots import is_first, slots_of


def concatenated(view: JudgedSessions, setting: Setting) -> JudgedRun:
    """Return each session as a topic: its queries' slots one after another as one ranking.

    With duplicates='first' a document that comes back keeps its rank and is relevant no more.
    Raise MeasureError if a session is judged query by query: its documents are then not those of
    one topic.
    """
    if (view.session_topic == -2).any():
        message = "a session as one ranking needs judgements by topic or by session, not by query"
        raise MeasureError(message, code="bad_parameter")

    slots = slots_of(view, setting)
    rows = _rows(view, setting)
    query = view.query[rows]
    rank = (slots.first - slots.starts[:-1][view.session])[query] + view.rank[rows]
    base = _replicated(view.recall_base, view.session_topic)

    known = None
    if view.known:
        before = RecallBase.of(view.known.session, view.known.level, view.n_sessions)
        known = Known(view.is_known(rows), before, np.zeros(view.n_sessions, np.int64))

    return _run(view, rows, view.session[query], rank, np.diff(slots.starts), base, known)


def one_by_one(view: JudgedSessions, setting: Setting) -> JudgedRun:
    """Return each query as a topic: the examined part of its list.

    The searcher knows the documents of earlier queries of the session, and expects nothing.
    """
    slots = slots_of(view, setting)
    rows = _rows(view, setting)
    base = _replicated(view.recall_base, view.topic)
    known = _known(view, slots.rows, rows)
    return _run(view, rows, view.query[rows], view.rank[rows], slots.examined, base, known)


def _rows(view: JudgedSessions, setting: Setting) -> Ints:
    rows = slots_of(view, setting).rows
    return rows[is_first(view, rows)] if setting.duplicates == "first" else rows


def _replicated(base: RecallBase, topic: Ints) -> RecallBase:
    """Return the recall bases of these topics, one after another; an empty one for -1."""
    sizes = np.append(np.bincount(base.topic, minlength=base.n_topics), 0)
    starts = np.cumsum(sizes) - sizes
    rows = spread(starts[topic], sizes[topic])
    owner = np.repeat(np.arange(len(topic)), sizes[topic])
    return RecallBase(owner, base.level[rows], base.counts[rows], len(topic))


def _known(view: JudgedSessions, examined: Ints, rows: Ints) -> Known:
    """Return the documents known before the session or from earlier queries: the first appearance
    of a document in `examined` makes it known to all later queries."""
    before = view.is_known(examined)
    first = is_first(view, examined)
    known = np.zeros(len(view.query), np.bool_)
    known[examined[~first | before]] = True
    new = examined[first & ~before]
    query_of_new = view.query[new]
    later = view.starts[1:][view.session[query_of_new]] - query_of_new - 1

    query, level = spread(query_of_new + 1, later), np.repeat(view.level[new], later)
    if view.known:
        queries = view.queries[view.known.session]
        query = np.concatenate([query, spread(view.starts[:-1][view.known.session], queries)])
        level = np.concatenate([level, np.repeat(view.known.level, queries)])

    base = RecallBase.of(query, level, view.n_queries)
    return Known(known[rows], base, np.zeros(view.n_queries, np.int64))


def _run(
    view: JudgedSessions,
    rows: Ints,
    topic: Ints,
    rank: Ints,
    num_ret: Ints,
    base: RecallBase,
    known: Known | None = None,
) -> JudgedRun:
    return JudgedRun(
        topic=topic,
        rank=rank,
        level=view.level[rows],
        judgement=view.judgement[rows],
        score=-rank.astype(np.float64),
        tie_first=rank,
        tie_size=np.ones_like(rank),
        num_ret=num_ret,
        squared_scores=np.full(base.n_topics, np.nan),
        recall_base=base,
        known=known,
    )
