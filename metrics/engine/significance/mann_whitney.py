"""The U test of Mann and Whitney (Wilcoxon's rank sum test): two samples of different topics."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import numpy as np
from scipy import special

from metrics.engine.arrays import Flags, Floats, Ints
from metrics.engine.significance.cautions import few_topics, smallest_p, unpaired
from metrics.engine.significance.midranks import rank_rows
from metrics.engine.significance.pairs import (
    DEFAULTS,
    ROUNDING,
    Matrix,
    Options,
    PairedResult,
    check,
    chunks,
    noise_of,
)
from metrics.engine.significance.welch_t import compare_samples as compare_means
from metrics.engine.significance.welch_t import unpaired_interval

# Like SciPy, take the exact distribution up to so many values of the smaller sample without ties.
_TABLE = 8


def compare(values: Matrix, first: Ints, second: Ints, options: Options = DEFAULTS) -> PairedResult:
    """Two-sided U test of each pair, with Welch's interval of the difference of means.

    Formula: U = R - n (n + 1) / 2, R the first run's sum of ranks among the values of both. p is
    exact up to 8 topics without ties; else normal with the variance corrected for ties and U for
    continuity, as SciPy chooses
    Assumes: samples of different topics; distributions of one shape for a reading as a shift
    Source: Mann and Whitney, Annals of Mathematical Statistics 18(1), 1947
    Note: For runs on different topics: on the same ones it misses what a paired test finds.
    Identical runs have p = 1.
    """
    check(values, "the U test")
    with ThreadPoolExecutor(options.threads) as pool:
        parts = list(
            pool.map(lambda chunk: _compare(values, *chunk), chunks(first, second, values.shape[1]))
        )

    statistic, p_value, exact = (np.concatenate(part) for part in zip(*parts, strict=True))
    interval = unpaired_interval(values, first, second, options.confidence)
    topics = values.shape[1]
    cautions = (
        *unpaired(),
        *few_topics(topics, smallest_p(2 / float(special.binom(2 * topics, topics)))),
    )

    return PairedResult(
        *interval, statistic, p_value, exact.astype(np.bool_), cautions, statistic - topics**2 / 2
    )


def compare_samples(
    samples: list[Floats], first: Ints, second: Ints, options: Options = DEFAULTS
) -> PairedResult:
    """Return the test of samples of any sizes, such as the sessions of each system.

    p is exact without ties if the smaller sample has at most 8 values. Raise StatisticsError for a
    sample of fewer than two values.
    """
    means = compare_means(samples, first, second, options)
    statistic, leaning, p_value = (np.empty(len(first)) for _ in range(3))
    exact = np.zeros(len(first), np.bool_)
    for place, (i, j) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        joined = np.concatenate([samples[i], samples[j]])
        n, m = len(samples[i]), len(samples[j])
        ranks, ties = rank_rows(joined[None, :], ROUNDING * np.abs(joined).max(keepdims=True))
        statistic[place] = ranks[0, :n].sum() - n * (n + 1) / 2
        leaning[place] = statistic[place] - n * m / 2
        exact[place] = ties[0] == 0 and min(n, m) <= _TABLE

        if exact[place]:
            p_value[place] = _table(min(n, m), max(n, m))[int(n * m / 2 - abs(leaning[place]))]
        else:
            error = np.sqrt(
                n * m / 12 * max(n + m + 1 - float(ties[0]) / ((n + m) * (n + m - 1)), 0.0)
            )
            p_value[place] = (
                min(2 * special.ndtr((0.5 - abs(leaning[place])) / error), 1.0) if error else 1.0
            )

    n, m = sorted(map(len, samples))[:2]
    cautions = few_topics(n, smallest_p(2 / float(special.binom(n + m, n))))
    return PairedResult(
        means.difference, means.low, means.high, statistic, p_value, exact, (*cautions,), leaning
    )


def _compare(values: Matrix, first: Ints, second: Ints) -> tuple[Floats, Floats, Flags]:
    n = values.shape[1]
    joined = np.hstack([values[first], values[second]])
    ranks, ties = rank_rows(joined, noise_of(values, first, second))
    statistic = ranks[:, :n].sum(axis=1) - n * (n + 1) / 2
    larger = np.maximum(statistic, n * n - statistic)
    error = np.sqrt(n * n / 12 * np.maximum(2 * n + 1 - ties / (2 * n * (2 * n - 1)), 0.0))
    z = np.divide(larger - n * n / 2 - 0.5, error, out=np.zeros_like(error), where=error > 0)
    p_value = np.minimum(2 * special.ndtr(-z), 1.0)

    exact = (ties == 0) & (n <= _TABLE)
    if exact.any():
        p_value[exact] = _table(n, n)[(n * n - larger[exact]).astype(np.int64)]
    return statistic, p_value, exact


@lru_cache(maxsize=16)
def _table(n: int, m: int) -> Floats:
    """Return the two-sided p of every U up to the middle, for n and m values without ties.

    U has the distribution of a Gaussian binomial coefficient: the product of (1 - q^(m + i)) / (1 -
    q^i) for i = 1..n.
    """
    ways = np.zeros(n * m // 2 + 1)
    ways[0] = 1
    # Divide first, which only adds: the subtractions below then cost only a digit of precision.
    for i in range(1, n + 1):
        for residue in range(i):
            ways[residue::i] = np.cumsum(ways[residue::i])

    for i in range(m + 1, m + n + 1):
        ways[i:] -= ways[:-i].copy()
    p_value: Floats = np.minimum(2 * np.cumsum(ways) / special.binom(n + m, n), 1.0)
    return p_value
