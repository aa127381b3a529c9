"""The test of Kruskal and Wallis: many samples that are not on the same topics."""

from __future__ import annotations

import numpy as np
from scipy import special

from metrics.engine.significance.cautions import FEW_FOR_RANKS, few_topics, unpaired
from metrics.engine.significance.midranks import rank_rows
from metrics.engine.significance.omnibus import OmnibusResult
from metrics.engine.significance.pairs import ROUNDING, Matrix, check


def analyse(values: Matrix) -> OmnibusResult:
    """Kruskal and Wallis's test: do the runs differ in their ranks among all values?

    Formula: H = (12 / (N (N + 1)) sum of R^2 / n - 3 (N + 1)) / (1 - sum(t^3 - t) / (N^3 - N)), R the rank sums of k
    runs among all N values, t the sizes of ties; chi-square with k - 1 degrees of freedom
    Assumes: samples of different topics; no distribution
    Source: Kruskal and Wallis, JASA 47, 1952
    Note: For runs on different topics: on the same ones Friedman's test finds more. The effect is epsilon squared, H /
    (N - 1).
    """
    check(values, "the test of Kruskal and Wallis", runs=2)
    runs, topics = values.shape
    size = values.size
    ranks, ties = rank_rows(values.reshape(1, -1), ROUNDING * np.abs(values).max(keepdims=True).ravel())
    untied = 1 - float(ties[0]) / (size**3 - size)
    cautions = (*unpaired(), *few_topics(topics, FEW_FOR_RANKS))
    if untied <= 0:
        return OmnibusResult(0.0, (runs - 1,), 1.0, 0.0, cautions=cautions)
    sums = ranks.reshape(runs, topics).sum(axis=1)
    spread = 12 / (size * (size + 1)) * float(np.square(sums).sum()) / topics - 3 * (size + 1)
    statistic = max(spread, 0.0) / untied
    p_value = float(special.chdtrc(runs - 1, statistic))
    return OmnibusResult(statistic, (runs - 1,), p_value, statistic / (size - 1), cautions=cautions)
