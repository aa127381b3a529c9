"""Measures that leave unjudged documents out of the count instead of taking them for
non-relevant."""

from __future__ import annotations

from typing import Literal

import numpy as np

from metrics.engine.arrays import Floats, Ints
from metrics.engine.judgement.judged import JudgedRun, sum_by_topic
from metrics.engine.measures.ratio import ratio

Norm = Literal["min", "R", "10"]
# trec_eval's INFAP_EPSILON: keeps the share of relevant documents defined where nothing above is
# judged.
_EPSILON = 0.00001


def bpref(run: JudgedRun, *, cutoff: None = None, rel: int = 1, norm: Norm = "min") -> Floats:
    """Binary preference: how rarely a judged non-relevant document stands above a relevant one.

    Formula: Bpref = (1 / R) sum over the relevant documents retrieved of 1 - min(n, T) / B, where n
    is the number of documents judged non-relevant above it; T = R and B = min(R, N) for norm='min',
    T = B = R for norm='R', T = B = R + 10 for norm='10'. Unjudged documents and levels below 0 are
    passed over
    Range: 0 to 1
    Source: trec_eval m_bpref (norm='min'); Buckley and Voorhees, SIGIR 2004 (norm='R', norm='10')
    Elsewhere: trec_eval 8 divided its bpref_top10pRnonrel by min(R + 10, N), and its bpref_10 was
    another measure
    """
    relevant, num_rel = run.relevant(rel), run.num_rel(rel)
    limit, divisor = _preferences(num_rel, run.num_nonrel(rel), norm)
    above = np.minimum(run.count_above(run.nonrelevant(rel), rel), limit[relevant.topic])
    credit = 1.0 - ratio(above, divisor[relevant.topic])
    return ratio(sum_by_topic(relevant.topic, credit, run.n_topics), num_rel)


def _preferences(num_rel: Ints, num_nonrel: Ints, norm: Norm) -> tuple[Ints, Ints]:
    """Return how many non-relevant documents count at most, and what their number is divided by;
    per topic."""
    if norm == "min":
        return num_rel, np.minimum(num_rel, num_nonrel)
    limit = num_rel if norm == "R" else num_rel + 10
    return limit, limit


def gm_bpref(run: JudgedRun, *, cutoff: None = None, rel: int = 1) -> Floats:
    """Binary preference whose figure for a run is the geometric mean over topics, which weak topics
    pull down.

    Formula: Bpref per topic; for the run, exp of the mean of ln(max(Bpref, 0.00001))
    Range: 0 to 1
    Source: trec_eval m_gm_bpref
    Elsewhere: pytrec_eval gives ln(max(Bpref, 0.00001)) per topic; trec_eval prints no line per
    topic
    """
    return bpref(run, rel=rel)


def inferred_average_precision(run: JudgedRun, *, cutoff: None = None, rel: int = 1) -> Floats:
    """Inferred average precision: AP estimated where only a random part of the pool was judged.

    Formula: infAP = (1 / R) sum over the ranks i of relevant documents of 1 / i + (p / i) (r + e) /
    (r + n + 2 e), where above rank i stand r relevant, n judged non-relevant and p pooled documents
    (r + n + those of a level below 0), and e is 0.00001. Documents outside the qrels were not
    pooled and count as non-relevant
    Range: 0 to 1
    Source: Yilmaz and Aslam, CIKM 2006; trec_eval m_infap
    """
    relevant = run.relevant(rel)
    relevant_above = relevant.ordinal - 1
    judged_above = relevant_above + run.count_above(run.nonrelevant(rel), rel)
    pooled_above = judged_above + run.count_above(run.level < 0, rel)
    share = (relevant_above + _EPSILON) / (judged_above + 2 * _EPSILON)
    values = (1 + pooled_above * share) / relevant.rank

    return ratio(sum_by_topic(relevant.topic, values, run.n_topics), run.num_rel(rel))
