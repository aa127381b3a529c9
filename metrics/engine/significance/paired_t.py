"""Student's paired t test."""

from __future__ import annotations

import numpy as np
from scipy import special

from metrics.engine.arrays import Floats, Ints
from metrics.engine.significance.cautions import CONSTANT, FEW_FOR_SPREAD, few_topics, untested
from metrics.engine.significance.moments import means_and_errors, moments_of
from metrics.engine.significance.pairs import (
    DEFAULTS,
    Matrix,
    Options,
    PairedResult,
    Separation,
    Statistics,
    check,
)
from metrics.engine.significance.step_down import significant_by_holm


def compare(values: Matrix, first: Ints, second: Ints, options: Options = DEFAULTS) -> PairedResult:
    """Two-sided paired t test of each pair, with the t interval of the mean difference.

    Formula: t = mean(d) / (sd(d) / sqrt(n)), d the per-topic differences, n - 1 degrees of freedom
    Assumes: differences from a normal distribution, or enough topics for their mean to be near one
    Source: Student (1908); for retrieval Hull, SIGIR 1993
    Note: Identical runs have p = 1. A difference that is the same on every topic has no spread: no
    statistic, no p.
    """
    student = statistics(values, first, second)
    difference, error, freedom = student.difference, student.error, values.shape[1] - 1
    p_value = special.stdtr(freedom, -np.abs(student.statistic))
    p_value *= 2
    margin = margin_of(difference, error, freedom, options.confidence)
    exact = np.zeros(len(first), np.bool_)
    low, high = difference - margin, difference + margin

    return PairedResult(difference, low, high, student.statistic, p_value, exact, student.cautions)


def statistics(values: Matrix, first: Ints, second: Ints) -> Statistics:
    """Return Student's t of each pair, without p. Raise StatisticsError for fewer than 2 topics."""
    check(values, "a paired t test")
    mean, error = means_and_errors(values, first, second)
    statistic = statistic_of(mean, error)
    cautions = (*few_topics(values.shape[1], FEW_FOR_SPREAD), *untested(statistic, CONSTANT))

    return Statistics(mean, error, statistic, cautions)


def separate(values: Matrix, first: Ints, second: Ints, alpha: float) -> Separation:
    """Return which pairs are significant by Holm's correction, without a p of each."""
    student = statistics(values, first, second)
    significant = significant_by_holm(student.statistic, values.shape[1] - 1, alpha)
    return Separation(
        student.difference, significant, np.isnan(student.statistic), student.cautions
    )


def mean_interval(
    values: Matrix, first: Ints, second: Ints, confidence: float
) -> tuple[Floats, Floats, Floats]:
    """Return the mean difference of each pair and both ends of its t interval."""
    difference, error = mean_and_error(values, first, second)
    margin = margin_of(difference, error, values.shape[1] - 1, confidence)
    return difference, difference - margin, difference + margin


def margin_of(
    difference: Floats, error: Floats, freedom: int | Floats, confidence: float
) -> Floats:
    """Return half the width of each t interval; NaN for a difference without spread."""
    margin: Floats = special.stdtrit(freedom, (1 + confidence) / 2) * error
    margin[(error == 0) & (difference != 0)] = np.nan
    return margin


def mean_and_error(values: Matrix, first: Ints, second: Ints) -> tuple[Floats, Floats]:
    """Return the mean difference of each pair and its standard error, 0 where either is
    rounding."""
    moments = moments_of(values, first, second)
    return moments.mean, moments.error


def t_test(difference: Floats, error: Floats, freedom: int | Floats) -> tuple[Floats, Floats]:
    """Return statistic and two-sided p of each pair; without spread 0 and 1 if equal, else NaN."""
    spread, statistic = error > 0, statistic_of(difference, error)
    p_value = 2 * special.stdtr(freedom, -np.abs(statistic))
    return statistic, np.where(spread, p_value, np.where(difference == 0, 1.0, np.nan))


def statistic_of(difference: Floats, error: Floats) -> Floats:
    """Return Student's t of each pair; without spread 0 for no difference, else NaN."""
    spread = error > 0
    if spread.all():
        return difference / error

    statistic = np.full(len(difference), np.nan)
    np.divide(difference, error, out=statistic, where=spread)
    statistic[~spread & (difference == 0)] = 0.0
    return statistic
