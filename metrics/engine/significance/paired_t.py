"""Student's paired t test."""

from __future__ import annotations

import numpy as np
from scipy import special

from metrics.engine.ranking import Floats, Ints
from metrics.engine.significance.cautions import CONSTANT, FEW_FOR_SPREAD, few_topics, skewed, skewness, untested
from metrics.engine.significance.pairs import DEFAULTS, Matrix, Options, PairedResult, check, chunks

_SKEWED = "the t test is approximate; check it against the sign test"


def compare(values: Matrix, first: Ints, second: Ints, options: Options = DEFAULTS) -> PairedResult:
    """Two-sided paired t test of each pair, with the t interval of the mean difference.

    Formula: t = mean(d) / (sd(d) / sqrt(n)), d the per-topic differences, n - 1 degrees of freedom
    Assumes: differences from a normal distribution, or enough topics for their mean to be near one
    Source: Student (1908); for retrieval Hull, SIGIR 1993
    Note: Identical runs have p = 1. A difference that is the same on every topic has no spread: no statistic, no p.
    """
    check(values, "a paired t test")
    topics = values.shape[1]
    difference, error, asymmetry = moments(values, first, second)
    statistic, p_value = t_test(difference, error, topics - 1)
    margin = margin_of(difference, error, topics - 1, options.confidence)
    exact = np.zeros(len(first), np.bool_)
    cautions = (*few_topics(topics, FEW_FOR_SPREAD), *untested(p_value, CONSTANT), *skewed(asymmetry, topics, _SKEWED))
    return PairedResult(difference, difference - margin, difference + margin, statistic, p_value, exact, cautions)


def mean_interval(values: Matrix, first: Ints, second: Ints, confidence: float) -> tuple[Floats, Floats, Floats]:
    """Return the mean difference of each pair and both ends of its t interval."""
    difference, error = mean_and_error(values, first, second)
    margin = margin_of(difference, error, values.shape[1] - 1, confidence)
    return difference, difference - margin, difference + margin


def margin_of(difference: Floats, error: Floats, freedom: int | Floats, confidence: float) -> Floats:
    """Half the width of each t interval; NaN for a difference without spread, of which nothing is known."""
    margin: Floats = special.stdtrit(freedom, (1 + confidence) / 2) * error
    return np.where((error == 0) & (difference != 0), np.nan, margin)


def mean_and_error(values: Matrix, first: Ints, second: Ints) -> tuple[Floats, Floats]:
    """Return the mean difference of each pair and its standard error, 0 where the differences agree but for
    rounding."""
    largest = np.abs(values).max(axis=1)
    parts = [_scaled_moments(values, largest, *chunk)[:2] for chunk in chunks(first, second, values.shape[1])]
    difference, error = (np.concatenate(part) for part in zip(*parts, strict=True))
    return difference, error


def t_test(difference: Floats, error: Floats, freedom: int | Floats) -> tuple[Floats, Floats]:
    """Statistic and two-sided p of each pair; without spread 0 and 1 for no difference, else NaN."""
    spread, statistic = error > 0, statistic_of(difference, error)
    p_value = 2 * special.stdtr(freedom, -np.abs(statistic))
    return statistic, np.where(spread, p_value, np.where(difference == 0, 1.0, np.nan))


def statistic_of(difference: Floats, error: Floats) -> Floats:
    """Student's t of each pair; without spread 0 for no difference, else NaN."""
    spread = error > 0
    statistic = np.full(len(difference), np.nan)
    np.divide(difference, error, out=statistic, where=spread)
    statistic[~spread & (difference == 0)] = 0.0
    return statistic


def moments(values: Matrix, first: Ints, second: Ints) -> tuple[Floats, Floats, Floats]:
    """Mean, standard error and skewness of each pair's differences."""
    largest = np.abs(values).max(axis=1)
    parts = []
    for chunk in chunks(first, second, values.shape[1]):
        difference, error, squares, centred = _scaled_moments(values, largest, *chunk)
        parts.append((difference, error, skewness(squares, centred)))
    difference, error, asymmetry = (np.concatenate(part) for part in zip(*parts, strict=True))
    return difference, error, asymmetry


def _scaled_moments(
    values: Matrix, largest: Floats, first: Ints, second: Ints
) -> tuple[Floats, Floats, Matrix, Matrix]:
    """Mean and standard error of each pair's differences, and the squares of what is left of them without the mean, and
    this itself, both on a scale of their own."""
    # Divided by the largest first: squares of huge gains would overflow.
    scale = np.maximum(largest[first], largest[second])
    scale[scale == 0] = 1.0
    differences = (values[first] - values[second]) / scale[:, None]
    topics = differences.shape[1]
    mean = differences.mean(axis=1)
    centred = differences - mean[:, None]
    squares = np.square(centred)
    error = np.sqrt(squares.sum(axis=1) / (topics - 1) / topics)
    # Differences that agree to the last bits have a spread of rounding errors only.
    noise = 4 * np.finfo(np.float64).eps
    high, low = differences.max(axis=1), differences.min(axis=1)
    mean = np.where(np.maximum(high, -low) <= noise, 0.0, mean)
    error = np.where(high - low <= noise, 0.0, error)
    return mean * scale, error * scale, squares, centred
