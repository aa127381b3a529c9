"""The sign test."""

from __future__ import annotations

import numpy as np
from scipy import special

from metrics.engine.arrays import Floats, Ints
from metrics.engine.significance.cautions import few_topics, smallest_p
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


def compare(values: Matrix, first: Ints, second: Ints, options: Options = DEFAULTS) -> PairedResult:
    """Two-sided sign test of each pair, with the t interval of the mean difference.

    Formula: p = 2 P(X <= min(wins, losses)), X binomial of wins + losses trials at 1/2; the
    statistic is the wins of the first run. Topics whose |d| is at most `min_difference` are ties
    and dropped
    Assumes: nothing about the differences but that topics are independent
    Source: Dixon and Mood, JASA 41, 1946; for retrieval van Rijsbergen (1979), chapter 7
    Note: Identical runs have p = 1.
    """
    check(values, "a sign test")
    counts = [
        _count(values, *chunk, options.min_difference)
        for chunk in chunks(first, second, values.shape[1])
    ]
    wins, losses = (np.concatenate(part) for part in zip(*counts, strict=True))
    trials = wins + losses
    p_value = np.minimum(
        2 * special.bdtr(np.minimum(wins, losses), trials.astype(np.int64), 0.5), 1.0
    )

    interval = mean_interval(values, first, second, options.confidence)
    cautions = few_topics(values.shape[1], smallest_p(2.0 ** (1 - values.shape[1])))
    exact = np.ones(len(first), np.bool_)
    return PairedResult(*interval, wins, p_value, exact, tuple(cautions), wins - losses)


def _count(values: Matrix, first: Ints, second: Ints, least: float) -> tuple[Floats, Floats]:
    """Return on how many topics the first run of each pair is ahead, and the second one."""
    differences = values[first] - values[second]
    # A difference that equals the least one, but for rounding, is a tie.
    bound = (least + noise_of(values, first, second))[:, None]
    wins = np.count_nonzero(differences > bound, axis=1)
    losses = np.count_nonzero(differences < -bound, axis=1)

    return wins.astype(np.float64), losses.astype(np.float64)
