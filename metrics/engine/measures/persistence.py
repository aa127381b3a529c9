"""Rank-biased measures: the user goes on to the next document with probability p, whatever came
before."""

from __future__ import annotations

import numpy as np

from metrics.engine.arrays import Floats, Ints
from metrics.engine.judgement.gains import LINEAR, GainMap
from metrics.engine.judgement.judged import JudgedRun, RankedGains, sum_by_topic


def rbp(
    run: JudgedRun,
    *,
    cutoff: int | None = None,
    p: float = 0.8,
    rel: int | None = None,
    gains: GainMap = LINEAR,
) -> Floats:
    """Rank-biased precision: gain per document for a user who goes on to the next one with
    probability p.

    Formula: RBP = (1 - p) sum of g[i] p^(i - 1), down to the cutoff; with rel, g = 1 at that level
    or above and 0 below; without, g is the gain divided by the largest gain in the topic's recall
    base where that is above 1
    Range: 0 to 1
    Source: Moffat and Zobel, ACM TOIS 27(1), 2008; graded as in trec_eval 10 m_rbp
    Elsewhere: trec_eval's rbp is RBP(p=0.9), with gains scaled per topic; its code leaves the
    bounds it scales by to chance and works where they start at 0. ir_measures' default is p = 0.8;
    behind it cwl_eval, with rel, scales the weights of ranks 1..1000 to 1, which shows for p above
    0.99, and trectools, without rel, multiplies by the level itself and averages over ties
    """
    ranked = _graded(run, gains) if rel is None else _binary(run, rel)
    within = slice(None) if cutoff is None else ranked.rank <= cutoff
    worth = ranked.gain[within] * np.power(p, ranked.rank[within] - 1.0)
    return (1 - p) * sum_by_topic(ranked.topic[within], worth, run.n_topics)


def rbp_residual(run: JudgedRun, *, cutoff: int | None = None, p: float = 0.8) -> Floats:
    """Residual of rank-biased precision: how much RBP could gain if all that is unknown were of the
    highest level.

    Formula: p^n + (1 - p) sum of p^(i - 1) over the unjudged documents in ranks 1..n, where n is
    the number retrieved, k at most; a level below 0 counts as unjudged; 1 for a topic the run did
    not answer
    Range: 0 to 1, lower is more certain
    Source: Moffat and Zobel, ACM TOIS 27(1), 2008, section 4
    Elsewhere: trec_eval's rbp_resid is RBPResidual(p=0.9), but gives 0 instead of p^n where every
    retrieved document is judged
    """
    judged = run.level >= 0 if cutoff is None else (run.level >= 0) & (run.rank <= cutoff)
    worth = np.power(p, run.rank[judged] - 1.0).astype(np.float64, copy=False)
    return 1 - (1 - p) * sum_by_topic(run.topic[judged], worth, run.n_topics)


def _binary(run: JudgedRun, rel: int) -> RankedGains:
    """Return the relevant documents with a gain of 1."""
    relevant = run.relevant(rel)
    return RankedGains(relevant.topic, relevant.rank, np.ones(len(relevant.rank)), run.n_topics)


def _graded(run: JudgedRun, gains: GainMap) -> RankedGains:
    """Return the gains divided by the largest gain of the topic, or by 1 if that is less."""
    ranked, base = run.gains(gains), run.recall_base
    largest = np.ones(run.n_topics)
    np.maximum.at(largest, base.topic, gains.of(base.level))
    return RankedGains(ranked.topic, ranked.rank, ranked.gain / largest[ranked.topic], run.n_topics)


def compat(
    run: JudgedRun, *, cutoff: None = None, p: float = 0.95, normalize: bool = True
) -> Floats:
    """Compatibility: the rank-biased overlap of the ranking with the ideal ranking that is most
    like it.

    Formula: Compat = sum of p^(i - 1) X[i] / i for i = 1..D, divided by what the ideal ranking has
    with itself (normalize=True) or by the sum of p^(i - 1); X[i] counts the documents that are in
    the first i of both; the ideal ranking holds the documents above level 0, best level first,
    within a level in the run's order and then those not retrieved; D is the length of the longer of
    the two
    Range: 0 to 1
    Source: Clarke, Vtyurina and Smucker, ACM TOIS 39(1), 2020; ir_measures Compat
    Elsewhere: ir_measures breaks ties by ascending doc_id, and gives documents that were not
    retrieved a score of 0 within their level, so that they come before documents retrieved with a
    negative score
    """
    rows = run.level > 0
    topic, size = run.topic[rows], run.num_rel(1)
    depth = np.maximum(run.num_ret, size)
    ranks = np.arange(1.0, depth.max(initial=0) + 1)
    upto = np.append(0.0, np.cumsum(p ** (ranks - 1) / ranks))
    joint_rank = np.maximum(run.rank[rows], _ideal_rank(run)[rows])
    overlap = sum_by_topic(topic, upto[depth[topic]] - upto[joint_rank - 1], run.n_topics)
    normaliser = (1 - p**depth) / (1 - p)

    if normalize:
        normaliser = (1 - p**size) / (1 - p) + size * (upto[depth] - upto[size])
    result = np.zeros(run.n_topics)
    np.divide(overlap, normaliser, out=result, where=size > 0)

    return result


def _ideal_rank(run: JudgedRun) -> Ints:
    """Return where the ideal ranking of Compat has each retrieved judged document; same shape as
    `run.level`."""
    # How many judged documents of the topic are at a better level, retrieved or not.
    base = run.recall_base
    levels, code = np.unique(base.level, return_inverse=True)
    better = np.cumsum(base.counts) - base.counts
    better -= better[np.searchsorted(base.topic, base.topic)]

    # How many retrieved documents of the same level come before each.
    group = run.topic * len(levels) - np.searchsorted(levels, run.level)
    order = np.argsort(group, kind="stable")
    within = np.empty(len(order), np.int64)
    within[order] = np.arange(len(order)) - np.searchsorted(group[order], group[order])

    row = np.searchsorted(base.topic * len(levels) - code, group)
    return better[row] + within + 1
