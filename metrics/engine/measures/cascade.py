"""Cascade measures: the user looks down the ranking and may stop at every document, the sooner the better it is."""

from __future__ import annotations

import numpy as np

from metrics.engine.judged import JudgedRun, sum_by_topic
from metrics.engine.measures.weighting import DEPTH, goal_weight, scaled_gains, weighted_gain
from metrics.engine.ranking import Floats
from metrics.engine.running import before, running_product


def err(run: JudgedRun, *, cutoff: int | None = None, max_rel: int = 4) -> Floats:
    """Expected reciprocal rank: one over the rank at which a user who may stop at every document stops.

    Formula: ERR@k = sum of s[i] / i times the product of 1 - s[j] for j < i, over i = 1..k; s[i] = (2^l[i] - 1) /
    2^max_rel; levels above max_rel count as max_rel, negative ones as 0
    Range: 0 to 1
    Source: Chapelle, Metzler, Zhang and Grinspan, CIKM 2009, algorithm 2; max_rel = 4 as in gdeval 1.2a
    Elsewhere: gdeval, and with it ir_measures, fixes max_rel at 4, refuses qrels with a level above 4 and rounds to
    five decimals; other tools take the highest level of the qrels, so that the same run has another ERR there
    """
    level = np.clip(run.level, 0, max_rel)
    kept = level > 0 if cutoff is None else (level > 0) & (run.rank <= cutoff)
    topic = run.topic[kept]
    stop = np.exp2(level[kept] - float(max_rel)) - np.exp2(-float(max_rel))
    reach = before(topic, running_product(topic, 1.0 - stop), 1.0)
    return sum_by_topic(topic, reach * stop / run.rank[kept], run.n_topics)


def nerr8(run: JudgedRun, *, cutoff: int, max_rel: int, min_rel: int = 0) -> Floats:
    """Nearly expected reciprocal rank, equation 8: gain per document for a user whom gain stops, at rank k at last.

    Formula: sum of W[i] g[i], W[i] proportional to the product of C[1..i-1]; C[i] = 1 - g[i] for i < k, 0 from k on;
    g = (level - min_rel) / (max_rel - min_rel), the level clipped to that interval
    Range: 0 to 1
    Source: Azzopardi, Mackenzie and Moffat, ICTIR 2021, equation 8
    Elsewhere: cwl_eval, and with it ir_measures, looks at no more than 1000 ranks, here k may be larger
    """
    return weighted_gain(scaled_gains(run, min_rel, max_rel, cutoff), np.ones(cutoff), stops=True)


def nerr9(run: JudgedRun, *, cutoff: int, max_rel: int, min_rel: int = 0) -> Floats:
    """Nearly expected reciprocal rank, equation 9: as equation 8, with a discount of 1 / rank.

    Formula: as NERR8 with C[i] = i / (i + 1) (1 - g[i]) for i < k, 0 from k on
    Range: 0 to 1
    Source: Azzopardi, Mackenzie and Moffat, ICTIR 2021, equation 9
    Elsewhere: cwl_eval, and with it ir_measures, looks at no more than 1000 ranks, here k may be larger
    """
    weight = 1.0 / np.arange(1, cutoff + 1)
    return weighted_gain(scaled_gains(run, min_rel, max_rel, cutoff), weight, stops=True)


def nerr10(run: JudgedRun, *, max_rel: int, cutoff: None = None, p: float = 0.9, min_rel: int = 0) -> Floats:
    """Nearly expected reciprocal rank, equation 10: gain stops the user, and so does impatience as in RBP.

    Formula: as NERR8 with C[i] = p (1 - g[i]), over ranks 1..1000
    Range: 0 to 1
    Source: Azzopardi, Mackenzie and Moffat, ICTIR 2021, equation 10; 1000 ranks as in cwl_eval and ir_measures
    """
    weight = np.power(p, np.arange(DEPTH, dtype=np.float64))
    return weighted_gain(scaled_gains(run, min_rel, max_rel, DEPTH), weight, stops=True)


def nerr11(
    run: JudgedRun,
    *,
    max_rel: int,
    cutoff: None = None,
    T: float = 1.0,  # noqa: N803 - the papers' letter
    min_rel: int = 0,
) -> Floats:
    """Nearly expected reciprocal rank, equation 11: gain stops the user, and so does effort as in INSQ.

    Formula: as NERR8 with C[i] = ((i + 2T - 1) / (i + 2T))^2 (1 - g[i]), over ranks 1..1000
    Range: 0 to 1
    Source: Azzopardi, Mackenzie and Moffat, ICTIR 2021, equation 11; 1000 ranks as in cwl_eval and ir_measures
    """
    return weighted_gain(scaled_gains(run, min_rel, max_rel, DEPTH), goal_weight(T), stops=True)
