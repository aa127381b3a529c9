"""The curves of evaluated runs, all of a run computed from one reading of its judged view.

Those of a run with replicates are the means of theirs for each topic.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from django.db import transaction

from metrics.engine import ENGINE_VERSION
from metrics.engine.arrays import Flags, Ints
from metrics.engine.curve.curves import (
    CHANGE_AT_EVERY_RANK,
    CURVES,
    MAX_DEPTH,
    Curve,
    curve,
    curve_measures,
    mean_curve,
)
from metrics.engine.curve.gain_curves import FAMILY, GainCurves
from metrics.engine.curve.precision_recall import (
    MAX_POINTS,
    PrecisionRecall,
    graded_precision_recall,
    mean_precision_recall,
    precision_recall,
    relevance_levels,
)
from metrics.engine.curve.readings import Readings, mean_readings, readings
from metrics.engine.errors import MeasureError
from metrics.engine.judgement.gains import GainMap
from metrics.engine.judgement.judged import JudgedRun
from metrics.engine.measures.definition import (
    INTERPOLATION,
    LEVEL,
    RECALL_ROUNDING,
    REL,
    check_interpolation,
)
from metrics.engine.measures.grammar import Measure
from metrics.engine.measures.interpolated import Interpolation, Rounding
from metrics.models import Evaluation, StoredCurves
from metrics.services.question import (
    COMPUTED,
    Context,
    Flag,
    Gains,
    Integer,
    Parameter,
    Question,
    Several,
    Share,
    Word,
    parameter,
)
from metrics.services.queue.vectors import stored_curve_sets, stored_measures
from metrics.services.values.effort import begin_curves
from metrics.services.values.evaluate import (
    make_curves,
    unpack_curves,
)
from metrics.services.values.judged_views import load_view, views_of
from metrics.services.values.replicates import of_replicates
from metrics.services.values.sampled import check_suits
from runs.attention import keep_going
from runs.errors import InvalidInput
from runs.parameters import one_of, pointed
from runs.services.audit.reading import after_snapshot

MAX_LEVELS, DEPTH = 20, 100
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Curves(Parameter):
    """Measures that have curves."""

    default: Any = COMPUTED

    def value(self, context: Context) -> list[Measure]:
        name = one_of(context.parameters, self.name, self.also)
        try:
            return curve_measures(context.parameters.get(name) or "nDCG")
        except MeasureError as error:
            raise pointed(error, name) from error

    def write(self, value: Any) -> str:
        return ",".join(measure.name for measure in value)


@dataclass(frozen=True)
class CurveQuery(Question):
    """The parameters of curves over ranks.

    `ranks` are those of 1..depth to answer, none meaning all.
    """

    measures: list[Measure] = parameter(
        _Curves(f"of {', '.join(CURVES)}, with their parameters; default: nDCG", also="measure")
    )
    ranks: list[int] = parameter(
        Several(
            "ranks separated by commas: values at these alone; default: every rank down to depth",
            of=Integer("a rank", low=1, high=MAX_DEPTH),
        )
    )
    depth: int = parameter(
        Integer(
            f"number of ranks, or the last of ranks, at most {MAX_DEPTH}",
            default=DEPTH,
            usual=lambda context: max([DEPTH, *context.values["ranks"]]),
            low=1,
            high=MAX_DEPTH,
        )
    )
    confidence: float = parameter(Share("of the intervals", default=0.95))
    per_topic: bool = parameter(Flag("true: every topic's curve as well"))
    with_readings: bool = parameter(
        Flag("true: the curves read across and down against the ideal's", name="readings")
    )

    def __post_init__(self) -> None:
        if max(self.ranks, default=0) > self.depth:
            message = (
                f"rank {max(self.ranks)} lies beyond depth={self.depth}: name other ranks, or a "
                "larger depth"
            )
            raise InvalidInput(message, pointer="ranks")

    @property
    def points(self) -> int:
        """How many ranks are answered."""
        return len(self.ranks) or self.depth

    @property
    def places(self) -> Ints:
        """The places in a curve of the ranks that are answered; shape (points,)."""
        return np.array(sorted(self.ranks) or range(1, self.depth + 1)) - 1


@dataclass(frozen=True)
class _Levels(Parameter):
    """Levels of relevance with commas between them.

    `all`, those that occur in the judgements, is None.
    """

    reads: Callable[[str, str], Any] = REL.read
    default: Any = ()

    def read(self, text: str, name: str, context: Context) -> list[int] | None:
        if text == "all":
            return None
        return Several(name, of=Word(name, reads=self.reads)).read(text, name, context)

    def write(self, value: Any) -> str:
        return "all" if value is None else ",".join(map(str, value))


@dataclass(frozen=True)
class RecallQuery(Question):
    """The parameters of a run's precision-recall curves.

    They are levels with all levels above them, single levels, and gains of generalised precision
    over generalised recall.

    None instead of a list of levels means all levels that occur in the judgements.
    """

    points: int = parameter(
        Integer(
            f"points of recall from 0 to 1, 2 to {MAX_POINTS}", default=11, low=2, high=MAX_POINTS
        )
    )
    alone: list[int] | None = parameter(
        _Levels(
            "levels of which each alone is relevant, separated by commas, or all",
            name="level",
            reads=LEVEL.read,
        )
    )
    gains: list[GainMap] = parameter(
        Several(
            "gain maps separated by semicolons, such as linear;0-1-10-100: generalised precision "
            "over generalised recall",
            of=Gains("a gain map"),
            separator=";",
        )
    )
    levels: list[int] | None = parameter(
        _Levels(
            "lowest relevant levels separated by commas, or all: every level there is; default: "
            "1, without level and gains",
            name="rel",
            usual=lambda context: (
                [] if context.values["alone"] != [] or context.values["gains"] else [1]
            ),
        )
    )
    interp: Interpolation = parameter(
        Word(
            "which precision counts at a recall",
            default=INTERPOLATION.default,
            choices=("ceiling", "interval"),
            reads=INTERPOLATION.read,
        )
    )
    rounding: Rounding = parameter(
        Word(
            "of recall into documents, for ceiling",
            default=RECALL_ROUNDING.default,
            choices=("10", "9", "exact"),
            reads=RECALL_ROUNDING.read,
        )
    )
    confidence: float = parameter(Share("of the intervals", default=0.95))
    per_topic: bool = parameter(Flag("true: every topic's curve as well"))

    def __post_init__(self) -> None:
        problem = check_interpolation({"interp": self.interp, "rounding": self.rounding})
        if problem:
            raise MeasureError(problem, code="bad_parameter", pointer="rounding")
        if self.gains and self.interp == "interval":
            message = (
                "gains has the highest generalised precision at that recall or more: leave "
                "interp out"
            )
            raise MeasureError(message, code="bad_parameter", pointer="interp")

    @property
    def rounding_of_recall(self) -> Rounding | None:
        """Return how recall becomes a number of documents.

        It is None for intervals, and for curves of gains alone.
        """
        counts = self.interp == "ceiling" and (self.levels != [] or self.alone != [])
        return self.rounding if counts else None


@dataclass(frozen=True)
class MeasureCurve:
    """A measure's curve, with `readings` if they were requested."""

    measure: Measure
    curve: Curve
    readings: Readings | None


