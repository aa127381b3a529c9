"""How much of the variance of run means goes with a setting, and how much would by chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from metrics.engine.arrays import Floats, Ints
from metrics.engine.explanation.settings import Levels
from metrics.engine.significance.pairs import Matrix, Watch, unwatched
from metrics.engine.significance.resampling import Plan, draw_weights, resampled_sums

PERMUTATIONS, RESAMPLES = 2_000, 1_000
_CONFIDENCE = 0.95
# Permutations that are in memory at once.
_BLOCK = 250
# Shares that differ by less are equal: the same sum in another order.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Associations:
    """One entry per setting: epsilon squared, its interval over samples of the topics, and p."""

    effect: Floats
    low: Floats
    high: Floats
    p_value: Floats


def associate(
    values: Matrix,
    levels: Sequence[Levels],
    *,
    permutations: int = PERMUTATIONS,
    resamples: int = RESAMPLES,
    seed: int = 0,
    watch: Watch = unwatched,
) -> Associations:
    """The share of the variance of run means that goes with the levels of each setting.

    Formula: epsilon^2 = 1 - (n - 1) / (n - k) SS_within / SS_total over n run means in k levels;
    below 0 where the levels explain less than chance would
    Controls: p is the share of permutations of the run means in which the largest epsilon^2 of all
    settings reaches it: without an association any p is below 0.05 in 5 per cent of the cases,
    however many settings there are
    Source: Kelley, PNAS 21, 1935; Westfall and Young, Resampling-Based Multiple Testing, 1993
    Note: The interval has the percentiles over bootstrap samples of the topics, for the same runs.

    Shapes: `values` (runs, topics); each setting has two levels or more, and run means differ.
    """
    indicators = np.vstack([setting.indicators for setting in levels])
    number = np.array([len(setting.labels) for setting in levels])
    means = values.mean(axis=1)
    effect = _shares(indicators, number, means[:, None])[:, 0]

    reached = np.zeros(len(levels), np.int64)
    for block, start in enumerate(range(0, permutations, _BLOCK)):
        watch()
        shuffled = np.tile(means, (min(_BLOCK, permutations - start), 1))
        np.random.default_rng((seed, block, 1)).permuted(shuffled, axis=1, out=shuffled)
        largest = _shares(indicators, number, shuffled.T).max(axis=0)
        reached += (largest[None, :] >= effect[:, None] - _ROUNDING).sum(axis=1)

    sums = resampled_sums(values, Plan(draw_weights, resamples, seed, watch=watch))
    resampled = _shares(indicators, number, sums)

    # A sample of topics on which all runs are equal has no spread to explain.
    resampled = resampled[:, np.isfinite(resampled).all(axis=0)]
    ends = np.full((2, len(levels)), np.nan)
    if resampled.shape[1]:
        tails = [(1 - _CONFIDENCE) / 2, (1 + _CONFIDENCE) / 2]
        ends = np.quantile(resampled, tails, axis=1, method="inverted_cdf")

    return Associations(effect, ends[0], ends[1], (1 + reached) / (1 + permutations))


def has_spread(values: Matrix) -> bool:
    """Return whether the means of the runs differ by more than rounding."""
    means = values.mean(axis=1)
    return bool(np.ptp(means) > _ROUNDING * max(np.abs(means).max(), np.finfo(np.float64).tiny))


def _shares(indicators: Matrix, number: Ints, means: Matrix) -> Matrix:
    """Return epsilon squared of each setting in each column of means (runs, columns); `number` are
    its levels."""
    runs, largest = len(means), float(np.abs(means).max()) or 1.0
    centred = (means - means.mean(axis=0)) / largest
    total = np.square(centred).sum(axis=0)
    sums = np.square(indicators @ centred) / indicators.sum(axis=1)[:, None]

    within = np.maximum(total - np.add.reduceat(sums, np.cumsum(number) - number, axis=0), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares: Matrix = 1 - ((runs - 1) / (runs - number))[:, None] * within / total
    return shares
