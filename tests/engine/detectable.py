"""How often a true difference of the size that a comparison names is found: of real runs, on new samples of topics."""

from __future__ import annotations

import numpy as np

from metrics.engine.arrays import Floats
from metrics.engine.significance.effect_sizes import detectable_difference
from metrics.engine.significance.paired_t import compare
from metrics.engine.significance.pairs import Matrix
from tests.engine.calibration import ALPHA, Statement

SIZES, SAMPLES = (6, 10, 15, 20, 25, 50), 300
FIRST, SECOND = np.array([0]), np.array([1])


def power_at_detectable(values: Matrix, topics: int, pairs: int, seed: int) -> Floats:
    """Return the share of new samples that find a true difference as large as the one that a comparison names.

    Two runs are drawn, and topics with replacement until a t test does not separate the runs: then
    the difference is named. Their differences over all topics, moved to that mean, are what new
    samples are drawn from.
    """
    rng, shares = np.random.default_rng((6, seed, topics)), []
    while len(shares) < pairs:
        two = values[rng.choice(len(values), 2, replace=False)]
        sample = two[:, rng.integers(0, values.shape[1], topics)]
        result = compare(sample, FIRST, SECOND)
        if not result.p_value[0] >= ALPHA or result.high[0] == result.low[0]:
            continue

        error = (sample[0] - sample[1]).std(ddof=1) / np.sqrt(topics)
        differences = two[0] - two[1]
        moved = differences - differences.mean() + detectable_difference(error, topics - 1, 0.95)
        drawn = moved[rng.integers(0, len(moved), (SAMPLES, topics))]
        outcome = compare(
            np.vstack([drawn, np.zeros(topics)]), np.arange(SAMPLES), np.full(SAMPLES, SAMPLES)
        )
        shares.append(np.mean(outcome.low > 0))
    return np.array(shares)


def print_detectable(say: Statement, tracks: dict[str, Matrix], pairs: int) -> None:
    """The table of docs/statistics.md about the detectable difference."""
    say("| topics | found | by matrix |")
    say("| --- | --- | --- |")
    for topics in SIZES:
        shares = np.array(
            [
                power_at_detectable(values, topics, pairs, seed)
                for seed, values in enumerate(tracks.values())
            ]
        )
        by_matrix = 100 * shares.mean(axis=1)
        error = 100 * shares.std() / np.sqrt(shares.size)
        say(
            f"| {topics} | {by_matrix.mean():.1f} ± {error:.1f} % | {by_matrix.min():.0f} to {by_matrix.max():.0f} % |"
        )
