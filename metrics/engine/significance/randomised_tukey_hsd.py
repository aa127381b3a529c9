"""Tukey's test without a distribution: the values of each topic are shuffled among the runs."""

from __future__ import annotations

import numpy as np

from metrics.engine.arrays import Floats, Ints
from metrics.engine.significance.anova import two_way
from metrics.engine.significance.cautions import few_resamples, few_topics, uneven_spread
from metrics.engine.significance.pair_pass import shuffled_ranges
from metrics.engine.significance.pairs import DEFAULTS, Matrix, Options, PairedResult, check
from metrics.engine.significance.resampling import (
    BLOCK,
    in_threads,
    least_of,
    state_of,
    whole_numbers,
)
from metrics.engine.significance.tukey_hsd import differences_of_means


def compare(values: Matrix, first: Ints, second: Ints, options: Options = DEFAULTS) -> PairedResult:
    """Randomised Tukey HSD of all pairs of the runs at once, with simultaneous intervals of the
    mean differences.

    Formula: p = (1 + the number of resamples in which the largest mean minus the smallest is at
    least |mean(d)|) / (B + 1); a resample shuffles each topic's values among the k runs
    Assumes: under the null hypothesis all k labels of a topic could be exchanged, so that all runs
    have one distribution, whichever it is
    Source: Carterette, TOIS 30(1), 2012; Sakai, Laboratory Experiments in Information Retrieval,
    2018
    Note: p already counts for all pairs of the runs given. Identical runs have p = 1. The statistic
    is the mean difference.
    """
    check(values, "a randomised Tukey test", runs=2)
    whole = whole_numbers(values)
    ranges = np.sort(draw_ranges(whole, options))
    least = least_of(whole, first, second)
    at_least = len(ranges) - np.searchsorted(ranges, least)
    p_value = (at_least + 1) / (len(ranges) + 1)
    difference = differences_of_means(values, first, second)
    reach = np.quantile(ranges, options.confidence, method="higher")
    margin = _unit(values, whole) * reach / values.shape[1]

    # A tie with the end of the range counts for the interval as it does for p.
    margin = np.where(least <= reach, np.maximum(margin, np.abs(difference)), margin)

    # Each pair is held against all pairs at once: one finding needs no correction.
    spread = uneven_spread(two_way(values).residuals)
    cautions = (*few_topics(values.shape[1]), *spread, *few_resamples(options, 1, True))
    exact = np.zeros(len(first), np.bool_)
    return PairedResult(
        difference, difference - margin, difference + margin, difference, p_value, exact, cautions
    )


def draw_ranges(whole: Matrix, options: Options) -> Floats:
    """Return the range of the runs' sums in each resample, in no order."""
    by_topic = np.ascontiguousarray(whole.T, dtype=np.int64)
    ranges = np.empty(options.resamples, np.int64)

    def draw(blocks: range) -> Ints:
        for block in blocks:
            options.watch()
            part = ranges[block * BLOCK : (block + 1) * BLOCK]
            shuffled_ranges(
                by_topic.copy(), state_of(options.seed, block), np.empty(len(whole), np.int64), part
            )

        return np.zeros(1, np.int64)

    in_threads(draw, -(-options.resamples // BLOCK), options.threads)
    return ranges.astype(np.float64)


def _unit(values: Matrix, whole: Matrix) -> float:
    """Return the unit of the whole numbers in the values."""
    largest = np.unravel_index(np.argmax(np.abs(whole)), whole.shape)
    return float(values[largest] / whole[largest]) if whole[largest] else 0.0
