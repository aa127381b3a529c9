"""User-oriented measures: satisfaction and frustration, relative relevance, ranked half-life."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from metrics.engine.arrays import Flags, Floats, Ints
from metrics.engine.compiled.running import before, place, running_sum
from metrics.engine.judgement.gains import LINEAR, GainMap
from metrics.engine.judgement.judged import JudgedRun, sum_by_topic
from metrics.engine.measures.ratio import ratio


def satisfaction(
    run: JudgedRun, *, cutoff: int | None = None, rel: int = 1, gains: GainMap = LINEAR
) -> Floats:
    """Satisfaction: how early the relevant documents of the list come, against the best order of
    the same list.

    Formula: sum of (n + 1 - i) s[i] over the relevant documents at ranks i of a list of n / the
    same sum for the list in descending order of s; s is the gain divided by the largest gain of any
    level in the qrels; n is the number retrieved, k at most; 0 where no relevant document is
    retrieved
    Range: 0 to 1
    Source: after Myaeng and Korfhage, Information Processing and Management 26(6), 1990, and
    Korfhage, Information Storage and Retrieval, 1997, who compare the list with its best order; the
    weight n + 1 - i is the sliding ratio's, cumulated over every cutoff of the list
    Undefined: where the topic has no relevant document
    """
    size, topic, rank, s, relevant = _listed(run, cutoff, rel, gains)
    topic, rank, s = topic[relevant], rank[relevant], s[relevant]
    best = s[np.lexsort((-s, topic))]
    value = ratio(
        _earliness(run, size, topic, rank, s), _earliness(run, size, topic, place(topic) + 1, best)
    )

    return np.where(run.num_rel(rel) > 0, value, np.nan)


def frustration(
    run: JudgedRun, *, cutoff: int | None = None, rel: int = 1, gains: GainMap = LINEAR
) -> Floats:
    """Frustration: how early the non-relevant documents of the list come, against the worst order
    of the same list.

    Formula: sum of (n + 1 - i) (1 - s[i]) over the non-relevant documents at ranks i of a list of n
    / the same sum with the non-relevant documents first, in ascending order of s; s and n as for
    Satisfaction, s = 0 where unjudged; 0 where all are relevant
    Range: 0 to 1, lower is better
    Source: after Myaeng and Korfhage, 1990, and Korfhage, 1997, as Satisfaction
    Undefined: where the run has no document for the topic
    """
    size, topic, rank, s, relevant = _listed(run, cutoff, rel, gains)
    num_relevant = np.bincount(topic[relevant], minlength=run.n_topics)
    others = size - num_relevant
    credit = _earliness(run, size, topic, rank, np.where(relevant, 1.0, s))
    actual = size * (size + 1) / 2 - credit
    worst = others * (size + 1 + num_relevant) / 2 - _worst_credit(
        run, size, others, topic[~relevant], s[~relevant]
    )

    return np.where(size > 0, ratio(actual, worst), np.nan)


def total(
    run: JudgedRun,
    *,
    cutoff: int | None = None,
    rel: int = 1,
    gains: GainMap = LINEAR,
    weight: float = 0.5,
) -> Floats:
    """Total: satisfaction and the absence of frustration in one figure.

    Formula: Total = weight Satisfaction + (1 - weight) (1 - Frustration); 0 for a topic the run did
    not answer
    Range: 0 to 1
    Source: after Myaeng and Korfhage, 1990, and Korfhage, 1997, as Satisfaction; equal weights by
    default
    Undefined: where the topic has no relevant document
    """
    pleased = satisfaction(run, cutoff=cutoff, rel=rel, gains=gains)
    annoyed = np.nan_to_num(frustration(run, cutoff=cutoff, rel=rel, gains=gains), nan=1.0)
    answered = run.num_ret > 0
    return np.where(answered, weight * pleased + (1 - weight) * (1 - annoyed), pleased)


class _Listed(NamedTuple):
    """The length of each topic's list, and its judged documents with their scaled gain."""

    size: Ints
    topic: Ints
    rank: Ints
    gain: Floats
    relevant: Flags


def _listed(run: JudgedRun, cutoff: int | None, rel: int, gains: GainMap) -> _Listed:
    size = run.num_ret if cutoff is None else np.minimum(run.num_ret, cutoff)
    rows = run.rank <= size[run.topic]
    level = run.level[rows]
    largest = gains.of(run.recall_base.level).max(initial=0.0) or 1.0
    return _Listed(size, run.topic[rows], run.rank[rows], gains.of(level) / largest, level >= rel)


def _earliness(run: JudgedRun, size: Ints, topic: Ints, rank: Ints, worth: Floats) -> Floats:
    """Return the sum of (n + 1 - i) times worth per topic; shape (topics,)."""
    return sum_by_topic(topic, (size[topic] + 1 - rank) * worth, run.n_topics)


def _worst_credit(run: JudgedRun, size: Ints, others: Ints, topic: Ints, s: Floats) -> Floats:
    """Return the part of the worst order that partly relevant documents take away, which come last
    of the non-relevant ones."""
    ascending = s[np.lexsort((s, topic))]
    partly = np.bincount(topic, minlength=run.n_topics)
    rank = (others - partly)[topic] + place(topic) + 1
    return _earliness(run, size, topic, rank, ascending)


def relative_relevance(run: JudgedRun, *, cutoff: None = None, gains: GainMap = LINEAR) -> Floats:
    """Relative relevance: the cosine between the system's scores and the assessed gains over the
    retrieved documents.

    Formula: sum of score[i] G[i] / sqrt(sum of score[i]^2 times sum of G[i]^2), unjudged documents
    having no gain; 0 where nothing with a gain is retrieved or every score is 0
    Range: -1 to 1, negative with negative scores only
    Source: Borlund and Ingwersen, SIGIR 1998; the cosine is that of Borlund, 2000
    Elsewhere: Borlund and Ingwersen computed it by the Jaccard formula first
    Undefined: where no document of the topic has a gain
    """
    gain = gains.of(run.level)
    product = sum_by_topic(run.topic, run.score * gain, run.n_topics)
    squared = sum_by_topic(run.topic, gain * gain, run.n_topics)
    value = ratio(product, np.sqrt(run.squared_scores) * np.sqrt(squared))
    return np.where(run.ideal_gains(gains).sum() > 0, value, np.nan)


def ranked_half_life(
    run: JudgedRun, *, cutoff: int | None = None, gains: GainMap = LINEAR
) -> Floats:
    """Ranked half-life: the rank down to which half of the list's gain is found.

    Formula: RHL = m - 1/2 + (h - F) / G[m]: the median of a grouped distribution; h is half the
    gain in ranks 1..k, m the first rank at which the cumulated gain reaches h, and F the gain
    before it
    Range: above 0.5, lower is better
    Source: Borlund and Ingwersen, SIGIR 1998, with the lower real limit of rank m at m - 1/2
    Elsewhere: taking the rank above the median class as its lower limit gives values half a rank
    lower
    Undefined: where no document with a gain is retrieved
    """
    ranked = run.gains(gains)
    within = slice(None) if cutoff is None else ranked.rank <= cutoff
    topic, rank, gain = ranked.topic[within], ranked.rank[within], ranked.gain[within]
    upto = running_sum(topic, gain)
    half = upto[np.searchsorted(topic, topic, side="right") - 1] / 2
    earlier = before(topic, upto, 0.0)
    median = (earlier < half) & (upto >= half)
    value = np.full(run.n_topics, np.nan)
    value[topic[median]] = (rank - 0.5 + (half - earlier) / gain)[median]

    return value
