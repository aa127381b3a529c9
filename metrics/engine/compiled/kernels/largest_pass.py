"""Compiled passes that find the largest |t| of many pairs in every resample; most pairs are
skipped.

Sums of seven digits exclude pairs that cannot be the largest; the exact sums decide the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from metrics.engine.compiled.kernels.sizes import GROUP, LANES, TILE
from metrics.engine.compiled.kernels.words import EIGHT, NONE, ONE, inlined, load_word, rounded

# A distance above any other; the errors of distances of sums of seven digits, and of a largest
# distance.
_NONE, _NEVER, _ROUNDED, _BELOW = np.float32(0), np.float32(1e30), np.float32(1e-6), 1 - 1e-6
# Each resample begins with this many pairs, in ascending order of their observed distance.
_BEGIN = 256


@rounded
def begin_maxima(
    small: Any, resamples: Any, first: Any, second: Any, factors: Any, reached: Any, limits: Any
) -> None:
    """Find in each resample a distance such that every pair with a lower observed distance counts.

    The distance of a pair before which all pairs count is one. A few pairs are enough to find it.
    Shapes: as for `mark_maxima`.
    """
    step = max(1, len(first) // _BEGIN)
    for tile in range(small.shape[0]):
        for at in range(TILE):
            limits[tile, at] = _NONE if tile * TILE + at < resamples else _NEVER
        for pair in range(0, len(first), step):
            a, b, before = np.uint64(first[pair]), np.uint64(second[pair]), reached[pair]
            factor = factors[a, b]
            off = _ROUNDED * factor
            for at in range(TILE):
                limit = limits[tile, at]
                apart = abs(small[tile, a, at] - small[tile, b, at]) * factor - off
                limits[tile, at] = max(limit, apart if before <= limit else _NONE)


@rounded
def mark_maxima(
    small: Any, factors: Any, nearest: Any, places: Any, reached: Any, low: Any, high: Any,
    limits: Any, marks: Any,
) -> None:  # fmt: skip
    """Mark the pairs that `count_maxima` has to read, and raise the limits from which it begins.

    Pairs below the limit of a resample change nothing in it. Runs come in groups of alike ones: a
    run's sum is no further from theirs than from the smallest or the largest of these, times the
    largest factor of the pairs.
    Shapes: `small` (tiles, runs, TILE), sums of at most 1; `factors` and `places` (runs, runs), of
    each pair in both directions what its distance is times and its place in ascending order of what
    was observed, 0 where there is none; `nearest` (runs, groups), the largest factor; `reached`
    (pairs,), the largest distance observed before each; room for `low` and `high` (groups, TILE);
    `limits` (tiles, TILE); `marks` (tiles, pairs), filled with 0.
    """
    runs, groups, size, lanes = (
        np.uint64(small.shape[1]),
        np.uint64(len(low)),
        np.uint64(GROUP),
        np.uint64(LANES),
    )

    for t in range(small.shape[0]):
        tile = np.uint64(t)
        for group in range(groups):
            for at in range(TILE):
                low[group, at], high[group, at] = _NEVER, -_NEVER
            for run in range(group * size, min(runs, (group + ONE) * size)):
                for at in range(TILE):
                    low[group, at] = min(low[group, at], small[tile, run, at])
                    high[group, at] = max(high[group, at], small[tile, run, at])

        for a in range(runs):
            for group in range(a // size, groups):
                bound = nearest[a, group]
                for part in range(NONE, np.uint64(TILE), lanes):
                    above, off = _NONE, _ROUNDED * bound
                    for offset in range(LANES):
                        lane = part + np.uint64(offset)
                        own = small[tile, a, lane]
                        apart = max(high[group, lane] - own, own - low[group, lane])
                        above += max(apart * bound + off - limits[tile, lane], _NONE)

                    if above <= _NONE:
                        continue

                    for b in range(max(a + ONE, group * size), min(runs, (group + ONE) * size)):
                        factor = factors[a, b]
                        above, off = _NONE, _ROUNDED * factor
                        for offset in range(LANES):
                            lane = part + np.uint64(offset)
                            apart = abs(small[tile, a, lane] - small[tile, b, lane])
                            above += max(apart * factor + off - limits[tile, lane], _NONE)

                        if above <= _NONE:
                            continue

                        pair = np.uint64(places[a, b])
                        marks[tile, pair], before = 1, reached[pair]
                        for offset in range(LANES):
                            lane = part + np.uint64(offset)
                            limit = limits[tile, lane]
                            apart = abs(small[tile, a, lane] - small[tile, b, lane]) * factor - off
                            limits[tile, lane] = max(limit, apart if before <= limit else _NONE)


@rounded
def count_maxima(
    sums: Any, small: Any, size: Any, resamples: Any, first: Any, second: Any, scale: Any,
    least: Any, under: Any, over: Any, limits: Any, marks: Any, bound: Any, since: Any,
    counts: Any, maxima: Any,
) -> None:  # fmt: skip
    """Count for each pair in how many resamples any pair up to it is at least so far apart.

    Pairs come in ascending order of what was observed, and their differences of sums times `scale`
    are compared. The largest so far seldom changes: `small`, the sums divided by `size` with seven
    digits, tells where it may.
    Shapes: `sums` and `small` (tiles, runs, TILE); `first`, `second`, `scale` and `least` (pairs,),
    and the smallest `least` from each pair on and the largest up to it, `under` and `over`;
    `limits` (tiles, TILE), where to begin, and `marks` (tiles, pairs + 8), not 0 for pairs to look
    at; room for `bound` and `since` (TILE,); `counts` (pairs + 1,), to which 1 is added where a
    resample begins to count and -1 where it ends; `maxima` (tiles, TILE), the largest of all pairs,
    is overwritten.
    """
    pairs = np.uint64(len(first))
    for tile in range(sums.shape[0]):
        stop = min(TILE, max(0, resamples - tile * TILE))
        for at in range(TILE):
            maxima[tile, at], since[at] = limits[tile, at], 0
            bound[at] = np.float32(limits[tile, at] * _BELOW) if at < stop else _NEVER

        pair = NONE
        while pair < pairs:
            if marks[tile, pair] == 0:
                pair += EIGHT if load_word(marks[tile], pair) == NONE else ONE
                continue

            a, b, factor = (
                np.uint64(first[pair]),
                np.uint64(second[pair]),
                np.float32(scale[pair] * size),
            )

            above, off = _NONE, _ROUNDED * factor
            for at in range(TILE):
                above += max(
                    abs(small[tile, a, at] - small[tile, b, at]) * factor + off - bound[at], _NONE
                )

            if above > _NONE:
                for at in range(stop):
                    apart = abs(sums[tile, a, at] - sums[tile, b, at]) * scale[pair]
                    if apart > maxima[tile, at]:
                        _count(
                            np.uint64(since[at]), pair, maxima[tile, at], least, under, over, counts
                        )
                        maxima[tile, at], since[at] = apart, pair
                        bound[at] = np.float32(apart * _BELOW)

            pair += ONE

        for at in range(stop):
            _count(np.uint64(since[at]), pairs, maxima[tile, at], least, under, over, counts)


@inlined
def _count(
    begin: Any, end: Any, largest: Any, least: Any, under: Any, over: Any, counts: Any
) -> None:
    """Count a resample for pairs from `begin` to before `end` with a least distance up to the
    largest."""
    low, high = begin, end
    while low < high:
        middle = (low + high) >> ONE
        if over[middle] <= largest:
            low = middle + ONE
        else:
            high = middle

    if low > begin:
        counts[begin] += 1
        counts[low] -= 1

    # Distances ascend but for rounding: few pairs are compared one by one.
    while low < end and under[low] <= largest:
        if least[low] <= largest:
            counts[low] += 1
            counts[low + ONE] -= 1
        low += ONE
