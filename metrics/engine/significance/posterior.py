"""The chances of a mean difference below, within and above a region of practical equivalence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from metrics.engine.arrays import Floats, Ints
from metrics.engine.significance.paired_t import mean_and_error
from metrics.engine.significance.pairs import DEFAULTS, Matrix, Options, check, noise_of
from metrics.engine.significance.resampling import generator_of

# More draws of topic weights move a chance by less than half a per cent.
MOST_DRAWS = 10_000
# The most draws at once, and the most weights of these.
_AT_ONCE, _WEIGHTS_AT_ONCE = 250, 4_000_000


@dataclass(frozen=True)
class Chances:
    """One entry per pair: the chance that the first run's mean is lower by more than the region,
    that the difference is within it, and that it is higher; they sum to one, or are NaN."""

    lower: Floats
    equal: Floats
    higher: Floats


def bayes_t(
    values: Matrix, first: Ints, second: Ints, rope: float, options: Options = DEFAULTS
) -> Chances:
    """Student's posterior of the mean difference of each pair.

    Formula: mean(d) + e T, e = sd(d) / sqrt(n), T of n - 1 degrees of freedom; lower = P(below
    -rope), higher = P(above rope), equal the rest
    Assumes: normal differences, and the prior that favours no mean and no logarithm of the
    deviation
    Source: Jeffreys, Theory of Probability, 1961; for retrieval Sakai, SIGIR 2017; the region:
    Kruschke, Advances in Methods and Practices in Psychological Science 1(2), 2018
    Note: With a region of 0, `higher` is 1 - p of the one-sided t test: the same data, another
    question. Runs that are equal on every topic have equal = 1; another difference without spread
    has no chances.
    """
    check(values, "a posterior")
    difference, error = mean_and_error(values, first, second)
    error_or_nan, freedom = np.where(error > 0, error, np.nan), values.shape[1] - 1
    lower = special.stdtr(freedom, -(difference + rope) / error_or_nan)
    higher = special.stdtr(freedom, (difference - rope) / error_or_nan)

    return _without_spread(lower, higher, difference, error)


def bayes_bootstrap(
    values: Matrix, first: Ints, second: Ints, rope: float, options: Options = DEFAULTS
) -> Chances:
    """Posterior of the mean difference of each pair by the Bayesian bootstrap, which assumes no
    distribution.

    Formula: the shares of B draws in which the sum of w d is below -rope, from -rope to rope, and
    above, w the weights of the topics, of a Dirichlet distribution whose parameters are all 1
    Assumes: topics that are a random sample; no mean beyond the differences that were seen
    Source: Rubin, Annals of Statistics 9(1), 1981
    Note: B is `resamples`, at most 10,000; the same weights serve all pairs. Where topics are few
    its tails are too thin: the variance is that of mean(d) times (n - 1) / (n + 1).
    """
    check(values, "a posterior")
    difference, error = mean_and_error(values, first, second)
    draws, topics = min(options.resamples, MOST_DRAWS), values.shape[1]
    runs, places = np.unique(np.concatenate([first, second]), return_inverse=True)
    a, b = places[: len(first)], places[len(first) :]
    noise = noise_of(values, first, second)[:, None]
    counts, at_once = np.zeros((2, len(first))), max(1, min(_AT_ONCE, _WEIGHTS_AT_ONCE // topics))
    columns = np.ascontiguousarray(values[runs].T)

    generator = generator_of(options.seed, 0)
    for begin in range(0, draws, at_once):
        weights = generator.standard_exponential((min(at_once, draws - begin), topics))
        weights /= weights.sum(axis=1, keepdims=True)
        means = np.ascontiguousarray((weights @ columns).T)
        differences = means[a] - means[b]
        # A difference at the end of the region, but for rounding, is within it.
        counts[0] += np.count_nonzero(differences < -rope - noise, axis=1)
        counts[1] += np.count_nonzero(differences > rope + noise, axis=1)

    return _without_spread(counts[0] / draws, counts[1] / draws, difference, error)


def _without_spread(lower: Floats, higher: Floats, difference: Floats, error: Floats) -> Chances:
    """Return the chances, with those of pairs without spread replaced."""
    identical, constant = (error == 0) & (difference == 0), (error == 0) & (difference != 0)
    lower, higher = (
        np.where(identical, 0.0, np.where(constant, np.nan, side)) for side in (lower, higher)
    )
    return Chances(lower, np.maximum(1 - lower - higher, 0.0), higher)


Posterior = Callable[[Matrix, Ints, Ints, float, Options], Chances]
POSTERIORS: dict[str, Posterior] = {"bayes_t": bayes_t, "bayes_bootstrap": bayes_bootstrap}
