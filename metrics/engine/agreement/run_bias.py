"""What other judgements do to runs: verdicts that change, and runs that they favour."""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np

from metrics.engine.arrays import Flags, Floats, Ints

# Standardised residuals beyond this are worth a look.
OUTLYING = 2.0
# Fewer runs leave no residual of the regression.
_LEAST_RUNS = 4


@dataclass(frozen=True)
class VerdictChanges:
    """Pairs of runs that differ significantly under the reference, by their other verdict.

    `same` and `reversed` are significant under both judgements, `lost` is not under the others.
    `gained` is significant under the others alone, out of `pairs`.
    """

    pairs: int
    same: int
    lost: int
    reversed: int
    gained: int

    @property
    def significant(self) -> int:
        """Return the number of pairs that are significant under the reference."""
        return self.same + self.lost + self.reversed


def verdict_changes(reference: Ints, others: Ints) -> VerdictChanges:
    """Count verdicts of the same pairs under two sets of judgements.

    Shapes: (pairs,), 1 where the first run is significantly better, -1 where worse, else 0.
    """
    product = reference * others
    return VerdictChanges(
        pairs=len(reference),
        same=int((product > 0).sum()),
        lost=int(((reference != 0) & (others == 0)).sum()),
        reversed=int((product < 0).sum()),
        gained=int(((reference == 0) & (others != 0)).sum()),
    )


def standardised_residuals(values: Floats, differences: Floats) -> Floats:
    """Return the residuals of the regression of differences on values, each over its error.

    Formula: r_i / (s sqrt(1 - h_i)), r the residuals of least squares with an intercept, s^2 = sum
    r^2 / (n - 2), h_i = 1/n + (x_i - x)^2 / sum (x - x)^2 (internally studentised)
    Undefined (NaN): fewer than four runs, values without spread, and differences on one line
    Source: Cook and Weisberg, Residuals and Influence in Regression, 1982
    """
    runs = len(values)
    centred = values - values.mean()
    squares = float(centred @ centred)
    if runs < _LEAST_RUNS or squares == 0:
        return np.full(runs, np.nan)

    slope = float(centred @ differences) / squares
    residuals: Floats = differences - differences.mean() - slope * centred
    spread = float(residuals @ residuals) / (runs - 2)
    leverage = 1 / runs + centred**2 / squares
    # Differences on one line leave residuals of rounding alone.
    if spread <= 1e-24 * max(1.0, float(differences @ differences)):
        return np.full(runs, np.nan)

    error = np.sqrt(spread * np.maximum(1 - leverage, 0.0))
    studentised: Floats = np.full(runs, np.nan)
    np.divide(residuals, error, out=studentised, where=error > 0)
    return studentised


@dataclass(frozen=True)
class GroupDifference:
    """The mean difference of a group of runs minus that of the others, and its p value.

    `p_value` is NaN where a group is empty; `exact` says that all divisions of the runs were tried.
    """

    runs: int
    others: int
    difference: float
    p_value: float
    exact: bool


def group_difference(
    differences: Floats, group: Flags, resamples: int, seed: int
) -> GroupDifference:
    """Test by permutation whether a group of runs is favoured: differences are exchangeable.

    Two-sided. All divisions of the runs into groups of these sizes are tried if there are at most
    `resamples`, else so many random ones.

    Source: Good, Permutation, Parametric and Bootstrap Tests of Hypotheses, 3rd edition 2005
    """
    first, second = differences[group], differences[~group]
    if not len(first) or not len(second):
        return GroupDifference(len(first), len(second), np.nan, np.nan, exact=False)

    # It takes half a second to import.
    from scipy.stats import permutation_test

    result = permutation_test(
        (first, second),
        lambda a, b, axis: np.mean(a, axis=axis) - np.mean(b, axis=axis),
        vectorized=True,
        n_resamples=resamples,
        rng=np.random.default_rng(seed),
    )
    exact = comb(len(differences), len(first)) <= resamples
    return GroupDifference(
        len(first), len(second), float(result.statistic), float(result.pvalue), exact
    )
