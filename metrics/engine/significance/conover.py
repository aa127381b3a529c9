"""Conover's post-hoc test of Friedman's rank sums."""

from __future__ import annotations

import numpy as np

from metrics.engine.arrays import Ints
from metrics.engine.significance.cautions import FEW_FOR_RANKS, few_topics, untested
from metrics.engine.significance.friedman import rank_by_topic
from metrics.engine.significance.paired_t import mean_interval, t_test
from metrics.engine.significance.pairs import DEFAULTS, Matrix, Options, PairedResult, check


def compare(values: Matrix, first: Ints, second: Ints, options: Options = DEFAULTS) -> PairedResult:
    """Conover's test of each pair's rank sums, with the t interval of each mean difference.

    Formula: t = (R_i - R_j) / sqrt(2 (n A - sum of R^2) / ((n - 1)(k - 1))), R the rank sums, A the
    sum of all squared ranks; (n - 1)(k - 1) degrees of freedom
    Assumes: topics that are independent, and that Friedman's test has found a difference
    Source: Conover, Practical Nonparametric Statistics, 3rd edition, 1999, section 5.8
    Note: p is of the pair alone and wants a correction; it depends on all runs. Identical runs have
    p = 1. Where every topic ranks the runs alike there is nothing to divide by: no statistic and no
    p.
    """
    check(values, "Conover's test", runs=2)
    runs, topics = values.shape
    ranked = rank_by_topic(values)
    freedom = (topics - 1) * (runs - 1)
    residual = topics * ranked.squares - float(np.square(ranked.sums).sum())
    error = np.full(len(first), np.sqrt(2 * max(residual, 0.0) / freedom))
    apart = ranked.sums[first] - ranked.sums[second]
    statistic, p_value = t_test(apart, error, freedom)

    interval = mean_interval(values, first, second, options.confidence)
    exact = np.zeros(len(first), np.bool_)
    cautions = (
        *few_topics(topics, FEW_FOR_RANKS),
        *untested(p_value, "every topic ranks the runs identically"),
    )

    return PairedResult(*interval, statistic, p_value, exact, cautions, apart)
