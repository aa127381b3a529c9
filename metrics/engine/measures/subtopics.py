"""Measures of novelty and diversity: how much of a topic's subtopics a ranking covers, and how
early.

Every iteration of a topic that has a relevant judgement is one of its subtopics, all of the same
weight. Where a topic has one iteration only, or the iterations are no subtopics, the topic is its
own one subtopic.
"""

from __future__ import annotations

import math

import numpy as np

from metrics.engine.arrays import Floats
from metrics.engine.judgement.judged import JudgedRun, sum_by_topic
from metrics.engine.judgement.subtopics import Coverage
from metrics.engine.measures.ratio import ratio

# What comes after so small a share of the first rank's weight changes no digit of a double.
_NEGLIGIBLE = 1e-16
# The measures of this module by the names of their definitions.
OF_SUBTOPICS = (
    "StRecall", "alpha_nDCG", "alpha_DCG", "ERR_IA", "nERR_IA", "NRBP", "nNRBP", "P_IA", "AP_IA",
)  # fmt: skip


def subtopic_recall(run: JudgedRun, *, cutoff: int, rel: int = 1) -> Floats:
    """Subtopic recall at k, also known as instance recall: the share of the subtopics found in the
    first k documents.

    Formula: StRecall@k = subtopics with a relevant document in ranks 1..k / N; N is the number of
    the topic's subtopics that have a relevant document at all
    Range: 0 to 1
    Source: Zhai, Cohen and Lafferty, SIGIR 2003; ndeval strec
    Elsewhere: subtopics without a relevant document count in the N of the paper, not in that of
    ndeval
    """
    cover = run.coverage(rel)
    return ratio(_sum(cover, (cover.earlier == 0).astype(np.float64), cutoff), cover.subtopics)


def alpha_dcg(run: JudgedRun, *, cutoff: int, alpha: float = 0.5, rel: int = 1) -> Floats:
    """Alpha-DCG: discounted gain of new subtopics, as a share of what no ranking could exceed.

    Formula: alpha_DCG@k = sum of G[i] / log2(i + 1) for i = 1..k / (N sum of (1 - alpha)^(i - 1) /
    log2(i + 1)); G[i] adds (1 - alpha)^c for every subtopic that document i is relevant to and c
    documents above it were; N subtopics have a relevant document
    Range: 0 to 1
    Source: Clarke, Kolla, Cormack, Vechtomova, Ashkan, Büttcher and MacKinnon, SIGIR 2008, equation
    7; the normalisation is that of ndeval alpha-DCG
    Elsewhere: ndeval, and with it ir_measures, does not normalise at k = 1, where its figure is the
    number of subtopics
    """
    cover, ranks = run.coverage(rel), np.arange(1.0, cutoff + 1)
    maximum = np.sum(np.power(1.0 - alpha, ranks - 1) / np.log2(ranks + 1))
    return ratio(_alpha_dcg(cover, alpha, cutoff) / maximum, cover.subtopics)


def alpha_ndcg(run: JudgedRun, *, cutoff: int, alpha: float = 0.5, rel: int = 1) -> Floats:
    """Alpha-nDCG: discounted gain of new subtopics, as a share of that of the greedy ideal ranking.

    Formula: alpha_nDCG@k = sum of G[i] / log2(i + 1) for i = 1..k / the same of the ideal ranking,
    G as in alpha_DCG; the ideal ranking takes the judged document that gains most next, of several
    the one with the highest doc_id
    Range: 0 to 1, above 1 where a ranking beats the greedy ideal
    Source: Clarke, Kolla, Cormack, Vechtomova, Ashkan, Büttcher and MacKinnon, SIGIR 2008, section
    5; ndeval alpha-nDCG
    Elsewhere: ndeval, and with it ir_measures, stops at k = 20, here 100; ir_measures breaks ties
    of the run by ascending doc_id, ndeval by the rank column or, with -traditional, as here
    """
    ideal = run.ideal_coverage(rel, alpha, cutoff)
    return ratio(_alpha_dcg(run.coverage(rel), alpha, cutoff), _alpha_dcg(ideal, alpha, cutoff))


def err_ia(run: JudgedRun, *, cutoff: int, alpha: float = 0.5, rel: int = 1) -> Floats:
    """Intent-aware expected reciprocal rank: ERR of every subtopic, averaged, as a share of what it
    could be at most.

    Formula: ERR_IA@k = sum of G[i] / i for i = 1..k / (N sum of (1 - alpha)^(i - 1) / i), G and N
    as in alpha_DCG: a relevant document stops a user who is after its subtopic with probability
    alpha
    Range: 0 to 1
    Source: Chapelle, Metzler, Zhang and Grinspan, CIKM 2009; Chapelle, Ji, Liao, Velipasaoglu, Lai
    and Wu, Information Retrieval 14(6), 2011; the normalisation is that of ndeval ERR-IA
    Elsewhere: the papers multiply by alpha / N instead, and their probability grows with the level;
    ndeval, and with it ir_measures, does not normalise at k = 1, where its figure is the number of
    subtopics; ir_measures has no alpha here
    """
    cover, ranks = run.coverage(rel), np.arange(1.0, cutoff + 1)
    maximum = np.sum(np.power(1.0 - alpha, ranks - 1) / ranks)
    return ratio(_err(cover, alpha, cutoff) / maximum, cover.subtopics)


