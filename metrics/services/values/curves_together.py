"""The curves of several runs under the same judgements."""

from __future__ import annotations

from dataclasses import dataclass

from metrics.engine.curves import Curve
from metrics.engine.errors import MeasureError, StatisticsError
from metrics.engine.grammar import Measure
from metrics.models import Evaluation
from metrics.services.boards.leaderboard import active_qrels
from metrics.services.values.curves import CurveQuery, read_curves
from metrics.services.values.effort import sizes_of_views
from metrics.services.values.selection import select_evaluations
from runs.models import Collection

# As many lines as there are distinguishable colours.
MAX_TOGETHER = 8


@dataclass(frozen=True)
class CurvesTogether:
    """One measure's curve of each run, in the order of the runs."""

    measure: Measure
    evaluations: list[Evaluation]
    curves: list[Curve]


def choose_together(*, collection: Collection, runs: list[str], scores: str | None) -> list[Evaluation]:
    """Return the runs in the order named, or all. Raise StatisticsError for none, or more than MAX_TOGETHER."""
    found = select_evaluations(
        collection=collection, qrels=active_qrels(collection), scores=scores or collection.scores, runs=runs,
        most=MAX_TOGETHER,
    )  # fmt: skip
    if not found:
        raise StatisticsError("no run is evaluated yet, so there is nothing to draw", code="nothing_to_draw")
    return found


def read_curves_together(*, evaluations: list[Evaluation], query: CurveQuery) -> CurvesTogether:
    """Return the curves of a measure. Raise MeasureError for several measures, or one without a curve."""
    if len(query.measures) > 1:
        raise MeasureError(
            "a chart shows one measure; request one chart per measure", code="too_many_measures", pointer="measure"
        )
    (measure,) = query.measures
    # Estimated together instead of for each curve.
    sizes_of_views([evaluation.pk for evaluation in evaluations])
    curves = [read_curves(evaluation=evaluation, query=query)[0].curve for evaluation in evaluations]
    return CurvesTogether(measure, evaluations, curves)
