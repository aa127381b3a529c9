"""Welch's t test: two samples that are not on the same topics."""

from __future__ import annotations

import numpy as np
from scipy import special

from metrics.engine.ranking import Floats, Ints
from metrics.engine.significance.cautions import constant_differences, few_topics, unpaired
from metrics.engine.significance.paired_t import t_test
from metrics.engine.significance.pairs import DEFAULTS, ROUNDING, Matrix, Options, PairedResult, check
from metrics.engine.significance.tukey_hsd import differences_of_means


def compare(values: Matrix, first: Ints, second: Ints, options: Options = DEFAULTS) -> PairedResult:
    """Two-sided unpaired t test with unequal variances of each pair, with its interval of the difference of means.

    Formula: t = (mean_i - mean_j) / sqrt(e_i + e_j), e = variance / n; (n - 1) (e_i + e_j)^2 / (e_i^2 + e_j^2) degrees
    of freedom
    Assumes: samples of different topics, normal or large
    Source: Welch, Biometrika 34, 1947
    Note: For runs on different topics: on the same ones it misses what a paired test finds.
    """
    check(values, "Welch's t test")
    difference, error, freedom = _parts(values, first, second)
    statistic, p_value = t_test(difference, error, freedom)
    margin = special.stdtrit(freedom, (1 + options.confidence) / 2) * error
    cautions = (*unpaired(), *few_topics(values.shape[1]), *constant_differences(statistic))
    exact = np.zeros(len(first), np.bool_)
    return PairedResult(difference, difference - margin, difference + margin, statistic, p_value, exact, cautions)


def unpaired_interval(values: Matrix, first: Ints, second: Ints, confidence: float) -> tuple[Floats, Floats, Floats]:
    """The difference of means of each pair and both ends of Welch's interval."""
    difference, error, freedom = _parts(values, first, second)
    margin = special.stdtrit(freedom, (1 + confidence) / 2) * error
    return difference, difference - margin, difference + margin


def _parts(values: Matrix, first: Ints, second: Ints) -> tuple[Floats, Floats, Floats]:
    """Difference of means, its standard error and degrees of freedom."""
    topics = values.shape[1]
    deviation = _deviations(values)
    # Divided by the larger first: squares of huge gains would overflow.
    scale = np.maximum(deviation[first], deviation[second])
    scale[scale == 0] = 1.0
    a, b = (np.square(deviation[run] / scale) / topics for run in (first, second))
    total = np.square(a) + np.square(b)
    freedom = np.divide(np.square(a + b) * (topics - 1), total, out=np.ones_like(a), where=total > 0)
    return differences_of_means(values, first, second), np.sqrt(a + b) * scale, freedom


def _deviations(values: Matrix) -> Floats:
    """The standard deviation of each run, 0 where its values agree but for rounding."""
    largest = np.abs(values).max(axis=1, keepdims=True)
    scaled = values / np.where(largest > 0, largest, 1.0)
    deviation = scaled.std(axis=1, ddof=1) * largest[:, 0]
    return np.where(np.ptp(scaled, axis=1) <= ROUNDING, 0.0, deviation)
