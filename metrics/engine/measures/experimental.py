"""trec_eval's experimental measures: G and binG, and nDCG averaged over ranks that matter for the
topic."""

from __future__ import annotations

import numpy as np

from metrics.engine.arrays import Floats, Ints
from metrics.engine.judgement.gains import LINEAR, GainMap
from metrics.engine.judgement.judged import JudgedRun, RankedGains, sum_by_topic
from metrics.engine.measures.ratio import ratio


def binary_g(run: JudgedRun, *, cutoff: None = None, rel: int = 1) -> Floats:
    """Binary G: each relevant document counts less the more documents that are not relevant stand
    above it.

    Formula: binG = (1 / R) sum over the relevant documents retrieved of 1 / log2(2 + documents
    above it that are not relevant)
    Range: 0 to 1
    Source: trec_eval m_binG
    """
    relevant = run.relevant(rel)
    values = 1.0 / np.log2(2 + relevant.rank - relevant.ordinal)
    return ratio(sum_by_topic(relevant.topic, values, run.n_topics), run.num_rel(rel))


def graded_g(run: JudgedRun, *, cutoff: None = None, gains: GainMap = LINEAR) -> Floats:
    """G: each document's gain counts less the further the ranking has fallen behind the ideal one.

    Formula: G = sum of G[i] / log2(2 + C(i) - CG@i) / sum of the ideal gains; C(i) = sum of
    max(I[j], 1) for j = 1..i
    Range: 0 to 1
    Source: trec_eval m_G
    """
    actual, ideal = run.gains(gains), run.ideal_gains(gains)
    excess = RankedGains(
        ideal.topic, ideal.rank, np.maximum(ideal.gain - 1, 0), run.n_topics
    ).cumulated()
    behind = actual.rank + excess.reached(actual.topic, actual.rank) - actual.cumulated().gain

    return ratio(actual.sum(np.log2(2 + behind)), ideal.sum())


def ndcg_at_levels(run: JudgedRun, *, cutoff: None = None, gains: GainMap = LINEAR) -> Floats:
    """nDCG averaged over the ranks at which the ideal ranking goes from one gain to the next.

    Formula: Rndcg = mean of nDCG@k over the ranks k at which the ideal ranking has its last
    document of a gain, and once more nDCG of the whole ranking where at least two documents more
    are retrieved than have a gain
    Range: 0 to 1
    Source: trec_eval m_Rndcg
    Elsewhere: trec_eval's description also counts the end of the documents without a gain; its code
    does not
    """
    dcg, ideal = _cumulated(run.gains(gains)), run.ideal_gains(gains)
    last = _last_of_gain(ideal)
    topic, best = ideal.topic[last], _cumulated(ideal).gain[last]
    total = sum_by_topic(topic, dcg.reached(topic, ideal.rank[last]) / best, run.n_topics)
    beyond = (run.num_ret >= ideal.count() + 2) & (ideal.count() > 0)
    ndcg = ratio(_dcg(run.gains(gains)), _dcg(ideal))

    return ratio(
        total + np.where(beyond, ndcg, 0.0), np.bincount(topic, minlength=run.n_topics) + beyond
    )


def ndcg_at_relevant(run: JudgedRun, *, cutoff: None = None, gains: GainMap = LINEAR) -> Floats:
    """nDCG averaged over the documents with a gain, each at the rank where it was retrieved.

    Formula: ndcg_rel = mean over the judged documents with a gain of nDCG@k, k the document's rank;
    nDCG of the whole ranking for a document that was not retrieved
    Range: 0 to 1
    Source: trec_eval m_ndcg_rel
    """
    actual, ideal = run.gains(gains), run.ideal_gains(gains)
    best = _cumulated(ideal).reached(actual.topic, actual.rank)
    total = sum_by_topic(actual.topic, _cumulated(actual).gain / best, run.n_topics)
    missed = ideal.count() - actual.count()
    return ratio(total + missed * ratio(_dcg(actual), _dcg(ideal)), ideal.count())


def _dcg(ranked: RankedGains) -> Floats:
    return ranked.sum(np.log2(ranked.rank + 1))


def _cumulated(ranked: RankedGains) -> RankedGains:
    return ranked.cumulated(np.log2(ranked.rank + 1))


def _last_of_gain(ideal: RankedGains) -> Ints:
    """Rows of the ideal ranking after which the gain or the topic changes."""
    last = np.ones(len(ideal.topic), np.bool_)
    last[:-1] = (ideal.topic[1:] != ideal.topic[:-1]) | (ideal.gain[1:] != ideal.gain[:-1])
    return np.flatnonzero(last)
