"""Systems over several collections: means, two kinds of intervals, ranks, and a random-effects
summary of two systems.

Each collection is a matrix of values of shape (systems, topics of that collection), with a row for
every system in the same order; NaN is an undefined value, and a row of NaN a system that lacks the
collection.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from metrics.engine.arrays import Flags, Floats, Ints
from metrics.engine.errors import StatisticsError
from metrics.engine.significance.friedman import analyse, rank_by_topic
from metrics.engine.significance.midranks import rank_rows
from metrics.engine.significance.pairs import ROUNDING, Matrix
from metrics.engine.significance.studentized_range import critical

CONFIDENCE = 0.95
_FIRST = 10
# Resamples that are counted at once.
_BATCH = 256
# The squares of errors outside of this and its inverse are not numbers of double precision.
_LEAST_ERROR = 1e-100


@dataclass(frozen=True)
class Estimate:
    """A mean difference of each system with the ends of its interval, arrays of one shape.

    The ends, the error, the degrees of freedom and p are NaN where the data cannot say them: one
    topic, one collection, or a difference without spread.
    """

    difference: Floats
    error: Floats
    freedom: Floats
    low: Floats
    high: Floats
    p_value: Floats


@dataclass(frozen=True)
class CollectionDifference:
    """The differences from one system in one collection: their means, standard errors and numbers
    of topics, shape (systems,). A difference that is the same on every topic has the error 0."""

    mean: Floats
    error: Floats
    topics: Floats


@dataclass(frozen=True)
class Ranking:
    """Systems ranked within each collection, 1 for the best; ties share the middle of their places.

    `borda` has for each system the number of systems that it beats, plus half of its ties, summed
    over collections. `critical_difference` is how far two mean ranks must be apart to differ
    significantly by Nemenyi's test; NaN for fewer than two systems or collections, where
    Friedman's statistic and p are None and NaN. `others_decide` says whether two of the first ten
    systems by Borda's count would change places if a third system were left out.
    """

    borda: Floats
    mean_ranks: Floats
    friedman: float | None
    p_value: float
    critical_difference: float
    others_decide: bool


@dataclass(frozen=True)
class RandomEffects:
    """The mean difference over collections as a sample of collections.

    `tau_squared` is the variance of the true differences between collections, `i_squared` the share
    of the observed variance that it accounts for, and `weights` are the shares of the collections in
    `mean`. The prediction interval is for the difference in one further collection.
    """

    mean: float
    error: float
    low: float
    high: float
    p_value: float
    tau_squared: float
    i_squared: float
    q: float
    prediction_low: float
    prediction_high: float
    weights: Floats


def collection_weights(weights: Sequence[float], groups: Sequence[str] | None = None) -> Floats:
    """Return weights that sum to 1, shape (collections,); with groups, each group has the same sum.

    With equal weights that is 1 / (G n_g) for one of n_g collections in one of G groups: the mean of
    the means of the groups. Raise StatisticsError for weights that are not positive.
    """
    shares = np.array(weights, np.float64)
    if not len(shares) or not np.isfinite(shares).all() or (shares <= 0).any():
        raise StatisticsError("a suite has one collection or more, each with a positive weight")

    if groups is None:
        groups = [""] * len(shares)

    names, group = np.unique(np.array(groups, np.str_), return_inverse=True)
    weighted: Floats = shares / np.bincount(group, shares)[group] / len(names)
    return weighted


def collection_means(values: Sequence[Matrix]) -> Matrix:
    """Return the mean of each system over its topics; shape (systems, collections).

    NaN for a system without a value in a collection.
    """
    return np.column_stack([_means(matrix) for matrix in values])


def combine(means: Matrix, weights: Floats) -> Floats:
    """Return the weighted mean over collections; NaN for a system that lacks one."""
    mean: Floats = means @ weights
    return mean


def differences_from(values: Sequence[Matrix], reference: int) -> list[CollectionDifference]:
    """Return for each collection the differences of all systems from one of them.

    They are those of the topics on which both systems have a value.
    """
    return [_differences(matrix, matrix[reference]) for matrix in values]


def on_other_topics(
    differences: Sequence[CollectionDifference], weights: Floats, confidence: float = CONFIDENCE
) -> Estimate:
    """Return the weighted mean differences with intervals for other topics of these collections.

    Formula: D = sum of w_c d_c, se^2 = sum of v_c with v_c = w_c^2 s_c^2 / n_c; t with
    (sum of v_c)^2 / sum of (v_c^2 / (n_c - 1)) degrees of freedom
    Assumes: topics of each collection that are a sample of such topics; collections that are fixed
    Source: Satterthwaite, Biometrics Bulletin 2, 1946; Welch, Biometrika 34, 1947
    """
    mean = _weighted(np.stack([row.mean for row in differences], axis=1), weights)
    variance = np.square(np.stack([row.error for row in differences], axis=1) * weights)
    topics = np.stack([row.topics for row in differences], axis=1)

    total = variance.sum(axis=1)
    # Shares of the largest: squares of small variances would vanish.
    shares = variance / np.where(total > 0, total, 1.0)[:, None]
    # One topic has no variance, so that its mean has no error: NaN already.
    parts = (np.square(shares) / np.maximum(topics - 1, 1)).sum(axis=1)
    freedom = np.divide(1.0, parts, out=np.full(len(parts), np.nan), where=parts > 0)
    return _t_interval(mean, np.sqrt(total), freedom, confidence)


def on_other_collections(
    differences: Sequence[CollectionDifference], confidence: float = CONFIDENCE
) -> Estimate:
    """Return the mean differences with intervals for other collections like these.

    Formula: Student's t of the C mean differences, C - 1 degrees of freedom; each collection counts
    the same
    Assumes: collections that are a sample of such collections
    """
    means = np.stack([row.mean for row in differences], axis=1)
    systems, collections = means.shape
    mean = _weighted(means, np.full(collections, 1 / collections))
    if collections < 2:
        nothing = np.full(systems, np.nan)
        return _t_interval(mean, nothing, nothing, confidence)

    error = _spread(means, np.full(systems, collections)) / math.sqrt(collections)
    freedom = np.full(systems, collections - 1.0)
    return _t_interval(mean, error, freedom, confidence)


def rank_systems(means: Matrix, confidence: float = CONFIDENCE) -> Ranking:
    """Rank systems that have all collections; `means` has shape (systems, collections), no NaN.

    Formula: the critical difference is q sqrt(k (k + 1) / (6 C)) for k systems and C collections, q
    the quantile of the studentized range of k values over sqrt(2)
    Source: Friedman, JASA 32, 1937; Nemenyi, 1963; Demsar, Journal of Machine Learning Research 7,
    2006
    """
    systems, collections = means.shape
    ranked = rank_by_topic(means)
    friedman, p_value, difference = None, math.nan, math.nan
    if systems > 1 and collections > 1:
        omnibus = analyse(means)
        friedman, p_value = omnibus.statistic, omnibus.p_value
        q = critical(1 - confidence, systems) / math.sqrt(2)
        difference = q * math.sqrt(systems * (systems + 1) / (6 * collections))

    borda: Floats = ranked.sums - collections
    return Ranking(
        borda=borda,
        mean_ranks=systems + 1 - ranked.sums / collections,
        friedman=friedman,
        p_value=p_value,
        critical_difference=difference,
        others_decide=_others_decide(means, borda),
    )


def borda_intervals(
    values: Sequence[Matrix], resamples: int, seed: int, confidence: float = CONFIDENCE
) -> tuple[Floats, Floats]:
    """Return the ends of the intervals of Borda's counts for other topics, shape (systems,) each.

    As many topics as each collection has are drawn from it with replacement, the same ones for all
    systems, and the systems counted again, `resamples` times: the ends are percentiles. As in
    `rank_systems`, all systems have all collections; a topic counts where all have a value.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapters 8 and 13
    """
    random = np.random.default_rng(seed)
    counts = np.zeros((resamples, len(values[0])))
    for matrix in values:
        topics = np.isfinite(matrix).all(axis=0)
        number = int(topics.sum())
        for start in range(0, resamples, _BATCH):
            part = counts[start : start + _BATCH]
            drawn = random.multinomial(number, np.full(number, 1 / number), size=len(part))
            means = drawn @ matrix[:, topics].T / number
            ranks, _ = rank_rows(means, ROUNDING * np.abs(means).max(axis=1))
            part += ranks - 1

    tail = (1 - confidence) / 2
    low, high = np.quantile(counts, (tail, 1 - tail), axis=0)
    return low, high


def random_effects(
    mean: Floats, error: Floats, confidence: float = CONFIDENCE
) -> RandomEffects | None:
    """Summarise the differences of two systems in C collections; None where that has no meaning.

    `mean` and `error` have shape (collections,). None for fewer than two collections, and where a
    difference has no error or no spread, or an error of 1e100 or more. The prediction interval
    needs three collections.

    Formula: with w = 1 / v: Q = sum of w (y - y_w)^2, tau^2 = max(0, (Q - (C - 1)) / (sum of w -
    sum of w^2 / sum of w)), I^2 = max(0, (Q - (C - 1)) / Q); with w* = 1 / (v + tau^2): mu = sum of
    w* y / sum of w*, se^2 = sum of w* (y - mu)^2 / ((C - 1) sum of w*), t with C - 1 degrees of
    freedom; prediction mu +- t sqrt(tau^2 + se^2) with C - 2
    Source: DerSimonian and Laird, Controlled Clinical Trials 7, 1986; Hartung and Knapp, Statistics
    in Medicine 20, 2001; Higgins and Thompson, Statistics in Medicine 21, 2002; Higgins, Thompson
    and Spiegelhalter, JRSS A 172, 2009
    Note: Where tau^2 is 0 the interval may be narrower than that of a common difference.
    """
    collections = len(mean)
    usable = (error > _LEAST_ERROR) & (error < 1 / _LEAST_ERROR)
    if collections < 2 or not (np.isfinite(mean).all() and usable.all()):
        return None

    fixed = 1 / np.square(error)
    total = fixed.sum()
    # Q and the denominator of tau^2 as sums over pairs of positive terms: by the formulas above, a
    # collection with almost all of the weight would cancel them.
    shares = fixed / total
    pairs = np.outer(shares, shares)
    np.fill_diagonal(pairs, 0.0)
    q = float(total * (pairs * np.square(mean[:, None] - mean)).sum() / 2)
    excess = max(0.0, q - (collections - 1))
    tau_squared = float(excess / (total * pairs.sum()))

    weights = 1 / (np.square(error) + tau_squared)
    weights /= weights.sum()
    centre = float(weights @ mean)
    own_error = math.sqrt(float(weights @ np.square(mean - centre)) / (collections - 1))
    estimate = _t_interval(
        np.array([centre]), np.array([own_error]), np.array([collections - 1.0]), confidence
    )

    margin = math.nan
    if collections > 2:
        quantile = float(special.stdtrit(collections - 2, (1 + confidence) / 2))
        margin = quantile * math.sqrt(tau_squared + own_error**2)
    return RandomEffects(
        mean=centre,
        error=own_error,
        low=float(estimate.low[0]),
        high=float(estimate.high[0]),
        p_value=float(estimate.p_value[0]),
        tau_squared=tau_squared,
        i_squared=excess / q if q > 0 else 0.0,
        q=q,
        prediction_low=centre - margin,
        prediction_high=centre + margin,
        weights=weights,
    )


def interval_of(difference: CollectionDifference, confidence: float = CONFIDENCE) -> Estimate:
    """Return Student's t interval of the differences in one collection."""
    freedom = np.where(difference.topics > 1, difference.topics - 1, np.nan)
    return _t_interval(difference.mean, difference.error, freedom, confidence)


