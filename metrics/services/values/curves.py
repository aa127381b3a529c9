"""The curves of one evaluated run, all computed from one reading of its judged view."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from django.db import transaction

from metrics.engine import ENGINE_VERSION
from metrics.engine.curves import CHANGE_AT_EVERY_RANK, Curve, curve
from metrics.engine.errors import MeasureError
from metrics.engine.gain_curves import FAMILY, GainCurves
from metrics.engine.gains import GainMap
from metrics.engine.grammar import Measure
from metrics.engine.judged import JudgedRun
from metrics.engine.measures.interpolated import Interpolation, Rounding
from metrics.engine.precision_recall import (
    PrecisionRecall,
    graded_precision_recall,
    precision_recall,
    relevance_levels,
)
from metrics.engine.ranking import Ints
from metrics.engine.readings import Readings, readings
from metrics.models import Evaluation, StoredCurves
from metrics.services.values.effort import begin_curves
from metrics.services.values.evaluate import (
    make_curves,
    stored_curve_sets,
    stored_measures,
    unpack_curves,
)
from metrics.services.values.judged_views import load_view, views_of
from runs.attention import keep_going
from runs.services.reading import after_snapshot

MAX_LEVELS = 20
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CurveQuery:
    """The parameters of curves over ranks; `ranks` are those of 1..depth to answer, none meaning all."""

    measures: list[Measure]
    depth: int = 100
    confidence: float = 0.95
    per_topic: bool = False
    with_readings: bool = False
    ranks: tuple[int, ...] = ()

    @property
    def points(self) -> int:
        """How many ranks are answered."""
        return len(self.ranks) or self.depth

    @property
    def places(self) -> Ints:
        """The places in a curve of the ranks that are answered; shape (points,)."""
        return np.array(self.ranks or range(1, self.depth + 1)) - 1


@dataclass(frozen=True)
class RecallQuery:
    """The parameters of a run's precision-recall curves: levels with all levels above them, single levels, and gains
    of generalised precision over generalised recall.

    None instead of a list of levels means all levels that occur in the judgements.
    """

    points: int = 11
    levels: list[int] | None = None
    alone: list[int] | None = field(default_factory=list)
    gains: list[GainMap] = field(default_factory=list)
    interp: Interpolation = "ceiling"
    rounding: Rounding = "10"
    confidence: float = 0.95
    per_topic: bool = False

    @property
    def rounding_of_recall(self) -> Rounding | None:
        """Return how recall is made a number of documents; None for intervals, and for curves of gains alone."""
        counts = self.interp == "ceiling" and (self.levels != [] or self.alone != [])
        return self.rounding if counts else None


@dataclass(frozen=True)
class DrawnCurve:
    """A measure's curve, with `readings` if they were requested."""

    measure: Measure
    curve: Curve
    readings: Readings | None


def read_curves(*, evaluation: Evaluation, query: CurveQuery) -> list[DrawnCurve]:
    """Return the curves in the order of the request, from the store where it has them. Raise MeasureError for a measure
    without a curve, StatisticsError for too much work."""
    sets = _stored_sets([evaluation], query).get(evaluation.pk, [])
    if not _are_stored(sets, query):
        _begin_curves([evaluation], query)
        return _curves(load_view(evaluation), query)
    return _curves_from(sets, query)


def read_curves_of(
    *, evaluations: list[Evaluation], query: CurveQuery
) -> Iterator[tuple[int, list[DrawnCurve]]]:
    """Yield the curves of several runs under one version of the judgements, with the keys of their evaluations.

    Judged views are read one at a time, in any order. Readings against other runs need whole views. Raise
    StatisticsError for too much work before the first one.
    """
    sets = {} if query.with_readings else _stored_sets(evaluations, query)
    served = {pk: each for pk, each in sets.items() if _are_stored(each, query)}
    others = [evaluation for evaluation in evaluations if evaluation.pk not in served]
    if others:
        _begin_curves(others, query)
    for pk, each in served.items():
        yield pk, _curves_from(each, query)
    for pk, _, view in views_of(evaluation.pk for evaluation in others):
        yield pk, _curves(view, query)


def _stored_sets(evaluations: list[Evaluation], query: CurveQuery) -> dict[int, list[GainCurves]]:
    """Return the stored sets of curves that reach the depth, by evaluation. Damaged ones are computed again and left
    out."""
    if not all(measure.definition.name in FAMILY for measure in query.measures):
        return {}
    by_key = {evaluation.pk: evaluation for evaluation in evaluations}
    sets: dict[int, list[GainCurves]] = {}
    for row in StoredCurves.objects.filter(evaluation__in=by_key, depth__gte=query.depth):
        evaluation = by_key[row.evaluation_id]
        if row.is_sound(evaluation.qrels_id):
            sets.setdefault(evaluation.pk, []).append(unpack_curves(row))
        else:
            _log.error("%s are damaged, and computed again", row)
            renew_curves(evaluation, load_view(evaluation))
    return sets


