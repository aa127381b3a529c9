"""The bootstrap test by the shift method, with the BCa interval of the mean difference."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from scipy import special

from metrics.engine.arrays import Floats, Ints
from metrics.engine.compiled.kernels.sizes import BINS
from metrics.engine.significance.cautions import CONSTANT, few_resamples, few_topics, untested
from metrics.engine.significance.moments import moments_of
from metrics.engine.significance.pair_pass import count_shifted, quantiles
from metrics.engine.significance.pairs import DEFAULTS, Matrix, Options, PairedResult, check
from metrics.engine.significance.resampling import (
    Plan,
    apart_from_huge,
    centred,
    draw_weights,
    in_threads,
    least_of,
    resampled_sums,
    whole_numbers,
)

# The interval reads each resample of each pair: beyond ten thousand its ends move little.
INTERVAL_RESAMPLES, _FEWEST, _VALUES = 10_000, 1_000, 100_000_000
# Standard errors around the mean within which the ends of the interval are searched for.
_REACH = 6.0


def compare(values: Matrix, first: Ints, second: Ints, options: Options = DEFAULTS) -> PairedResult:
    """Two-sided bootstrap test of the mean difference of each pair, with its BCa interval.

    Formula: p = (1 + the number of resamples with |mean(d*) - mean(d)| >= |mean(d)|) / (B + 1), d*
    the differences of n topics drawn with replacement. The interval is that of Efron's BCa method
    Assumes: topics that are a random sample, and enough of them to stand for their population
    Source: Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapters 14 and 16; for
    retrieval Sakai, SIGIR 2006, and Smucker, Allan and Carterette, CIKM 2007 (shift method)
    Note: Identical runs have p = 1. A difference that is the same on every topic is so in every
    resample: no p. The same topics serve all pairs. The statistic is the mean difference. The
    interval takes the first 10,000 resamples at most, fewer from 10,000 pairs on.
    """
    check(values, "a bootstrap test")
    plan = Plan(draw_weights, options.resamples, options.seed, options.threads, options.watch)
    extreme, below = apart_from_huge(values, first, second, partial(_count, plan=plan))
    difference, low, high = _bca(values, first, second, below / (2 * options.resamples), options)
    p_value = np.where(np.isnan(low), np.nan, (extreme + 1) / (options.resamples + 1))
    few = few_topics(
        values.shape[1],
        "so few topics do not represent their population, and the bootstrap finds too many "
        "differences",
    )
    cautions = (*few, *untested(p_value, CONSTANT), *few_resamples(options, len(first), True))

    exact = np.zeros(len(first), np.bool_)
    return PairedResult(difference, low, high, difference, p_value, exact, cautions)


def _count(values: Matrix, first: Ints, second: Ints, plan: Plan) -> Ints:
    """Return how many resamples are as extreme as the observed difference, and twice how many are
    below it; shape (2, pairs)."""
    whole = whole_numbers(values)
    topics = whole.shape[1]
    least = topics * least_of(whole, first, second)
    spread = centred(whole)
    noise = float(topics * topics)

    def count(blocks: range) -> Ints:
        counts = np.zeros((2, len(first)), np.int64)
        for block in blocks:
            count_shifted(
                plan.sums(block, spread),
                plan.remaining(block),
                first,
                second,
                least,
                noise,
                *counts,
            )

        return counts

    return in_threads(count, plan.blocks, plan.threads)


def _bca(
    values: Matrix, first: Ints, second: Ints, below: Floats, options: Options
) -> tuple[Floats, Floats, Floats]:
    """Return the mean difference and the ends of its interval, accelerated by the jackknife."""
    pairs, topics = len(first), values.shape[1]
    moments = moments_of(values, first, second)
    difference, error, skewness = moments.mean, moments.error, moments.skewness

    # The distance of the resamples' median from the observed difference.
    bias = special.ndtri(np.clip(below, 0.5 / options.resamples, 1 - 0.5 / options.resamples))[
        :, None
    ]
    end = special.ndtri((1 + options.confidence) / 2)
    shifted = bias + np.array([-end, end])
    levels = special.ndtr(
        bias + shifted / (1 - skewness[:, None] / (6 * np.sqrt(topics)) * shifted)
    )

    resamples = min(
        options.resamples, max(_FEWEST, min(INTERVAL_RESAMPLES, _VALUES // max(pairs, 1)))
    )
    spread = values - values.mean(axis=1, keepdims=True)
    sums = resampled_sums(spread, Plan(draw_weights, resamples, options.seed))
    ends_of_sums = np.empty((pairs, 2))
    reach = _REACH * topics * error

    def find_quantiles(part: slice) -> None:
        place, bins = np.empty(resamples, np.int32), np.empty(BINS, np.int64)
        quantiles(
            sums,
            first[part],
            second[part],
            reach[part],
            levels[part],
            place,
            bins,
            ends_of_sums[part],
        )

    bounds = np.linspace(0, pairs, options.threads + 1).astype(int)
    with ThreadPoolExecutor(options.threads) as pool:
        list(pool.map(find_quantiles, map(slice, bounds[:-1], bounds[1:])))
    ends = difference[:, None] + ends_of_sums / topics
    ends[(error == 0) & (difference != 0)] = np.nan

    return difference, ends[:, 0], ends[:, 1]
