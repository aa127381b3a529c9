"""The randomisation test of Fisher and Pitman, by sign flips of the differences."""

from __future__ import annotations

from functools import partial

import numpy as np

from metrics.engine.arrays import Ints
from metrics.engine.compiled.kernels.sizes import TILE
from metrics.engine.significance.cautions import few_resamples, few_topics, smallest_p
from metrics.engine.significance.paired_t import mean_interval
from metrics.engine.significance.pairs import DEFAULTS, Matrix, Options, PairedResult, check
from metrics.engine.significance.resampling import (
    BLOCK,
    Plan,
    apart_from_huge,
    count_pairs,
    generator_of,
    least_of,
    whole_numbers,
)


def compare(values: Matrix, first: Ints, second: Ints, options: Options = DEFAULTS) -> PairedResult:
    """Two-sided randomisation test of the mean difference of each pair, with its t interval.

    Formula: p = (1 + the number of resamples with |mean(s d)| >= |mean(d)|) / (B + 1), s a random
    sign for each topic; where 2^n is at most B, all 2^n sign patterns are tried instead and p is
    their share
    Assumes: under the null hypothesis the two labels of a topic could be exchanged; no distribution
    Source: Fisher (1935) and Pitman (1937); for retrieval Smucker, Allan and Carterette, CIKM 2007
    Note: Identical runs have p = 1. The same flips serve all pairs. The statistic is the mean
    difference.
    """
    check(values, "a randomisation test")
    topics = values.shape[1]
    plan, exact = flips(topics, options)
    counts = apart_from_huge(values, first, second, partial(_count, plan=plan))[0]
    p_value = counts / plan.resamples if exact else (counts + 1) / (options.resamples + 1)
    difference, low, high = mean_interval(values, first, second, options.confidence)
    cautions = (
        *few_topics(topics, smallest_p(2.0 ** (1 - topics))),
        *few_resamples(options, len(first), not exact),
    )

    return PairedResult(
        difference, low, high, difference, p_value, np.full(len(first), exact), cautions
    )


def flips(topics: int, options: Options) -> tuple[Plan, bool]:
    """Return a plan of random sign patterns, or one of all patterns if these are at most B; and
    whether it is that of all patterns."""
    if topics >= options.resamples.bit_length():
        return Plan(
            draw_flips, options.resamples, options.seed, options.threads, options.watch
        ), False
    # A pattern and its opposite are equally extreme: the last topic keeps its sign.
    return Plan(_patterns, 2 ** (topics - 1), 0, options.threads, options.watch), True


def _count(values: Matrix, first: Ints, second: Ints, plan: Plan) -> Ints:
    whole = whole_numbers(values)
    return count_pairs(whole, least_of(whole, first, second), first, second, plan)


def draw_flips(seed: int, block: int, topics: int) -> Matrix:
    """Return random signs, 1 or -1, for a block of resamples."""
    generator = generator_of(seed, block)
    bits = np.unpackbits(np.frombuffer(generator.bytes(topics * BLOCK // 8), np.uint8))
    return 2.0 * bits.reshape(-1, topics, TILE).astype(np.float64) - 1.0


def _patterns(seed: int, block: int, topics: int) -> Matrix:
    """Return the sign patterns of a block, in binary order."""
    numbers = (block * BLOCK + np.arange(BLOCK)).reshape(-1, 1, TILE)
    bits = numbers >> np.arange(topics)[:, None] & 1
    return 1.0 - 2.0 * bits.astype(np.float64)
