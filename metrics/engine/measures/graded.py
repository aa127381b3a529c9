"""Graded precision and recall, and single figures from the vectors of the cumulated gain family."""

from __future__ import annotations

from typing import Literal

import numpy as np

from metrics.engine.arrays import Floats, Ints
from metrics.engine.compiled.running import running_sum
from metrics.engine.judgement.gains import LINEAR, GainMap
from metrics.engine.judgement.judged import JudgedRun, RankedGains, sum_by_topic
from metrics.engine.judgement.steps import Steps
from metrics.engine.measures.cumulated_gain import Discount, Ideal, Norm, best_gains, discount, ncg
from metrics.engine.measures.ratio import ratio
from metrics.engine.measures.weighting import scaled_gains, weighted_gain

Vector = Literal["nDCG", "DCG", "nCG", "CG"]


def graded_precision(run: JudgedRun, *, cutoff: int, gains: GainMap = LINEAR) -> Floats:
    """Generalised precision at k: the mean gain of the first k documents, on a scale from 0 to 1.

    Formula: GP@k = sum of G[i] for i = 1..k / (k times the largest gain of any level in the qrels,
    over all topics)
    Range: 0 to 1
    Source: Kekäläinen and Järvelin, JASIST 53(13), 2002
    """
    return run.gains(gains).within(cutoff).sum() / (cutoff * largest_gain(run, gains))


def graded_recall(run: JudgedRun, *, cutoff: int, gains: GainMap = LINEAR) -> Floats:
    """Generalised recall at k: the share of all gain that the first k documents hold.

    Formula: GR@k = sum of G[i] for i = 1..k / sum of the gains of the recall base; 0 for a topic
    without a gain
    Range: 0 to 1
    Source: Kekäläinen and Järvelin, JASIST 53(13), 2002
    """
    return ratio(run.gains(gains).within(cutoff).sum(), run.ideal_gains(gains).sum())


def largest_gain(run: JudgedRun, gains: GainMap) -> float:
    """Return the largest gain of any judged level, over all topics; 1 where none has a gain."""
    return float(gains.of(run.recall_base.level).max(initial=0.0)) or 1.0


def sliding_ratio(run: JudgedRun, *, cutoff: int, gains: GainMap = LINEAR) -> Floats:
    """Sliding ratio at k: cumulated gain against the best order of what the run itself retrieved.

    Formula: SlidingRatio@k = CG@k / CG@k of the whole retrieved list sorted by gain; 0 where
    nothing with a gain is retrieved. The same as nCG(ideal='retrieved')@k
    Range: 0 to 1
    Source: Pollack, American Documentation 19(4), 1968; Korfhage, Information Storage and
    Retrieval, 1997
    """
    return ncg(run, cutoff=cutoff, gains=gains, ideal="retrieved")


def scaled_dcg(run: JudgedRun, *, cutoff: int, max_rel: int, min_rel: int = 0) -> Floats:
    """Scaled discounted cumulated gain: DCG as a share of k documents of the highest level.

    Formula: ScaledDCG@k = sum of g[i] / log2(i + 1) for i = 1..k / sum of 1 / log2(i + 1) for i =
    1..k; g = (level - min_rel) / (max_rel - min_rel), the level clipped to that interval
    Range: 0 to 1
    Source: Moffat, Bailey, Scholer and Thomas, ACM TOIS 35(3), 2017; cwl_eval NDCG-k
    Elsewhere: ir_measures calls it SDCG, a name that is refused here because sDCG is the session
    measure; cwl_eval behind it looks at no more than 1000 ranks
    """
    weight = 1.0 / np.log2(np.arange(1, cutoff + 1) + 1)
    return weighted_gain(scaled_gains(run, min_rel, max_rel, cutoff), weight, stops=False)


def average_position(
    run: JudgedRun,
    *,
    cutoff: int,
    of: Vector = "nDCG",
    gains: GainMap = LINEAR,
    dis: Discount = "log2",
    b: float = 2.0,
    ideal: Ideal = "recall_base",
    norm: Norm = "topic",
) -> Floats:
    """Average over positions: the mean of a (discounted) cumulated gain vector over ranks 1..k.

    Formula: AvgPos(of=V)@k = (V[1] + ... + V[k]) / k, V being CG, DCG, nCG or nDCG. With
    norm='average' the mean over topics is that of the averaged vector divided by the averaged ideal
    one, rank by rank; a topic's value is the same
    Range: 0 to 1 for nDCG and nCG; 0 and above for DCG and CG
    Source: Järvelin and Kekäläinen, University of Tampere RN-2002-2, formula 6; its table 1 tests
    norm='topic', and norm='average' is the area under its figures 3 and 4
    """
    ranked = run.gains(gains)
    within = ranked.rank <= cutoff
    topic, rank = ranked.topic[within], ranked.rank[within]
    worth = _worth(ranked, of, dis, b)[within]
    if of in ("CG", "DCG"):
        return sum_by_topic(topic, worth * (cutoff + 1 - rank), run.n_topics) / cutoff

    best = best_gains(run, gains, ideal)
    upto = _InverseSums(best, _worth(best, of, dis, b))
    lasting = upto.at(topic, np.full(len(rank), cutoff)) - upto.at(topic, rank - 1)
    return sum_by_topic(topic, worth * lasting, run.n_topics) / cutoff


def pooled_average_position(
    run: JudgedRun,
    *,
    cutoff: int,
    of: Vector,
    gains: GainMap,
    dis: Discount,
    b: float,
    ideal: Ideal,
    norm: Norm,
) -> float:
    """Return the one value that norm='average' gives for all topics."""
    vectors = [
        ranked.within(cutoff) for ranked in (run.gains(gains), best_gains(run, gains, ideal))
    ]
    last = max(1, *(int(ranked.rank.max(initial=0)) for ranked in vectors))
    worth = 1.0 / discount(np.arange(1, last + 1), dis, b) if of.endswith("DCG") else None
    shares = ratio(*(Steps.cumulated(ranked, last, worth).sum() for ranked in vectors))
    # Beyond the last gain nothing changes, however deep the cutoff.
    return float(shares.sum() + (cutoff - last) * shares[-1]) / cutoff


def _worth(ranked: RankedGains, of: Vector, dis: Discount, b: float) -> Floats:
    return ranked.gain / discount(ranked.rank, dis, b) if of.endswith("DCG") else ranked.gain


class _InverseSums:
    """1 / I[1] + ... + 1 / I[r] of the ideal vector I; past the last gain I stays as it is."""

    def __init__(self, best: RankedGains, worth: Floats) -> None:
        self._topic = best.topic
        self._ideal = running_sum(best.topic, worth)
        self._sums = running_sum(best.topic, 1.0 / self._ideal)
        self._size = np.bincount(best.topic, minlength=best.n_topics)

    def at(self, topic: Ints, rank: Ints) -> Floats:
        """Return the sum down to each rank of a topic that has a gain; same shape."""
        inside = np.minimum(rank, self._size[topic])
        last = np.searchsorted(self._topic, topic) + np.maximum(inside, 1) - 1
        return np.where(inside > 0, self._sums[last], 0.0) + (rank - inside) / self._ideal[last]
