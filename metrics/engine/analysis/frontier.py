"""Effectiveness against cost: which runs another one beats at no higher cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from metrics.engine.arrays import Flags, Floats, Ints
from metrics.engine.significance import paired_t
from metrics.engine.significance.pairs import Matrix
from metrics.engine.significance.step_down import holm_of
from metrics.engine.significance.verdicts import MIN_TOPICS

ALPHA = 0.05
ON_FRONTIER, PERHAPS, DOMINATED = "frontier", "perhaps", "dominated"
STATUSES = (ON_FRONTIER, PERHAPS, DOMINATED)


@dataclass(frozen=True)
class Costs:
    """One entry per run: its cost and the ends of its interval, NaN where none is given."""

    value: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True)
class Frontier:
    """One entry per run: one of STATUSES, the run that is better at no higher cost (-1 for none),
    and the corrected p of this. The p values are corrected for `pairs` pairs."""

    status: list[str]
    by: Ints
    p_adjusted: Floats
    pairs: int


def frontier(
    values: Matrix, costs: Costs, groups: Ints, *, lower_is_better: bool = False
) -> Frontier:
    """Which runs are on the frontier of effectiveness against cost, which are surely dominated, and
    which perhaps.

    Groups: a run is surely dominated if another one is not dearer, with intervals apart where there
    are any, and better: the one-sided p of `paired_t` is below 0.05, by Holm over all pairs of
    which one run is not dearer. It is on the frontier if by the means no other run is as good and
    as cheap, and better or cheaper. All others are perhaps dominated
    Controls: the chance that any run is called surely dominated that is not, as far as the costs
    are right
    Shapes: `values` (runs, topics), two topics or more; runs of different `groups` are not compared
    """
    better = -values if lower_is_better else values
    means = better.mean(axis=1)
    comparable = groups[:, None] == groups[None, :]
    np.fill_diagonal(comparable, False)
    beaten = comparable & (costs.value[:, None] <= costs.value) & (means[:, None] >= means)
    beaten &= (costs.value[:, None] < costs.value) | (means[:, None] > means)
    first, second = (
        places.astype(np.int64) for places in np.nonzero(comparable & _not_dearer(costs))
    )

    # Student's t, positive where the first run is better; NaN without spread.
    statistic = paired_t.statistic_of(*paired_t.mean_and_error(better, first, second))
    by, p_adjusted = np.full(len(means), -1), np.full(len(means), np.nan)

    # The strongest pair of each run last: it is what stays.
    pairs = np.flatnonzero(beaten[first, second])
    pairs = pairs[
        np.argsort(np.where(np.isnan(statistic[pairs]), -np.inf, statistic[pairs]), kind="stable")
    ]
    strongest = np.full(len(means), -1)
    strongest[second[pairs]] = pairs
    runs = np.flatnonzero(strongest >= 0)
    by[runs] = first[strongest[runs]]

    freedom = values.shape[1] - 1
    p_adjusted[runs] = holm_of(statistic, strongest[runs], lambda t: special.stdtr(freedom, -t))

    # Where costs overlap nothing was tested: the run names the best of those with a better mean.
    best = np.where(beaten, means[:, None], -np.inf).argmax(axis=0)
    by = np.where(beaten.any(axis=0) & (by < 0), best, by)
    certain = (p_adjusted < ALPHA) & (values.shape[1] >= MIN_TOPICS)
    status = np.where(certain, DOMINATED, np.where(beaten.any(axis=0), PERHAPS, ON_FRONTIER))

    return Frontier(status.tolist(), by, p_adjusted, len(first))


def _not_dearer(costs: Costs) -> Flags:
    """Return whether the run of each row is not dearer than the run of each column."""
    low, high = (np.where(np.isnan(end), costs.value, end) for end in (costs.low, costs.high))
    exact = np.isnan(costs.low) & np.isnan(costs.high)
    plain = exact[:, None] & exact & (costs.value[:, None] <= costs.value)
    not_dearer: Flags = plain | (high[:, None] < low)
    return not_dearer
