"""The moments of the differences of pairs, for hundreds of thousands of pairs at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from metrics.engine.arrays import Floats, Ints
from metrics.engine.compiled.machine_code import Kernel
from metrics.engine.significance.pairs import ROUNDING, Matrix

_MODULE = "metrics.engine.compiled.kernels.moments"
_PAIRS = "float64[:, ::1], float64[::1], int64[::1], int64[::1]"
_pair_moments = Kernel(
    _MODULE,
    "pair_moments",
    f"void({_PAIRS}, int64[::1], int64[::1], float64[:, ::1], float64[::1], float64[:, ::1])",
)
_count_ties = Kernel(_MODULE, "count_ties", f"void({_PAIRS}, float64, int64[::1])")
KERNELS = (_pair_moments, _count_ties)
# The doubles that NumPy adds up in one block.
_BLOCK = 128
_EPSILON = float(np.finfo(np.float64).eps)
# Differences that agree to the last bits have a spread of rounding errors only.
_NOISE = 4 * _EPSILON
# A deviation this much larger than the noise is not rounding, however many topics are added up.
_CLEAR = 256 * _EPSILON
# With so many pairs per run, a product of matrices is faster than a pass over all differences.
_FEW_PAIRS = 4
# Rounding may cost at most a trillionth of the variance of the difference, for each topic.
_LOST = 2e12 * _EPSILON
# A deviation this small compared with the largest value has fewer correct digits.
_FLAT = 1e-6


@dataclass(frozen=True)
class Moments:
    """One entry per pair: the mean of its differences (0 where it is only rounding), its standard
    error (0 where the differences agree but for rounding), and Fisher's skewness (0 without
    spread)."""

    mean: Floats
    error: Floats
    skewness: Floats


def moments_of(values: Matrix, first: Ints, second: Ints) -> Moments:
    """Return the moments of the first run's values minus the second's; `values` (runs, topics)."""
    values, first, second = _contiguous(values, first, second)
    topics = values.shape[1]
    ends, joins = blocks_of(topics)
    rows = np.empty((4, len(first)))
    working_space = np.empty((2, topics)), np.empty(len(ends))
    _pair_moments(values, _largest(values), first, second, ends, joins, *working_space, rows)
    mean, squares, cubes, scale = rows
    error = np.sqrt(squares / (topics - 1) / topics)

    doubtful = np.flatnonzero(squares <= topics * _CLEAR**2)
    if len(doubtful):
        differences = (values[first[doubtful]] - values[second[doubtful]]) / scale[doubtful, None]
        spread = differences.max(axis=1) - differences.min(axis=1)
        error[doubtful] = np.where(spread <= _NOISE, 0.0, error[doubtful])

    # Sums of the same values in another order differ in their last bits: that is no difference.
    mean[np.abs(mean) <= ROUNDING] = 0.0
    second_moment, third = squares / topics, cubes / topics
    varies = second_moment > _EPSILON**2
    skewness = np.divide(
        third, second_moment * np.sqrt(second_moment), out=np.zeros_like(third), where=varies
    )

    return Moments(mean * scale, error * scale, skewness)


def means_and_errors(values: Matrix, first: Ints, second: Ints) -> tuple[Floats, Floats]:
    """Return the mean of each pair's differences and its standard error, as `moments_of` does.

    Formula: var(a - b) = var(a) + var(b) - 2 cov(a, b), of many pairs by one product of matrices,
    within 1e-12 of the standard error. Where the runs of a pair are so alike that the subtraction
    would lose more digits, where their spread is small beside their values, and where their means
    are equal but for rounding, the differences themselves are added up
    """
    runs, topics = values.shape
    if len(first) < _FEW_PAIRS * runs:
        moments = moments_of(values, first, second)
        return moments.mean, moments.error

    means, largest = values.mean(axis=1), _largest(values)
    # Values too large or too small to be squared have no finite or no positive variance, and are
    # added up below.
    with np.errstate(over="ignore", invalid="ignore"):
        centred = values - means[:, None]
        products = centred @ centred.T
        squares = products.diagonal()
        spread = products.take(first * runs + second)
        spread *= -2
        spread += squares[first]
        spread += squares[second]
        bound = np.sqrt(topics) * _LOST * squares + topics * np.square(_FLAT * largest)
        clear = spread > 2 * bound.max()

    mean = means[first]
    mean -= means[second]
    clear &= np.abs(mean) > ROUNDING * largest.max()
    doubtful = np.flatnonzero(~clear)
    with np.errstate(invalid="ignore"):
        own_bound = bound[first[doubtful]] + bound[second[doubtful]]
        clear = spread[doubtful] > own_bound

    clear &= np.abs(mean[doubtful]) > ROUNDING * largest.max()
    doubtful = doubtful[~clear]
    spread[doubtful] = 0.0
    spread /= (topics - 1) * topics

    error = np.sqrt(spread, out=spread)
    if len(doubtful):
        moments = moments_of(values, first[doubtful], second[doubtful])
        mean[doubtful], error[doubtful] = moments.mean, moments.error

    return mean, error


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
    largest: Floats = np.abs(values).max(axis=1)
    return largest


@lru_cache(maxsize=64)
def blocks_of(number: int) -> tuple[Ints, Ints]:
    """Return NumPy's order of addition: the end of each block, and how many sums are then joined.

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
