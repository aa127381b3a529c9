"""What orders of systems would be on other topics: those at hand, drawn with replacement."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metrics.engine.agreement import COEFFICIENTS
from metrics.engine.agreement.standings import standings
from metrics.engine.errors import StatisticsError
from metrics.engine.ranking import Floats, Ints
from metrics.engine.significance.pairs import Matrix, Options, check
from metrics.engine.significance.resampling import Plan, draw_weights, resampled_sums

# An order of every resample is held at once.
DEFAULTS = Options(resamples=2_000)


@dataclass(frozen=True)
class RankIntervals:
    """One entry per run: its rank, the interval it has over resamples of topics, and its share of first places."""

    rank: Ints
    low: Ints
    high: Ints
    share_first: Floats


@dataclass(frozen=True)
class Agreement:
    """A coefficient between two orders, with its interval; NaN where an order is one tie."""

    value: float
    low: float
    high: float


def rank_intervals(values: Matrix, options: Options = DEFAULTS, *, lower_is_better: bool = False) -> RankIntervals:
    """The percentile interval of each run's rank over bootstrap samples of the topics.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13; for league tables Goldstein and
    Spiegelhalter, Journal of the Royal Statistical Society A 159, 1996
    """
    check(values, "a rank interval")
    ranks = _resampled_ranks(values, options, lower_is_better)
    low, high = _percentiles(ranks, options.confidence)
    observed = standings(values.mean(axis=1)[None, :], np.array([lower_is_better]))[0]
    return RankIntervals(observed, low.astype(np.int64), high.astype(np.int64), (ranks == 1).mean(axis=0))


def order_agreement(
    first: Matrix,
    second: Matrix,
    coefficient: str = "tau",
    options: Options = DEFAULTS,
    *,
    lower_is_better: tuple[bool, bool] = (False, False),
) -> Agreement:
    """How far the orders of the same runs under two measures, or two qrels, agree; topics drawn together.

    Shapes: `first` and `second` (runs, topics). Raises StatisticsError for an unknown coefficient or shapes that
    differ.
    """
    if coefficient not in COEFFICIENTS:
        message = f"unknown coefficient {coefficient!r}; known: {', '.join(COEFFICIENTS)}"
        raise StatisticsError(message, code="bad_parameter", pointer="coefficient")
    if first.shape != second.shape:
        raise StatisticsError(f"two orders need the same runs and topics, not {first.shape} and {second.shape}")
    both = [(first, lower_is_better[0]), (second, lower_is_better[1])]
    for values, _ in both:
        check(values, "an agreement of orders", runs=2)
    observed = [standings(values.mean(axis=1)[None, :], np.array([lower])) for values, lower in both]
    drawn = [_resampled_ranks(values, options, lower) for values, lower in both]
    compare = COEFFICIENTS[coefficient]
    found = compare(drawn[0], drawn[1])
    found = found[~np.isnan(found)]
    low, high = _percentiles(found, options.confidence) if len(found) else (np.nan, np.nan)
    return Agreement(float(compare(observed[0], observed[1])[0]), float(low), float(high))


def _resampled_ranks(values: Matrix, options: Options, lower_is_better: bool) -> Ints:
    """Shape (resamples, runs)."""
    sums = resampled_sums(values, Plan(draw_weights, options.resamples, options.seed))
    return standings(sums.T, np.full(options.resamples, lower_is_better))


def _percentiles(found: Ints | Floats, confidence: float) -> Floats:
    """The ends of the middle part, both of them among what was found."""
    levels = [(1 - confidence) / 2, (1 + confidence) / 2]
    ends: Floats = np.quantile(found, levels, axis=0, method="inverted_cdf")
    return ends
