"""Tukey's honestly significant differences, on the residual of the two-way analysis of variance."""

from __future__ import annotations

import numpy as np

from metrics.engine.arrays import Floats, Ints
from metrics.engine.significance.anova import two_way
from metrics.engine.significance.cautions import FEW_FOR_SPREAD, few_topics, uneven_spread, untested
from metrics.engine.significance.pairs import (
    DEFAULTS,
    Matrix,
    Options,
    PairedResult,
    check,
    noise_of,
)
from metrics.engine.significance.studentized_range import critical, tail

_NO_RESIDUAL = "the runs differ by the same amount on every topic"


def compare(values: Matrix, first: Ints, second: Ints, options: Options = DEFAULTS) -> PairedResult:
    """Tukey's test of all pairs of the runs at once, with simultaneous intervals of the mean
    differences.

    Formula: q = |mean(d)| / sqrt(V / n), V the residual variance of runs and topics, (k - 1)(n - 1)
    degrees of freedom; p is the chance that the studentized range of k means exceeds q
    Assumes: normal residuals of one spread for all runs
    Source: Tukey (1953); for retrieval Carterette, TOIS 30(1), 2012, and Sakai (2018)
    Note: p already counts for all pairs of the runs given, also where only some pairs are asked
    for. The statistic bears the sign of the difference. Identical runs have p = 1. Runs that differ
    by the same on every topic leave no residual: no statistic and no p.
    """
    check(values, "Tukey's test", runs=2)
    parts = two_way(values)
    difference = differences_of_means(values, first, second)
    error = np.sqrt(parts.residual / parts.freedom / values.shape[1]) * parts.scale
    if error > 0:
        statistic = difference / error
        p_value = tail(np.abs(statistic), len(values), parts.freedom)
        margin = critical(1 - options.confidence, len(values), parts.freedom) * error
    else:
        statistic = np.where(difference == 0, 0.0, np.nan)
        p_value = np.where(difference == 0, 1.0, np.nan)
        margin = np.where(difference == 0, 0.0, np.nan)

    cautions = (
        *few_topics(values.shape[1], FEW_FOR_SPREAD),
        *untested(p_value, _NO_RESIDUAL),
        *uneven_spread(parts.residuals),
    )
    exact = np.zeros(len(first), np.bool_)

    return PairedResult(
        difference, difference - margin, difference + margin, statistic, p_value, exact, cautions
    )


def differences_of_means(values: Matrix, first: Ints, second: Ints) -> Floats:
    """Return the difference of each pair, 0 where it is only rounding."""
    means = values.mean(axis=1)
    difference = means[first] - means[second]
    return np.where(np.abs(difference) <= noise_of(values, first, second), 0.0, difference)
