"""The moments of each pair's differences in one compiled pass: what NumPy needs a dozen passes over
all values for.

Sums are added up in NumPy's order, so that means and standard errors have the very bits that
NumPy's have.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from metrics.engine.compiled.kernels.words import (
    EIGHT,
    FOUR,
    NONE,
    ONE,
    SIX,
    THREE,
    TWO,
    compiled,
    inlined,
)

_FIVE, _SEVEN = np.uint64(5), np.uint64(7)


@compiled
def pair_moments(
    values: Any,
    largest: Any,
    first: Any,
    second: Any,
    ends: Any,
    joins: Any,
    held: Any,
    sums: Any,
    found: Any,
) -> None:
    """Of each pair's differences the mean, the sum of squares about it and that of cubes, and the
    scale of all three.

    Differences are divided by the scale first: squares of huge gains would overflow.
    Shapes: `values` (runs, topics); `largest` (runs,), the size of each run's largest value;
    `first` and `second` (pairs,); `ends` and `joins` (blocks,) as of `blocks_of`; room for `held`
    (2, topics) and `sums` (blocks,); `found` (4, pairs).
    """
    topics = np.uint64(values.shape[1])
    for pair in range(len(first)):
        a, b = np.uint64(first[pair]), np.uint64(second[pair])
        scale = max(largest[a], largest[b])
        if scale == 0.0:
            scale = 1.0

        for topic in range(topics):
            held[NONE, topic] = (values[a, topic] - values[b, topic]) / scale
        mean = _sum(held, NONE, ends, joins, sums) / topics
        for topic in range(topics):
            centred = held[NONE, topic] - mean
            held[NONE, topic] = centred * centred
            held[ONE, topic] = centred * centred * centred

        found[0, pair], found[3, pair] = mean, scale
        found[1, pair] = _sum(held, NONE, ends, joins, sums)
        found[2, pair] = _sum(held, ONE, ends, joins, sums)


@compiled
def count_ties(
    values: Any, largest: Any, first: Any, second: Any, rounding: Any, ties: Any
) -> None:
    """On how many topics the runs of each pair have the same value but for rounding, a share of
    their largest value.

    Shapes: `values` (runs, topics); `largest` (runs,); `first`, `second` and `ties` (pairs,).
    """
    for pair in range(len(first)):
        a, b = np.uint64(first[pair]), np.uint64(second[pair])
        noise, many = rounding * max(largest[a], largest[b]), 0
        for topic in range(values.shape[1]):
            many += abs(values[a, topic] - values[b, topic]) <= noise
        ties[pair] = many


@inlined
def _sum(held: Any, row: Any, ends: Any, joins: Any, sums: Any) -> Any:
    """Add up in NumPy's order: eight sums side by side within a block, and blocks in pairs."""
    begin, depth = NONE, NONE
    for block in range(len(ends)):
        end = np.uint64(ends[block])
        total, at = 0.0, begin
        if end - begin >= EIGHT:
            stop = end - (end - begin) % EIGHT
            r0, r1, r2, r3 = (
                held[row, at],
                held[row, at + ONE],
                held[row, at + TWO],
                held[row, at + THREE],
            )

            r4, r5, r6, r7 = (
                held[row, at + FOUR],
                held[row, at + _FIVE],
                held[row, at + SIX],
                held[row, at + _SEVEN],
            )

            at += EIGHT
            while at < stop:
                r0 += held[row, at]
                r1 += held[row, at + ONE]
                r2 += held[row, at + TWO]
                r3 += held[row, at + THREE]
                r4 += held[row, at + FOUR]
                r5 += held[row, at + _FIVE]
                r6 += held[row, at + SIX]
                r7 += held[row, at + _SEVEN]
                at += EIGHT

            total = ((r0 + r1) + (r2 + r3)) + ((r4 + r5) + (r6 + r7))

        while at < end:
            total += held[row, at]
            at += ONE

        sums[depth] = total
        depth += ONE
        for _ in range(joins[block]):
            depth -= ONE
            sums[depth - ONE] += sums[depth]

        begin = end

    return sums[NONE]
