"""The moments of the differences of pairs, for hundreds of thousands of pairs at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from metrics.engine.machine_code import Kernel
from metrics.engine.ranking import Floats, Ints
from metrics.engine.significance.pairs import ROUNDING, Matrix

_MODULE = "metrics.engine.kernels.moments"
_PAIRS = "float64[:, ::1], float64[::1], int64[::1], int64[::1]"
_pair_moments = Kernel(
    _MODULE,
    "pair_moments",
    f"void({_PAIRS}, int64[::1], int64[::1], float64[:, ::1], float64[::1], float64[:, ::1])",
)
_count_ties = Kernel(_MODULE, "count_ties", f"void({_PAIRS}, float64, int64[::1])")
KERNELS = (_pair_moments, _count_ties)
# Of the doubles that NumPy adds up in one block.
_BLOCK = 128
_EPSILON = float(np.finfo(np.float64).eps)
# Differences that agree to the last bits have a spread of rounding errors only.
_NOISE = 4 * _EPSILON
# A deviation so much larger than the noise is none of rounding, however many topics are added up.
_CLEAR = 256 * _EPSILON


@dataclass(frozen=True)
class Moments:
    """One entry per pair: the mean of its differences (0 where it is only rounding), its standard error (0 where the
    differences agree but for rounding), and Fisher's skewness (0 without spread)."""

    mean: Floats
    error: Floats
    skewness: Floats


def moments_of(values: Matrix, first: Ints, second: Ints) -> Moments:
    """Return the moments of the first run's values minus the second's; `values` has shape (runs, topics)."""
    values, first, second = _contiguous(values, first, second)
    topics = values.shape[1]
    ends, joins = blocks_of(topics)
    found = np.empty((4, len(first)))
    room = np.empty((2, topics)), np.empty(len(ends))
    _pair_moments(values, _largest(values), first, second, ends, joins, *room, found)
    mean, squares, cubes, scale = found
    error = np.sqrt(squares / (topics - 1) / topics)
    doubtful = np.flatnonzero(squares <= topics * _CLEAR**2)
    if len(doubtful):
        differences = (values[first[doubtful]] - values[second[doubtful]]) / scale[doubtful, None]
        spread = differences.max(axis=1) - differences.min(axis=1)
        error[doubtful] = np.where(spread <= _NOISE, 0.0, error[doubtful])
    # Sums of the same values in another order: nobody is ahead by their last bits.
    mean[np.abs(mean) <= ROUNDING] = 0.0
    second_moment, third = squares / topics, cubes / topics
    varies = second_moment > _EPSILON**2
    skewness = np.divide(
        third, second_moment * np.sqrt(second_moment), out=np.zeros_like(third), where=varies
    )
    return Moments(mean * scale, error * scale, skewness)


def ties_of(values: Matrix, first: Ints, second: Ints) -> Ints:
    """Return on how many topics the runs of each pair have the same value but for rounding."""
    values, first, second = _contiguous(values, first, second)
    ties = np.empty(len(first), np.int64)
    _count_ties(values, _largest(values), first, second, ROUNDING, ties)
    return ties


def _contiguous(values: Matrix, first: Ints, second: Ints) -> tuple[Matrix, Ints, Ints]:
    return (
        np.ascontiguousarray(values, np.float64),
        np.ascontiguousarray(first, np.int64),
        np.ascontiguousarray(second, np.int64),
    )


def _largest(values: Matrix) -> Floats:
    """Return the size of each run's largest value."""
    found: Floats = np.abs(values).max(axis=1)
    return found


@lru_cache(maxsize=64)
def blocks_of(number: int) -> tuple[Ints, Ints]:
    """Return how NumPy adds up so many doubles: where each block ends, and how many sums are joined after it.

    More than 128 doubles are halved, at a multiple of eight, and the sums of the halves added.
    """
    ends, joins = list[int](), list[int]()

    def halve(begin: int, end: int) -> None:
        size = end - begin
        if size <= _BLOCK:
            ends.append(end)
            joins.append(0)
            return
        middle = begin + size // 2 - size // 2 % 8
        halve(begin, middle)
        halve(middle, end)
        joins[-1] += 1

    halve(0, number)
    return np.array(ends, np.int64), np.array(joins, np.int64)
