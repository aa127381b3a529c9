"""Precision and recall in one figure, and how well a ranking tells relevant from non-relevant
documents."""

from __future__ import annotations

import numpy as np

from metrics.engine.arrays import Floats
from metrics.engine.judgement.judged import JudgedRun, sum_by_topic


def f_measure(run: JudgedRun, *, cutoff: int, rel: int = 1) -> Floats:
    """F measure at k: the harmonic mean of precision and recall.

    Formula: F@k = 2 / (1/R@k + 1/P@k); 0 where no relevant document is in ranks 1..k
    Range: 0 to 1
    Source: van Rijsbergen, Information Retrieval, 1979, chapter 7; Baeza-Yates and Ribeiro-Neto,
    Modern Information Retrieval, chapter 4
    """
    return 2 * run.relevant(rel).count(cutoff) / (run.num_rel(rel) + cutoff)


def e_measure(run: JudgedRun, *, cutoff: int, rel: int = 1, beta: float = 1.0) -> Floats:
    """E measure at k: what is missing from a weighted harmonic mean of precision and recall.

    Formula: E@k = 1 - (1 + b^2) / (b^2/R@k + 1/P@k), b being the parameter beta; 1 where no
    relevant document is in ranks 1..k
    Range: 0 to 1, lower is better
    Source: van Rijsbergen, Information Retrieval, 1979, chapter 7; Baeza-Yates and Ribeiro-Neto,
    Modern Information Retrieval, chapter 4
    Elsewhere: the slides of Modern Information Retrieval say that b above 1 favours precision; by
    the formula it favours recall, and E tends to 1 - recall as b grows
    """
    square = beta * beta
    return 1 - (1 + square) * run.relevant(rel).count(cutoff) / (square * run.num_rel(rel) + cutoff)


def accuracy(run: JudgedRun, *, cutoff: int | None = None, rel: int = 1) -> Floats:
    """Accuracy: the probability that a relevant document is ranked before a non-relevant one.

    Formula: the share of the pairs of a relevant and a non-relevant document, both in ranks 1..k,
    in which the relevant one comes first; unjudged documents are non-relevant
    Range: 0 to 1
    Source: ir_measures Accuracy
    Elsewhere: ir_measures keeps the file's order within ties, and fails where every document in
    ranks 1..k is relevant
    Undefined: where ranks 1..k hold no relevant or no non-relevant document, so that there is no
    pair
    """
    relevant = run.relevant(rel)
    within = np.full(len(relevant.rank), True) if cutoff is None else relevant.rank <= cutoff
    above = (relevant.rank - relevant.ordinal).astype(np.float64)
    wrong = sum_by_topic(relevant.topic[within], above[within], run.n_topics)
    retrieved = relevant.count(cutoff)
    examined = run.num_ret if cutoff is None else np.minimum(run.num_ret, cutoff)
    pairs = retrieved * (examined - retrieved)
    result = np.full(run.n_topics, np.nan)
    np.divide(pairs - wrong, pairs, out=result, where=pairs > 0)

    return result
