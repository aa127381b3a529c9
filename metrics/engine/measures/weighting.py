"""Weighted gain: the average gain of the documents a user looks at, in the C/W/L framework.

A user goes on from rank i to i + 1 with probability C[i]; the weight W[i] of rank i is the product
of C[1..i-1], scaled so that the weights add up to 1; the measure is the sum of W[i] times the gain
at rank i.
"""

from __future__ import annotations

import numpy as np

from metrics.engine.arrays import Floats, Ints
from metrics.engine.compiled.running import before, running_product
from metrics.engine.judgement.judged import JudgedRun, RankedGains, sum_by_topic
from metrics.engine.measures.ratio import ratio

# Without a cutoff, weights cover this many ranks, as in cwl_eval.
DEPTH = 1000


def scaled_levels(level: Ints, min_rel: int, max_rel: int) -> Ints:
    """Levels clipped to [min_rel, max_rel], negative ones taken as 0, and counted from min_rel;
    same shape."""
    return np.clip(np.maximum(level, 0), min_rel, max_rel) - min_rel


def scaled_gains(run: JudgedRun, min_rel: int, max_rel: int, depth: int) -> RankedGains:
    """Return the retrieved documents down to `depth` with a gain above 0: min_rel gains 0, max_rel
    gains 1."""
    gain = scaled_levels(run.level, min_rel, max_rel) / (max_rel - min_rel)
    rows = (gain > 0) & (run.rank <= depth)
    return RankedGains(run.topic[rows], run.rank[rows], gain[rows], run.n_topics)


def goal_weight(goal: float) -> Floats:
    """Weights of ranks 1..1000 for a user with goal T who goes on with probability ((i + 2T - 1) /
    (i + 2T))^2."""
    return np.square(2 * goal / (np.arange(DEPTH, dtype=np.float64) + 2 * goal))


def weighted_gain(ranked: RankedGains, weight: Floats, *, stops: bool) -> Floats:
    """Average gain under weights by rank; shape (topics,). With `stops` a gain g ends the search
    with probability g."""
    topic, gain, index = ranked.topic, ranked.gain, ranked.rank - 1
    if not stops:
        return sum_by_topic(topic, gain * weight[index], ranked.n_topics) / float(weight.sum())

    reach = before(topic, running_product(topic, 1.0 - gain), 1.0)
    reached = np.cumsum(weight)
    expected = sum_by_topic(topic, reach * gain * weight[index], ranked.n_topics)
    unseen = sum_by_topic(topic, reach * gain * (reached[-1] - reached[index]), ranked.n_topics)

    return ratio(expected, reached[-1] - unseen)
