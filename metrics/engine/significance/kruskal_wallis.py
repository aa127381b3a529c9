"""The test of Kruskal and Wallis: many samples that are not on the same topics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import special

from metrics.engine.arrays import Floats
from metrics.engine.errors import StatisticsError
from metrics.engine.significance.cautions import FEW_FOR_RANKS, few_topics, unpaired
from metrics.engine.significance.midranks import rank_rows
from metrics.engine.significance.omnibus import OmnibusResult
from metrics.engine.significance.pairs import ROUNDING, Matrix, check


def analyse(values: Matrix) -> OmnibusResult:
    """Kruskal and Wallis's test: do the runs differ in their ranks among all values?

    Formula: H = (12 / (N (N + 1)) sum of R^2 / n - 3 (N + 1)) / (1 - sum(t^3 - t) / (N^3 - N)), R
    the rank sums of k runs among all N values, t the sizes of ties; chi-square with k - 1 degrees
    of freedom
    Assumes: samples of different topics; no distribution
    Source: Kruskal and Wallis, JASA 47, 1952
    Note: For runs on different topics: on the same ones Friedman's test finds more. The effect is
    epsilon squared, H / (N - 1).
    """
    check(values, "the test of Kruskal and Wallis", runs=2)
    result = analyse_samples([*values])
    return replace(result, cautions=(*unpaired(), *result.cautions))


def analyse_samples(samples: list[Floats]) -> OmnibusResult:
    """Return the test of samples of any sizes, such as the sessions of each system.

    Raise StatisticsError for fewer than two samples, or one without values.
    """
    sizes = np.array([len(sample) for sample in samples], np.int64)
    if len(sizes) < 2 or sizes.min() < 1:
        raise StatisticsError(
            "the test of Kruskal and Wallis needs two samples or more, and values in each"
        )

    values, size = np.concatenate(samples)[None, :], int(sizes.sum())
    ranks, ties = rank_rows(values, ROUNDING * np.abs(values).max(axis=1))
    untied = 1 - float(ties[0]) / (size**3 - size)
    cautions = tuple(few_topics(int(sizes.min()), FEW_FOR_RANKS))
    if untied <= 0:
        return OmnibusResult(0.0, (len(sizes) - 1,), 1.0, 0.0, cautions=cautions)

    sums = np.add.reduceat(ranks[0], np.cumsum(sizes) - sizes)
    spread = 12 / (size * (size + 1)) * float((np.square(sums) / sizes).sum()) - 3 * (size + 1)
    statistic = max(spread, 0.0) / untied
    p_value = float(special.chdtrc(len(sizes) - 1, statistic))
    return OmnibusResult(
        statistic, (len(sizes) - 1,), p_value, statistic / (size - 1), cautions=cautions
    )
