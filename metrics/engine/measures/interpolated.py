"""Interpolated precision at levels of recall: the points of the recall-precision graph."""

from __future__ import annotations

from typing import Literal

import numpy as np

from metrics.engine.arrays import Floats, Ints
from metrics.engine.compiled.running import running_sum
from metrics.engine.judgement.gains import GainMap
from metrics.engine.judgement.judged import JudgedRun
from metrics.engine.judgement.steps import Matrix
from metrics.engine.measures.graded import largest_gain

Interpolation = Literal["ceiling", "interval"]
Rounding = Literal["10", "9", "exact"]
_STEP = 0.1
_POINTS = np.arange(11) / 10
_TOLERANCE = 1e-9


def interpolated_precision(
    run: JudgedRun,
    *,
    cutoff: float,
    rel: int = 1,
    interp: Interpolation = "ceiling",
    rounding: Rounding = "10",
) -> Floats:
    """Interpolated precision at recall r: the highest precision from the point on where that recall
    is reached.

    Formula: IPrec@r = max P@i over the ranks i with at least c relevant documents down to i; c = r
    R rounded half up for rounding='10', floor(r R + 0.9) for '9', r R rounded up for 'exact', which
    alone is recall of r or more. interp='interval': max P@i over the ranks i with recall from r to
    r + 0.1, 0 where there is none
    Range: 0 to 1
    Source: trec_eval 10 m_iprec_at_recall, trec_eval 9 and before (rounding='9'); Baeza-Yates and
    Ribeiro-Neto, Modern Information Retrieval, chapter 4 (interp='interval')
    Elsewhere: IPrec of ir_measures, and what pytrec_eval gives, is that of trec_eval 9:
    rounding='9'. The tables of Modern Information Retrieval are interp='ceiling' with
    rounding='exact', not its formula
    """
    values: Floats = precision_at_recall(
        run, np.array([cutoff]), rel=rel, interp=interp, rounding=rounding
    )[:, 0]
    return values


def eleven_point_average(
    run: JudgedRun,
    *,
    cutoff: None = None,
    rel: int = 1,
    interp: Interpolation = "ceiling",
    rounding: Rounding = "10",
) -> Floats:
    """11-point average: interpolated precision averaged over recall 0, 0.1, ..., 1.

    Formula: 11pt_avg = (1 / 11) sum of IPrec@r over r = 0, 0.1, ..., 1
    Range: 0 to 1
    Source: trec_eval m_11pt_avg
    """
    average: Floats = precision_at_recall(
        run, _POINTS, rel=rel, interp=interp, rounding=rounding
    ).mean(axis=1)
    return average


def precision_at_recall(
    run: JudgedRun,
    points: Floats,
    *,
    rel: int,
    interp: Interpolation,
    rounding: Rounding,
    step: float = _STEP,
) -> Matrix:
    """Interpolated precision of every topic at every point of recall; shape (topics, points).

    `step` is the width of the intervals of interp='interval'.
    """
    relevant = run.relevant(rel)
    num_rel, retrieved = run.num_rel(rel)[:, None], relevant.count()[:, None]
    if interp == "interval":
        first = np.ceil(points * num_rel - _TOLERANCE)
        last = np.floor((points + step) * num_rel + _TOLERANCE)
    else:
        first, last = _needed(num_rel, points, rounding), retrieved

    return _highest(
        relevant.topic,
        relevant.ordinal / relevant.rank,
        np.maximum(first, 1).astype(np.int64),
        np.minimum(last, retrieved).astype(np.int64),
    )


def graded_precision_at_recall(run: JudgedRun, points: Floats, *, gains: GainMap) -> Matrix:
    """Interpolated generalised precision of every topic at every point of generalised recall; shape
    (topics, points).

    At recall r it is the highest GP@i over the ranks i with GR@i of r or more, 0 where there is
    none. With gains 'binary' it is precision at recall, rounding='exact'.

    Source: Kekäläinen and Järvelin, JASIST 53(13), 2002
    """
    ranked, total = run.gains(gains), run.ideal_gains(gains).sum()
    topic, cumulated = ranked.topic, running_sum(ranked.topic, ranked.gain)
    precision = cumulated / (ranked.rank * largest_gain(run, gains))
    recall = cumulated / total[topic]

    # Recall rises within a topic, so topic and recall together are sorted.
    topics = np.arange(run.n_topics)
    start = np.searchsorted(topic, topics)[:, None]
    needed = np.searchsorted(2 * topic + recall, 2 * topics[:, None] + points - _TOLERANCE)
    count = np.broadcast_to(ranked.count()[:, None], needed.shape)

    return _highest(topic, precision, needed - start + 1, count)


def _highest(topic: Ints, precision: Floats, first: Ints, last: Ints) -> Matrix:
    """Return the highest precision of each topic from its first-th to its last-th row, 0 where
    there is none.

    Shapes: `topic` and `precision` have an entry per row; `first`, `last` and the result have a row
    per topic, and count from 1.
    """
    start = np.searchsorted(topic, np.arange(len(first)))[:, None]
    not_empty = first <= last
    ends = np.stack([start + first - 1, np.broadcast_to(start + last, first.shape)], axis=-1)[
        not_empty
    ]
    precision = np.append(precision, 0.0)
    highest = np.zeros(first.shape)

    # reduceat takes the maximum between each index and the next one; every other stretch lies
    # between two of ours.
    highest[not_empty] = np.maximum.reduceat(precision, ends.ravel())[::2] if len(ends) else 0.0
    return highest


def _needed(num_rel: Ints, recall: Floats, rounding: Rounding) -> Floats:
    """Return how many relevant documents make this recall; the shape of both together."""
    exact: Floats = recall * num_rel.astype(np.float64)
    if rounding == "exact":
        return np.ceil(exact - _TOLERANCE)
    if rounding == "9":
        return np.floor(exact + 0.9)

    whole = np.floor(exact)
    return whole + (exact - whole >= 0.5)