def read_curves(
    *, evaluation: Evaluation, query: CurveQuery, selected: Flags | None = None
) -> list[MeasureCurve]:
    """Return the curves in the order of the request, from the store where it has them.

    `selected` is a flag for each topic of the judgements that counts, None for all: here and below.
    Raise MeasureError for a measure without a curve, StatisticsError for too much work.
    """
    if evaluation.run.has_replicates:
        ((_, mean),) = read_curves_of(evaluations=[evaluation], query=query, selected=selected)
        return mean

    _begin_curves([evaluation], query)
    # Readings are stored for all topics.
    stored = selected is None or not query.with_readings
    sets = _stored_sets([evaluation], query).get(evaluation.pk, []) if stored else []
    if _serve(sets, query):
        return _stored_curves(sets, query, selected)
    return _compute_curves(load_view(evaluation), query, selected)


def read_curves_of(
    *, evaluations: list[Evaluation], query: CurveQuery, selected: Flags | None = None
) -> Iterator[tuple[int, list[MeasureCurve]]]:
    """Yield the keys of evaluations under one version of the judgements, and their curves.

    Judged views are read one at a time, in any order. Readings against other runs need whole views.
    Raise StatisticsError for too much work before the first one.
    """
    single, replicates = _with_rankings(evaluations)
    _begin_curves([*single, *chain(*replicates.values())], query, dense=bool(replicates))

    yield from _curves_of(single, query, selected)
    for pk, theirs in replicates.items():
        yield pk, _mean_curves([curves for _, curves in _curves_of(theirs, query, selected)])


