"""The t interval of every mean on a page of a leaderboard."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from metrics.engine.arrays import Flags
from metrics.engine.curve.intervals import row_intervals
from metrics.engine.errors import StatisticsError
from metrics.engine.measures.definition import Aggregate
from metrics.engine.measures.grammar import Measure
from metrics.engine.significance.pairs import Caution
from metrics.services.boards.leaderboard import Leaderboard
from metrics.services.boards.topic_selection import flags_of
from metrics.services.values.effort import MAX_VALUES
from metrics.services.values.judged_views import vectors_of

# How the intervals of means are computed (`row_intervals`), for files and manifests.
MEAN_INTERVAL_METHOD = "Student's t over topics, on the logit scale for measures with two bounds"
Ends = tuple[float, float]


def mean_intervals(board: Leaderboard, confidence: float) -> dict[tuple[int, str], Ends]:
    """Return both ends by evaluation and measure, from the topics on which the run has a value.

    Stale rows have none, nor do measures that are still being computed.

    Raise StatisticsError for more values than are read in one request.
    """
    ids = [row.evaluation.pk for row in board.rows if row.current]
    measures = [measure for measure in board.measures if measure.name not in board.computing]
    return intervals_of(ids, measures, confidence, board.qrels.topics, flags_of(board.selection))


def intervals_of(
    ids: list[int],
    measures: list[Measure],
    confidence: float,
    topics: int,
    selected: Flags | None = None,
) -> dict[tuple[int, str], Ends]:
    """Return the same of evaluations by their keys, under judgements of this many topics.

    `selected` is a flag for each topic, None for all.
    """
    measures = [measure for measure in measures if _has_interval(measure)]
    if not (ids and measures):
        return {}
    if len(ids) * len(measures) * topics > MAX_VALUES:
        message = (
            "too many intervals for one request: request fewer measures, or fewer rows with limit="
        )
        raise StatisticsError(message, code="too_much_work", pointer="limit")

    vectors = vectors_of(ids, measures)

    intervals: dict[tuple[int, str], Ends] = {}
    for measure in measures:
        values = np.vstack([vectors[pk, measure.name].values for pk in ids])
        values = values if selected is None else values[:, selected]
        band = row_intervals(values, confidence, measure.definition.bounds)
        ends = zip(*(end.tolist() for end in band), strict=True)
        intervals.update(
            {(pk, measure.name): (low, high) for pk, (low, high) in zip(ids, ends, strict=True)}
        )

    return intervals


def within_range(intervals: Mapping[tuple[int, str], Ends], measure: Measure) -> dict[int, Ends]:
    """Return the part of each run's interval within the measure's range, as readers see it.

    The result is by evaluation, without NaN intervals. Student's t does not know the range of a
    measure.
    """
    low, high = measure.definition.bounds
    defined = {
        pk: ends
        for (pk, name), ends in intervals.items()
        if name == measure.name and math.isfinite(ends[0])
    }

    return {pk: (max(ends[0], low), min(ends[1], high)) for pk, ends in defined.items()}


def cut_note(intervals: Mapping[tuple[int, str], Ends], measure: Measure) -> str:
    """Return a note on where intervals are cut, or "" if all lie within the measure's range."""
    visible = within_range(intervals, measure)
    return (
        cut_words(measure)
        if any(intervals[pk, measure.name] != ends for pk, ends in visible.items())
        else ""
    )


def cut_words(measure: Measure) -> str:
    low, high = measure.definition.bounds
    return (
        f", cut where {measure.definition.name} ends: at "
        f"{low:g}{'' if math.isinf(high) else f' and {high:g}'}"
    )


def without_interval(measures: list[Measure]) -> list[Caution]:
    names = [measure.name for measure in measures if not _has_interval(measure)]
    if not names:
        return []

    return [
        Caution(
            "no_interval",
            f"{', '.join(names)}: not a mean of the topics' values, so it has no interval",
        )
    ]


def _has_interval(measure: Measure) -> bool:
    """Return whether the mean has an interval.

    Sums, geometric means and pooled ratios are not means of the topics' values.
    """
    return measure.definition.aggregate is Aggregate.MEAN and not measure.pools