def _means(values: Matrix) -> Floats:
    defined = np.isfinite(values)
    count = defined.sum(axis=1)
    sums = np.where(defined, values, 0.0).sum(axis=1)
    means: Floats = np.divide(sums, count, out=np.full(len(values), np.nan), where=count > 0)
    return means


def _weighted(means: Matrix, weights: Floats) -> Floats:
    """Return the weighted mean of each row, 0 where it is rounding: a difference has a sign."""
    mean: Floats = means @ weights
    mean[np.abs(mean) <= ROUNDING * np.abs(means).max(axis=1)] = 0.0
    return mean


def _differences(values: Matrix, reference: Floats) -> CollectionDifference:
    difference = values - reference
    topics = np.isfinite(difference).sum(axis=1)
    scale = np.nanmax(np.abs(reference), initial=0.0)
    difference[np.abs(difference) <= ROUNDING * scale] = 0.0
    error = _spread(difference, topics) / np.sqrt(np.maximum(topics, 1))
    return CollectionDifference(_means(difference), error, topics.astype(np.float64))


def _spread(values: Matrix, count: Floats | Ints) -> Floats:
    """Return the standard deviation of each row, 0 where it is rounding, NaN for one value."""
    mean = _means(values)
    squares = np.nansum(np.square(values - mean[:, None]), axis=1)
    spread = np.sqrt(squares / np.maximum(count - 1, 1))
    sizes = np.nanmax(np.abs(values), axis=1, initial=0.0)
    spread[spread <= ROUNDING * sizes] = 0.0
    return np.where(count > 1, spread, np.nan)