def _with_rankings(
    evaluations: list[Evaluation],
) -> tuple[list[Evaluation], dict[int, list[Evaluation]]]:
    """Return the evaluations of single runs, and those of replicates by that of their run.

    Raise MeasureError for a run without a ranking, and the errors of `of_replicates`.
    """
    keys = of_replicates(
        evaluation.pk for evaluation in evaluations if evaluation.run.has_replicates
    )
    rows = Evaluation.objects.filter(pk__in=set(chain(*keys.values())))
    by_key = rows.select_related("qrels", "run__collection").in_bulk() if keys else {}

    replicates = {pk: [by_key[key] for key in theirs] for pk, theirs in keys.items()}
    single = [evaluation for evaluation in evaluations if evaluation.pk not in replicates]
    _check_ranked([*single, *chain(*replicates.values())])
    return single, replicates


def _mean_curves(curves_of: list[list[MeasureCurve]]) -> list[MeasureCurve]:
    """Return the mean of the curves of replicates, of each measure."""
    means = []
    for curves in zip(*curves_of, strict=True):
        keep_going()
        mean = mean_curve([drawn.curve for drawn in curves])
        read = [drawn.readings for drawn in curves if drawn.readings]
        means.append(
            MeasureCurve(curves[0].measure, mean, mean_readings(read, mean) if read else None)
        )

    return means


def _curves_of(
    evaluations: list[Evaluation], query: CurveQuery, selected: Flags | None
) -> Iterator[tuple[int, list[MeasureCurve]]]:
    """Yield the curves of runs with rankings."""
    stored_sets = {} if query.with_readings else _stored_sets(evaluations, query)

    complete = {pk: sets for pk, sets in stored_sets.items() if _serve(sets, query)}
    for pk, sets in complete.items():
        keep_going()
        yield pk, _stored_curves(sets, query, selected)

    for pk, _, view in views_of(
        evaluation.pk for evaluation in evaluations if evaluation.pk not in complete
    ):
        yield pk, _compute_curves(view, query, selected)


def _stored_sets(evaluations: list[Evaluation], query: CurveQuery) -> dict[int, list[GainCurves]]:
    """Return the stored sets of curves that reach the depth, by evaluation.

    Damaged ones are computed again and left out.
    """
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

    qrels = evaluation.qrels
    sets = stored_curve_sets(stored_measures(evaluation.run.collection, qrels), qrels)
    rows = [make_curves(evaluation.pk, measure, view).seal(evaluation.qrels_id) for measure in sets]

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


def _serve(sets: list[GainCurves], query: CurveQuery) -> bool:
    return all(
        any(stored.serves(measure, query.depth) for stored in sets) for measure in query.measures
    )


def _stored_curves(
    sets: list[GainCurves], query: CurveQuery, selected: Flags | None
) -> list[MeasureCurve]:
    curves = []
    for measure in query.measures:
        stored = next(candidate for candidate in sets if candidate.serves(measure, query.depth))
        drawn = stored.curve(measure, query.depth)
        if selected is not None:
            drawn = drawn.of_topics(selected)

        curve_readings = stored.readings(measure, query.depth) if query.with_readings else None
        curves.append(MeasureCurve(measure, drawn, curve_readings))

    return curves


def _check_ranked(evaluations: list[Evaluation]) -> None:
    """Raise MeasureError for a run without a ranking."""
    for evaluation in evaluations:
        if not evaluation.run.has_ranking:
            message = f"run {evaluation.run.tag} has no ranking, so it has no curve"
            raise MeasureError(message, code="no_curve", pointer="runs")


