"""The U test of Mann and Whitney (Wilcoxon's rank sum test): two samples that are not on the same topics."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy import special

from metrics.engine.ranking import Flags, Floats, Ints
from metrics.engine.significance.cautions import few_topics, smallest_p, unpaired
from metrics.engine.significance.midranks import rank_rows
from metrics.engine.significance.pairs import DEFAULTS, Matrix, Options, PairedResult, check, chunks, noise_of
from metrics.engine.significance.welch_t import unpaired_interval

# Up to so many topics SciPy has the exact distribution, where no values tie.
_TABLE = 8


def compare(values: Matrix, first: Ints, second: Ints, options: Options = DEFAULTS) -> PairedResult:
    """Two-sided U test of each pair, with Welch's interval of the difference of means.

    Formula: U = R - n (n + 1) / 2, R the first run's sum of ranks among the values of both. p is exact up to 8 topics
    without ties; else normal with the variance corrected for ties and U for continuity, as SciPy chooses
    Assumes: samples of different topics; distributions of one shape for a reading as a shift
    Source: Mann and Whitney, Annals of Mathematical Statistics 18(1), 1947
    Note: For runs on different topics: on the same ones it misses what a paired test finds. Identical runs have p = 1.
    """
    check(values, "the U test")
    parts = [_compare(values, *chunk) for chunk in chunks(first, second, values.shape[1])]
    statistic, p_value, exact = (np.concatenate(part) for part in zip(*parts, strict=True))
    interval = unpaired_interval(values, first, second, options.confidence)
    topics = values.shape[1]
    cautions = (*unpaired(), *few_topics(topics, smallest_p(2 / float(special.binom(2 * topics, topics)))))
    return PairedResult(*interval, statistic, p_value, exact.astype(np.bool_), cautions, statistic - topics**2 / 2)


def _compare(values: Matrix, first: Ints, second: Ints) -> tuple[Floats, Floats, Flags]:
    n = values.shape[1]
    both = np.hstack([values[first], values[second]])
    ranks, ties = rank_rows(both, noise_of(values, first, second))
    statistic = ranks[:, :n].sum(axis=1) - n * (n + 1) / 2
    larger = np.maximum(statistic, n * n - statistic)
    error = np.sqrt(n * n / 12 * np.maximum(2 * n + 1 - ties / (2 * n * (2 * n - 1)), 0.0))
    z = np.divide(larger - n * n / 2 - 0.5, error, out=np.zeros_like(error), where=error > 0)
    p_value = np.minimum(2 * special.ndtr(-z), 1.0)
    exact = (ties == 0) & (n <= _TABLE)
    if exact.any():
        p_value[exact] = _table(n)[larger[exact].astype(np.int64)]
    return statistic, p_value, exact


@lru_cache
def _table(n: int) -> Floats:
    """Two-sided p of every larger U, for two samples of n without ties: by counting those with each rank sum."""
    ways = np.zeros((n + 1, n * n + 1))
    ways[0, 0] = 1
    # The values of one sample, from the lowest: each is above 0 to n values of the other, no fewer than the one before.
    for above in range(n + 1):
        for chosen in range(1, n + 1):
            ways[chosen, above:] += ways[chosen - 1, : n * n + 1 - above]
    counts = ways[n]
    p_value: Floats = np.minimum(2 * np.cumsum(counts[::-1])[::-1] / counts.sum(), 1.0)
    return p_value
