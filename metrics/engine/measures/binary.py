"""Measures of relevant or not: precision, recall and what is built from the ranks of relevant
documents."""

from __future__ import annotations

from typing import Literal

import numpy as np

from metrics.engine.arrays import Floats
from metrics.engine.judgement.judged import JudgedRun, sum_by_topic
from metrics.engine.measures.ratio import ratio


def precision(run: JudgedRun, *, cutoff: int, rel: int = 1, relative: bool = False) -> Floats:
    """Precision at k: the share of the first k documents that is relevant.

    Formula: P@k = relevant documents in ranks 1..k / k, also where fewer than k were retrieved;
    relative=True divides by min(k, R), the most that a ranking can have there
    Range: 0 to 1
    Source: trec_eval m_P and m_rel_P
    Elsewhere: P(relative=True)@k is trec_eval's relative_P_k
    """
    retrieved = run.relevant(rel).count(cutoff)
    if relative:
        return ratio(retrieved, np.minimum(cutoff, run.num_rel(rel)))
    return retrieved / cutoff


def recall(run: JudgedRun, *, cutoff: int, rel: int = 1) -> Floats:
    """Recall at k: the share of the relevant documents found in the first k.

    Formula: R@k = relevant documents in ranks 1..k / R
    Range: 0 to 1
    Source: trec_eval m_recall
    """
    return ratio(run.relevant(rel).count(cutoff), run.num_rel(rel))


def average_precision(
    run: JudgedRun, *, cutoff: int | None = None, rel: int = 1, over: Literal["all", "seen"] = "all"
) -> Floats:
    """Average precision: the mean of the precision at each relevant document.

    Formula: AP = (1 / R) sum of P@i over the ranks i of relevant documents, down to the cutoff;
    over='seen' divides by the number of relevant documents retrieved down to the cutoff
    Range: 0 to 1
    Source: trec_eval m_map and m_map_cut; Baeza-Yates and Ribeiro-Neto, Modern Information
    Retrieval, chapter 4 (over='seen')
    Elsewhere: AP@k divides by R, as trec_eval does, never by min(R, k)
    """
    relevant = run.relevant(rel)
    values = relevant.ordinal / relevant.rank
    if cutoff is not None:
        values = np.where(relevant.rank <= cutoff, values, 0.0)

    below = run.num_rel(rel) if over == "all" else relevant.count(cutoff)
    return ratio(sum_by_topic(relevant.topic, values, run.n_topics), below)


def gm_average_precision(run: JudgedRun, *, cutoff: None = None, rel: int = 1) -> Floats:
    """Average precision whose figure for a run is the geometric mean over topics, which weak topics
    pull down.

    Formula: AP per topic; for the run, exp of the mean of ln(max(AP, 0.00001))
    Range: 0 to 1
    Source: trec_eval m_gm_map
    Elsewhere: pytrec_eval gives ln(max(AP, 0.00001)) per topic; trec_eval prints no line per topic
    """
    return average_precision(run, rel=rel)


def yet_another_average_precision(run: JudgedRun, *, cutoff: None = None, rel: int = 1) -> Floats:
    """Average precision on a scale whose mean over topics makes more sense: the log-odds of a
    relevant document.

    Formula: yaap = ln((1 + s) / (1 + R - s)), s the sum of P@i over the ranks i of relevant
    documents
    Range: any number
    Source: Robertson, ECIR 2012; trec_eval m_yaap
    """
    relevant = run.relevant(rel)
    total = sum_by_topic(relevant.topic, relevant.ordinal / relevant.rank, run.n_topics)
    return np.log((1 + total) / (1 + run.num_rel(rel) - total))


def reciprocal_rank(run: JudgedRun, *, cutoff: int | None = None, rel: int = 1) -> Floats:
    """Reciprocal rank: one over the rank of the first relevant document.

    Formula: RR = 1 / rank of the first relevant document; 0 where none is retrieved within the
    cutoff
    Range: 0 to 1
    Source: trec_eval m_recip_rank
    Elsewhere: ir_measures breaks ties differently for RR and RR@k; here one tie rule holds for both
    """
    relevant = run.relevant(rel)
    first = relevant.ordinal == 1
    if cutoff is not None:
        first &= relevant.rank <= cutoff
    return sum_by_topic(relevant.topic[first], 1.0 / relevant.rank[first], run.n_topics)


def r_precision(run: JudgedRun, *, cutoff: None = None, rel: int = 1) -> Floats:
    """R-precision: precision at rank R, the number of relevant documents of the topic.

    Formula: Rprec = relevant documents in ranks 1..R / R
    Range: 0 to 1
    Source: trec_eval m_Rprec
    """
    num_rel = run.num_rel(rel)
    return ratio(run.relevant(rel).count(num_rel), num_rel)


def r_precision_multiple(run: JudgedRun, *, cutoff: float, rel: int = 1) -> Floats:
    """Precision at a multiple of R: shows whether a ranking is better at precision or at recall.

    Formula: Rprec_mult_m = relevant documents in ranks 1..c / c with c = floor(m R + 0.9); 0 where
    c is 0
    Range: 0 to 1
    Source: trec_eval m_Rprec_mult
    """
    depth = (cutoff * run.num_rel(rel) + 0.9).astype(np.int64)
    return ratio(run.relevant(rel).count(depth), depth)


def success(run: JudgedRun, *, cutoff: int, rel: int = 1) -> Floats:
    """Success at k: whether a relevant document is among the first k.

    Formula: Success@k = 1 where ranks 1..k hold a relevant document, else 0
    Range: 0 or 1
    Source: trec_eval m_success
    Elsewhere: ranx and others call it hit rate
    """
    return (run.relevant(rel).count(cutoff) > 0).astype(np.float64)