def _begin_curves(evaluations: list[Evaluation], query: CurveQuery, *, dense: bool = False) -> None:
    """Begin computing curves; `dense` if they are kept with a value for every rank."""
    _check_ranked(evaluations)
    qrels = evaluations[0].qrels
    check_suits(query.measures, qrels)
    topics = qrels.topics
    points = query.points * (topics if query.per_topic else 1)
    changing = sum(
        dense or measure.definition.name in CHANGE_AT_EVERY_RANK for measure in query.measures
    )
    keys, ranks = [evaluation.pk for evaluation in evaluations], changing * query.depth * topics
    begin_curves(
        keys, len(query.measures), points, with_readings=query.with_readings, every_rank=ranks
    )


def _compute_curves(
    view: JudgedRun, query: CurveQuery, selected: Flags | None
) -> list[MeasureCurve]:
    curves = []
    for measure in query.measures:
        keep_going()
        drawn = curve(view, measure, query.depth)
        if selected is not None:
            drawn = drawn.of_topics(selected)

        curve_readings = None
        if query.with_readings:
            curve_readings = readings(view, measure, query.depth, selected)

        curves.append(MeasureCurve(measure, drawn, curve_readings))

    return curves


def read_precision_recall(
    *, evaluation: Evaluation, query: RecallQuery, selected: Flags | None = None
) -> list[PrecisionRecall]:
    """Return one curve for each level of relevance.

    Raise MeasureError for more than MAX_LEVELS levels.
    """
    ((_, curves),) = read_precision_recall_of(
        evaluations=[evaluation], query=query, selected=selected
    )
    return curves


def read_precision_recall_of(
    *, evaluations: list[Evaluation], query: RecallQuery, selected: Flags | None = None
) -> Iterator[tuple[int, list[PrecisionRecall]]]:
    """Yield the curves of several runs, as `read_curves_of` does."""
    single, replicates = _with_rankings(evaluations)
    _begin_precision_recall([*single, *chain(*replicates.values())], query)

    yield from _precision_recall_of(single, query, selected)
    for pk, theirs in replicates.items():
        by_run = [curves for _, curves in _precision_recall_of(theirs, query, selected)]
        yield pk, [mean_precision_recall(curves) for curves in zip(*by_run, strict=True)]


def _precision_recall_of(
    evaluations: list[Evaluation], query: RecallQuery, selected: Flags | None
) -> Iterator[tuple[int, list[PrecisionRecall]]]:
    for pk, _, view in views_of(evaluation.pk for evaluation in evaluations):
        keep_going()
        yield pk, _precision_recall(view, query, selected)


def _begin_precision_recall(evaluations: list[Evaluation], query: RecallQuery) -> None:
    if evaluations[0].qrels.design:
        message = (
            "the judgements are sampled, and precision-recall curves take documents outside the "
            "sample for not relevant"
        )
        raise MeasureError(message, code="sampled_judgements")

    points = query.points * (evaluations[0].qrels.topics if query.per_topic else 1)
    curves = len(query.gains) + sum(
        MAX_LEVELS if levels is None else len(levels) for levels in (query.levels, query.alone)
    )
    begin_curves([evaluation.pk for evaluation in evaluations], curves, points)


def _precision_recall(
    view: JudgedRun, query: RecallQuery, selected: Flags | None
) -> list[PrecisionRecall]:
    levels_alone = [
        (level, alone)
        for levels, alone in ((query.levels, False), (query.alone, True))
        for level in (relevance_levels(view) if levels is None else levels)
    ]

    requested = len(levels_alone) + len(query.gains)
    if requested > MAX_LEVELS:
        message = (
            f"{requested} curves requested; the limit is {MAX_LEVELS} at once: name some levels "
            "with rel= or level="
        )
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
        for level, alone in levels_alone
    ]
    by_gain = [graded_precision_recall(view, gains, points=query.points) for gains in query.gains]

    curves = by_level + by_gain
    return curves if selected is None else [drawn.of_topics(selected) for drawn in curves]
