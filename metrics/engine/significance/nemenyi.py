"""Nemenyi's post-hoc test of Friedman's rank sums."""

from __future__ import annotations

import numpy as np

from metrics.engine.arrays import Ints
from metrics.engine.significance.cautions import FEW_FOR_RANKS, few_topics
from metrics.engine.significance.friedman import rank_by_topic
from metrics.engine.significance.paired_t import mean_interval
from metrics.engine.significance.pairs import DEFAULTS, Matrix, Options, PairedResult, check
from metrics.engine.significance.studentized_range import tail


def compare(values: Matrix, first: Ints, second: Ints, options: Options = DEFAULTS) -> PairedResult:
    """Nemenyi's test of all pairs of the runs at once, with the t interval of each mean difference.

    Formula: q = |mean rank i - mean rank j| / sqrt(k (k + 1) / (12 n)); p is the chance that the
    range of k standard normals exceeds q
    Assumes: topics that are independent; no distribution
    Source: Nemenyi (1963); Demsar, Journal of Machine Learning Research 7, 2006
    Note: p already counts for all pairs of the runs given, and depends on all of them: another run
    can change it. The statistic bears the sign of the difference of ranks. Identical runs have p =
    1.
    """
    check(values, "Nemenyi's test", runs=2)
    runs, topics = values.shape
    means = rank_by_topic(values).sums / topics
    statistic = (means[first] - means[second]) / np.sqrt(runs * (runs + 1) / (12 * topics))
    p_value = tail(np.abs(statistic), runs)
    interval = mean_interval(values, first, second, options.confidence)
    exact = np.zeros(len(first), np.bool_)

    return PairedResult(
        *interval, statistic, p_value, exact, tuple(few_topics(topics, FEW_FOR_RANKS)), statistic
    )
