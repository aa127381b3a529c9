"""Wilcoxon's signed rank test."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import special

from metrics.engine.arrays import Flags, Floats, Ints
from metrics.engine.significance.cautions import few_topics, smallest_p, ties_lost_to_rounding
from metrics.engine.significance.midranks import midranks
from metrics.engine.significance.paired_t import mean_interval
from metrics.engine.significance.pairs import (
    DEFAULTS,
    Matrix,
    Options,
    PairedResult,
    check,
    chunks,
    noise_of,
)

# p is exact up to so many topics: by the table of the distribution and, with ties or zeros, by all
# signs.
_TABLE, _EVERY_SIGN = 50, 13
_ONE = np.uint64(1)


def compare(values: Matrix, first: Ints, second: Ints, options: Options = DEFAULTS) -> PairedResult:
    """Two-sided signed rank test of each pair, with the t interval of the mean difference.

    Formula: W = the smaller of the sums of the ranks of |d| over positive and over negative
    differences, ties sharing the middle of their ranks. p is exact up to 50 topics where no
    difference is zero and none tie, and up to 13 differences other than zero in any case; else
    normal with the variance corrected for ties and no correction for continuity
    Assumes: differences that scatter symmetrically about their median
    Source: Wilcoxon, Biometrics Bulletin 1(6), 1945; zeros='pratt': Pratt, JASA 54, 1959
    Elsewhere: SciPy takes the normal distribution where zeros leave 13 differences or fewer of more
    topics; for it 0.3 - 0.2 and 0.4 - 0.3 do not tie, as their last bits differ; so by default
    here, with a caution, and ties='rounded' makes them tie
    Note: Identical runs have p = 1. Zero differences are dropped before ranking, or after it for
    zeros='pratt'.
    """
    check(values, "Wilcoxon's test")
    parts = [_compare(values, *chunk, options) for chunk in chunks(first, second, values.shape[1])]
    ranked = _Ranked(*(np.concatenate(part) for part in zip(*parts, strict=True)))
    interval = mean_interval(values, first, second, options.confidence)
    few = few_topics(values.shape[1], smallest_p(2.0 ** (1 - values.shape[1])))
    cautions = (*few, *ties_lost_to_rounding(int(ranked.lost_ties.sum())))

    return PairedResult(
        *interval, ranked.statistic, ranked.p_value, ranked.exact, cautions, ranked.direction
    )


class _Ranked(NamedTuple):
    """One entry per pair; ties are lost if differences are unequal by rounding only."""

    statistic: Floats
    direction: Floats
    p_value: Floats
    exact: Flags
    lost_ties: Flags


def _compare(values: Matrix, first: Ints, second: Ints, options: Options) -> _Ranked:
    topics, pratt = values.shape[1], options.zeros == "pratt"
    noise, differences = noise_of(values, first, second), values[first] - values[second]
    if options.ties == "rounded":
        differences = np.where(np.abs(differences) <= noise[:, None], 0.0, differences)

    sizes, negative = _sorted(differences)
    steps = np.diff(sizes, axis=1, prepend=0.0)
    lost_ties: Flags = np.any(
        (steps > 0) & (steps <= noise[:, None]) & (options.ties == "exact"), axis=1
    )
    tied = steps[:, 1:] <= (noise[:, None] if options.ties == "rounded" else 0.0)
    ranks, ties, zeros = _ranks(sizes, tied, pratt)
    negative_sum = np.einsum("ij,ij->i", ranks, negative)

    remaining = topics - zeros
    skipped = zeros if pratt else np.zeros_like(zeros)
    if pratt:
        total = (topics * (topics + 1) - skipped * (skipped + 1)) / 2
    else:
        total = remaining * (remaining + 1) / 2
    statistic = np.minimum(negative_sum, total - negative_sum)
    p_value = _normal(statistic, topics if pratt else remaining, skipped, ties)

    # Exact p take the place of those by the normal distribution.
    clean = (ties == 0) & (zeros == 0) & (topics <= _TABLE)
    if clean.any():
        p_value[clean] = _table(topics)[statistic[clean].astype(np.int64)]

    # Zeros come before all others, and have no sign to try.
    few = ~clean & (remaining <= _EVERY_SIGN)
    if few.any():
        p_value[few] = _every_sign(ranks[few, -_EVERY_SIGN:], statistic[few])

    return _Ranked(statistic, total - 2 * negative_sum, p_value, clean | few, lost_ties)


def _sorted(differences: Matrix) -> tuple[Matrix, Matrix]:
    """Return the sizes of each row's differences in ascending order, and which are negative."""
    # One key for size and sign: the bits of |d|, then the sign bit. Zero minus zero has none.
    bits = differences.view(np.uint64)
    keys = np.sort((bits << _ONE) | (bits >> np.uint64(63)), axis=1)
    return (keys >> _ONE).view(np.float64), (keys & _ONE).astype(np.float64)


