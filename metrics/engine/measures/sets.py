"""Measures of the retrieved documents as a set, whatever their order."""

from __future__ import annotations

import numpy as np

from metrics.engine.arrays import Floats
from metrics.engine.judgement.judged import JudgedRun
from metrics.engine.measures.ratio import ratio


def set_precision(
    run: JudgedRun, *, cutoff: None = None, rel: int = 1, relative: bool = False
) -> Floats:
    """Set precision: the share of the retrieved documents that is relevant.

    Formula: SetP = relevant retrieved / retrieved; relative=True divides by min(retrieved, R)
    Range: 0 to 1
    Source: trec_eval m_set_P and m_set_rel_P
    """
    below = np.minimum(run.num_ret, run.num_rel(rel)) if relative else run.num_ret
    return ratio(run.relevant(rel).count(), below)


def set_recall(run: JudgedRun, *, cutoff: None = None, rel: int = 1) -> Floats:
    """Set recall: the share of the relevant documents that was retrieved.

    Formula: SetR = relevant retrieved / R
    Range: 0 to 1
    Source: trec_eval m_set_recall
    """
    return ratio(run.relevant(rel).count(), run.num_rel(rel))


def set_f(run: JudgedRun, *, cutoff: None = None, rel: int = 1, beta: float = 1.0) -> Floats:
    """Set F: the weighted harmonic mean of set precision and set recall.

    Formula: SetF = (1 + beta) SetP SetR / (beta SetP + SetR)
    Range: 0 to 1
    Source: trec_eval m_set_F
    Elsewhere: beta weighs as in trec_eval and ir_measures; van Rijsbergen's F with b is
    SetF(beta=b^2)
    """
    precision, recall = set_precision(run, rel=rel), set_recall(run, rel=rel)
    return ratio((1 + beta) * precision * recall, beta * precision + recall)


def set_average_precision(run: JudgedRun, *, cutoff: None = None, rel: int = 1) -> Floats:
    """Set average precision: AP where every relevant document retrieved has the precision of the
    whole set.

    Formula: SetAP = SetP SetR
    Range: 0 to 1
    Source: trec_eval m_set_map
    """
    retrieved = run.relevant(rel).count()
    return ratio(retrieved * retrieved, run.num_ret * run.num_rel(rel))


def utility(
    run: JudgedRun,
    *,
    cutoff: None = None,
    rel: int = 1,
    a: float = 1.0,
    b: float = -1.0,
    c: float = 0.0,
    d: float = 0.0,
    documents: int | None = None,
) -> Floats:
    """Utility: what the retrieved set is worth, document by document.

    Formula: utility = a relevant retrieved + b other retrieved + c relevant not retrieved + d other
    not retrieved; the last number is documents - R - other retrieved
    Range: any number
    Source: trec_eval m_utility
    Elsewhere: trec_eval -c counts 0 for a topic that the run did not answer; here c and d count for
    it too
    """
    retrieved = run.relevant(rel).count()
    other, missed = run.num_ret - retrieved, run.num_rel(rel) - retrieved
    rest = (documents or 0) - run.num_rel(rel) - other
    worth: Floats = a * retrieved + b * other + c * missed + d * rest
    return worth
