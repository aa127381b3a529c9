"""Two one-sided t tests: runs that are not worse by a margin, and runs that are equivalent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy import special
from scipy.interpolate import CubicSpline

from metrics.engine.arrays import Flags, Floats, Ints
from metrics.engine.errors import StatisticsError
from metrics.engine.significance import CORRECTIONS
from metrics.engine.significance.cautions import (
    CONSTANT,
    FEW_FOR_SPREAD,
    are_skewed,
    few_topics,
    skewed_differences,
    untested,
)
from metrics.engine.significance.effect_sizes import POWER
from metrics.engine.significance.families import Rule
from metrics.engine.significance.moments import moments_of
from metrics.engine.significance.pairs import Caution, Matrix, check
from metrics.engine.significance.verdicts import (
    MIN_TOPICS,
    NO_SPREAD,
    REASONS,
    TOO_FEW_TOPICS,
    adjust,
)

MAX_TOPICS = 1_000_000
# The needed shift is found for these numbers of topics, and read from a curve between them.
_KNOTS: Floats = np.unique(
    np.concatenate([np.arange(2.0, 33.0), np.geomspace(33, MAX_TOPICS, 24).round()])
)
# A shift, in quantiles of t, that is enough for any power of interest, and the steps of bisection
# down from it.
_ENOUGH, _HALVINGS = 40.0, 38
# The needed ratio is tabulated up to this number of topics.
_MOST_TABULATED = 1_000


@dataclass(frozen=True)
class Claim:
    """One entry per pair: the p of a claim, its corrected p, and whether it holds at the level."""

    p_value: Floats
    adjusted: Floats
    holds: Flags

    def of(self, pairs: Ints) -> Claim:
        """Return the entries of some pairs, by their places."""
        return Claim(self.p_value[pairs], self.adjusted[pairs], self.holds[pairs])


@dataclass(frozen=True)
class Equivalence:
    """The results of two one-sided tests of each pair.

    `low` and `high` are of the 1 - 2 alpha interval of the mean difference. `a` is that the first
    run is not worse than the second by the margin or more, `b` the same of the second run, and
    `both` that neither is. `withheld` is an index into REASONS. `size` is the number of pairs that
    p values are corrected for.
    """

    margin: float
    low: Floats
    high: Floats
    a: Claim
    b: Claim
    both: Claim
    withheld: Ints
    size: int
    correction: str
    cautions: tuple[Caution, ...]

    def of(self, pairs: Ints) -> Equivalence:
        """Return some of the pairs, by their places; p values stay those of the whole family."""
        return replace(
            self,
            low=self.low[pairs],
            high=self.high[pairs],
            a=self.a.of(pairs),
            b=self.b.of(pairs),
            both=self.both.of(pairs),
            withheld=self.withheld[pairs],
        )

    def withhold(self, pairs: Flags, reason: str) -> Equivalence:
        """Return the same with no claim that holds of these pairs, for a reason of REASONS."""

        def without(claim: Claim) -> Claim:
            return replace(claim, holds=claim.holds & ~pairs)

        withheld = np.where(pairs, REASONS.index(reason), self.withheld)
        return replace(
            self,
            a=without(self.a),
            b=without(self.b),
            both=without(self.both),
            withheld=withheld,
        )


def tost(
    values: Matrix,
    first: Ints,
    second: Ints,
    margin: float,
    rule: Rule,
    *,
    lower_is_better: bool = False,
) -> Equivalence:
    """Two one-sided t tests of each pair: is the mean difference within the margin, whatever its
    sign?

    Formula: p of the lower side = P(T > (mean(d) + margin) / e), of the upper side = P(T < (mean(d)
    - margin) / e), e = sd(d) / sqrt(n), T of n - 1 degrees of freedom. Either is a test of
      non-inferiority: that the one run is not
    worse than the other by the margin. Equivalent: p = the larger of both. The interval mean(d) +-
    t(1 - alpha) e, of 1 - 2 alpha, lies within the margins exactly where p <= alpha
    Assumes: a margin that was chosen beforehand; differences from a normal distribution, or enough
    topics for their mean to be near one
    Source: Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15(6), 1987; Walker and
    Nowacki, Journal of General Internal Medicine 26(2), 2011, on non-inferiority
    Note: Each of the three claims is corrected over the family of pairs, by Holm unless asked
    otherwise. Runs whose difference is the same on every topic have no spread, and no p.
    Raises: StatisticsError for fewer than 2 topics, and an alpha of a half or more.
    """
    check(values, "tost")
    if rule.alpha >= 0.5:
        message = (
            f"tost needs an alpha below 0.5, not {rule.alpha:g}: its interval is one of 1 - 2 alpha"
        )
        raise StatisticsError(message, code="bad_parameter", pointer="alpha")

    topics = values.shape[1]
    moments = moments_of(values, first, second)
    difference, error = moments.mean, moments.error
    error_or_nan = np.where(error > 0, error, np.nan)
    above = special.stdtr(topics - 1, -(difference + margin) / error_or_nan)
    below = special.stdtr(topics - 1, (difference - margin) / error_or_nan)
    reach = special.stdtrit(topics - 1, 1 - rule.alpha) * error_or_nan

    withheld = np.where(np.isnan(error_or_nan), REASONS.index(NO_SPREAD), 0)
    if topics < MIN_TOPICS:
        withheld[:] = REASONS.index(TOO_FEW_TOPICS)

    def claim(p_value: Floats) -> Claim:
        adjusted = adjust(p_value, CORRECTIONS[rule.correction])
        return Claim(p_value, adjusted, (adjusted < rule.alpha) & (withheld == 0))

    a, b = (below, above) if lower_is_better else (above, below)
    claims = claim(a), claim(b), claim(np.maximum(a, b))
    holds = claims[0].holds | claims[1].holds
    cautions = (
        *few_topics(topics, FEW_FOR_SPREAD),
        *untested(above, CONSTANT),
        *skewed_differences(are_skewed(moments.skewness[holds], topics), topics, "non-inferior"),
    )

    return Equivalence(
        margin=margin,
        low=difference - reach,
        high=difference + reach,
        a=claims[0],
        b=claims[1],
        both=claims[2],
        withheld=withheld,
        size=len(first),
        correction=rule.correction,
        cautions=cautions,
    )


def power_of_tost(topics: int | Floats, shift: float | Floats, alpha: float = 0.05) -> Floats:
    """The chance that `tost` finds two runs equivalent that do not differ at all.

    Formula: E[2 Phi(shift - t(1 - alpha) u) - 1] over u < shift / t(1 - alpha), u^2 chi-square over
    its n - 1 degrees of freedom; shift = margin sqrt(n) / the standard deviation of the differences
    Source: Phillips, Journal of Pharmacokinetics and Biopharmaceutics 18(2), 1990
    """
    half = (np.asarray(topics, np.float64)[..., None] - 1) / 2
    shifts = np.asarray(shift, np.float64)[..., None]
    bound = special.stdtrit(2 * half, 1 - alpha)
    nodes, weights = _nodes()

    # Integrate over the chance of u, up to the u beyond which nothing is equivalent.
    chance = special.gammainc(half, half * np.square(shifts / bound))
    u = np.sqrt(special.gammaincinv(half, chance * nodes) / half)
    power: Floats = (chance * weights * (2 * special.ndtr(shifts - bound * u) - 1)).sum(axis=-1)
    return power


def topics_for_tost(deviation: Floats, margin: float, alpha: float = 0.05) -> Floats:
    """Return the fewest topics with which `tost` finds equal runs equivalent, with power 0.8.

    `deviation` has standard deviations of differences; the result is NaN without one and beyond a
    million topics.
    """
    needed, ratios = _shifts(alpha)
    ratio = np.divide(margin, deviation, out=np.full(len(deviation), np.nan), where=deviation > 0)

    # The needed ratio falls with the number of topics.
    index = np.searchsorted(-ratios, -np.nan_to_num(ratio, nan=np.inf) * (1 + 1e-9))
    topics = index + 2.0
    large = topics > _MOST_TABULATED
    for _ in range(3 if large.any() else 0):
        sizes = np.minimum(topics[large], MAX_TOPICS)
        topics[large] = np.ceil(np.square(needed(1 / sizes) / ratio[large]) * (1 - 1e-9))

    return np.where(np.isnan(ratio) | (topics > MAX_TOPICS), np.nan, topics)


@lru_cache(maxsize=1)
def _nodes() -> tuple[Floats, Floats]:
    """Return Gauss and Legendre's nodes in 0 to 1, closer to both ends, with their weights."""
    x, weights = np.polynomial.legendre.leggauss(96)
    x = (x + 1) / 2
    # Quantiles of u are steep at either end.
    return x * x * (3 - 2 * x), 3 * x * (1 - x) * weights


@lru_cache(maxsize=16)
def _shifts(alpha: float) -> tuple[Callable[[Floats], Floats], Floats]:
    """Return the shift that has the power, as a curve over 1 / n, and the ratio of margin to
    deviation for each n from 2 to _TRIED."""
    low, high = np.zeros(len(_KNOTS)), special.stdtrit(_KNOTS - 1, 1 - alpha) * _ENOUGH
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        enough = power_of_tost(_KNOTS, middle, alpha) >= POWER
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)

    heights: Floats = np.ascontiguousarray(high[::-1], np.float64)
    curve = CubicSpline(1 / _KNOTS[::-1], heights)
    sizes = np.arange(2.0, _MOST_TABULATED + 1)
    return curve, curve(1 / sizes) / np.sqrt(sizes)
