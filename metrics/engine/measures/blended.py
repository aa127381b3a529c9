"""The measures of NTCIR: precision blended with cumulated gain, for users who stop at relevant
documents."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from metrics.engine.arrays import Floats, Ints
from metrics.engine.compiled.running import running_sum
from metrics.engine.judgement.gains import LINEAR, GainMap
from metrics.engine.judgement.judged import JudgedRun, RecallBase, best_order, sum_by_topic
from metrics.engine.measures.ratio import ratio

Stop = Literal["rb", "gu"]


@dataclass(frozen=True)
class _Blended:
    """The relevant documents a run retrieved, counted from 1 within their topic, and the blended
    ratio at each."""

    topic: Ints
    rank: Ints
    level: Ints
    gain: Floats
    ordinal: Ints
    ideal: Floats
    ratio: Floats

    def up_to_best(self) -> Ints:
        """Return the rows of each topic down to the first one of the highest level that was
        retrieved."""
        order = np.lexsort((self.rank, -self.level, self.topic))
        topics, first = np.unique(self.topic[order], return_index=True)
        last = np.zeros(topics.max(initial=-1) + 1, np.int64)
        last[topics] = self.rank[order[first]]
        return np.flatnonzero(self.rank <= last[self.topic])


def _blended(run: JudgedRun, rel: int, gains: GainMap, beta: float) -> _Blended:
    relevant, level = run.relevant(rel), run.level[run.level >= rel]
    gain = gains.of(level)
    ideal = (
        best_order(_relevant_base(run, rel), gains)
        .cumulated()
        .reached(relevant.topic, relevant.rank)
    )
    above = relevant.ordinal + beta * running_sum(relevant.topic, gain)

    return _Blended(
        topic=relevant.topic,
        rank=relevant.rank,
        level=level,
        gain=gain,
        ordinal=relevant.ordinal,
        ideal=ideal,
        ratio=above / (relevant.rank + beta * ideal),
    )


def _relevant_base(run: JudgedRun, rel: int) -> RecallBase:
    base = run.recall_base
    rows = base.level >= rel
    return replace(base, topic=base.topic[rows], level=base.level[rows], counts=base.counts[rows])


def q_measure(
    run: JudgedRun,
    *,
    cutoff: int | None = None,
    beta: float = 1.0,
    gains: GainMap = LINEAR,
    rel: int = 1,
) -> Floats:
    """Q-measure: average precision whose precision is blended with the share of the ideal's
    cumulated gain.

    Formula: Q = (1 / R) sum of BR(i) over the ranks i of relevant documents; BR(i) = (C(i) + beta
    CG@i) / (i + beta CG@i of the ideal ranking), C(i) relevant documents in ranks 1..i. Q@k takes
    ranks 1..k and divides by min(R, k). What is not relevant gains nothing
    Range: 0 to 1
    Source: Sakai, NTCIR-4 Open Submission Session, 2004 (Q); Sakai and Song, SIGIR 2011 (cutoff)
    Elsewhere: beta=0 is average precision, divided by min(R, k) where trec_eval divides by R. A
    document that is moved up can lower Q a little, where its level is below that of a document it
    passes. NTCIREVAL has no value for a topic without a relevant document, which is 0 here
    """
    blended = _blended(run, rel, gains, beta)
    size = run.num_rel(rel)
    values = blended.ratio
    if cutoff is not None:
        values, size = np.where(blended.rank <= cutoff, values, 0.0), np.minimum(size, cutoff)

    return ratio(sum_by_topic(blended.topic, values, run.n_topics), size)


def normalised_cumulative_utility(
    run: JudgedRun,
    *,
    cutoff: None = None,
    stop: Stop = "rb",
    gamma: float = 0.95,
    stops: GainMap = LINEAR,
    beta: float = 1.0,
    gains: GainMap = LINEAR,
    rel: int = 1,
) -> Floats:
    """Normalised cumulative utility: the blended ratio where users stop, of whom some stop at each
    relevant document.

    Formula: NCU = sum of p(i) BR(i) over the ranks i of relevant documents, BR as for Q; p(i) =
    gamma^(C(i) - 1) / sum of gamma^j for j = 0..R-1 for stop='rb', C(i) relevant documents in ranks
    1..i; p(i) = s[level at i] / sum of s over the relevant documents of the topic for stop='gu', s
    being the parameter stops
    Range: 0 to 1
    Source: Sakai and Robertson, EVIA 2008 (NCU_rb,BR and NCU_gu,BR; with beta=0 NCU_rb,P and
    NCU_gu,P)
    Elsewhere: where as many users stop at each relevant document it is Q. NTCIREVAL has no value
    for a topic without a relevant document, which is 0 here
    """
    blended = _blended(run, rel, gains, beta)
    if stop == "gu":
        base = _relevant_base(run, rel)
        share = stops.of(blended.level)
        total_share = sum_by_topic(base.topic, stops.of(base.level) * base.counts, run.n_topics)
    else:
        share = np.power(gamma, blended.ordinal - 1.0)
        total_share = (1 - np.power(gamma, run.num_rel(rel).astype(np.float64))) / (1 - gamma)

    return ratio(sum_by_topic(blended.topic, share * blended.ratio, run.n_topics), total_share)


def p_plus(
    run: JudgedRun, *, cutoff: None = None, beta: float = 1.0, gains: GainMap = LINEAR, rel: int = 1
) -> Floats:
    """P-plus: the blended ratio averaged over the relevant documents down to the first of the best
    that were found.

    Formula: PPlus = mean of BR(i) over the ranks i <= r of relevant documents, BR as for Q and r
    the first rank that holds a document of the highest level retrieved; 0 where nothing relevant is
    retrieved
    Range: 0 to 1
    Source: Sakai, IPSJ Transactions on Databases 48(SIG 9), 2007
    Elsewhere: the user stops at the best document that the run has, not that the topic has: a run
    without any document of the topic's highest level is still read to the best of its own
    """
    blended = _blended(run, rel, gains, beta)
    rows = blended.up_to_best()
    topic = blended.topic[rows]
    total = sum_by_topic(topic, blended.ratio[rows], run.n_topics)
    return ratio(total, np.bincount(topic, minlength=run.n_topics))


def p_measure(
    run: JudgedRun, *, cutoff: None = None, beta: float = 1.0, gains: GainMap = LINEAR, rel: int = 1
) -> Floats:
    """P-measure: the blended ratio at the first of the best documents that were found.

    Formula: PMeasure = BR(r), BR as for Q and r the first rank that holds a document of the highest
    level retrieved; 0 where nothing relevant is retrieved
    Range: 0 to 1
    Source: Sakai, IPSJ Transactions on Databases 48(SIG 9), 2007
    Elsewhere: a document of a higher level that is moved up can lower it, as r moves up with it
    """
    blended = _blended(run, rel, gains, beta)
    values = np.zeros(run.n_topics)

    # The last of each topic's rows is the one at r.
    rows = blended.up_to_best()
    values[blended.topic[rows]] = blended.ratio[rows]
    return values


def o_measure(
    run: JudgedRun, *, cutoff: None = None, beta: float = 1.0, gains: GainMap = LINEAR, rel: int = 1
) -> Floats:
    """O-measure: the blended ratio at the first relevant document: a reciprocal rank that sees
    levels.

    Formula: OMeasure = (1 + beta G[i]) / (i + beta CG@i of the ideal ranking), i the rank of the
    first relevant document; 0 where none is retrieved
    Range: 0 to 1
    Source: Sakai, IPSJ Transactions on Databases 48(SIG 9), 2007
    Elsewhere: beta=0 is the reciprocal rank. A relevant document that is moved up before the first
    one lowers the value where it gains much less than that
    """
    blended = _blended(run, rel, gains, beta)
    first = blended.ordinal == 1
    values = np.zeros(run.n_topics)
    values[blended.topic[first]] = blended.ratio[first]
    return values