def nerr_ia(run: JudgedRun, *, cutoff: int, alpha: float = 0.5, rel: int = 1) -> Floats:
    """Normalised intent-aware expected reciprocal rank: ERR_IA as a share of that of the greedy
    ideal ranking.

    Formula: nERR_IA@k = sum of G[i] / i for i = 1..k / the same of the ideal ranking, which is that
    of alpha_nDCG
    Range: 0 to 1, above 1 where a ranking beats the greedy ideal
    Source: Chapelle, Metzler, Zhang and Grinspan, CIKM 2009; ndeval nERR-IA
    Elsewhere: ir_measures has no alpha here; ndeval's -alpha is this one too
    """
    ideal = run.ideal_coverage(rel, alpha, cutoff)
    return ratio(_err(run.coverage(rel), alpha, cutoff), _err(ideal, alpha, cutoff))


def nrbp(
    run: JudgedRun, *, cutoff: None = None, alpha: float = 0.5, beta: float = 0.5, rel: int = 1
) -> Floats:
    """Novelty- and rank-biased precision: rank-biased gain of new subtopics, as a share of what it
    could be at most.

    Formula: NRBP = (1 - (1 - alpha) beta) / N sum of G[i] beta^(i - 1) over all ranks, G and N as
    in alpha_DCG
    Range: 0 to 1
    Source: Clarke, Kolla and Vechtomova, ICTIR 2009; ndeval NRBP
    """
    cover = run.coverage(rel)
    return ratio((1.0 - (1.0 - alpha) * beta) * _rank_biased(cover, alpha, beta), cover.subtopics)


def nnrbp(
    run: JudgedRun, *, cutoff: None = None, alpha: float = 0.5, beta: float = 0.5, rel: int = 1
) -> Floats:
    """Normalised novelty- and rank-biased precision: NRBP as a share of that of the greedy ideal
    ranking.

    Formula: nNRBP = NRBP / NRBP of the ideal ranking, which is that of alpha_nDCG
    Range: 0 to 1, above 1 where a ranking beats the greedy ideal
    Source: Clarke, Kolla and Vechtomova, ICTIR 2009; ndeval nNRBP
    Elsewhere: ndeval, and with it ir_measures, gives NaN for a topic without a relevant document,
    here 0
    """
    depth = math.ceil(math.log(_NEGLIGIBLE) / math.log(beta))
    ideal = run.ideal_coverage(rel, alpha, depth)
    return ratio(_rank_biased(run.coverage(rel), alpha, beta), _rank_biased(ideal, alpha, beta))


def p_ia(run: JudgedRun, *, cutoff: int, rel: int = 1) -> Floats:
    """Intent-aware precision at k: precision for every subtopic, averaged.

    Formula: P_IA@k = (1 / N) sum over the subtopics of (documents relevant to it in ranks 1..k /
    k); N subtopics have a relevant document
    Range: 0 to 1
    Source: Agrawal, Gollapudi, Halverson and Ieong, WSDM 2009, with equal intents; ndeval P-IA
    """
    cover = run.coverage(rel)
    return ratio(_sum(cover, np.ones(len(cover.rank)), cutoff), cover.subtopics * cutoff)


def ap_ia(run: JudgedRun, *, cutoff: None = None, rel: int = 1) -> Floats:
    """Intent-aware average precision: average precision for every subtopic, averaged.

    Formula: AP_IA = (1 / N) sum over the subtopics of AP, its relevant documents being those of the
    subtopic; N subtopics have a relevant document
    Range: 0 to 1
    Source: Agrawal, Gollapudi, Halverson and Ieong, WSDM 2009, with equal intents; ndeval MAP-IA
    """
    cover = run.coverage(rel)
    return ratio(_sum(cover, (cover.earlier + 1) / cover.rank / cover.size), cover.subtopics)


def _sum(cover: Coverage, worth: Floats, cutoff: int | None = None) -> Floats:
    within = slice(None) if cutoff is None else cover.rank <= cutoff
    return sum_by_topic(cover.topic[within], worth[within], len(cover.subtopics))


def _novelty(cover: Coverage, alpha: float) -> Floats:
    return np.power(1.0 - alpha, cover.earlier).astype(np.float64, copy=False)


def _alpha_dcg(cover: Coverage, alpha: float, cutoff: int) -> Floats:
    return _sum(cover, _novelty(cover, alpha) / np.log2(cover.rank + 1), cutoff)


def _err(cover: Coverage, alpha: float, cutoff: int) -> Floats:
    return _sum(cover, _novelty(cover, alpha) / cover.rank, cutoff)


def _rank_biased(cover: Coverage, alpha: float, beta: float) -> Floats:
    return _sum(cover, _novelty(cover, alpha) * np.power(beta, cover.rank - 1.0))
