"""What two scripts compute: trec-dd-jig, with a bound of so many queries; evaluation_measures, with
gains 2^level."""

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
    """sDCG of the first queries of each session, NaN where nobody judged it; shape (sessions,)."""
    counted = np.where(view.number <= queries, contributions(view, setting), 0.0)
    return np.where(view.is_judged, np.bincount(view.session, counted, view.n_sessions), np.nan)


def dd_bound(view: JudgedSessions, setting: Setting, queries: int) -> Floats:
    """Return the most that so many queries could gain from the session's topic, each document once;
    shape (sessions,)."""
    weights = np.outer(
        setting.query_weight(np.arange(1, queries + 1)),
        setting.rank_weight(np.arange(1, setting.depth + 1)),
    ).ravel()
    weights[::-1].sort()
    best = view.ideal_gains(setting.gains)
    kept = best.within(len(weights))
    bound = np.bincount(kept.topic, kept.gain * weights[kept.rank - 1], kept.n_topics)

    # A session that is judged query by query has no topic of its own, and no bound.
    return np.append(bound, [np.nan, np.nan])[view.session_topic]


def log2_gain(view: JudgedSessions, setting: Setting) -> Floats:
    """Return the sum of the queries' nDCG with gains 2^level, discounted by query, NaN where not
    judged; shape (sessions,)."""
    found = gains_of(view, replace(setting, gains=_EXP))
    dcg = sum_by_topic(found.query, found.gain / np.log2(found.rank + 1), view.n_queries)
    dcg += _harmonic(slots_of(view, setting).seen)
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
