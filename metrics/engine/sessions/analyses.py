"""Analyses of sets of sessions: mean curves, lengths, and the gains of reformulations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from metrics.engine.arrays import Flags, Floats, Ints
from metrics.engine.measures.ratio import ratio
from metrics.engine.sessions.judged import JudgedSessions
from metrics.engine.sessions.settings import Ideal, Norm, Setting
from metrics.engine.sessions.slots import gains_of, slots_of
from metrics.engine.sessions.vectors import (
    Matrix,
    SessionVectors,
    contributions,
    ideal_contributions,
    ideal_vectors,
    normalised_vectors,
    query_weights,
    session_vectors,
    stretches,
    undiscounted,
)

Which = Literal["last", "others", "best", "all"]


@dataclass(frozen=True)
class MeanCurves:
    """The mean of the vectors of each group at every component, and the number of vectors.

    Shapes: `values` (groups, width), 0 where a group has none; `count` (groups,).
    """

    values: Matrix
    count: Ints


@dataclass(frozen=True)
class LengthTable:
    """Sessions by their number of queries.

    Shapes: `counts` (groups, most queries), column i for sessions of i + 1 queries; `mean`
    (groups,), queries per session, NaN of a group without any.
    """

    counts: Ints
    mean: Floats


@dataclass(frozen=True)
class Reformulations:
    """By how much each query gains more than the one before it; (queries,), NaN for first ones."""

    change: Floats

    @property
    def gained(self) -> Flags:
        return self.change > 0

    @property
    def lost(self) -> Flags:
        return self.change < 0

    @property
    def same(self) -> Flags:
        same: Flags = self.change == 0
        return same


def width(view: JudgedSessions, setting: Setting) -> int:
    """Return the components of the longest session: the common length of compared curves."""
    return int(np.diff(slots_of(view, setting).starts).max(initial=0))


def mean_session_curves(
    view: JudgedSessions,
    setting: Setting,
    group: Ints,
    groups: int,
    *,
    normalised: tuple[Ideal, Norm] | None = None,
    least: int = 1,
    length: int | None = None,
) -> MeanCurves:
    """Return the mean curve of each group of sessions; a session stays constant after its end.

    `group` has shape (sessions,), -1 for sessions that take no part. Sessions of fewer than `least`
    queries take no part, nor do sessions that are not judged and, if normalised, those without a
    gain to find. With norm='average' the mean of the raw vectors is divided by the mean of their
    ideals. `length` is the longest session's where left out, whatever its group. Source: Järvelin
    et al., ECIR 2008, figures 2 and 3, and appendix, equations 4 and 5."""

    def vectors_of(part: JudgedSessions) -> SessionVectors:
        if normalised is None or normalised[1] == "average":
            return session_vectors(part, setting)
        return normalised_vectors(part, setting, *normalised)

    takes_part = (
        (group >= 0)
        & (view.queries >= least)
        & have_vectors(view, setting, normalised=normalised is not None)
    )
    group = np.where(takes_part, group, -1)
    curves = _mean_curves(view, setting, group, groups, vectors_of, length)
    if normalised is None or normalised[1] != "average":
        return curves

    ideal = normalised[0]
    best = _mean_curves(
        view, setting, group, groups, lambda part: ideal_vectors(part, setting, ideal), length
    )
    shares = np.divide(
        curves.values, best.values, out=np.zeros_like(curves.values), where=best.values > 0
    )

    return replace(curves, values=shares)


def have_vectors(view: JudgedSessions, setting: Setting, *, normalised: bool) -> Flags:
    """Return which sessions have a vector: judged ones and, if normalised, those with a gain."""
    if not normalised:
        return view.is_judged
    return np.bincount(view.session, ideal_contributions(view, setting), view.n_sessions) > 0


def mean_ideal_curves(
    view: JudgedSessions,
    setting: Setting,
    group: Ints,
    groups: int,
    *,
    ideal: Ideal = "repeated",
    least: int = 1,
    length: int | None = None,
) -> MeanCurves:
    """Return the mean curve of each group's ideal sessions, each constant after its end.

    The arguments are those of `mean_session_curves`, and so are the sessions that take part.
    """
    takes_part = (group >= 0) & (view.queries >= least) & view.is_judged
    return _mean_curves(
        view,
        setting,
        np.where(takes_part, group, -1),
        groups,
        lambda part: ideal_vectors(part, setting, ideal),
        length,
    )


def _mean_curves(
    view: JudgedSessions,
    setting: Setting,
    group: Ints,
    groups: int,
    vectors_of: Callable[[JudgedSessions], SessionVectors],
    length: int | None,
) -> MeanCurves:
    """Return the means of the vectors that `vectors_of` gives, a stretch of sessions at a time."""
    length = width(view, setting) if length is None else length
    chosen = np.flatnonzero(group >= 0)
    total, from_end, begin = np.zeros((groups, length)), np.zeros((groups, length)), 0
    for part in stretches(view.take(chosen), setting):
        vectors = vectors_of(part)
        owner = group[chosen[begin : begin + part.n_sessions]]
        component = np.arange(len(vectors.values)) - np.repeat(vectors.starts[:-1], vectors.sizes)
        _add(total, np.repeat(owner, vectors.sizes), component, vectors.values)
        # From its end on, a session counts with its last value.
        _add(from_end, owner, vectors.sizes, vectors.last())
        begin += part.n_sessions

    count = np.bincount(group[chosen], minlength=groups)
    return MeanCurves((total + np.cumsum(from_end, axis=1)) / np.maximum(count, 1)[:, None], count)


def _add(total: Matrix, row: Ints, column: Ints, values: Floats) -> None:
    """Add values to their cells; those beyond the last column are ignored."""
    inside = column < total.shape[1]
    cell = row[inside] * total.shape[1] + column[inside]
    total += np.bincount(cell, values[inside], total.size).reshape(total.shape)


def mean_query_curves(
    view: JudgedSessions, setting: Setting, which: Which, group: Ints, groups: int
) -> MeanCurves:
    """Return each group's mean sDCG(q) vector at ranks 1..X, over its last, other or best queries.

    The best query of a session is the one that adds most to it, the first of several. `group` is as
    for `mean_session_curves`. Source: Järvelin et al., ECIR 2008, figure 1.
    """
    chosen = (
        _choose(view, setting, which) & (group >= 0)[view.session] & view.is_judged[view.session]
    )
    gains = gains_of(view, setting)
    rows = np.flatnonzero(chosen[gains.query])
    query, rank = gains.query[rows], gains.rank[rows]
    worth = gains.gain[rows] * setting.rank_weight(rank) * query_weights(view, setting)[query]
    cell = group[view.session[query]] * setting.depth + rank - 1
    total = np.bincount(cell, worth, groups * setting.depth).reshape(groups, setting.depth)

    count = np.bincount(group[view.session[chosen]], minlength=groups)
    return MeanCurves(np.cumsum(total, axis=1) / np.maximum(count, 1)[:, None], count)


def _choose(view: JudgedSessions, setting: Setting, which: Which) -> Flags:
    is_last: Flags = view.number == view.queries[view.session]
    if which == "last":
        return is_last
    if which == "others":
        return ~is_last
    if which == "all":
        return np.ones(view.n_queries, np.bool_)

    order = np.lexsort((view.number, -contributions(view, setting), view.session))
    best = np.zeros(view.n_queries, np.bool_)
    best[order[np.unique(view.session[order], return_index=True)[1]]] = True
    return best


def length_table(view: JudgedSessions, group: Ints, groups: int) -> LengthTable:
    """Return the sessions of each group by their number of queries, and the mean number.

    Source: Järvelin et al., ECIR 2008, table 2.
    """
    chosen = group >= 0
    longest = int(view.queries[chosen].max(initial=0))
    cell = group[chosen] * (longest + 1) + view.queries[chosen]
    counts = np.bincount(cell, minlength=groups * (longest + 1)).reshape(groups, longest + 1)
    sessions = counts.sum(axis=1)
    mean = np.where(sessions > 0, counts @ np.arange(longest + 1) / np.maximum(sessions, 1), np.nan)

    return LengthTable(counts[:, 1:], mean)


def reformulations(
    view: JudgedSessions, setting: Setting, *, normalised: bool = False
) -> Reformulations:
    """Return the gain of each query less that of the query before it in its session.

    The gain is the query's own discounted cumulated gain, or its share of the ideal's, the query's
    position and time left out: discounted by it, the same list found again would be a loss.
    """
    plain = undiscounted(setting)
    gain = contributions(view, plain)
    if normalised:
        gain = ratio(gain, ideal_contributions(view, plain))

    change = np.full(view.n_queries, np.nan)
    later = np.flatnonzero(view.number > 1)
    change[later] = gain[later] - gain[later - 1]
    return Reformulations(change)
