"""The best of several versions: its mean on other topics, and the best mean of equal versions."""

from __future__ import annotations

import math

import numpy as np

from metrics.engine.arrays import Floats
from metrics.engine.judgement.steps import Matrix

RESAMPLES, HALVES = 1_000, 200
# More random numbers are drawn and used in pieces.
_PIECE = 200_000


def expected_best(values: Matrix, *, lower_is_better: bool = False, seed: int = 0) -> float:
    """Return the expected mean of the best version on topics on which it was not chosen.

    Shape: `values` (versions, topics). The version is chosen on a random half of the topics and
    read on the other one, 200 times. NaN with fewer than two topics.
    """
    topics = values.shape[1]
    if topics < 2:
        return math.nan

    rng = np.random.default_rng(seed)
    on_half = np.argsort(rng.random((HALVES, topics)), axis=1) < topics // 2
    half = on_half.astype(np.float64)
    chosen_on = values @ half.T / (topics // 2)
    read_on = values @ (1 - half).T / (topics - topics // 2)
    best = chosen_on.argmin(axis=0) if lower_is_better else chosen_on.argmax(axis=0)

    return float(read_on[best, np.arange(HALVES)].mean())


def best_so_far(means: Floats, *, lower_is_better: bool = False) -> Floats:
    """Return the best mean up to each version."""
    best: Floats = (np.minimum if lower_is_better else np.maximum).accumulate(means)
    return best


def reach_of_equals(
    values: Matrix,
    *,
    lower_is_better: bool = False,
    share: float = 0.95,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Floats:
    """Return for each version the best mean that as many equal versions reach by chance.

    Shape: `values` (versions, topics). The differences of each version from the first are centred,
    so that all versions are equal, and the topics are resampled; the result is the first mean and,
    in the direction of better values, the `share` quantile of the running maximum.
    """
    sign = -1.0 if lower_is_better else 1.0
    versions, topics = values.shape
    differences = sign * (values - values[0])
    centred = differences - differences.mean(axis=1, keepdims=True)
    rng = np.random.default_rng(seed)

    reached = np.empty((resamples, versions))
    piece = max(1, _PIECE // topics)
    for start in range(0, resamples, piece):
        size = min(piece, resamples - start)
        counts = rng.multinomial(topics, np.full(topics, 1 / topics), size=size)
        reached[start : start + size] = np.maximum.accumulate(counts @ centred.T / topics, axis=1)

    reach: Floats = values[0].mean() + sign * np.quantile(reached, share, axis=0)
    return reach
