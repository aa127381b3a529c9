"""Instance recall: the instances of its topic that a session has retrieved."""

from __future__ import annotations

import numpy as np

from metrics.engine.arrays import Floats, Ints
from metrics.engine.judgement.subtopics import Subtopics
from metrics.engine.sessions.judged import JudgedSessions, spread
from metrics.engine.sessions.settings import Setting
from metrics.engine.sessions.slots import slots_of


def instance_recall(view: JudgedSessions, setting: Setting, rel: int) -> Floats:
    """Return the share of the instances that are retrieved, NaN without any; shape (sessions,)."""
    rows = slots_of(view, setting).rows
    retrieved, total = (
        _by_topic(view, rows, rel)
        if view.subtopics is None
        else _by_subtopic(view.subtopics, view, rows, rel)
    )
    size = np.append(total, [0, 0])[view.session_topic]

    return np.where(size > 0, retrieved / np.maximum(size, 1), np.nan)


def _by_topic(view: JudgedSessions, rows: Ints, rel: int) -> tuple[Ints, Ints]:
    """Return the instances that each session retrieved and that each topic has, if every topic is
    one instance."""
    relevant = rows[view.level[rows] >= rel]
    retrieved = np.bincount(view.session[view.query[relevant]], minlength=view.n_sessions)
    base = view.recall_base
    return np.minimum(retrieved, 1), np.minimum(base.sum_where(base.level >= rel), 1)


def _by_subtopic(parts: Subtopics, view: JudgedSessions, rows: Ints, rel: int) -> tuple[Ints, Ints]:
    """Return the same by the subtopics of the judgements."""
    relevant = np.flatnonzero(parts.level >= rel)
    width = int(parts.subtopic.max(initial=0)) + 1
    instances, number = np.unique(
        parts.topic[relevant] * width + parts.subtopic[relevant], return_inverse=True
    )
    total = np.bincount(instances // width, minlength=view.recall_base.n_topics)

    return _retrieved_instances(view, rows, parts.judgement[relevant], number), total


def _retrieved_instances(view: JudgedSessions, rows: Ints, judgement: Ints, number: Ints) -> Ints:
    """Return how many instances each session retrieved; `number` is the instance of a judgement."""
    order = np.argsort(judgement, kind="stable")
    low, high = (
        np.searchsorted(judgement[order], view.judgement[rows], side=side)
        for side in ("left", "right")
    )
    retrieved = number[order][spread(low, high - low)]
    session = np.repeat(view.session[view.query[rows]], high - low)
    width = int(number.max(initial=0)) + 1

    return np.bincount(np.unique(session * width + retrieved) // width, minlength=view.n_sessions)
