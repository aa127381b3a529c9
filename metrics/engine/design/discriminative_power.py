"""The share of pairs of runs that a measure separates on these topics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from metrics.engine.arrays import Floats
from metrics.engine.significance import TESTS
from metrics.engine.significance.paired_t import mean_and_error
from metrics.engine.significance.pairs import DEFAULTS, Matrix, Options, all_pairs, check


@dataclass(frozen=True)
class DiscriminativePower:
    """The curve of achieved significance levels: every pair's p in descending order; nothing is
    corrected.

    `share` of the pairs has p below alpha. `needed` is the largest difference that any pair needs
    to get there, and `typical` the one that half of the pairs need at most.
    """

    curve: Floats
    share: float
    needed: float
    typical: float


def discriminative_power(
    values: Matrix,
    test: str = "randomised_tukey_hsd",
    alpha: float = 0.05,
    options: Options = DEFAULTS,
) -> DiscriminativePower:
    """Discriminative power over all pairs of the runs.

    Formula: share = pairs with p < alpha / pairs; a pair needs the difference t(n - 1, 1 - alpha /
    2) sd(d) / sqrt(n)
    Source: Sakai, SIGIR 2006 (bootstrap; the difference needed is the largest over the pairs) and
    2018 (randomised Tukey HSD)
    Elsewhere: Sakai finds the critical difference of a pair among its bootstrap samples; here it is
    Student's
    """
    check(values, "discriminative power", runs=2)
    first, second = all_pairs(len(values))

    # A pair that cannot be tested is not separated.
    p_value = np.nan_to_num(TESTS[test].compare(values, first, second, options).p_value, nan=1.0)
    _, error = mean_and_error(values, first, second)
    needed = special.stdtrit(values.shape[1] - 1, 1 - alpha / 2) * error
    share = float(np.mean(p_value < alpha))

    return DiscriminativePower(
        np.sort(p_value)[::-1], share, float(needed.max()), float(np.median(needed))
    )
