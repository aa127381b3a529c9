"""Interpolated precision at levels of recall: the points of the recall-precision graph."""

from __future__ import annotations

from typing import Literal

import numpy as np

from metrics.engine.judged import JudgedRun, Relevant, max_by_topic
from metrics.engine.ranking import Flags, Floats, Ints

Interpolation = Literal["ceiling", "interval"]
Rounding = Literal["10", "9", "exact"]
_STEP = 0.1
_POINTS = [step / 10 for step in range(11)]
_TOLERANCE = 1e-9


def interpolated_precision(
    run: JudgedRun, *, cutoff: float, rel: int = 1, interp: Interpolation = "ceiling", rounding: Rounding = "10"
) -> Floats:
    """Interpolated precision at recall r: the highest precision from the point on where that recall is reached.

    Formula: IPrec@r = max P@i over the ranks i with at least c relevant documents down to i; c = r R rounded half up
    for rounding='10', floor(r R + 0.9) for '9', r R rounded up for 'exact', which alone is recall of r or more.
    interp='interval': max P@i over the ranks i with recall from r to r + 0.1, 0 where there is none
    Range: 0 to 1
    Source: trec_eval 10 m_iprec_at_recall, trec_eval 9 and before (rounding='9'); Baeza-Yates and Ribeiro-Neto,
    Modern Information Retrieval, chapter 4 (interp='interval')
    Elsewhere: the tables of Modern Information Retrieval are interp='ceiling' with rounding='exact', not its formula
    """
    relevant, num_rel = run.relevant(rel), run.num_rel(rel)
    if interp == "interval":
        chosen = _in_interval(relevant, num_rel, cutoff)
    else:
        chosen = relevant.found >= _needed(num_rel, cutoff, rounding)[relevant.topic]
    values = relevant.found[chosen] / relevant.rank[chosen]
    return max_by_topic(relevant.topic[chosen], values, run.n_topics)


def eleven_point_average(
    run: JudgedRun, *, cutoff: None = None, rel: int = 1, interp: Interpolation = "ceiling", rounding: Rounding = "10"
) -> Floats:
    """11-point average: interpolated precision averaged over recall 0, 0.1, ..., 1.

    Formula: 11pt_avg = (1 / 11) sum of IPrec@r over r = 0, 0.1, ..., 1
    Range: 0 to 1
    Source: trec_eval m_11pt_avg
    """
    points = (interpolated_precision(run, cutoff=r, rel=rel, interp=interp, rounding=rounding) for r in _POINTS)
    average: Floats = np.mean(list(points), axis=0)
    return average


def _needed(num_rel: Ints, recall: float, rounding: Rounding) -> Ints:
    """How many relevant documents make this recall, per topic."""
    wanted: Floats = recall * num_rel.astype(np.float64)
    whole = np.floor(wanted)
    if rounding == "exact":
        whole = np.ceil(wanted - _TOLERANCE)
    elif rounding == "9":
        whole = np.floor(wanted + 0.9)
    else:
        whole += wanted - whole >= 0.5
    return whole.astype(np.int64)


def _in_interval(relevant: Relevant, num_rel: Ints, recall: float) -> Flags:
    total = num_rel[relevant.topic]
    low, high = recall * total, (recall + _STEP) * total
    return (relevant.found >= low - _TOLERANCE) & (relevant.found <= high + _TOLERANCE)
