"""The paired t test and Tukey's HSD together: a pair is significant where both of them find it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from metrics.engine.arrays import Flags, Floats, Ints
from metrics.engine.significance import paired_t
from metrics.engine.significance.anova import two_way
from metrics.engine.significance.corrections import holm
from metrics.engine.significance.pairs import (
    DEFAULTS,
    Matrix,
    Options,
    PairedResult,
    Separation,
    check,
)
from metrics.engine.significance.step_down import critical_by_holm, significant_by_holm
from metrics.engine.significance.studentized_range import critical, tail
from metrics.engine.significance.verdicts import adjust


@dataclass(frozen=True)
class _Common:
    """The standard error of a difference by the common spread of all runs, and its freedom.

    `runs` is the number of runs if all their pairs are compared, 0 if only some are.
    """

    error: float
    freedom: int
    runs: int

    def statistic(self, difference: Floats) -> Floats:
        return paired_t.statistic_of(difference, np.full(len(difference), self.error))

    def p_value(self, difference: Floats) -> Floats:
        size = np.abs(self.statistic(difference))
        if self.error == 0:
            return np.where(size == 0, 1.0, np.nan)
        if self.runs:
            return tail(np.sqrt(2) * size, self.runs, self.freedom)
        return adjust(2 * special.stdtr(self.freedom, -size), holm)

    def critical(self, difference: Floats, alpha: float) -> float:
        """Return the |t| that significant pairs exceed and no other pair does."""
        if self.runs:
            return critical(alpha, self.runs, self.freedom) / float(np.sqrt(2))
        significant = significant_by_holm(self.statistic(difference), self.freedom, alpha)
        return critical_by_holm(significant, self.freedom, alpha)


def compare(values: Matrix, first: Ints, second: Ints, options: Options = DEFAULTS) -> PairedResult:
    """The paired t test with Holm's correction and Tukey's HSD, both: p is the larger of the two.

    Formula: p = max(Holm's p of t = mean(d) / (sd(d) / sqrt(n)) over the given pairs, Tukey's p of
    all pairs of the runs). Where only some pairs are given, as those with a baseline, t = mean(d) /
    sqrt(2 V / n) with Holm's correction takes Tukey's place: V is the residual variance of runs and
    topics, (k - 1)(n - 1) its degrees of freedom. The interval is the wider of two, mean(d) +- c
    sd(d) / sqrt(n) and Tukey's, or mean(d) +- c' sqrt(2 V / n); c and c' are the critical values at
    which Holm's procedure ends. It leaves out 0 where p is below 1 - confidence
    Controls: any wrong finding, where either test does: t errs where differences are skewed and
    spread little, Tukey's where two runs spread more than the others
    Source: an intersection of tests: Berger, Technometrics 24(4), 1982; Holm (1979); Tukey (1953)
    Note: p already counts for the given pairs. The statistic is Student's t. Identical runs have p
    = 1, two runs the paired t test's. A difference that is the same on every topic has no spread:
    no statistic, no p.
    """
    check(values, "a t test with Tukey's", runs=2)
    student, common = paired_t.statistics(values, first, second), _common(values, first)
    freedom, alpha = values.shape[1] - 1, 1 - options.confidence
    holm_p = adjust(2 * special.stdtr(freedom, -np.abs(student.statistic)), holm)
    p_value = np.maximum(holm_p, common.p_value(student.difference))

    significant = significant_by_holm(student.statistic, freedom, alpha)
    own_margin = critical_by_holm(significant, freedom, alpha) * student.error
    margin = np.maximum(own_margin, common.critical(student.difference, alpha) * common.error)
    margin = np.where(np.isnan(p_value), np.nan, margin)
    low, high = student.difference - margin, student.difference + margin

    exact = np.zeros(len(first), np.bool_)
    return PairedResult(
        student.difference, low, high, student.statistic, p_value, exact, student.cautions
    )


def separate(values: Matrix, first: Ints, second: Ints, alpha: float) -> Separation:
    """Return which pairs are significant by both tests, without a p of each."""
    check(values, "a t test with Tukey's", runs=2)
    student, common = paired_t.statistics(values, first, second), _common(values, first)
    significant: Flags = significant_by_holm(student.statistic, values.shape[1] - 1, alpha)
    significant &= (
        np.abs(student.difference) > common.critical(student.difference, alpha) * common.error
    )
    untested = np.isnan(student.statistic) | np.isnan(common.statistic(student.difference))

    return Separation(student.difference, significant & ~untested, untested, student.cautions)


def _common(values: Matrix, first: Ints) -> _Common:
    parts, runs = two_way(values), len(values)
    error = np.sqrt(2 * parts.residual / parts.freedom / values.shape[1]) * parts.scale
    every_pair = len(first) == runs * (runs - 1) // 2
    return _Common(float(error), parts.freedom, runs if every_pair else 0)
