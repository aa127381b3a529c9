"""The recall-precision graph: interpolated precision at even points of recall."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from metrics.engine.arrays import Flags, Floats
from metrics.engine.curve.intervals import Band, column_band
from metrics.engine.errors import MeasureError
from metrics.engine.judgement.gains import GainMap
from metrics.engine.judgement.judged import JudgedRun
from metrics.engine.judgement.steps import Matrix
from metrics.engine.measures.definition import check_interpolation
from metrics.engine.measures.interpolated import (
    Interpolation,
    Rounding,
    graded_precision_at_recall,
    precision_at_recall,
)

MAX_POINTS = 101


@dataclass(frozen=True)
class PrecisionRecall:
    """Documents of level `rel` and above taken for relevant, or of this level `alone`, or each
    worth its `gains`: precision of every topic, shape (topics, points)."""

    topics: Matrix
    rel: int = 1
    alone: bool = False
    gains: GainMap | None = None

    @property
    def mean(self) -> Floats:
        """Return the mean over topics at every point; shape (points,)."""
        mean: Floats = self.topics.mean(axis=0)
        return mean

    def of_topics(self, selected: Flags) -> PrecisionRecall:
        """Return the curve of the topics with a flag; shape of `selected` (topics,)."""
        return replace(self, topics=self.topics[selected])

    def band(self, confidence: float) -> Band | None:
        """Return the interval of the mean at every point; None with fewer than two topics."""
        return column_band(self.topics, confidence)


def recall_points(points: int) -> Floats:
    """Return recall 0, ..., 1 in even steps; shape (points,), at least two."""
    return np.arange(points) / (points - 1)


def precision_recall(
    run: JudgedRun,
    rel: int,
    *,
    alone: bool = False,
    points: int = 11,
    interp: Interpolation = "ceiling",
    rounding: Rounding = "10",
) -> PrecisionRecall:
    """The curve of one level and all above it, or of the level alone; IPrec at every point, but
    with interp='interval' from each point to the next one.

    Source: Baeza-Yates and Ribeiro-Neto, Modern Information Retrieval, chapter 4; trec_eval
    m_iprec_at_recall
    """
    problem = check_interpolation({"interp": interp, "rounding": rounding})
    if problem:
        raise MeasureError(problem, code="bad_parameter", pointer="rounding")

    recalls, step = recall_points(points), 1 / (points - 1)
    judged, lowest = (run.of_level(rel), 1) if alone else (run, rel)
    values = precision_at_recall(
        judged, recalls, rel=lowest, interp=interp, rounding=rounding, step=step
    )

    return PrecisionRecall(values, rel, alone)


def mean_precision_recall(curves: Sequence[PrecisionRecall]) -> PrecisionRecall:
    """Return the mean of several runs' curves of one level or one gain map, for each topic."""
    return replace(curves[0], topics=np.mean([curve.topics for curve in curves], axis=0))


def graded_precision_recall(run: JudgedRun, gains: GainMap, *, points: int = 11) -> PrecisionRecall:
    """The curve of generalised precision over generalised recall: the highest GP at each point of
    GR or above it.

    Source: Kekäläinen and Järvelin, JASIST 53(13), 2002
    """
    values = graded_precision_at_recall(run, recall_points(points), gains=gains)
    return PrecisionRecall(values, gains=gains)


def relevance_levels(run: JudgedRun) -> list[int]:
    """Return the levels above 0 that occur in the judgements, in ascending order."""
    levels: list[int] = np.unique(run.recall_base.level).tolist()
    return [level for level in levels if level > 0]
