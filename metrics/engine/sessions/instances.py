"""Instance recall: which of a topic's instances a session has found."""

from __future__ import annotations

import numpy as np

from metrics.engine.arrays import Floats, Ints
from metrics.engine.judgement.subtopics import Subtopics
from metrics.engine.sessions.judged import JudgedSessions, spread
from metrics.engine.sessions.settings import Setting
from metrics.engine.sessions.slots import slots_of


def instance_recall(view: JudgedSessions, setting: Setting, rel: int) -> Floats:
    """Return the share of the instances found, NaN where there are none to find; shape
    (sessions,)."""
    rows = slots_of(view, setting).rows
    found, total = (
        _of_topics(view, rows, rel)
        if view.subtopics is None
        else _of(view.subtopics, view, rows, rel)
    )
    there = np.append(total, [0, 0])[view.session_topic]

    return np.where(there > 0, found / np.maximum(there, 1), np.nan)


def _of_topics(view: JudgedSessions, rows: Ints, rel: int) -> tuple[Ints, Ints]:
    """Instances that each session has found and that each topic has, where every topic is its own
    one instance."""
    relevant = rows[view.level[rows] >= rel]
    met = np.bincount(view.session[view.query[relevant]], minlength=view.n_sessions)
    base = view.recall_base
    return np.minimum(met, 1), np.minimum(base.sum_where(base.level >= rel), 1)


def _of(parts: Subtopics, view: JudgedSessions, rows: Ints, rel: int) -> tuple[Ints, Ints]:
    """Return the same by the subtopics of the judgements."""
    relevant = np.flatnonzero(parts.level >= rel)
    width = int(parts.subtopic.max(initial=0)) + 1
    instances, number = np.unique(
        parts.topic[relevant] * width + parts.subtopic[relevant], return_inverse=True
    )
    total = np.bincount(instances // width, minlength=view.recall_base.n_topics)

    return _found(view, rows, parts.judgement[relevant], number), total


def _found(view: JudgedSessions, rows: Ints, judgement: Ints, number: Ints) -> Ints:
    """Return how many instances each session has found; `number` is the instance that a judgement
    finds relevant."""
    order = np.argsort(judgement, kind="stable")
    low, high = (
        np.searchsorted(judgement[order], view.judgement[rows], side=side)
        for side in ("left", "right")
    )
    met = number[order][spread(low, high - low)]
    session = np.repeat(view.session[view.query[rows]], high - low)
    width = int(number.max(initial=0)) + 1

    return np.bincount(np.unique(session * width + met) // width, minlength=view.n_sessions)
