"""The largest |t| of all pairs: Westfall and Young's step-down test, for runs of unequal spread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from metrics.engine.arrays import Floats, Ints
from metrics.engine.compiled.kernels.sizes import GROUP, TILE
from metrics.engine.significance.cautions import (
    CONSTANT,
    few_resamples,
    few_topics,
    smallest_p,
    untested,
)
from metrics.engine.significance.moments import moments_of
from metrics.engine.significance.pair_pass import begin_maxima, count_maxima, mark_maxima
from metrics.engine.significance.paired_t import statistic_of
from metrics.engine.significance.pairs import (
    DEFAULTS,
    Matrix,
    Options,
    PairedResult,
    check,
    chunks,
    noise_of,
)
from metrics.engine.significance.randomisation import flips
from metrics.engine.significance.resampling import BLOCK, Plan, in_threads

# From so many pairs on, it is cheaper to mark the pairs that may be the largest first.
_MANY = 100_000


def compare(values: Matrix, first: Ints, second: Ints, options: Options = DEFAULTS) -> PairedResult:
    """Step-down test of the largest |t| of the given pairs, with simultaneous intervals of the mean
    differences.

    Formula: the i-th largest |t| of m has p = max over j <= i of (1 + the number of resamples in
    which the largest |t| of the pairs j, ..., m is at least |t_j|) / (B + 1); a resample flips the
    signs of all differences on a random half of the topics. Where 2^n is at most B, all 2^n sign
    patterns are tried instead and p is the share. The intervals are mean(d) +- c sd(d) / sqrt(n), c
    the quantile of the largest |t| of all m
    Assumes: differences that are symmetric where the means are equal: under the null hypothesis all
    of a topic could change their signs together; no distribution, and no common spread
    Source: Westfall and Young, Resampling-Based Multiple Testing, 1993, algorithm 4.1; Romano and
    Wolf, Econometrica 73(4), 2005; for retrieval Boytsov, Belova and Westfall, SIGIR 2013
    Note: p already counts for the given pairs, and steps down: it can be significant where the
    interval, which counts for all of them at once, holds 0. Identical runs have p = 1. A difference
    that is the same on every topic has no spread: no statistic, no p.
    """
    check(values, "a test of the largest t")
    topics = values.shape[1]
    plan, exact = flips(topics, options)
    moments = moments_of(values, first, second)
    difference, error = moments.mean, moments.error
    statistic = statistic_of(difference, error)

    # |t| grows with |sum(d)| / sqrt(sum(d^2)), and a flip does not change the denominator.
    scale = _scales(values, first, second)
    scale[error == 0] = 0.0
    sums = values.sum(axis=1)
    observed = np.abs(sums[first] - sums[second]) * scale

    # Two equal sums can differ by rounding: a sum so little below counts as a tie.
    least = observed - noise_of(values, first, second) * topics * scale
    ascending = np.flatnonzero(scale)[np.argsort(observed[scale > 0], kind="stable")]
    counts, maxima = _count(
        values, first[ascending], second[ascending], scale[ascending], least[ascending], plan
    )
    shares = counts / plan.resamples if exact else (counts + 1) / (plan.resamples + 1)
    p_value = np.where(difference == 0, 1.0, np.nan)
    p_value[ascending[::-1]] = np.maximum.accumulate(shares[::-1])

    reach = np.quantile(maxima, options.confidence, method="higher")
    with np.errstate(divide="ignore"):
        largest = np.sqrt((topics - 1) / np.maximum(topics - reach**2, 0.0)) * reach
        margin = np.where(error > 0, largest * error, np.where(difference == 0, 0.0, np.nan))

    # A tie with the end of the interval counts as it does for p.
    margin = np.where(
        (scale > 0) & (least <= reach), np.maximum(margin, np.abs(difference)), margin
    )
    cautions = (
        *few_topics(topics, smallest_p(2.0 ** (1 - topics))),
        *untested(p_value, CONSTANT),
        *few_resamples(options, 1, not exact),
    )

    exact_flags = np.full(len(first), exact)
    return PairedResult(
        difference,
        difference - margin,
        difference + margin,
        statistic,
        p_value,
        exact_flags,
        cautions,
    )


def _scales(values: Matrix, first: Ints, second: Ints) -> Floats:
    """Return 1 / sqrt(sum(d^2)) of each pair; 0 for identical runs."""
    scales = []
    for a, b in chunks(first, second, values.shape[1]):
        differences = values[a] - values[b]
        # Divide by the largest first: squares of tiny differences would be 0.
        size = np.abs(differences).max(axis=1, initial=0.0)
        divisor = np.where(size > 0, size, 1.0)
        length = divisor * np.sqrt(np.square(differences / divisor[:, None]).sum(axis=1))
        scales.append(np.divide(1.0, length, out=np.zeros_like(length), where=size > 0))

    return np.concatenate(scales)


def _count(
    values: Matrix, first: Ints, second: Ints, scale: Floats, least: Floats, plan: Plan
) -> tuple[Ints, Floats]:
    """Return for each pair in how many resamples the largest distance of the pairs up to it reaches
    its own, and the largest distance of all pairs in each resample."""
    maxima = np.zeros((plan.blocks, BLOCK // TILE, TILE))
    under, over = np.minimum.accumulate(least[::-1])[::-1].copy(), np.maximum.accumulate(least)
    has_many_pairs = len(first) >= max(_MANY, len(values) ** 2 // 8)
    mark = _marker(values, first, second, scale, over) if has_many_pairs else None

    def count(blocks: range) -> Ints:
        counts = np.zeros(len(first) + 1, np.int64)
        bound, since = np.empty(TILE, np.float32), np.empty(TILE, np.int64)
        for block in blocks:
            sums, remaining = plan.sums(block, values), plan.remaining(block)
            size = float(np.abs(sums).max()) or 1.0
            small = (sums / size).astype(np.float32)

            limits = np.zeros((BLOCK // TILE, TILE), np.float32)
            marks = np.full((BLOCK // TILE, len(first) + 8), mark is None, np.uint8)
            if mark:
                mark(small, size, remaining, limits, marks)

            count_maxima(
                sums, small, size, remaining, first, second, scale, least, under, over, limits,
                marks, bound, since, counts, maxima[block],
            )  # fmt: skip

        return counts

    counts = np.cumsum(in_threads(count, plan.blocks, plan.threads))[:-1]
    return counts, maxima.reshape(-1)[: plan.resamples]


def _marker(
    values: Matrix, first: Ints, second: Ints, scale: Floats, over: Floats
) -> Callable[..., None]:
    """Return a function that marks the pairs of a block that may be the largest, and finds the
    limit from which each resample begins."""
    runs = len(values)
    factors = np.zeros((runs, runs))
    factors[first, second] = factors[second, first] = scale
    order = _group_alike(factors)
    rank = np.argsort(order)
    places = np.zeros((runs, runs), np.int32)
    places[rank[first], rank[second]] = places[rank[second], rank[first]] = np.arange(len(first))
    factors = factors[np.ix_(order, order)]

    begins = np.arange(0, runs, GROUP)
    nearest = np.maximum.reduceat(factors, begins, axis=1)
    reached = np.nextafter(np.append(0.0, over[:-1]).astype(np.float32), np.float32(np.inf))
    reached[0] = 0.0

    def mark(small: Any, size: float, remaining: int, limits: Any, marks: Any) -> None:
        low = np.empty((len(begins), TILE), np.float32)
        high = np.empty((len(begins), TILE), np.float32)
        grouped = np.ascontiguousarray(small[:, order])
        scaled, bounds = ((part * size).astype(np.float32) for part in (factors, nearest))
        begin_maxima(grouped, remaining, rank[first], rank[second], scaled, reached, limits)
        mark_maxima(grouped, scaled, bounds, places, reached, low, high, limits, marks)

    return mark


def _group_alike(factors: Floats) -> Ints:
    """Return an order of the runs in which each group has a run and those most similar to it."""
    remaining, order = np.arange(len(factors)), []
    while len(remaining):
        near = np.argsort(-factors[remaining[0], remaining], kind="stable")
        group = remaining[np.append(0, near[near != 0])[:GROUP]]
        order.append(group)
        remaining = np.setdiff1d(remaining, group)

    return np.concatenate(order)
