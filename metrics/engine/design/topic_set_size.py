"""The number of topics that a collection needs, and the power of those it has.

Source: Sakai, Information Retrieval Journal 19(3), 2016 (Topic set size design), and Laboratory
Experiments in Information Retrieval, 2018, chapters 6 and 7.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import special
from scipy.optimize import brentq

from metrics.engine.errors import StatisticsError
from metrics.engine.significance.anova import two_way
from metrics.engine.significance.equivalence import power_of_tost
from metrics.engine.significance.pairs import Matrix, check

MAX_TOPICS = 1_000_000
# Beyond it the power is 1.
_LARGEST_SHIFT = 300.0


def variance_of(values: Matrix) -> float:
    """Return the residual variance of a run: V_E2 of the two-way analysis of variance.

    The variance of the difference of two runs is twice as much.
    """
    check(values, "an estimate of the variance", runs=2)
    return two_way(values).residual_variance


def power_of_t(topics: int, difference: float, variance: float, alpha: float = 0.05) -> float:
    """The chance that a paired t test finds a difference of two runs.

    Formula: P(|t'| > t(n - 1, 1 - alpha / 2)), t' noncentral with n - 1 degrees of freedom and
    difference sqrt(n / v), v the variance of the differences, twice `variance`
    """
    _check_size(topics, difference, variance)
    bound = float(special.stdtrit(topics - 1, 1 - alpha / 2))
    shift = float(difference * np.sqrt(topics / (2 * variance)))
    if shift > _LARGEST_SHIFT:
        return 1.0

    # SciPy returns NaN for probabilities that are too small.
    below, missed = np.nan_to_num(special.nctdtr(topics - 1, shift, [-bound, bound]))
    return float(1 - missed + below)


def power_of_anova(
    topics: int, runs: int, difference: float, variance: float, alpha: float = 0.05
) -> float:
    """The chance that `anova` finds that the best and the worst of some runs differ so much.

    Formula: P(F' > F(m - 1, (m - 1)(n - 1), 1 - alpha)), F' noncentral with n difference^2 / (2
    variance): all other runs in the middle, which is hardest to find. Of two runs it is
    `power_of_t`
    Elsewhere: Sakai's tables are of a one-way analysis, with m (n - 1) degrees of freedom: a topic
    fewer at most
    """
    _check_size(topics, difference, variance)
    above, below = runs - 1, (runs - 1) * (topics - 1)
    bound = float(special.fdtri(above, below, 1 - alpha))
    shift = topics * difference**2 / (2 * variance)
    if shift > 100 * (above * bound + 100):
        return 1.0
    return float(1 - special.ncfdtr(above, below, shift, bound))


def power_of_non_inferiority(
    topics: int, margin: float, variance: float, alpha: float = 0.05
) -> float:
    """The chance that `tost` shows of a run that it is not worse than another one from which it
    does not differ.

    Formula: P(t' > t(n - 1, 1 - alpha)), t' noncentral with n - 1 degrees of freedom and margin
    sqrt(n / v), v the variance of the differences, twice `variance`
    Source: Julious, Sample Sizes for Clinical Trials, 2010, chapter 6
    """
    _check_size(topics, margin, variance)
    shift = float(margin * np.sqrt(topics / (2 * variance)))
    if shift > _LARGEST_SHIFT:
        return 1.0

    return float(
        1 - np.nan_to_num(special.nctdtr(topics - 1, shift, special.stdtrit(topics - 1, 1 - alpha)))
    )


def power_of_equivalence(topics: int, margin: float, variance: float, alpha: float = 0.05) -> float:
    """The chance that `tost` shows of two runs that do not differ at all that they are equivalent:
    `power_of_tost` with the shift margin sqrt(n / v), v the variance of the differences, twice
    `variance`."""
    _check_size(topics, margin, variance)
    if not 0 < alpha < 0.5:
        message = (
            f"equivalence needs an alpha below 0.5, not {alpha:g}: its interval is one of 1 - 2 "
            "alpha"
        )
        raise StatisticsError(message, code="bad_parameter", pointer="alpha")

    shift = float(margin * np.sqrt(topics / (2 * variance)))
    return 1.0 if shift > _LARGEST_SHIFT else float(power_of_tost(topics, shift, alpha))


def half_width(topics: int, variance: float, confidence: float = 0.95) -> float:
    """The expected half width of the t interval of a difference of two runs.

    Formula: t(n - 1, (1 + c) / 2) sqrt(v / n) sqrt(2 / (n - 1)) Gamma(n / 2) / Gamma((n - 1) / 2),
    v twice `variance`
    """
    _check_size(topics, 1.0, variance)
    shrinkage = np.exp(special.gammaln(topics / 2) - special.gammaln((topics - 1) / 2)) * np.sqrt(
        2 / (topics - 1)
    )
    margin = special.stdtrit(topics - 1, (1 + confidence) / 2)

    return float(margin * np.sqrt(2 * variance / topics) * shrinkage)


def topics_for_t(
    difference: float, variance: float, alpha: float = 0.05, power: float = 0.8
) -> int:
    """Return the fewest topics with which a paired t test finds the difference with this power."""
    return _fewest(lambda n: power_of_t(n, difference, variance, alpha) >= power)


def topics_for_anova(
    runs: int, difference: float, variance: float, alpha: float = 0.05, power: float = 0.8
) -> int:
    """Return the fewest topics with which an analysis of variance finds the difference."""
    return _fewest(lambda n: power_of_anova(n, runs, difference, variance, alpha) >= power)


def topics_for_non_inferiority(
    margin: float, variance: float, alpha: float = 0.05, power: float = 0.8
) -> int:
    """Return the fewest topics that show that an equal run is not worse, with this power."""
    return _fewest(lambda n: power_of_non_inferiority(n, margin, variance, alpha) >= power)


def topics_for_equivalence(
    margin: float, variance: float, alpha: float = 0.05, power: float = 0.8
) -> int:
    """Return the fewest topics that show that equal runs are equivalent, with this power."""
    # Equivalent means that neither is worse: where one is shown not to be with power p, both are
    # with 2 p - 1 or more.
    topics = topics_for_non_inferiority(margin, variance, alpha, (1 + power) / 2)
    while topics > 2 and power_of_equivalence(topics - 1, margin, variance, alpha) >= power:
        topics -= 1

    return topics


def topics_for_interval(width: float, variance: float, confidence: float = 0.95) -> int:
    """Return the fewest topics for which the expected interval of a difference is so narrow."""
    return _fewest(lambda n: half_width(n, variance, confidence) <= width / 2)


def detectable_difference(
    topics: int, variance: float, alpha: float = 0.05, power: float = 0.8
) -> float:
    """Return the smallest difference that a paired t test finds on so many topics."""
    _check_size(topics, 1.0, variance)
    unit = np.sqrt(2 * variance)
    shift = brentq(lambda d: power_of_t(topics, d * unit, variance, alpha) - power, 1e-9, 1e3)
    return shift * float(unit)


def _check_size(topics: int, difference: float, variance: float) -> None:
    if topics < 2:
        raise StatisticsError(
            f"a test needs at least 2 topics, not {topics}", code="too_few_topics"
        )

    for name, value in (("difference", difference), ("variance", variance)):
        if not 0 < value < np.inf:
            raise StatisticsError(
                f"{name} must be above 0, not {value!r}", code="bad_parameter", pointer=name
            )


def _fewest(enough: Callable[[int], bool]) -> int:
    """Return the smallest number of topics that is enough, by doubling and halving."""
    high = 2
    while not enough(high):
        high *= 2
        if high > MAX_TOPICS:
            message = (
                f"more than {MAX_TOPICS:,} topics would be needed: use a larger difference or "
                "less power"
            )
            raise StatisticsError(message, code="bad_parameter", pointer="difference")

    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)

    return high
