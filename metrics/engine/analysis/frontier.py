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
    and the corrected p of this. `pairs` is the number of pairs for which the p values count."""

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
    same = groups[:, None] == groups[None, :]
    np.fill_diagonal(same, False)
    beaten = same & (costs.value[:, None] <= costs.value) & (means[:, None] >= means)
    beaten &= (costs.value[:, None] < costs.value) | (means[:, None] > means)
    first, second = (places.astype(np.int64) for places in np.nonzero(same & _not_dearer(costs)))

    # Student's t, positive where the first run is better; NaN without spread.
    statistic = paired_t.statistic_of(*paired_t.mean_and_error(better, first, second))
    by, least = np.full(len(means), -1), np.full(len(means), np.nan)

    # The strongest pair of each run last: it is what stays.
    tested = np.flatnonzero(beaten[first, second])
    tested = tested[
        np.argsort(np.where(np.isnan(statistic[tested]), -np.inf, statistic[tested]), kind="stable")
    ]
    strongest = np.full(len(means), -1)
    strongest[second[tested]] = tested
    runs = np.flatnonzero(strongest >= 0)
    by[runs] = first[strongest[runs]]

    freedom = values.shape[1] - 1
    least[runs] = holm_of(statistic, strongest[runs], lambda t: special.stdtr(freedom, -t))

    # Where costs overlap nothing was tested; the best of the runs that beat it by the means is
    # named.
    best = np.where(beaten, means[:, None], -np.inf).argmax(axis=0)
    by = np.where(beaten.any(axis=0) & (by < 0), best, by)
    certain = (least < ALPHA) & (values.shape[1] >= MIN_TOPICS)
    status = np.where(certain, DOMINATED, np.where(beaten.any(axis=0), PERHAPS, ON_FRONTIER))

    return Frontier(status.tolist(), by, least, len(first))


def _not_dearer(costs: Costs) -> Flags:
    """Return whether the run of each row is not dearer than the run of each column."""
    low, high = (np.where(np.isnan(end), costs.value, end) for end in (costs.low, costs.high))
    exact = np.isnan(costs.low) & np.isnan(costs.high)
    plain = exact[:, None] & exact & (costs.value[:, None] <= costs.value)
    found: Flags = plain | (high[:, None] < low)
    return found
