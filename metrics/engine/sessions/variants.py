"""The session measures of two scripts: trec-dd-jig with its bound, and evaluation_measures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from metrics.engine.arrays import Floats, Ints
from metrics.engine.judgement.gains import GainMap
from metrics.engine.judgement.judged import sum_by_topic
from metrics.engine.sessions.judged import JudgedSessions
from metrics.engine.sessions.settings import Setting
from metrics.engine.sessions.slots import gains_of, slots_of
from metrics.engine.sessions.vectors import contributions

# One less than the gain of evaluation_measures, so that what is unjudged need not be listed.
_EXP = GainMap("exp")


def dd_gain(view: JudgedSessions, setting: Setting, queries: int) -> Floats:
    """Return sDCG of each session's first queries, NaN if it is not judged; shape (sessions,)."""
    gains = np.where(view.number <= queries, contributions(view, setting), 0.0)
    return np.where(view.is_judged, np.bincount(view.session, gains, view.n_sessions), np.nan)


def dd_bound(view: JudgedSessions, setting: Setting, queries: int) -> Floats:
    """Return the most that so many queries can gain from the topic, each document once; shape
    (sessions,)."""
    weights = np.outer(
        setting.query_weight(np.arange(1, queries + 1)),
        setting.rank_weight(np.arange(1, setting.depth + 1)),
    ).ravel()
    weights[::-1].sort()
    best = view.ideal_gains(setting.gains)
    top = best.within(len(weights))
    bound = np.bincount(top.topic, top.gain * weights[top.rank - 1], top.n_topics)

    # A session that is judged query by query has no topic of its own, and no bound.
    return np.append(bound, [np.nan, np.nan])[view.session_topic]


def log2_gain(view: JudgedSessions, setting: Setting) -> Floats:
    """Return the sum of the queries' nDCG with gains 2^level, discounted by query, NaN where not
    judged; shape (sessions,)."""
    gains = gains_of(view, replace(setting, gains=_EXP))
    dcg = sum_by_topic(gains.query, gains.gain / np.log2(gains.rank + 1), view.n_queries)
    dcg += _harmonic(slots_of(view, setting).examined)
    best, base = view.ideal_gains(_EXP), view.recall_base
    judged = np.bincount(base.topic, base.counts, base.n_topics).astype(np.int64)
    ideal = best.sum(np.log2(best.rank + 1)) + _harmonic(judged)
    share = dcg / np.append(ideal, [np.nan, np.nan])[view.session_topic][view.session]

    return sum_by_topic(view.session, share / np.log2(view.number + 1), view.n_sessions)


def _harmonic(size: Ints) -> Floats:
    """Return the sum of 1 / log2(i + 1) for i = 1..size; same shape."""
    sums: Floats = np.append(
        0.0, np.cumsum(1.0 / np.log2(np.arange(2, int(size.max(initial=0)) + 2)))
    )
    return sums[size]
