"""Friedman's test, and the ranks that its post-hoc tests compare."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from metrics.engine.arrays import Floats
from metrics.engine.significance.cautions import FEW_FOR_RANKS, few_topics
from metrics.engine.significance.midranks import rank_rows
from metrics.engine.significance.omnibus import OmnibusResult
from metrics.engine.significance.pairs import ROUNDING, Matrix, check


@dataclass(frozen=True)
class Ranked:
    """Runs ranked within each topic, 1 for the lowest value; ties share the middle of their ranks.

    `sums` has the sum of the ranks of each run, shape (runs,); `squares` is the sum of all squared
    ranks; `ties` that of t^3 - t."""

    sums: Floats
    squares: float
    ties: float
    topics: int


def rank_by_topic(values: Matrix) -> Ranked:
    noise = ROUNDING * np.abs(values).max(axis=0)
    ranks, ties = rank_rows(np.ascontiguousarray(values.T), noise)
    return Ranked(
        ranks.sum(axis=0), float(np.square(ranks).sum()), float(ties.sum()), values.shape[1]
    )


def analyse(values: Matrix) -> OmnibusResult:
    """Friedman's test: do the runs differ in their ranks by topic?

    Formula: chi2 = (12 / (n k (k + 1)) sum of R^2 - 3 n (k + 1)) / (1 - sum(t^3 - t) / (n k (k^2 -
    1))), R the rank sums of k runs over n topics, t the sizes of ties; k - 1 degrees of freedom
    Assumes: topics that are independent; no distribution
    Source: Friedman, JASA 32, 1937; ties as in Conover, Practical Nonparametric Statistics, 1999,
    and SciPy
    Note: The effect is Kendall's W = chi2 / (n (k - 1)).
    """
    check(values, "Friedman's test", runs=2)
    runs, topics = values.shape
    ranked = rank_by_topic(values)
    untied = 1 - ranked.ties / (topics * runs * (runs**2 - 1))
    if untied <= 0:
        return OmnibusResult(
            0.0, (runs - 1,), 1.0, 0.0, cautions=tuple(few_topics(topics, FEW_FOR_RANKS))
        )

    spread = 12 / (topics * runs * (runs + 1)) * float(
        np.square(ranked.sums).sum()
    ) - 3 * topics * (runs + 1)
    statistic = max(spread, 0.0) / untied
    p_value = float(special.chdtrc(runs - 1, statistic))
    cautions = tuple(few_topics(topics, FEW_FOR_RANKS))

    return OmnibusResult(
        statistic, (runs - 1,), p_value, statistic / (topics * (runs - 1)), cautions=cautions
    )
