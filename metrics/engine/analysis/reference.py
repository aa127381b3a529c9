"""The values of a set of reference runs on each topic, and the rank of one run among them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metrics.engine.agreement.standings import TIE
from metrics.engine.arrays import Floats, Ints
from metrics.engine.judgement.steps import Matrix


@dataclass(frozen=True)
class TopicFigures:
    """Figures of each topic over the runs with a value; shape (topics,), NaN where none has one.

    `median` is the mean of the two middle values where their number is even, `median_upper` the
    higher one of them, which is the (floor(n/2)+1)-th smallest: the median of TREC. `q1` and `q3`
    are interpolated linearly (type 7 of Hyndman and Fan, 1996), as NumPy and R do. `n` counts the
    runs.
    """

    low: Floats
    q1: Floats
    median: Floats
    median_upper: Floats
    q3: Floats
    high: Floats
    n: Ints


def topic_figures(values: Matrix) -> TopicFigures:
    """Return the figures of every topic; `values` (runs, topics) are NaN where a run has none."""
    n: Ints = np.count_nonzero(np.isfinite(values), axis=0)
    if not len(values):
        nothing = np.full(values.shape[1], np.nan)
        return TopicFigures(nothing, nothing, nothing, nothing, nothing, nothing, n)

    # NaN comes last, so that the first n of each column are its values.
    ordered = np.sort(np.where(np.isfinite(values), values, np.nan), axis=0)
    columns, last = np.arange(values.shape[1]), np.maximum(n - 1, 0)

    def quantile(share: float) -> Floats:
        position = share * last
        below = np.floor(position).astype(np.int64)
        low, high = ordered[below, columns], ordered[np.minimum(below + 1, last), columns]
        value: Floats = low + (position - below) * (high - low)
        return value

    middle, upper = ordered[last // 2, columns], ordered[np.minimum(n // 2, last), columns]
    return TopicFigures(
        low=ordered[0],
        q1=quantile(0.25),
        median=(middle + upper) / 2,
        median_upper=upper,
        q3=quantile(0.75),
        high=ordered[last, columns],
        n=n,
    )


def ranks_among(own: Floats, others: Matrix, *, lower_is_better: bool) -> Floats:
    """Return the rank of a run on each topic among others, which may include it: 1 and the number
    of those that are better by more than rounding. NaN where it has no value.

    Shapes: `own` (topics,), `others` (runs, topics), the result (topics,).
    """
    sign = -1.0 if lower_is_better else 1.0
    ahead = sign * (others - own)
    better = np.count_nonzero(ahead > TIE * np.maximum(1.0, np.abs(own)), axis=0)
    return np.where(np.isfinite(own), 1.0 + better, np.nan)
