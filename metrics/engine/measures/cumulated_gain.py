"""The cumulated gain family: CG, DCG and their normalised forms."""

from __future__ import annotations

from typing import Literal

import numpy as np

from metrics.engine.gains import LINEAR, GainMap
from metrics.engine.judged import JudgedRun, RankedGains
from metrics.engine.measures.ratio import ratio
from metrics.engine.ranking import Floats, Ints

Discount = Literal["log2", "jk", "session"]
Ideal = Literal["recall_base", "retrieved"]


def discount(rank: Ints, dis: Discount, b: float) -> Floats:
    """What the gain at each rank (1-based) is divided by; same shape."""
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


def dcg(
    run: JudgedRun, *, cutoff: int | None = None, gains: GainMap = LINEAR, dis: Discount = "log2", b: float = 2.0
) -> Floats:
    """Discounted cumulated gain: gain counts less the later it comes.

    Formula: DCG@k = sum of G[i] / d(i) for i = 1..k; d(i) is log2(i + 1) for dis='log2', 1 below rank b and log_b(i)
    from there for dis='jk', 1 + log_b(i) for dis='session'
    Range: 0 and above
    Source: Järvelin and Kekäläinen, TOIS 20(4), 2002, equation 2 (jk); Järvelin, Price, Delcambre and Nielsen,
    ECIR 2008, equation 2 (session); trec_eval m_ndcg_cut (log2)
    Elsewhere: trec_eval 10 and ranx call DCG what is dis='log2' here; ranx dcg_burges and Quepid use gains='exp'
    """
    return _discounted(run.gains(gains), cutoff, dis, b)


def ideal_dcg(
    run: JudgedRun, *, cutoff: int | None = None, gains: GainMap = LINEAR, dis: Discount = "log2", b: float = 2.0
) -> Floats:
    """Discounted cumulated gain of the ideal ranking: what DCG could be at best.

    Formula: IdealDCG@k = DCG@k of all judged documents in descending order of gain
    Range: 0 and above
    Source: Järvelin and Kekäläinen, TOIS 20(4), 2002, section 2.2; trec_eval 10 m_ndcg (ideal_dcg)
    Elsewhere: trec_eval counts 0 for a topic that the run did not answer; here the ideal depends on the qrels alone
    """
    return _discounted(run.ideal_gains(gains), cutoff, dis, b)


def ncg(run: JudgedRun, *, cutoff: int | None = None, gains: GainMap = LINEAR, ideal: Ideal = "recall_base") -> Floats:
    """Normalised cumulated gain: the share of the ideal's cumulated gain.

    Formula: nCG@k = CG@k / CG@k of the ideal ranking; 0 for a topic without a gain
    Range: 0 to 1
    Source: Järvelin and Kekäläinen, TOIS 20(4), 2002, section 2.3
    """
    return ratio(run.gains(gains).within(cutoff).sum(), _ideal(run, gains, ideal).within(cutoff).sum())


def ndcg(
    run: JudgedRun,
    *,
    cutoff: int | None = None,
    gains: GainMap = LINEAR,
    dis: Discount = "log2",
    b: float = 2.0,
    ideal: Ideal = "recall_base",
) -> Floats:
    """Normalised discounted cumulated gain: the share of the ideal's discounted cumulated gain.

    Formula: nDCG@k = DCG@k / DCG@k of the ideal ranking, both cut at k; 0 for a topic without a gain
    Range: 0 to 1
    Source: Järvelin and Kekäläinen, TOIS 20(4), 2002, section 2.3; the default equals trec_eval ndcg and ndcg_cut
    Elsewhere: ranx ndcg_burges and Quepid use gains='exp'; ir_measures writes that nDCG(dcg='exp-log2')
    """
    actual = _discounted(run.gains(gains), cutoff, dis, b)
    return ratio(actual, _discounted(_ideal(run, gains, ideal), cutoff, dis, b))


def _discounted(ranked: RankedGains, cutoff: int | None, dis: Discount, b: float) -> Floats:
    ranked = ranked.within(cutoff)
    return ranked.sum(discount(ranked.rank, dis, b))


def _ideal(run: JudgedRun, gains: GainMap, ideal: Ideal) -> RankedGains:
    return run.ideal_gains(gains) if ideal == "recall_base" else run.retrieved_ideal_gains(gains)
