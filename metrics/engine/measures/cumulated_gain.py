"""The cumulated gain family: CG, DCG and their normalised forms."""

from __future__ import annotations

from typing import Literal

import numpy as np

from metrics.engine.arrays import Floats, Ints
from metrics.engine.judgement.gains import LINEAR, GainMap
from metrics.engine.judgement.judged import JudgedRun, RankedGains
from metrics.engine.measures.ratio import ratio

Discount = Literal["log2", "jk", "session"]
Ideal = Literal["recall_base", "retrieved"]
Norm = Literal["topic", "average"]


def discount(rank: Ints, dis: Discount, b: float) -> Floats:
    """Return what the gain at each rank (1-based) is divided by; same shape."""
    if dis == "log2":
        return np.log2(rank + 1)

    logarithm = np.log(rank) / np.log(b) if b != 2 else np.log2(rank)
    if dis == "session":
        return 1 + logarithm
    return np.where(rank < b, 1.0, logarithm)


def cg(run: JudgedRun, *, cutoff: int | None = None, gains: GainMap = LINEAR) -> Floats:
    """Cumulated gain: what the user has gained after looking at the first k documents.

    Formula: CG@k = sum of G[i] for i = 1..k
    Range: 0 and above
    Source: Järvelin and Kekäläinen, TOIS 20(4), 2002, equation 1
    """
    return run.gains(gains).within(cutoff).sum()


def ideal_cg(
    run: JudgedRun,
    *,
    cutoff: int | None = None,
    gains: GainMap = LINEAR,
    ideal: Ideal = "recall_base",
) -> Floats:
    """Cumulated gain of the ideal ranking: what CG could be at best.

    Formula: IdealCG@k = CG@k of all judged documents in descending order of gain; of the retrieved
    ones alone for ideal='retrieved'
    Range: 0 and above
    Source: Järvelin and Kekäläinen, TOIS 20(4), 2002, section 2.2; Baeza-Yates and Ribeiro-Neto,
    Modern Information Retrieval, chapter 4 (the example has ideal='retrieved')
    """
    return best_gains(run, gains, ideal).within(cutoff).sum()


def dcg(
    run: JudgedRun,
    *,
    cutoff: int | None = None,
    gains: GainMap = LINEAR,
    dis: Discount = "log2",
    b: float = 2.0,
) -> Floats:
    """Discounted cumulated gain: gain counts less the later it comes.

    Formula: DCG@k = sum of G[i] / d(i) for i = 1..k; d(i) is log2(i + 1) for dis='log2', 1 below
    rank b and log_b(i) from there for dis='jk', 1 + log_b(i) for dis='session'
    Range: 0 and above
    Source: Järvelin and Kekäläinen, TOIS 20(4), 2002, equation 2 (jk); Järvelin, Price, Delcambre
    and Nielsen, ECIR 2008, equation 2 (session); trec_eval m_ndcg_cut (log2)
    Elsewhere: trec_eval 10 and ranx call DCG what is dis='log2' here; ranx dcg_burges and Quepid
    use gains='exp'
    """
    return _discounted(run.gains(gains), cutoff, dis, b)


def ideal_dcg(
    run: JudgedRun,
    *,
    cutoff: int | None = None,
    gains: GainMap = LINEAR,
    dis: Discount = "log2",
    b: float = 2.0,
    ideal: Ideal = "recall_base",
) -> Floats:
    """Discounted cumulated gain of the ideal ranking: what DCG could be at best.

    Formula: IdealDCG@k = DCG@k of all judged documents in descending order of gain; of the
    retrieved ones alone for ideal='retrieved'
    Range: 0 and above
    Source: Järvelin and Kekäläinen, TOIS 20(4), 2002, section 2.2; trec_eval 10 m_ndcg (ideal_dcg);
    Baeza-Yates and Ribeiro-Neto, Modern Information Retrieval, chapter 4 (the example has
    ideal='retrieved')
    """
    return _discounted(best_gains(run, gains, ideal), cutoff, dis, b)


