"""Single figures of a session, raw and normalised, such as its final or its best query."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from metrics.engine.arrays import Floats, Ints
from metrics.engine.judgement.judged import sum_by_topic
from metrics.engine.measures.ratio import ratio
from metrics.engine.sessions.judged import JudgedSessions
from metrics.engine.sessions.settings import Ideal, Norm, Setting
from metrics.engine.sessions.vectors import (
    contributions,
    ideal_contributions,
    ideal_vectors,
    normalised_vectors,
    session_vectors,
    stretches,
    undiscounted,
)

Figure = Literal["final", "mean", "best", "worst", "first", "last", "avgpos"]
# Before the number of a query in its session, from 1.
TURN = "turn:"
FIGURES: tuple[Figure, ...] = ("final", "mean", "best", "worst", "first", "last", "avgpos")


def raw_figure(view: JudgedSessions, setting: Setting, figure: Figure = "final") -> Floats:
    """Return a figure of each session's sDCG, NaN if it is not judged; shape (sessions,)."""
    if figure == "avgpos":
        values = _by_stretch(view, setting, lambda part: session_vectors(part, setting).mean())
    elif figure == "final":
        values = sum_by_topic(view.session, contributions(view, setting), view.n_sessions)
    else:
        values = of_queries(view, contributions(view, setting), figure)

    return np.where(view.is_judged, values, np.nan)


def normalised_figure(
    view: JudgedSessions,
    setting: Setting,
    figure: Figure = "final",
    ideal: Ideal = "repeated",
    norm: Norm = "session",
) -> Floats:
    """Return a figure of each session's nsDCG, NaN without a gain to find; shape (sessions,).

    The figure of a query is the last component of its own vector divided by its own ideal's.
    """
    best = ideal_contributions(view, setting)
    if figure == "avgpos":
        values = _by_stretch(
            view, setting, lambda part: normalised_vectors(part, setting, ideal, norm).mean()
        )
    elif figure == "final" and norm == "session":
        total = sum_by_topic(view.session, contributions(view, setting), view.n_sessions)
        values = ratio(total, _ideal_totals(view, setting, ideal, best))
    else:
        below = best if norm == "session" else ideal_contributions(view, undiscounted(setting))
        shares = ratio(contributions(view, setting), below)
        values = of_queries(view, shares, "last" if figure == "final" else figure)

    return np.where(np.bincount(view.session, best, view.n_sessions) > 0, values, np.nan)


def of_queries(view: JudgedSessions, values: Floats, figure: str) -> Floats:
    """Return one value of each session, such as the best of its queries; shape (sessions,).

    Queries without a value (NaN) are left out of best, worst, mean and sum; a session of none has
    no value.
    """
    if figure.startswith(TURN):
        return _turn(view, values, int(figure.removeprefix(TURN)))

    has_queries = np.flatnonzero(view.queries)
    chosen = np.full(view.n_sessions, np.nan)
    chosen[has_queries] = _OF_QUERIES[figure](
        values, view.starts[:-1][has_queries], view.starts[1:][has_queries]
    )
    return chosen


def _turn(view: JudgedSessions, values: Floats, number: int) -> Floats:
    """Return the value of each session's query of a number, NaN for a shorter session."""
    chosen = np.full(view.n_sessions, np.nan)
    long_enough = np.flatnonzero(np.diff(view.starts) >= number)
    chosen[long_enough] = values[view.starts[:-1][long_enough] + number - 1]
    return chosen


def _first(values: Floats, starts: Ints, _: Ints) -> Floats:
    return values[starts]


def _last(values: Floats, _: Ints, ends: Ints) -> Floats:
    return values[ends - 1]


def _best(values: Floats, starts: Ints, _: Ints) -> Floats:
    best = np.maximum.reduceat(np.where(np.isnan(values), -np.inf, values), starts)
    return np.where(np.isinf(best), np.nan, best)


def _worst(values: Floats, starts: Ints, ends: Ints) -> Floats:
    return -_best(-values, starts, ends)


def _mean(values: Floats, starts: Ints, _: Ints) -> Floats:
    defined = np.add.reduceat(~np.isnan(values), starts, dtype=np.int64)
    total = np.add.reduceat(np.nan_to_num(values), starts)
    return np.where(defined > 0, total / np.maximum(defined, 1), np.nan)


def _sum(values: Floats, starts: Ints, ends: Ints) -> Floats:
    return np.where(
        np.isnan(_mean(values, starts, ends)),
        np.nan,
        np.add.reduceat(np.nan_to_num(values), starts),
    )


_OF_QUERIES: dict[str, Callable[[Floats, Ints, Ints], Floats]] = {
    "first": _first,
    "last": _last,
    "best": _best,
    "worst": _worst,
    "mean": _mean,
    "sum": _sum,
}


def _ideal_totals(view: JudgedSessions, setting: Setting, ideal: Ideal, best: Floats) -> Floats:
    """Return what the ideal session gains in all; shape (sessions,)."""
    if ideal == "repeated":
        return sum_by_topic(view.session, best, view.n_sessions)
    return _by_stretch(view, setting, lambda part: ideal_vectors(part, setting, ideal).last())


def _by_stretch(
    view: JudgedSessions, setting: Setting, figure: Callable[[JudgedSessions], Floats]
) -> Floats:
    parts = [figure(part) for part in stretches(view, setting)]
    return np.concatenate(parts) if parts else np.zeros(0)
