"""The moments of each pair's differences in one compiled pass, where NumPy needs a dozen.

Sums are added up in NumPy's order, so that means and standard errors have the same bits as
NumPy's.
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
    powers: Any,
    sums: Any,
    moments: Any,
) -> None:
    """Compute the mean of each pair's differences, the sums of squares and cubes about it, and the
    scale of all three.

    Differences are divided by the scale first: squares of huge gains would overflow.
    Shapes: `values` (runs, topics); `largest` (runs,), the size of each run's largest value;
    `first` and `second` (pairs,); `ends` and `joins` (blocks,) as of `blocks_of`; room for `powers`
    (2, topics) and `sums` (blocks,); `moments` (4, pairs).
    """
    topics = np.uint64(values.shape[1])
    for pair in range(len(first)):
        a, b = np.uint64(first[pair]), np.uint64(second[pair])
        scale = max(largest[a], largest[b])
        if scale == 0.0:
            scale = 1.0

        for topic in range(topics):
            powers[NONE, topic] = (values[a, topic] - values[b, topic]) / scale
        mean = _sum(powers, NONE, ends, joins, sums) / topics
        for topic in range(topics):
            centred = powers[NONE, topic] - mean
            powers[NONE, topic] = centred * centred
            powers[ONE, topic] = centred * centred * centred

        moments[0, pair], moments[3, pair] = mean, scale
        moments[1, pair] = _sum(powers, NONE, ends, joins, sums)
        moments[2, pair] = _sum(powers, ONE, ends, joins, sums)


@compiled
def count_ties(
    values: Any, largest: Any, first: Any, second: Any, rounding: Any, ties: Any
) -> None:
    """Count the topics on which the runs of each pair have the same value but for rounding.

    Shapes: `values` (runs, topics); `largest` (runs,); `first`, `second` and `ties` (pairs,).
    """
    for pair in range(len(first)):
        a, b = np.uint64(first[pair]), np.uint64(second[pair])
        noise, number = rounding * max(largest[a], largest[b]), 0
        for topic in range(values.shape[1]):
            number += abs(values[a, topic] - values[b, topic]) <= noise
        ties[pair] = number


@inlined
def _sum(values: Any, row: Any, ends: Any, joins: Any, sums: Any) -> Any:
    """Return the sum in NumPy's order: eight sums in parallel within a block, and blocks in
    pairs."""
    begin, depth = NONE, NONE
    for block in range(len(ends)):
        end = np.uint64(ends[block])
        total, at = 0.0, begin
        if end - begin >= EIGHT:
            stop = end - (end - begin) % EIGHT
            r0, r1, r2, r3 = (
                values[row, at],
                values[row, at + ONE],
                values[row, at + TWO],
                values[row, at + THREE],
            )

            r4, r5, r6, r7 = (
                values[row, at + FOUR],
                values[row, at + _FIVE],
                values[row, at + SIX],
                values[row, at + _SEVEN],
            )

            at += EIGHT
            while at < stop:
                r0 += values[row, at]
                r1 += values[row, at + ONE]
                r2 += values[row, at + TWO]
                r3 += values[row, at + THREE]
                r4 += values[row, at + FOUR]
                r5 += values[row, at + _FIVE]
                r6 += values[row, at + SIX]
                r7 += values[row, at + _SEVEN]
                at += EIGHT

            total = ((r0 + r1) + (r2 + r3)) + ((r4 + r5) + (r6 + r7))

        while at < end:
            total += values[row, at]
            at += ONE

        sums[depth] = total
        depth += ONE
        for _ in range(joins[block]):
            depth -= ONE
            sums[depth - ONE] += sums[depth]

        begin = end

    return sums[NONE]