def _ranks(sizes: Matrix, tied: Flags, pratt: bool) -> tuple[Matrix, Floats, Floats]:
    """Return the ranks of sorted sizes, 0 for zeros, the tie term, and the number of zeros.

    Places are ranks, except for ties and zeros.
    """
    zero = sizes == 0
    zeros = np.count_nonzero(zero, axis=1).astype(np.float64)
    tied = tied & ~zero[:, :-1]

    ranks = np.broadcast_to(np.arange(1.0, sizes.shape[1] + 1), sizes.shape).copy()
    ties, has_ties = np.zeros(len(zeros)), tied.any(axis=1)
    if has_ties.any():
        ranks[has_ties], ties[has_ties] = midranks(tied[has_ties])

    if zeros.any():
        ranks = np.where(zero, 0.0, ranks if pratt else ranks - zeros[:, None])
    return ranks, ties, zeros


def _normal(statistic: Floats, ranked: Floats | int, skipped: Floats, ties: Floats) -> Floats:
    """Return p by the normal distribution; `skipped` ranks belong to zeros (Cureton, JASA 62,
    1967)."""
    mean = (ranked * (ranked + 1) - skipped * (skipped + 1)) / 4
    squares = ranked * (ranked + 1.0) * (2.0 * ranked + 1) - skipped * (skipped + 1) * (
        2 * skipped + 1
    )
    error = np.sqrt((squares - ties / 2) / 24)
    z = np.divide(statistic - mean, error, out=np.zeros_like(mean), where=error > 0)
    p_value: Floats = np.minimum(2 * special.ndtr(z), 1.0)

    return p_value


@lru_cache
def _table(n: int) -> Floats:
    """Return the two-sided p of every W from 0 to the middle, for n differences without ties."""
    return np.minimum(2 * _share_below(tuple(range(1, n + 1))), 1.0)


def _every_sign(ranks: Matrix, statistic: Floats) -> Floats:
    """Return the two-sided p by all 2^n signs of the ranks, counted once for pairs of equal
    ranks."""
    # Twice the rank is whole where ties share the middle of theirs.
    doubled = np.ascontiguousarray(2 * ranks, np.int32)
    rows = doubled.view(np.dtype((np.void, doubled.dtype.itemsize * doubled.shape[1]))).ravel()
    _, places, row_of = np.unique(rows, return_index=True, return_inverse=True)
    shares = [_share_below(tuple(row)) for row in doubled[places].tolist()]
    starts = np.cumsum([0, *map(len, shares[:-1])])
    index = starts[row_of.ravel()] + (2 * statistic).astype(np.int64)
    p_value: Floats = np.minimum(2 * np.concatenate(shares)[index], 1.0)

    return p_value


@lru_cache(maxsize=1 << 12)
def _share_below(ranks: tuple[int, ...]) -> Floats:
    """Return for every sum from 0 the share of the subsets of these ranks with at most this sum."""
    ways = np.ones(1)
    for rank in ranks:
        longer = np.zeros(len(ways) + rank)
        longer[: len(ways)] += ways
        longer[rank:] += ways
        ways = longer

    share: Floats = np.cumsum(ways) / 2.0 ** len(ranks)
    return share
