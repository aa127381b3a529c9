"""Two systems topic by topic: the difference of their values, and how often each is ahead."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metrics.engine.arrays import Floats

# Values that differ by less than this share of the larger one are equal: they were summed in
# another order.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Differences:
    """`values` is a minus b, shape (topics,), NaN where one of them has no value; those topics
    count nowhere."""

    values: Floats
    wins: int
    ties: int
    losses: int
    undefined: int

    @property
    def influence(self) -> Floats:
        """Return by how much the mean difference changes if a topic is left out; NaN for a topic
        that does not count, or is the only one.

        Formula: (mean(d) - d_i) / (n - 1)
        """
        topics = len(self.values) - self.undefined
        if topics < 2:
            return np.full(len(self.values), np.nan)
        influence: Floats = (np.nanmean(self.values) - self.values) / (topics - 1)
        return influence


def differences(a: Floats, b: Floats, *, lower_is_better: bool = False) -> Differences:
    """How a stands against b; a win is a topic on which a is the better one.

    Source: the precision histogram of Baeza-Yates and Ribeiro-Neto, Modern Information Retrieval,
    chapter 4, for any measure
    """
    values = a - b
    size = np.maximum(np.abs(a), np.abs(b))
    values = np.where(np.abs(values) <= _ROUNDING * size, 0.0, values)
    better = -values if lower_is_better else values
    counts = (better > 0, better == 0, better < 0, np.isnan(better))

    return Differences(values, *(int(np.count_nonzero(chosen)) for chosen in counts))
