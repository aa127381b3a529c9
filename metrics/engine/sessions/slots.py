"""Slots: the components of a session's vector, query after query, and their gains."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from metrics.engine.arrays import Flags, Floats, Ints
from metrics.engine.sessions.judged import JudgedSessions
from metrics.engine.sessions.settings import Setting


@dataclass(frozen=True)
class Slots:
    """The number of slots of each query, and the documents that count.

    Shapes: `examined` (documents) and `count` (slots) have one entry per query; `starts` one per
    session and one more (offsets of the sessions' slots); `rows` lists the rows of the view that
    are within `examined`.
    """

    examined: Ints
    count: Ints
    starts: Ints
    rows: Ints

    @cached_property
    def first(self) -> Ints:
        """Return the slot at which each query begins, over all sessions; shape (queries,)."""
        return np.cumsum(self.count) - self.count

    @cached_property
    def query(self) -> Ints:
        """Return the query of each slot."""
        return np.repeat(np.arange(len(self.count)), self.count)

    @cached_property
    def rank(self) -> Ints:
        """Return the rank of each slot within its query, from 1."""
        return np.arange(len(self.query)) - self.first[self.query] + 1

    @cached_property
    def session(self) -> Ints:
        """Return the session of each slot."""
        sizes = np.diff(self.starts)
        return np.repeat(np.arange(len(sizes)), sizes)


@dataclass(frozen=True)
class SlotGains:
    """The gains above 0, sorted by query and rank."""

    query: Ints
    rank: Ints
    gain: Floats


def slots_of(view: JudgedSessions, setting: Setting) -> Slots:
    """Return the slots of every query, computed once for settings that read the lists alike."""
    key = ("slots", setting.depth, setting.scan, setting.short)
    return view.once(key, lambda: _slots(view, setting))


def _slots(view: JudgedSessions, setting: Setting) -> Slots:
    # How far each query's list is read.
    depth = np.full(view.n_queries, setting.depth)
    if setting.scan == "recorded":
        depth = np.where(view.scanned >= 0, np.minimum(view.scanned, depth), depth)

    examined = np.minimum(view.length, depth)
    count = depth if setting.short == "pad" else np.maximum(examined, setting.least)
    starts = np.append(0, np.cumsum(count))[view.starts]
    return Slots(examined, count, starts, np.flatnonzero(view.rank <= examined[view.query]))


def gains_of(view: JudgedSessions, setting: Setting) -> SlotGains:
    """Return the gains in the slots, after the rule for duplicates."""
    key = ("slot gains", setting.gains, setting.depth, setting.scan, setting.duplicates)
    return view.once(key, lambda: _gains(view, setting))


def _gains(view: JudgedSessions, setting: Setting) -> SlotGains:
    rows = slots_of(view, setting).rows
    if setting.duplicates == "first":
        rows = rows[is_first(view, rows)]
    gain = setting.gains.of(view.level[rows])
    has_gain = np.flatnonzero(gain > 0)
    rows = rows[has_gain]

    return SlotGains(view.query[rows], view.rank[rows], gain[has_gain])


def is_first(view: JudgedSessions, rows: Ints) -> Flags:
    """Return which of some rows, in order, show a document of their session for the first time."""
    key = view.session[view.query[rows]] * (view.document.max(initial=0) + 1) + view.document[rows]
    first = np.zeros(len(rows), np.bool_)
    first[np.unique(key, return_index=True)[1]] = True
    return first
