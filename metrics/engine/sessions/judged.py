"""JudgedSessions: the sparse judged view of many sessions, the input of every session measure."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np

from metrics.engine.arrays import Flags, Floats, Ints
from metrics.engine.compiled.packing import pack, unpack
from metrics.engine.errors import MeasureError
from metrics.engine.judgement.gains import GainMap
from metrics.engine.judgement.judged import RankedGains, RecallBase, best_order
from metrics.engine.judgement.subtopics import Subtopics

_MEMORIES = 12
# Values of a view that are kept.
_ROWS_AT_ONCE = 1 << 20
_T = TypeVar("_T")
_ROWS = ("query", "rank", "level", "judgement", "document")
_QUERIES = ("length", "scanned", "topic")
_BASE = ("topic", "level", "counts")
_KNOWN = ("session", "document", "level")
_SUBTOPICS = ("topic", "judgement", "subtopic", "level")


@dataclass(frozen=True)
class KnownBefore:
    """The judged documents that searchers knew before their sessions: one entry per session and
    document in each array; `document` numbers them as the rows of the view do."""

    session: Ints
    document: Ints
    level: Ints


@dataclass(frozen=True)
class JudgedSessions:
    """The judged documents of many sessions, in the file's order; rows by query and rank.

    Shapes: one entry per retrieved judged document in `query` (0-based, over all sessions), `rank`
    (1-based), `level`, `judgement` (row of the qrels) and `document` (equal for the same document
    within a session); one per query in `length` (rank of the last document listed, 0 where nothing
    was found), `scanned` (documents looked at, -1 where not recorded) and `topic` (the judged topic
    its judgements come from, -1 where there are none); one per session and one more in `starts`,
    the offsets into the queries. `recall_base` and `subtopics` are those of the judged topics.
    `known` is None where the log names no known documents. `time` has the seconds of each query,
    NaN where the log has none; it is None where it has none of any query.
    """

    query: Ints
    rank: Ints
    level: Ints
    judgement: Ints
    document: Ints
    length: Ints
    scanned: Ints
    topic: Ints
    starts: Ints
    recall_base: RecallBase
    subtopics: Subtopics | None = None
    known: KnownBefore | None = None
    time: Floats | None = None

    @property
    def n_sessions(self) -> int:
        return len(self.starts) - 1

    @property
    def n_queries(self) -> int:
        return len(self.length)

    @cached_property
    def queries(self) -> Ints:
        """Return the number of queries of each session; shape (sessions,)."""
        return np.diff(self.starts)

    @cached_property
    def session(self) -> Ints:
        """Return the session of each query; shape (queries,)."""
        return np.repeat(np.arange(self.n_sessions), self.queries)

    @cached_property
    def number(self) -> Ints:
        """Return the place of each query in its session, from 1; shape (queries,)."""
        return np.arange(self.n_queries) - self.starts[:-1][self.session] + 1

    @cached_property
    def elapsed(self) -> Floats:
        """Return the seconds since the first query of the session, at least 0; shape (queries,).

        Raise MeasureError if the log does not have the time of every query.
        """
        if self.time is None or np.isnan(self.time).any():
            message = (
                "half_life needs the time of every query, which this session set does not have"
            )
            raise MeasureError(message, code="bad_parameter")

        return np.maximum(self.time - self.time[self.starts[:-1][self.session]], 0.0)

    @cached_property
    def is_judged(self) -> Flags:
        """Return whether a query of the session has a judged topic; shape (sessions,)."""
        return np.bincount(self.session[self.topic >= 0], minlength=self.n_sessions) > 0

    @cached_property
    def session_topic(self) -> Ints:
        """Return the judged topic of each session's queries: -1 for none, -2 for several."""
        least, most = (np.full(self.n_sessions, -1, np.int64) for _ in range(2))
        has_queries = np.flatnonzero(self.queries)
        least[has_queries] = np.minimum.reduceat(self.topic, self.starts[:-1][has_queries])
        most[has_queries] = np.maximum.reduceat(self.topic, self.starts[:-1][has_queries])
        return np.where(least == most, most, -2)

    @cached_property
    def _memo(self) -> dict[Hashable, Any]:
        return {}

    def once(self, key: Hashable, compute: Callable[[], _T]) -> _T:
        """Return the result of `compute` for this view; the latest few results are kept, because
        many values may be requested of a view."""
        if key in self._memo:
            earlier: _T = self._memo[key]
            return earlier

        value = compute()
        while len(self._memo) >= _MEMORIES:
            del self._memo[next(iter(self._memo))]
        self._memo[key] = value
        return value

    def is_known(self, rows: Ints) -> Flags:
        """Return which of some rows show a document that the searcher knew before the session."""
        if self.known is None:
            return np.zeros(len(rows), np.bool_)
        width = max(self.document.max(initial=0), self.known.document.max(initial=0)) + 1
        keys = self.session[self.query[rows]] * width + self.document[rows]
        return np.isin(keys, self.known.session * width + self.known.document)

    def take(self, sessions: Ints) -> Self:
        """Return the view of some sessions, each named once, in the order named."""
        sizes = self.queries[sessions]
        queries = spread(self.starts[:-1][sessions], sizes)
        begin, end = (np.searchsorted(self.query, queries, side=side) for side in ("left", "right"))
        known = self.known
        if known is not None:
            place = np.full(self.n_sessions, -1, np.int64)
            place[sessions] = np.arange(len(sessions))
            rows_of_known = np.flatnonzero(place[known.session] >= 0)
            known = KnownBefore(
                place[known.session[rows_of_known]],
                known.document[rows_of_known],
                known.level[rows_of_known],
            )

        rows = spread(begin, end - begin)
        return replace(
            self,
            **{name: getattr(self, name)[rows] for name in _ROWS[1:]},
            query=np.repeat(np.arange(len(queries)), end - begin),
            **{name: getattr(self, name)[queries] for name in _QUERIES},
            starts=np.append(0, np.cumsum(sizes)),
            known=known,
            time=None if self.time is None else self.time[queries],
        )

    def stretches(self) -> Iterator[Self]:
        """Yield the sessions in order, in parts of bounded size with at least one session each.

        The values of a session depend on no other one, and computing them takes several times the
        memory of its part.
        """
        offsets = self.starts + np.searchsorted(self.query, self.starts)
        begin = 0
        while begin < self.n_sessions:
            end = max(
                begin + 1,
                int(np.searchsorted(offsets, offsets[begin] + _ROWS_AT_ONCE, side="right")) - 1,
            )
            yield self if end - begin == self.n_sessions else self.take(np.arange(begin, end))
            begin = end

    def ideal_gains(self, gains: GainMap) -> RankedGains:
        """Return the ideal ranking of every judged topic: its documents with a gain, best first."""
        return self.once(("ideal", gains), lambda: best_order(self.recall_base, gains))

    def to_bytes(self) -> bytes:
        """Return a compact form to store; `from_bytes` gives an equal view back."""
        # The queries of the rows as steps from row to row, mostly 0 and 1, which take a byte each
        # and compress well.
        arrays = [("query", np.diff(self.query, prepend=0))]
        arrays += [(name, getattr(self, name)) for name in (*_ROWS[1:], *_QUERIES, "starts")]
        arrays += [(f"base_{name}", getattr(self.recall_base, name)) for name in _BASE]
        if self.subtopics:
            arrays += [(f"subtopics_{name}", getattr(self.subtopics, name)) for name in _SUBTOPICS]

        if self.known:
            arrays += [(f"known_{name}", getattr(self.known, name)) for name in _KNOWN]
        if self.time is not None:
            arrays.append(("time", self.time))

        return pack({"n_topics": self.recall_base.n_topics}, arrays)

    @classmethod
    def from_bytes(cls, stored: bytes) -> Self:
        """Return the view that `to_bytes` wrote. Raise ValueError for bytes of a later version."""
        header, arrays = unpack(stored, "judged view of sessions")
        arrays["query"] = np.cumsum(arrays["query"])
        topic, level, counts = (arrays.pop(f"base_{name}") for name in _BASE)
        base = RecallBase(topic, level, counts, header["n_topics"])

        subtopics = None
        if "subtopics_topic" in arrays:
            subtopics = Subtopics(*(arrays.pop(f"subtopics_{name}") for name in _SUBTOPICS))
        known = None
        if "known_session" in arrays:
            known = KnownBefore(*(arrays.pop(f"known_{name}") for name in _KNOWN))

        return cls(**arrays, recall_base=base, subtopics=subtopics, known=known)


def spread(starts: Ints, sizes: Ints) -> Ints:
    """Return the whole numbers from each start on, as many as its size, one after another."""
    return np.repeat(starts - (np.cumsum(sizes) - sizes), sizes) + np.arange(int(sizes.sum()))
