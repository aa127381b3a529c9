"""Cascade measures: the user looks down the ranking and may stop at every document, the sooner the
better it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from metrics.engine.arrays import Floats, Ints
from metrics.engine.compiled.running import before, running_product
from metrics.engine.judgement.gains import EXP, GainMap
from metrics.engine.judgement.judged import JudgedRun, best_order, sum_by_topic
from metrics.engine.measures.ratio import ratio
from metrics.engine.measures.weighting import DEPTH, goal_weight, scaled_gains, weighted_gain


def err(
    run: JudgedRun, *, cutoff: int | None = None, gains: GainMap = EXP, max_rel: int = 4
) -> Floats:
    """Expected reciprocal rank: one over the rank at which a user who may stop at every document
    stops.

    Formula: ERR@k = sum of s[i] / i times the product of 1 - s[j] for j < i, over i = 1..k; s = g /
    (g_max + 1), g_max being the highest gain of a level from 0 to max_rel, which is (2^level - 1) /
    2^max_rel for gains='exp'; levels above max_rel count as max_rel, negative ones as 0
    Range: 0 to 1
    Source: Chapelle, Metzler, Zhang and Grinspan, CIKM 2009, algorithm 2; max_rel = 4 as in gdeval
    1.2a
    Elsewhere: gdeval, and with it ir_measures, fixes max_rel at 4, refuses qrels with a level above
    4 and rounds to five decimals; other tools take the highest level of the qrels, so that the same
    run has another ERR there. NTCIREVAL takes the gains that it is given, mostly gains='linear'
    """
    gain = gains.of(np.minimum(run.level, max_rel))
    rows = gain > 0 if cutoff is None else (gain > 0) & (run.rank <= cutoff)
    stop = gain[rows] / (_highest(gains, max_rel) + 1)
    return _expected_reciprocal_rank(run.topic[rows], run.rank[rows], stop, run.n_topics)


def nerr(
    run: JudgedRun, *, cutoff: int | None = None, gains: GainMap = EXP, max_rel: int = 4
) -> Floats:
    """Normalised expected reciprocal rank: the share of what the ideal ranking has.

    Formula: nERR@k = ERR@k / ERR@k of all judged documents in descending order of gain; 0 for a
    topic without a gain
    Range: 0 to 1
    Source: Sakai and Song, SIGIR 2011; Chapelle, Metzler, Zhang and Grinspan, CIKM 2009
    Elsewhere: NTCIREVAL takes the gains that it is given, mostly gains='linear', and for max_rel
    the highest level of the scale. NERR8 to NERR11, the nearly expected reciprocal ranks, are
    divided by the weights of the ranks, not by an ideal ranking; nERR_IA is an average over
    subtopics
    """
    base = run.recall_base
    best = best_order(replace(base, level=np.minimum(base.level, max_rel)), gains).within(cutoff)
    stop = best.gain / (_highest(gains, max_rel) + 1)
    ideal = _expected_reciprocal_rank(best.topic, best.rank, stop, run.n_topics)
    return ratio(err(run, cutoff=cutoff, gains=gains, max_rel=max_rel), ideal)


def _highest(gains: GainMap, max_rel: int) -> float:
    return float(gains.of(np.arange(max_rel + 1)).max())


def _expected_reciprocal_rank(topic: Ints, rank: Ints, stop: Floats, n_topics: int) -> Floats:
    """Return the mean of 1 / rank over users who stop at each listed document with its probability;
    shape (topics,)."""
    reach = before(topic, running_product(topic, 1.0 - stop), 1.0)
    return sum_by_topic(topic, reach * stop / rank, n_topics)


def nerr8(run: JudgedRun, *, cutoff: int, max_rel: int, min_rel: int = 0) -> Floats:
    """Nearly expected reciprocal rank, equation 8: gain per document for a user whom gain stops, at
    rank k at last.

    Formula: sum of W[i] g[i], W[i] proportional to the product of C[1..i-1]; C[i] = 1 - g[i] for i
    < k, 0 from k on; g = (level - min_rel) / (max_rel - min_rel), the level clipped to that
    interval
    Range: 0 to 1
    Source: Azzopardi, Mackenzie and Moffat, ICTIR 2021, equation 8
    Elsewhere: cwl_eval, and with it ir_measures, looks at no more than 1000 ranks, here k may be
    larger
    """
    return weighted_gain(scaled_gains(run, min_rel, max_rel, cutoff), np.ones(cutoff), stops=True)


def nerr9(run: JudgedRun, *, cutoff: int, max_rel: int, min_rel: int = 0) -> Floats:
    """Nearly expected reciprocal rank, equation 9: as equation 8, with a discount of 1 / rank.

    Formula: as NERR8 with C[i] = i / (i + 1) (1 - g[i]) for i < k, 0 from k on
    Range: 0 to 1
    Source: Azzopardi, Mackenzie and Moffat, ICTIR 2021, equation 9
    Elsewhere: cwl_eval, and with it ir_measures, looks at no more than 1000 ranks, here k may be
    larger
    """
    weight = 1.0 / np.arange(1, cutoff + 1)
    return weighted_gain(scaled_gains(run, min_rel, max_rel, cutoff), weight, stops=True)


def nerr10(
    run: JudgedRun, *, max_rel: int, cutoff: None = None, p: float = 0.9, min_rel: int = 0
) -> Floats:
    """Nearly expected reciprocal rank, equation 10: gain stops the user, and so does impatience as
    in RBP.

    Formula: as NERR8 with C[i] = p (1 - g[i]), over ranks 1..1000
    Range: 0 to 1
    Source: Azzopardi, Mackenzie and Moffat, ICTIR 2021, equation 10; 1000 ranks as in cwl_eval and
    ir_measures
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
    """Nearly expected reciprocal rank, equation 11: gain stops the user, and so does effort as in
    INSQ.

    Formula: as NERR8 with C[i] = ((i + 2T - 1) / (i + 2T))^2 (1 - g[i]), over ranks 1..1000
    Range: 0 to 1
    Source: Azzopardi, Mackenzie and Moffat, ICTIR 2021, equation 11; 1000 ranks as in cwl_eval and
    ir_measures
    """
    return weighted_gain(scaled_gains(run, min_rel, max_rel, DEPTH), goal_weight(T), stops=True)
