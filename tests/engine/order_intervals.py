"""How often intervals of the agreement of two orders hold what all topics give: real runs by two measures."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from metrics.engine.agreement import COEFFICIENTS
from metrics.engine.agreement.standings import standings
from metrics.engine.arrays import Floats, Ints
from metrics.engine.significance.pairs import Matrix
from metrics.engine.significance.resampling import Plan, draw_weights, resampled_sums
from tests.engine.calibration import Rate, Statement, rate_of, span

TOPICS, RESAMPLES, LEAST = 50, 499, {"rbo": 0.0}
SIZES = (10, 30, 60)
Ends = dict[tuple[str, str], tuple[float, float]]


def order_of(means: Floats) -> Ints:
    return standings(np.atleast_2d(means), np.zeros(len(np.atleast_2d(means)), bool))


def intervals_of(a: Matrix, other: Matrix, resamples: int, seed: int) -> Ends:
    """Return of each coefficient the percentile interval, the basic one, and the hull of both, which users get."""
    plan = Plan(draw_weights, resamples, seed)
    seen = [order_of(values.mean(axis=1)) for values in (a, other)]
    drawn = [order_of(resampled_sums(values, plan).T) for values in (a, other)]
    ends: Ends = {}
    for name, coefficient in COEFFICIENTS.items():
        value, of_drawn = float(coefficient(*seen)[0]), coefficient(*drawn)
        low, high = np.quantile(
            of_drawn[~np.isnan(of_drawn)], [0.025, 0.975], method="inverted_cdf"
        ).tolist()
        basic = (max(2 * value - high, LEAST.get(name, -1.0)), min(2 * value - low, 1.0))
        ends[name, "percentiles"], ends[name, "basic"] = (low, high), basic
        ends[name, "given"] = (min(low, basic[0]), max(high, basic[1]))
    return ends


def measured_twice(tracks: dict[str, Matrix]) -> Iterator[tuple[Matrix, Matrix]]:
    """The matrices of every two measures of a track."""
    for name, other in combinations(tracks, 2):
        if name.split("_")[0] == other.split("_")[0]:
            yield tracks[name], tracks[other]


def coverages(
    first: Matrix, other: Matrix, runs: int, collections: int, seed: int
) -> dict[tuple[str, str], Rate]:
    """How often each interval of each coefficient holds what all topics give, of some runs on topics drawn anew."""
    hits: dict[tuple[str, str], list[bool]] = {}
    for number in range(collections):
        rng = np.random.default_rng((7, seed, runs, number))
        chosen = rng.choice(len(first), runs, replace=False)
        topics = rng.integers(0, first.shape[1], TOPICS)
        both = first[chosen], other[chosen]
        true = {
            name: float(of(*(order_of(part.mean(axis=1)) for part in both))[0])
            for name, of in COEFFICIENTS.items()
        }
        drawn = [values[:, topics] for values in both]
        for key, (low, high) in intervals_of(*drawn, RESAMPLES, number).items():
            hits.setdefault(key, []).append(low - 1e-12 <= true[key[0]] <= high + 1e-12)
    return {key: rate_of(np.array(rows)) for key, rows in hits.items()}


def print_order_intervals(say: Statement, tracks: dict[str, Matrix], collections: int) -> None:
    """The table of docs/statistics.md about the agreement of orders."""
    pairs = list(measured_twice(tracks))
    say(
        f"\n{collections:,} collections of {TOPICS} topics of each of {len(pairs)} pairs of measures, B = {RESAMPLES}\n"
    )
    say(f"| runs, interval | {' | '.join(f'`{name}`' for name in COEFFICIENTS)} |")
    say(f"| --- |{' --- |' * len(COEFFICIENTS)}")
    for runs in SIZES:
        cells = [
            coverages(values, other, runs, collections, seed)
            for seed, (values, other) in enumerate(pairs)
        ]
        for kind in ("percentiles", "basic", "given"):
            row = " | ".join(span(cell[name, kind] for cell in cells) for name in COEFFICIENTS)
            say(f"| {runs}, {kind} | {row} |")