def _t_interval(mean: Floats, error: Floats, freedom: Floats, confidence: float) -> Estimate:
    """Return t intervals; without spread there are none, unless the mean is 0 as well."""
    spread = error > 0
    # `stdtr` and `stdtrit` answer NaN for NaN.
    statistic = np.divide(mean, error, out=np.full(len(mean), np.nan), where=spread)
    p_value = 2 * special.stdtr(freedom, -np.abs(statistic))
    margin = special.stdtrit(freedom, (1 + confidence) / 2) * error

    equal, constant = (error == 0) & (mean == 0), (error == 0) & (mean != 0)
    p_value[equal], margin[equal], margin[constant] = 1.0, 0.0, np.nan
    return Estimate(mean, error, freedom, mean - margin, mean + margin, p_value)


def _others_decide(means: Matrix, borda: Floats) -> bool:
    """Return whether leaving a third system out changes the order of two of the first ten."""
    first = np.argsort(-borda, kind="stable")[:_FIRST]
    noise = ROUNDING * np.abs(means).max(axis=0)
    # For each of the first systems what it takes from every other one; shape (first, systems).
    gap = means[first][:, None, :] - means[None, :, :]
    taken = ((gap > noise) + 0.5 * (np.abs(gap) <= noise)).sum(axis=2)

    order = np.sign(borda[first][:, None] - borda[first])
    for third in range(len(means)):
        others: Flags = first != third
        without = borda[first] - taken[:, third]
        changed = np.sign(without[:, None] - without) * order < 0
        if changed[np.ix_(others, others)].any():
            return True
    return False
