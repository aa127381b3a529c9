"""Two systems with replicates, such as seeds: min F' for other topics and replicates alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from metrics.engine.errors import StatisticsError
from metrics.engine.significance.pairs import ROUNDING, Matrix


@dataclass(frozen=True)
class MethodTest:
    """The test of the difference of two systems, and its interval.

    `freedom` is that of the denominator of min F'; `by_topics` is F with the error of topics alone,
    `by_replicates` with that of replicates alone, each NaN without spread.
    """

    difference: float
    low: float
    high: float
    statistic: float
    freedom: float
    p_value: float
    by_topics: float
    by_replicates: float


def min_f(first: Matrix, second: Matrix, confidence: float) -> MethodTest:
    """Do two systems differ, for other topics and other replicates alike?

    Shapes: (replicates, topics) of each, without NaN, of the same topics; at least two of both.
    Formula: min F' = d^2 / (V1 + V2) with 1 and (V1 + V2)^2 / (V1^2 / n1 + V2^2 / n2) degrees of
    freedom, d the difference of the means over replicates and topics; V1 = s^2 / topics of the
    differences by topic, n1 = topics - 1; V2 the sum of s^2 / replicates of both systems, of the
    means of replicates, n2 by Welch. d^2 / V1 is F1, that of the paired t test; d^2 / V2 is F2,
    that of Welch's t test; min F' = F1 F2 / (F1 + F2). d +- t sqrt(V1 + V2)
    Assumes: topics drawn at random, replicates drawn at random within their system; normal means
    Source: Clark, Journal of Verbal Learning and Verbal Behavior 12, 1973; Welch, Biometrika 34,
    1947; as `crossed.analyse` with replicates in place of searchers
    Note: min F' finds less than 5 % by chance. Without any spread there is neither p nor interval,
    unless the means are equal. StatisticsError for fewer than two replicates or topics.
    """
    topics = first.shape[1]
    if min(len(first), len(second), topics) < 2:
        message = "a test of the method needs at least 2 replicates of both systems and 2 topics"
        raise StatisticsError(message, code="too_few_runs")

    scale = float(max(np.abs(first).max(), np.abs(second).max())) or 1.0
    differences = (first.mean(axis=0) - second.mean(axis=0)) / scale
    difference = float(differences.mean())
    difference = difference if abs(difference) > ROUNDING else 0.0

    of_topics = _variance(differences.var(ddof=1) / topics)
    parts = [
        (_variance((values / scale).mean(axis=1).var(ddof=1) / len(values)), len(values) - 1)
        for values in (first, second)
    ]
    of_replicates = sum(part for part, _ in parts)
    total = of_topics + of_replicates
    if total == 0:
        p_value = np.nan if difference else 1.0
        end = np.nan if difference else 0.0
        return MethodTest(
            difference * scale,
            end,
            end,
            np.nan,
            np.nan,
            p_value,
            by_topics=np.nan,
            by_replicates=np.nan,
        )

    # Satterthwaite's degrees of freedom of the whole: those of Welch are a part of them.
    spread = of_topics**2 / (topics - 1) + sum(part**2 / n for part, n in parts)
    freedom, statistic = total**2 / spread, difference**2 / total
    margin = float(special.stdtrit(freedom, (1 + confidence) / 2)) * total**0.5

    return MethodTest(
        difference=difference * scale,
        low=(difference - margin) * scale,
        high=(difference + margin) * scale,
        statistic=statistic,
        freedom=freedom,
        p_value=float(special.fdtrc(1, freedom, statistic)),
        by_topics=difference**2 / of_topics if of_topics else np.nan,
        by_replicates=difference**2 / of_replicates if of_replicates else np.nan,
    )


def _variance(value: float) -> float:
    return float(value) if value > ROUNDING**2 else 0.0
