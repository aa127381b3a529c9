"""How often intervals of weighted differences hold the truth, in simulated collections."""

from __future__ import annotations

import numpy as np

from metrics.engine.arrays import Floats
from metrics.engine.significance.pairs import Options
from metrics.engine.significance.weighted import weighted_difference
from tests.engine.calibration import Statement

SIZES = (20, 50, 200)
# The weight of the topic at rank r is r to the power of minus this: equal ones, and Zipf's law.
POWERS = (0.0, 0.5, 1.0)
_FEW = Options(resamples=100)


def rate(collections: int, topics: int, power: float) -> float:
    """Return the share of collections whose 95% interval holds the true difference, which is 0."""
    rng = np.random.default_rng([topics, int(10 * power)])
    weights: Floats = np.arange(1, topics + 1) ** -power
    none = np.zeros(topics)

    hits = 0
    for differences in rng.normal(size=(collections, topics)):
        result = weighted_difference(differences, none, weights, _FEW)
        hits += result.low <= 0 <= result.high
    return hits / collections


def print_weighted_intervals(say: Statement, collections: int) -> None:
    """The figures of docs/api/comparisons.md about weights of topics."""
    say(
        f"\n95% intervals of weighted differences that hold the truth, {collections:,} collections\n"
    )
    say("| topics | equal weights | r^-0.5 | Zipf's law |\n| --- | --- | --- | --- |")
    for topics in SIZES:
        shares = " | ".join(f"{rate(collections, topics, power):.1%}" for power in POWERS)
        say(f"| {topics} | {shares} |")
