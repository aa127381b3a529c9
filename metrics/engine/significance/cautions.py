"""The cautions of tests: few topics, ties, and assumptions that the values violate."""

from __future__ import annotations

import numpy as np
from scipy import special

from metrics.engine.arrays import Flags, Floats, Ints
from metrics.engine.significance.pairs import Caution, Matrix, Options

FEW_TOPICS = 25
# Above this share of topics without a difference, few topics decide.
_MANY_TIES = 0.5
_SURE = 0.01
# A smaller p is below any usual level.
_SMALL = 0.001

# The consequences of few topics for a test, and the reason why a pair has no p.
FEW_FOR_SPREAD = (
    "where values are skewed, intervals are too short and verdicts less certain than their level"
)
FEW_FOR_RANKS = "the distribution of rank sums is only a rough approximation"
CONSTANT = "the difference is the same on every topic"


def few_topics(
    topics: int, consequence: str = "differences must be large to be found"
) -> list[Caution]:
    """Return the caution of few topics; `consequence` is what they mean for the test."""
    if topics >= FEW_TOPICS:
        return []
    return [Caution("few_topics", f"only {topics} topics: {consequence}")]


def few_degrees(freedom: int) -> list[Caution]:
    """Return the caution of an analysis of several factors that leaves few degrees of freedom."""
    if freedom >= FEW_TOPICS:
        return []
    message = f"only {freedom} degrees of freedom are left: differences must be large to be found"
    return [Caution("few_degrees_of_freedom", message)]


def smallest_p(p_value: float) -> str:
    """Return the consequence of few topics for an exact test, with this smallest p."""
    if p_value < _SMALL:
        return "differences must be large to be found"
    return f"no difference, however large, can have a p below {p_value:.2g}"


def untested(p_value: Floats, reason: str) -> list[Caution]:
    """Return the caution of pairs for which the test has no statistic and so no p (NaN); `reason`
    says what does not vary."""
    number = int(np.count_nonzero(np.isnan(p_value)))
    if not number:
        return []

    return [
        Caution(
            "no_spread", f"{pairs_in_words(number)} cannot be tested: {reason}, so there is no p"
        )
    ]


def are_skewed(skewness: Floats, topics: int) -> Flags:
    """Return which pairs have differences too skewed for their mean to be nearly normal.

    Source: the rule n > 25 times the squared skewness of Cochran, Sampling Techniques, 1977,
    section 2.15
    """
    skewed: Flags = 25 * np.square(skewness) >= topics
    return skewed


def are_tied(ties: Ints, topics: int) -> Flags:
    """Return which pairs differ on some topics, but on fewer than half; `ties` counts the topics
    without a difference."""
    tied: Flags = (ties > _MANY_TIES * topics) & (ties < topics)
    return tied


def skewed_differences(skewed: Flags, topics: int, kind: str = "significant") -> list[Caution]:
    """Return the caution of the pairs that are significant, or `kind`; `skewed` has an entry for
    each of these."""
    pairs = _some_of(skewed, kind, ("has", "have"))
    if not pairs:
        return []

    message = f"{pairs} skewed differences for {topics} topics: p is approximate"
    return [Caution("skewed_differences", message)]


def heavy_ties(tied: Flags) -> list[Caution]:
    """Return the caution of significant pairs; `tied` has an entry for each of these."""
    pairs = _some_of(tied, "significant", ("ties", "tie"))
    if not pairs:
        return []

    message = f"{pairs} on more than half of the topics: only a few topics decide"
    return [Caution("heavy_ties", message)]


def _some_of(flags: Flags, kind: str, verbs: tuple[str, str]) -> str:
    """Return how many of the pairs are flagged, with the verb that follows, or "" if none is."""
    number, pairs = int(np.count_nonzero(flags)), len(flags)
    if not number:
        return ""

    singular, plural = verbs
    if pairs == 1:
        return f"the {kind} pair {singular}"
    return f"{number:,} of the {pairs:,} {kind} pairs {singular if number == 1 else plural}"


def ties_lost_to_rounding(number: int) -> list[Caution]:
    if not number:
        return []

    message = (
        f"in {pairs_in_words(number)} some differences are unequal only by rounding: "
        "ties='rounded' treats them as tied"
    )

    return [Caution("ties_lost_to_rounding", message)]


def few_resamples(options: Options, pairs: int, drawn: bool) -> list[Caution]:
    smallest = 1 / (options.resamples + 1)
    if not drawn or smallest * pairs <= 0.05:
        return []

    message = (
        f"{options.resamples:,} resamples cannot give a p below {smallest:.2g}, too large for "
        f"0.05 over {pairs:,} pairs by Bonferroni or Holm; use more resamples"
    )

    return [Caution("few_resamples", message)]


def unpaired() -> list[Caution]:
    message = (
        "the test is unpaired: differences between topics count as noise, so it can miss "
        "differences"
    )

    return [Caution("unpaired", message)]


def uneven_spread(residuals: Matrix) -> list[Caution]:
    """Return the caution of runs with unequal residual variances.

    Source: Brown and Forsythe, Journal of the American Statistical Association 69, 1974, on two-way
    residuals
    """
    runs, topics = residuals.shape
    distances = np.abs(residuals - np.median(residuals, axis=1, keepdims=True))
    between = topics * distances.mean(axis=1).var(ddof=1)
    within = distances.var(axis=1, ddof=1).mean()
    if within <= 0 or special.fdtrc(runs - 1, runs * (topics - 1), between / within) > _SURE:
        return []

    message = (
        "the runs have unequal variances (Brown and Forsythe, p < 0.01), and the test assumes "
        "one: some p are too small; t_and_tukey holds each pair to its own variance, too"
    )

    return [Caution("uneven_spread", message)]


def pairs_in_words(number: int) -> str:
    return f"{number:,} pair{'s' if number != 1 else ''}"