def ncg(
    run: JudgedRun,
    *,
    cutoff: int | None = None,
    gains: GainMap = LINEAR,
    ideal: Ideal = "recall_base",
    norm: Norm = "topic",
) -> Floats:
    """Normalised cumulated gain: the share of the ideal's cumulated gain.

    Formula: nCG@k = CG@k / CG@k of the ideal ranking; 0 for a topic without a gain. With
    norm='average' the mean over topics is sum of CG@k / sum of CG@k of the ideal rankings; a
    topic's value is the same
    Range: 0 to 1
    Source: Järvelin and Kekäläinen, TOIS 20(4), 2002, section 2.3, and University of Tampere
    RN-2002-2, formula 5 (norm='average')
    Elsewhere: Modern Information Retrieval, chapter 4, takes norm='average', and ideal='retrieved'
    in its example; with both, a topic that the run does not answer leaves the mean as it is
    """
    return ratio(*_cumulated(run, cutoff, gains, ideal))


def pooled_ncg(
    run: JudgedRun, *, cutoff: int | None, gains: GainMap, ideal: Ideal, norm: Norm
) -> float:
    """Return the one value that norm='average' gives for all topics."""
    return _pooled(*_cumulated(run, cutoff, gains, ideal))


def ndcg(
    run: JudgedRun,
    *,
    cutoff: int | None = None,
    gains: GainMap = LINEAR,
    dis: Discount = "log2",
    b: float = 2.0,
    ideal: Ideal = "recall_base",
    norm: Norm = "topic",
) -> Floats:
    """Normalised discounted cumulated gain: the share of the ideal's discounted cumulated gain.

    Formula: nDCG@k = DCG@k / DCG@k of the ideal ranking, both cut at k; 0 for a topic without a
    gain. With norm='average' the mean over topics is sum of DCG@k / sum of DCG@k of the ideal
    rankings; a topic's value is the same
    Range: 0 to 1
    Source: Järvelin and Kekäläinen, TOIS 20(4), 2002, section 2.3, and University of Tampere
    RN-2002-2, formula 5 (norm='average'); the default equals trec_eval ndcg and ndcg_cut
    Elsewhere: ranx ndcg_burges and Quepid use gains='exp'; ir_measures writes that
    nDCG(dcg='exp-log2'). NTCIREVAL calls the default MSnDCG, and dis='jk' nDCG. Modern Information
    Retrieval, chapter 4, takes dis='jk' and norm='average', and ideal='retrieved' in its example
    """
    return ratio(*_discounted_and_ideal(run, cutoff, gains, dis, b, ideal))


def pooled_ndcg(
    run: JudgedRun,
    *,
    cutoff: int | None,
    gains: GainMap,
    dis: Discount,
    b: float,
    ideal: Ideal,
    norm: Norm,
) -> float:
    """Return the one value that norm='average' gives for all topics."""
    return _pooled(*_discounted_and_ideal(run, cutoff, gains, dis, b, ideal))


def best_gains(run: JudgedRun, gains: GainMap, ideal: Ideal) -> RankedGains:
    """Return the ideal ranking of every topic."""
    return run.ideal_gains(gains) if ideal == "recall_base" else run.retrieved_ideal_gains(gains)


def _cumulated(
    run: JudgedRun, cutoff: int | None, gains: GainMap, ideal: Ideal
) -> tuple[Floats, Floats]:
    return run.gains(gains).within(cutoff).sum(), best_gains(run, gains, ideal).within(cutoff).sum()


def _discounted_and_ideal(
    run: JudgedRun, cutoff: int | None, gains: GainMap, dis: Discount, b: float, ideal: Ideal
) -> tuple[Floats, Floats]:
    actual = _discounted(run.gains(gains), cutoff, dis, b)
    return actual, _discounted(best_gains(run, gains, ideal), cutoff, dis, b)


def _discounted(ranked: RankedGains, cutoff: int | None, dis: Discount, b: float) -> Floats:
    top = ranked.within(cutoff)
    return top.sum(discount(top.rank, dis, b))


def _pooled(above: Floats, below: Floats) -> float:
    total = float(below.sum())
    return float(above.sum()) / total if total else 0.0
