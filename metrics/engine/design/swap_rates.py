"""How often two sets of topics disagree about which of two runs is better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from metrics.engine.arrays import Floats, Ints
from metrics.engine.errors import StatisticsError
from metrics.engine.significance.pairs import Matrix, all_pairs, check
from metrics.engine.significance.resampling import generator_of


@dataclass(frozen=True)
class SwapRates:
    """The comparisons by their difference, and how many of them a second topic set reversed.

    Shapes: `sizes` (sizes,), topics of each of both sets; `edges` (bins,), where each bin begins,
    the last one being open; `compared` and `swapped` (sizes, bins).
    """

    sizes: Ints
    edges: Floats
    compared: Ints
    swapped: Ints

    @property
    def rates(self) -> Matrix:
        """Return the share that was reversed, NaN for a bin without a comparison."""
        rates: Matrix = np.full(self.swapped.shape, np.nan)
        return np.divide(self.swapped, self.compared, out=rates, where=self.compared > 0)

    def needed(self, rate: float = 0.05) -> Floats:
        """Return for each size the difference from which on no bin was reversed more often than
        `rate`; infinite if there is none."""
        too_often = np.nan_to_num(self.rates, nan=0.0) > rate
        last = np.where(
            too_often.any(axis=1), len(self.edges) - np.argmax(too_often[:, ::-1], axis=1), 0
        )
        return np.append(self.edges, np.inf)[last]


def swap_rates(
    values: Matrix,
    sizes: Sequence[int],
    *,
    trials: int = 50,
    seed: int = 0,
    width: float = 0.01,
    bins: int = 21,
) -> SwapRates:
    """Swap rates for topic sets of some sizes: both sets are drawn apart, `trials` times, without
    replacement.

    Formula: of the comparisons whose difference of means on the first set falls into a bin, the
    share in which the second set has the runs the other way round
    Source: Voorhees and Buckley, SIGIR 2002
    Raises StatisticsError for a size that is more than half of the topics.
    """
    check(values, "a swap rate", runs=2)
    topics = values.shape[1]
    for size in sizes:
        if not 1 <= size <= topics // 2:
            message = (
                f"two sets of {size} topics do not fit into {topics}: sizes go from 1 to "
                f"{topics // 2}"
            )
            raise StatisticsError(message, code="bad_parameter", pointer="sizes")

    compared, swapped = (np.zeros((len(sizes), bins), np.int64) for _ in range(2))
    for row, size in enumerate(sizes):
        for trial in range(trials):
            order = generator_of(seed, trial).permutation(topics)
            first, second = (
                _differences(values[:, part]) for part in (order[:size], order[size : 2 * size])
            )

            bin_of = np.minimum(np.abs(first) / width, bins - 1).astype(np.int64)
            apart = first != 0
            compared[row] += np.bincount(bin_of[apart], minlength=bins)
            swapped[row] += np.bincount(bin_of[first * second < 0], minlength=bins)

    return SwapRates(
        np.array(sizes, np.int64), width * np.arange(bins, dtype=np.float64), compared, swapped
    )


def _differences(values: Matrix) -> Floats:
    first, second = all_pairs(len(values))
    means = values.mean(axis=1)
    differences: Floats = means[first] - means[second]
    return np.where(np.abs(differences) <= 1e-12 * np.abs(means).max(), 0.0, differences)
