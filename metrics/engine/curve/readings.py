"""Readings of a curve against the ideal's or another run's: across, the rank needed for the same
value; and down, the value that is missed at a rank.

Source: Järvelin and Kekäläinen, TOIS 20(4), 2002, sections 2.2, 3.4 and 3.5; University of Tampere
RN-2002-2, sections 2.2, 3.4 and 3.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from metrics.engine.arrays import Flags, Floats, Ints
from metrics.engine.curve.curves import Curve, curve
from metrics.engine.judgement.judged import JudgedRun
from metrics.engine.measures.grammar import Measure

# Two sums of the same gains in another order differ by less than this share of them.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Readings:
    """The averaged curve against the ideal's averaged one at ranks 1..depth.

    Shapes: (depth,) in each. `needed` is the rank at which the run has what the ideal has at the
    rank, 0 where it never has; `missed` is the ideal minus the actual value and `percent` the same
    in per cent of the ideal, NaN where that is 0. `horizontal_from` is the last rank at which the
    ideal gains anything: the stopping rule. `reached` is the run's averaged curve down to its last
    document, of shape (depth or more,). `needed`, `horizontal_from` and `reached` are None for a
    curve that may fall.
    """

    needed: Ints | None
    missed: Floats
    percent: Floats
    horizontal_from: int | None
    reached: Floats | None = None


@dataclass(frozen=True)
class AgainstBest:
    """Several runs' averaged curves against the highest of them at each of the ranks 1..depth.

    Shapes: `best` (depth,), the place of the run that is highest there, the first of equals;
    `needed` (runs, depth), the rank at which each run has what that one has at the rank, 0 where it
    never has; `missed` (runs, depth), the highest value at the rank minus each run's.
    """

    best: Ints
    needed: Ints
    missed: Floats


def readings(
    run: JudgedRun, measure: Measure, depth: int, selected: Flags | None = None
) -> Readings:
    """Return both readings of the measure's curve; raise MeasureError if it has none.

    A curve that never falls is followed to the last document: what the run has not gained there it
    never gains. `selected` is a flag for each topic that counts, None for all.
    """
    full_curve = curve(run, measure, depth)
    if full_curve.cumulates:
        full_curve = curve(run, measure, max(depth, _length(run)))
    if selected is not None:
        full_curve = full_curve.of_topics(selected)

    actual, ideal = full_curve.mean, full_curve.ideal_mean[:depth]
    missed, percent = missed_of(actual[:depth], ideal)
    if not full_curve.cumulates:
        return Readings(None, missed, percent, None)

    horizontal_from = int(full_curve.best.rank.max(initial=0)) or None
    return Readings(ranks_needed(actual, ideal), missed, percent, horizontal_from, actual)


def mean_readings(runs: Sequence[Readings], mean: Curve) -> Readings:
    """Return the readings of the mean curve of several runs, of which `runs` are the readings.

    A run that has ended keeps its value at later ranks.
    """
    missed, percent = missed_of(mean.mean, mean.ideal_mean)
    reached = [reading.reached for reading in runs if reading.reached is not None]
    if len(reached) < len(runs):
        return Readings(None, missed, percent, None)

    length = max(map(len, reached))
    padded = [np.pad(values, (0, length - len(values)), mode="edge") for values in reached]
    actual = np.mean(padded, axis=0)
    horizontal_from = max(reading.horizontal_from or 0 for reading in runs) or None
    return Readings(ranks_needed(actual, mean.ideal_mean), missed, percent, horizontal_from, actual)


def against_best(runs: list[Readings], depth: int) -> AgainstBest | None:
    """Read each run across and down against the best one at ranks 1..depth. Return None without
    runs, and for curves that may fall."""
    reached = [reading.reached for reading in runs if reading.reached is not None]
    if not reached or len(reached) < len(runs):
        return None

    values = np.stack([mean[:depth] for mean in reached])
    highest = values.max(axis=0)
    return AgainstBest(
        values.argmax(axis=0),
        np.stack([ranks_needed(mean, highest) for mean in reached]),
        highest - values,
    )


def missed_of(actual: Floats, ideal: Floats) -> tuple[Floats, Floats]:
    """Return by how much a curve misses the ideal at each rank, and the same in per cent, NaN where
    the ideal is 0."""
    missed = ideal - actual
    percent = np.full(len(ideal), np.nan)
    np.divide(100 * missed, ideal, out=percent, where=ideal > 0)
    return missed, percent


def ranks_needed(cumulated: Floats, values: Floats) -> Ints:
    """Return the first rank at which a curve that never falls has each value, 0 where it never
    has."""
    before = np.searchsorted(cumulated, values * (1 - _ROUNDING))
    return np.where(before < len(cumulated), before + 1, 0)


def _length(run: JudgedRun) -> int:
    """Return the last rank at which the run or an ideal ranking can gain."""
    base = run.recall_base
    judged = np.bincount(base.topic, base.counts, 1)
    return max(int(run.rank.max(initial=0)), int(judged.max()))
