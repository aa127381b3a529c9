"""What a reader must know before he believes a p value: few topics, ties, assumptions that the values do not keep."""

from __future__ import annotations

import numpy as np
from scipy import special

from metrics.engine.ranking import Floats
from metrics.engine.significance.pairs import Caution, Matrix, Options

FEW_TOPICS = 25
# Above this share of topics without a difference, few are left to decide.
_MANY_TIES = 0.5
_SURE = 0.01


def few_topics(topics: int) -> list[Caution]:
    if topics >= FEW_TOPICS:
        return []
    return [Caution("few_topics", f"only {topics} topics: differences must be large to be found")]


def constant_differences(statistic: Floats) -> list[Caution]:
    if not np.isnan(statistic).any():
        return []
    message = "some differences are the same on every topic: their p is 0 and they have no statistic"
    return [Caution("constant_difference", message)]


def skewed(asymmetry: Floats, topics: int, consequence: str) -> list[Caution]:
    """Source: the rule n > 25 times the squared skewness of Cochran, Sampling Techniques, 1977, section 2.15."""
    many = int(np.count_nonzero(25 * np.square(asymmetry) >= topics))
    if not many:
        return []
    message = f"the differences of {_pairs(many)} are skewed for {topics} topics: {consequence}"
    return [Caution("skewed_differences", message)]


def heavy_ties(tied: Floats) -> list[Caution]:
    """`tied` is each pair's share of topics without a difference."""
    many = int(np.count_nonzero((tied > _MANY_TIES) & (tied < 1)))
    if not many:
        return []
    return [Caution("heavy_ties", f"{_pairs(many)} tie on more than half of the topics: few topics decide")]


def ties_lost_to_rounding(many: int) -> list[Caution]:
    if not many:
        return []
    message = f"in {_pairs(many)} differences are unequal by rounding only: ties='rounded' makes them tie"
    return [Caution("ties_lost_to_rounding", message)]


def few_resamples(options: Options, pairs: int, drawn: bool) -> list[Caution]:
    smallest = 1 / (options.resamples + 1)
    if not drawn or smallest * pairs <= 0.05:
        return []
    message = (
        f"{options.resamples:,} resamples cannot give a p below {smallest:.2g}: too large for 0.05 over {pairs:,} "
        "pairs by Bonferroni or Holm; give more resamples"
    )
    return [Caution("few_resamples", message)]


def unpaired() -> list[Caution]:
    message = "the test is unpaired: what the topics have in common counts as noise, and differences are missed"
    return [Caution("unpaired", message)]


def uneven_spread(residuals: Matrix) -> list[Caution]:
    """Where the runs scatter differently about what topic and run explain.

    Source: Brown and Forsythe, Journal of the American Statistical Association 69, 1974, on two-way residuals
    """
    runs, topics = residuals.shape
    apart = np.abs(residuals - np.median(residuals, axis=1, keepdims=True))
    between = topics * apart.mean(axis=1).var(ddof=1)
    within = apart.var(axis=1, ddof=1).mean()
    if within <= 0 or special.fdtrc(runs - 1, runs * (topics - 1), between / within) > _SURE:
        return []
    message = "the runs do not scatter alike (Brown and Forsythe, p < 0.01): one spread for all makes some p too small"
    return [Caution("uneven_spread", message)]


def skewness(squares: Matrix, centred: Matrix) -> Floats:
    """Fisher's skewness of each row from its centred values and their squares, 0 for one without spread."""
    second = squares.mean(axis=1)
    third = np.einsum("ij,ij->i", squares, centred) / centred.shape[1]
    found: Floats = np.divide(
        third, second**1.5, out=np.zeros_like(second), where=second > np.finfo(np.float64).eps ** 2
    )
    return found


def _pairs(number: int) -> str:
    return f"{number:,} pair{'s' if number != 1 else ''}"
