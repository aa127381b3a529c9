"""Compiled passes over pairs of runs and resamples: the sum of differences in every resample.

Sums are of whole numbers in doubles (see `resampling`): the order of adding changes nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from metrics.engine.compiled.kernels.sizes import BINS, TILE
from metrics.engine.compiled.kernels.words import NONE, ONE, THREE, TWO, compiled, inlined

_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)
_ELEVEN, _TURN, _BACK = np.uint64(11), np.uint64(24), np.uint64(40)


@compiled
def add_up(values: Any, weights: Any, sums: Any) -> None:
    """Compute each run's weighted sum in each resample, like BLAS but without its threads.

    Shapes: `values` (runs, topics), `weights` (tiles, topics, TILE), `sums` (tiles, runs, TILE),
    which is overwritten.
    """
    whole = values.shape[1] - values.shape[1] % 4
    for tile in range(sums.shape[0]):
        for run in range(sums.shape[1]):
            for at in range(TILE):
                sums[tile, run, at] = 0.0
            # Four topics at a time: each sum is loaded and stored a quarter as often.
            for topic in range(0, whole, 4):
                t = np.uint64(topic)
                a, b = values[run, t], values[run, t + ONE]
                c, d = values[run, t + TWO], values[run, t + THREE]
                for at in range(TILE):
                    sums[tile, run, at] += (
                        a * weights[tile, t, at] + b * weights[tile, t + ONE, at]
                    ) + (c * weights[tile, t + TWO, at] + d * weights[tile, t + THREE, at])

            for topic in range(whole, values.shape[1]):
                e = values[run, topic]
                for at in range(TILE):
                    sums[tile, run, at] += e * weights[tile, topic, at]


@compiled
def count_extreme(
    sums: Any, resamples: Any, first: Any, second: Any, least: Any, counts: Any
) -> None:
    """Add to `counts` in how many of the first resamples two sums are at least so far apart.

    Shapes: `sums` (tiles, runs, TILE); `first`, `second`, `least` and `counts` (pairs,).
    """
    for tile in range(sums.shape[0]):
        stop = min(TILE, max(0, resamples - tile * TILE))
        for pair in range(len(first)):
            a, b, bound = np.uint64(first[pair]), np.uint64(second[pair]), least[pair]
            number = 0
            for at in range(stop):
                number += abs(sums[tile, a, at] - sums[tile, b, at]) >= bound
            counts[pair] += number


@compiled
def count_shifted(
    sums: Any,
    resamples: Any,
    first: Any,
    second: Any,
    least: Any,
    noise: Any,
    counts: Any,
    below: Any,
) -> None:
    """Count as `count_extreme`, and add to `below` twice how often the first run's sum is lower.

    Sums no further apart than `noise` count once. Shapes: as for `count_extreme`, `below` (pairs,).
    """
    for tile in range(sums.shape[0]):
        stop = min(TILE, max(0, resamples - tile * TILE))
        for pair in range(len(first)):
            a, b, bound = np.uint64(first[pair]), np.uint64(second[pair]), least[pair]
            number, less, no_more = 0, 0, 0
            for at in range(stop):
                apart = sums[tile, a, at] - sums[tile, b, at]
                number += abs(apart) >= bound
                less += apart < -noise
                no_more += apart <= noise

            counts[pair] += number
            below[pair] += less + no_more


@compiled
def quantiles(
    sums: Any, first: Any, second: Any, reach: Any, levels: Any, place: Any, bins: Any, ends: Any
) -> None:  # fmt: skip
    """Compute two quantiles of each pair's differences of sums, interpolated within narrow bins.

    Shapes: `sums` (runs, resamples); `levels`, from 0 to 1, and `ends` (pairs, 2); `reach`
    (pairs,), where the outermost bins are; room for `place` (resamples,) and `bins` (BINS,).
    """
    size = np.uint64(sums.shape[1])
    for pair in range(len(first)):
        a, b, low = np.uint64(first[pair]), np.uint64(second[pair]), -reach[pair]
        scale = BINS / (-2 * low) if low < 0 else 0.0
        for at in range(size):
            inside = (sums[a, at] - sums[b, at] - low) * scale
            inside = max(0.0, inside)
            place[at] = np.int32(min(BINS - 1.0, inside))

        bins[:] = 0
        for at in range(size):
            bins[np.uint32(place[at])] += 1
        for side in range(2):
            ends[pair, side] = (
                low + _place(bins, levels[pair, side] * size) / scale if scale else 0.0
            )


@inlined
def _place(bins: Any, count: Any) -> Any:
    """Return the position in the bins below which there are `count` values."""
    below, index = 0.0, NONE
    while index + ONE < np.uint64(BINS) and below + bins[index] < count:
        below += bins[index]
        index += ONE

    inside = (count - below) / bins[index] if bins[index] else 0.0
    return np.float64(index) + min(max(inside, 0.0), 1.0)


@inlined
def _next(a: Any, b: Any, c: Any, counter: Any) -> Any:
    """Return 64 random bits and the next state of the generator: SFC64 of Doty-Humphrey, as in
    NumPy."""
    bits = a + b + counter
    return (
        bits,
        b ^ (b >> _ELEVEN),
        c + (c << THREE),
        ((c << _TURN) | (c >> _BACK)) + bits,
        counter + ONE,
    )


@compiled
def draw(state: Any, words: Any) -> None:
    """Fill `words` with the next words of a generator in this state."""
    a, b, c, counter = state[0], state[1], state[2], state[3]
    for at in range(len(words)):
        words[at], a, b, c, counter = _next(a, b, c, counter)


@compiled
def draw_topics(state: Any, weights: Any) -> None:
    """Add to each resample as many draws of topics, with replacement, as there are topics.

    Shapes: `state` (4,); `weights` (tiles, topics, TILE).
    """
    a, b, c, counter = state[0], state[1], state[2], state[3]
    topics = np.uint64(weights.shape[1])
    for tile in range(weights.shape[0]):
        for at in range(weights.shape[2]):
            for _ in range(topics):
                bits, a, b, c, counter = _next(a, b, c, counter)
                weights[tile, ((bits >> _HALF) * topics) >> _HALF, at] += 1.0


@compiled
def shuffled_ranges(values: Any, state: Any, sums: Any, ranges: Any) -> None:
    """Compute the range of the runs' sums in each resample, which shuffles each topic's values.

    Shapes: `values` (topics, runs), whole numbers, are shuffled in place; `state` (4,); room for
    `sums` (runs,); `ranges` (resamples,).
    """
    a, b, c, counter = state[0], state[1], state[2], state[3]
    topics, runs = np.uint64(values.shape[0]), np.uint64(values.shape[1])
    for resample in range(len(ranges)):
        sums[:] = 0
        for topic in range(topics):
            at, last, bits = np.uint64(topic), runs - ONE, NONE
            fresh = True
            while last > NONE:
                # Thirty-two bits for a place: uneven by less than runs / 2^32.
                if fresh:
                    bits, a, b, c, counter = _next(a, b, c, counter)
                else:
                    bits >>= _HALF

                fresh = not fresh
                place = ((bits & _LOW) * (last + ONE)) >> _HALF
                value = values[at, place]
                values[at, place] = values[at, last]
                values[at, last] = value
                sums[last] += value
                last -= ONE

            sums[NONE] += values[at, NONE]

        lowest, highest = sums[NONE], sums[NONE]
        for run in range(runs):
            lowest, highest = min(lowest, sums[run]), max(highest, sums[run])
        ranges[resample] = highest - lowest
