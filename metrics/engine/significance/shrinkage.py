"""What means would be on other topics: the best of many runs looks better than it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metrics.engine.arrays import Floats
from metrics.engine.significance.anova import two_way
from metrics.engine.significance.cautions import few_topics
from metrics.engine.significance.pairs import ROUNDING, Caution, Matrix, check

# Fewer runs say too little about the distribution of their means.
MIN_RUNS = 10
_STEPS = 300
_MIN_POINTS, _MAX_POINTS = 80, 1000
# Nodes are denser near 1, where a product of many shares rises.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_SHARES = 1 - ((1 - _NODES) / 2) ** 4
_WEIGHTS = 2 * ((1 - _NODES) / 2) ** 3 * _WEIGHTS


@dataclass(frozen=True)
class Expected:
    """The mean that each run is expected to have on other topics, shape (runs,).

    `chances` has each run's estimated chance to be the best there, shape (runs,); they sum to 1.
    """

    means: Floats
    chances: Floats
    cautions: tuple[Caution, ...]


def expected_means(values: Matrix, *, lower_is_better: bool = False) -> Expected:
    """Means that are drawn towards those of similar runs, as far as chance has drawn them apart.

    Formula: m_j = t_j + noise, the noise normal with the variance V / n, V the residual variance
    after runs and topics; the distribution of the true means t_j is the one of greatest likelihood
    among all on a grid from the least to the largest mean, by 300 steps of EM from equal weights;
    e_j = E(t_j | m_j); chances = P(t_j is the best), ties shared
    Assumes: runs that err by one variance, independently once the topics are set aside; no shape of
    the true means
    Source: Kiefer and Wolfowitz, Annals of Mathematical Statistics 27(4), 1956 (nonparametric
    maximum likelihood); Laird, JASA 73, 1978 (by EM); Efron, Large-Scale Inference, 2010, chapter
    1, and Koenker and Mizera, JASA 109, 2014 (for the best of many)
    Note: At least 10 runs. The chances are estimates; they do not bound how often the best is among
    the likeliest runs. Raises StatisticsError for fewer runs.
    """
    check(values, "an expected mean", runs=MIN_RUNS)
    runs, topics = values.shape
    means = values.mean(axis=1)
    spread = float(np.ptp(means))
    deviation = float(np.sqrt(two_way(values).residual_variance / topics))
    cautions = tuple(few_topics(topics))

    # Without noise, or without a difference but for rounding, the means stay.
    rounding = ROUNDING * float(np.abs(means).max())
    if min(spread, deviation) <= rounding:
        first = means.min() if lower_is_better else means.max()
        best = np.abs(means - first) <= rounding
        return Expected(means, best / best.sum(), cautions)

    points = int(np.clip(np.ceil(4 * spread / deviation), _MIN_POINTS, _MAX_POINTS))
    grid = np.linspace(means.min(), means.max(), points)
    z = (means[:, None] - grid) / deviation
    squares = z * z / 2

    likelihood = np.exp(squares.min(axis=1, keepdims=True) - squares)
    weights = np.full(points, 1 / points)
    for _ in range(_STEPS):
        weights = weights * (likelihood.T @ (1 / (likelihood @ weights))) / runs

    posteriors = likelihood * weights
    posteriors /= posteriors.sum(axis=1, keepdims=True)

    upwards = posteriors[:, ::-1] if lower_is_better else posteriors
    return Expected(posteriors @ grid, chances_to_be_best(upwards), cautions)


def chances_to_be_best(distributions: Matrix) -> Floats:
    """Return the chance of each of some independent variables to be the largest; those that tie
    share it.

    `distributions` has a row for each variable, the chances of the same ascending values, shape
    (variables, values).
    """
    below = np.cumsum(distributions, axis=1) - distributions
    chances = np.zeros(len(distributions))
    # A uniform variable breaks ties: P(best) is the integral over it of P(all others are below).
    for share, weight in zip(_SHARES, _WEIGHTS, strict=True):
        logs = np.log(np.maximum(below + share * distributions, np.finfo(float).tiny))
        others = np.exp(logs.sum(axis=0) - logs)
        chances += weight * (distributions * others).sum(axis=1)

    total: Floats = chances / chances.sum()
    return total