def renew_curves(evaluation: Evaluation, view: JudgedRun) -> None:
    """Store all curves of an evaluation again, unless another engine version computed them."""
    if evaluation.engine_version != ENGINE_VERSION:
        return
    sets = stored_curve_sets(stored_measures(evaluation.run.collection))
    rows = [make_curves(evaluation.pk, each, view).seal(evaluation.qrels_id) for each in sets]

    def replace() -> None:
        with transaction.atomic():
            stored = StoredCurves.objects.filter(evaluation=evaluation.pk)
            stored.exclude(measure__in=[row.measure for row in rows]).delete()
            StoredCurves.objects.bulk_create(
                rows,
                update_conflicts=True,
                unique_fields=("evaluation", "measure"),
                update_fields=("depth", "means", "content", "digest"),
            )

    after_snapshot(replace)


def _are_stored(sets: list[GainCurves], query: CurveQuery) -> bool:
    return all(
        any(each.serves(measure, query.depth) for each in sets) for measure in query.measures
    )


def _curves_from(sets: list[GainCurves], query: CurveQuery) -> list[DrawnCurve]:
    drawn = []
    for measure in query.measures:
        stored = next(each for each in sets if each.serves(measure, query.depth))
        read = stored.readings(measure, query.depth) if query.with_readings else None
        drawn.append(DrawnCurve(measure, stored.curve(measure, query.depth), read))
    return drawn


def _begin_curves(evaluations: list[Evaluation], query: CurveQuery) -> None:
    topics = evaluations[0].qrels.topics
    points = query.points * (topics if query.per_topic else 1)
    dense = sum(measure.definition.name in CHANGE_AT_EVERY_RANK for measure in query.measures)
    keys, ranks = [evaluation.pk for evaluation in evaluations], dense * query.depth * topics
    begin_curves(
        keys, len(query.measures), points, with_readings=query.with_readings, every_rank=ranks
    )


def _curves(view: JudgedRun, query: CurveQuery) -> list[DrawnCurve]:
    drawn = []
    for measure in query.measures:
        keep_going()
        found = readings(view, measure, query.depth) if query.with_readings else None
        drawn.append(DrawnCurve(measure, curve(view, measure, query.depth), found))
    return drawn


def read_precision_recall(*, evaluation: Evaluation, query: RecallQuery) -> list[PrecisionRecall]:
    """Return one curve for each level of relevance. Raise MeasureError for more than MAX_LEVELS levels."""
    _begin_precision_recall([evaluation], query)
    return _precision_recall(load_view(evaluation), query)


def read_precision_recall_of(
    *, evaluations: list[Evaluation], query: RecallQuery
) -> Iterator[tuple[int, list[PrecisionRecall]]]:
    """Yield the curves of several runs, as `read_curves_of` does."""
    _begin_precision_recall(evaluations, query)
    for pk, _, view in views_of(evaluation.pk for evaluation in evaluations):
        keep_going()
        yield pk, _precision_recall(view, query)


def _begin_precision_recall(evaluations: list[Evaluation], query: RecallQuery) -> None:
    points = query.points * (evaluations[0].qrels.topics if query.per_topic else 1)
    curves = len(query.gains) + sum(
        MAX_LEVELS if levels is None else len(levels) for levels in (query.levels, query.alone)
    )
    begin_curves([evaluation.pk for evaluation in evaluations], curves, points)


def _precision_recall(view: JudgedRun, query: RecallQuery) -> list[PrecisionRecall]:
    levels_drawn = [
        (level, alone)
        for levels, alone in ((query.levels, False), (query.alone, True))
        for level in (relevance_levels(view) if levels is None else levels)
    ]
    requested = len(levels_drawn) + len(query.gains)
    if requested > MAX_LEVELS:
        message = f"{requested} curves requested; the limit is {MAX_LEVELS} at once: name some levels with rel= or level="
        raise MeasureError(
            message, code="too_many_levels", pointer="rel" if query.levels != [] else "level"
        )
    by_level = [
        precision_recall(
            view,
            level,
            alone=alone,
            points=query.points,
            interp=query.interp,
            rounding=query.rounding,
        )
        for level, alone in levels_drawn
    ]
    by_gain = [graded_precision_recall(view, gains, points=query.points) for gains in query.gains]
    return by_level + by_gain
