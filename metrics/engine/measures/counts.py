"""Counts: how much was retrieved, judged and relevant."""

from __future__ import annotations

import numpy as np

from metrics.engine.arrays import Floats
from metrics.engine.judgement.judged import JudgedRun
from metrics.engine.measures.ratio import ratio


def judged(run: JudgedRun, *, cutoff: int | None = None) -> Floats:
    """Judgement rate: the share of the first k retrieved documents that has a judgement.

    Formula: Judged@k = judged documents in ranks 1..k / min(k, documents retrieved); 0 where none
    was retrieved
    Range: 0 to 1
    Source: ir_measures Judged
    Elsewhere: every line of the qrels counts, as in ir_measures, a level below 0 included
    """
    within = run.num_ret if cutoff is None else np.minimum(run.num_ret, cutoff)
    topic = run.topic if cutoff is None else run.topic[run.rank <= cutoff]
    return ratio(np.bincount(topic, minlength=run.n_topics), within)


def num_q(run: JudgedRun, *, cutoff: None = None) -> Floats:
    """Number of topics: 1 for every judged topic, answered or not; the figure of a run is their
    sum.

    Formula: NumQ = 1
    Range: 1
    Source: trec_eval -c num_q
    Elsewhere: trec_eval without -c and ir_measures count only topics that the run answered
    """
    return np.ones(run.n_topics)


def num_ret(run: JudgedRun, *, cutoff: None = None) -> Floats:
    """Number of documents retrieved.

    Formula: NumRet = documents the run lists for the topic
    Range: 0 and above
    Source: trec_eval m_num_ret
    """
    return run.num_ret.astype(np.float64)


def num_rel(run: JudgedRun, *, cutoff: None = None, rel: int = 1) -> Floats:
    """Number of relevant documents: the size of the recall base.

    Formula: NumRel = R, documents judged at level rel or above
    Range: 0 and above
    Source: trec_eval m_num_rel
    """
    return run.num_rel(rel).astype(np.float64)


def num_nonrel_judged_ret(run: JudgedRun, *, cutoff: None = None, rel: int = 1) -> Floats:
    """Number of judged non-relevant documents retrieved.

    Formula: num_nonrel_judged_ret = retrieved documents judged at a level from 0 to below rel
    Range: 0 and above
    Source: trec_eval m_num_nonrel_judged_ret
    """
    return np.bincount(run.topic[run.nonrelevant(rel)], minlength=run.n_topics).astype(np.float64)


def unjudged(run: JudgedRun, *, cutoff: int) -> Floats:
    """Unjudged at k: the share of the first k ranks that holds a document nobody judged.

    Formula: unj_k = documents in ranks 1..k without a judgement or with a level below 0 / k
    Range: 0 to 1
    Source: trec_eval 10 m_unjudged
    Elsewhere: Judged@k takes a level below 0 for a judgement, as ir_measures does, and divides by
    what was retrieved
    """
    judged_within = (run.rank <= cutoff) & (run.level >= 0)
    judged_count = np.bincount(run.topic[judged_within], minlength=run.n_topics)
    return (np.minimum(run.num_ret, cutoff) - judged_count) / cutoff


def num_rel_ret(run: JudgedRun, *, cutoff: None = None, rel: int = 1) -> Floats:
    """Number of relevant documents retrieved.

    Formula: NumRelRet = retrieved documents judged at level rel or above
    Range: 0 and above
    Source: trec_eval m_num_rel_ret
    Elsewhere: ir_measures also writes it NumRet(rel=1)
    """
    return run.relevant(rel).count().astype(np.float64)
