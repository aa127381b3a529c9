"""Welch's t test: two samples of different topics."""

from __future__ import annotations

import numpy as np

from metrics.engine.arrays import Floats, Ints
from metrics.engine.errors import StatisticsError
from metrics.engine.significance.cautions import FEW_FOR_SPREAD, few_topics, unpaired, untested
from metrics.engine.significance.paired_t import margin_of, t_test
from metrics.engine.significance.pairs import (
    DEFAULTS,
    ROUNDING,
    Matrix,
    Options,
    PairedResult,
    check,
)
from metrics.engine.significance.tukey_hsd import differences_of_means

_CONSTANT = "no value of either run differs from its mean"


def compare(values: Matrix, first: Ints, second: Ints, options: Options = DEFAULTS) -> PairedResult:
    """Two-sided unpaired t test with unequal variances of each pair, with its interval of the
    difference of means.

    Formula: t = (mean_i - mean_j) / sqrt(e_i + e_j), e = variance / n; (n - 1) (e_i + e_j)^2 /
    (e_i^2 + e_j^2) degrees of freedom
    Assumes: samples of different topics, normal or large
    Source: Welch, Biometrika 34, 1947
    Note: For runs on different topics: on the same ones it misses what a paired test finds. Where
    no value of either run differs from its mean there is no spread: no statistic and no p.
    """
    check(values, "Welch's t test")
    difference, error, freedom = _parts(values, first, second)
    statistic, p_value = t_test(difference, error, freedom)
    margin = margin_of(difference, error, freedom, options.confidence)
    cautions = (
        *unpaired(),
        *few_topics(values.shape[1], FEW_FOR_SPREAD),
        *untested(p_value, _CONSTANT),
    )

    exact = np.zeros(len(first), np.bool_)
    return PairedResult(
        difference, difference - margin, difference + margin, statistic, p_value, exact, cautions
    )


def compare_samples(
    samples: list[Floats], first: Ints, second: Ints, options: Options = DEFAULTS
) -> PairedResult:
    """Return the test of samples of any sizes, such as the sessions of each system.

    Raise StatisticsError for a sample of fewer than two values.
    """
    sizes = np.array([len(sample) for sample in samples], np.int64)
    if len(sizes) < 2 or sizes.min() < 2:
        raise StatisticsError(
            "Welch's t test needs two samples or more, each of two values or more"
        )

    means = np.array([sample.mean() for sample in samples])
    error, freedom = errors_of_samples(samples, first, second)
    difference = means[first] - means[second]
    difference[np.abs(difference) <= ROUNDING * np.abs(means).max()] = 0.0
    statistic, p_value = t_test(difference, error, freedom)
    margin = margin_of(difference, error, freedom, options.confidence)
    cautions = (*few_topics(int(sizes.min()), FEW_FOR_SPREAD), *untested(p_value, _CONSTANT))
    exact = np.zeros(len(first), np.bool_)

    return PairedResult(
        difference, difference - margin, difference + margin, statistic, p_value, exact, cautions
    )


def errors_of_samples(samples: list[Floats], first: Ints, second: Ints) -> tuple[Floats, Floats]:
    """Return the standard error of each difference of means, and its degrees of freedom.

    Samples have two values or more.
    """
    sizes = np.array([len(sample) for sample in samples], np.int64)
    deviation = np.array([_deviations(sample[None, :])[0] for sample in samples])
    return _error(deviation, sizes, first, second)


def unpaired_interval(
    values: Matrix, first: Ints, second: Ints, confidence: float
) -> tuple[Floats, Floats, Floats]:
    """Return the difference of means of each pair and both ends of Welch's interval."""
    difference, error, freedom = _parts(values, first, second)
    margin = margin_of(difference, error, freedom, confidence)
    return difference, difference - margin, difference + margin


def _parts(values: Matrix, first: Ints, second: Ints) -> tuple[Floats, Floats, Floats]:
    """Return the difference of means of each pair, its standard error and degrees of freedom."""
    sizes = np.full(len(values), values.shape[1])
    error, freedom = _error(_deviations(values), sizes, first, second)
    return differences_of_means(values, first, second), error, freedom


def _error(deviation: Floats, sizes: Ints, first: Ints, second: Ints) -> tuple[Floats, Floats]:
    """Return the standard error of each difference of means, and its degrees of freedom."""
    # Divide by the larger first: squares of huge gains would overflow.
    scale = np.maximum(deviation[first], deviation[second])
    scale[scale == 0] = 1.0
    a, b = (np.square(deviation[run] / scale) / sizes[run] for run in (first, second))
    total = np.square(a) / (sizes[first] - 1) + np.square(b) / (sizes[second] - 1)
    freedom = np.divide(np.square(a + b), total, out=np.ones_like(a), where=total > 0)

    return np.sqrt(a + b) * scale, freedom


def _deviations(values: Matrix) -> Floats:
    """Return the standard deviation of each run, 0 where its values agree but for rounding."""
    largest = np.abs(values).max(axis=1, keepdims=True)
    scaled = values / np.where(largest > 0, largest, 1.0)
    deviation = scaled.std(axis=1, ddof=1) * largest[:, 0]
    return np.where(np.ptp(scaled, axis=1) <= ROUNDING, 0.0, deviation)
