"""The curves of several runs under the same judgements."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from metrics.engine.curve.curves import Curve
from metrics.engine.curve.precision_recall import PrecisionRecall
from metrics.engine.curve.readings import AgainstBest, Readings, against_best
from metrics.engine.errors import MeasureError, StatisticsError
from metrics.engine.measures.grammar import Measure
from metrics.models import Evaluation
from metrics.services.boards.board_question import BoardQuery, active_qrels
from metrics.services.boards.leaderboard import runs_shown
from metrics.services.boards.selection import select_evaluations
from metrics.services.boards.topic_selection import TopicSelection, flags_of
from metrics.services.question import SCORES, Context, Parameter, Question, RunIds, parameter
from metrics.services.values.curves import (
    CurveQuery,
    RecallQuery,
    read_curves_of,
    read_precision_recall_of,
)
from runs.errors import InvalidInput
from runs.models import Collection
from runs.models.submissions.runs import NO_RANKING

# As many lines as there are distinguishable colours, and the runs of one answer in JSON.
MAX_TOGETHER, MAX_RUNS = 8, 100


@dataclass(frozen=True)
class _Filtered(Parameter):
    """The leaderboard whose filter selects the runs."""

    def read(self, text: str, name: str, context: Context) -> BoardQuery:
        if context.values["runs"]:
            message = (
                "runs names the runs and filter selects them from the leaderboard: give only "
                "one of them"
            )
            raise InvalidInput(message, code="repeated_parameter", pointer=name)

        parameters = {name: text, "scores": context.parameters.get("scores", "")}
        return BoardQuery.read(parameters, context.collection, context.reader)


@dataclass(frozen=True)
class TogetherQuery(Question):
    """Which runs: those that are named, those that a filter of the leaderboard selects, or all."""

    runs: list[str] = parameter(RunIds())
    board: BoardQuery | None = parameter(
        _Filtered(
            "in place of runs: the runs that this filter of the leaderboard shows; docs/api.md",
            name="filter",
        )
    )
    scores: str | None = parameter(SCORES)


@dataclass(frozen=True)
class CurvesTogether:
    """One measure's curve of each run, in the order of the runs.

    It has `readings` where they were requested.
    """

    measure: Measure
    evaluations: list[Evaluation]
    curves: list[Curve]
    readings: list[Readings] = field(default_factory=list)
    selection: TopicSelection | None = None

    @cached_property
    def against_best(self) -> AgainstBest | None:
        """The runs read against the best of them at each rank; None for curves that may fall."""
        return against_best(self.readings, self.curves[0].depth)


@dataclass(frozen=True)
class RecallTogether:
    """Precision over recall of each run, in the order of the runs: a curve for each level."""

    query: RecallQuery
    evaluations: list[Evaluation]
    curves: list[list[PrecisionRecall]]
    selection: TopicSelection | None = None


def choose_together(
    *, collection: Collection, query: TogetherQuery, most: int = MAX_TOGETHER
) -> list[Evaluation]:
    """Return the runs in the order named, or of submission.

    Raise StatisticsError for none, or more than `most`.
    """
    evaluations = chosen_evaluations(collection=collection, query=query, most=most)
    if not evaluations:
        scope = "that the filter shows " if query.board else ""
        message = f"no run {scope}is evaluated yet, so there is nothing to draw"
        raise StatisticsError(
            message, code="nothing_to_draw", pointer="filter" if query.board else None
        )

    return evaluations


def chosen_evaluations(
    *, collection: Collection, query: TogetherQuery, most: int
) -> list[Evaluation]:
    """Return the evaluated runs in the order named, or of submission.

    Raise StatisticsError for more than `most`.
    """
    qrels, scores, runs = active_qrels(collection), query.scores or collection.scores, query.runs
    if query.board:
        current = Evaluation.objects.current(qrels, scores).evaluated()
        shown = current.filter(run__in=runs_shown(collection=collection, query=query.board))
        shown = shown.exclude(run__sha256=NO_RANKING)
        keys = shown.order_by("run__created_at", "run").values_list("run_id", flat=True)
        runs = [str(run) for run in keys[: most + 1]]

    if query.board and not runs:
        return []
    return select_evaluations(
        collection=collection, qrels=qrels, scores=scores, runs=runs, most=most, ranked=True
    )


def read_curves_together(
    *, evaluations: list[Evaluation], query: CurveQuery, selection: TopicSelection | None = None
) -> CurvesTogether:
    """Return the curves of a measure on the selected topics, None for all.

    Raise MeasureError for several measures, or one without a curve.
    """
    if len(query.measures) > 1:
        raise MeasureError(
            "a chart shows one measure; request one chart per measure",
            code="too_many_measures",
            pointer="measure",
        )

    (measure,) = query.measures
    curves_of = {
        pk: curves
        for pk, (curves,) in read_curves_of(
            evaluations=evaluations, query=query, selected=flags_of(selection)
        )
    }
    curves = [curves_of[evaluation.pk] for evaluation in evaluations]
    readings = [drawn.readings for drawn in curves if drawn.readings]

    return CurvesTogether(
        measure, evaluations, [drawn.curve for drawn in curves], readings, selection
    )


def read_recall_together(
    *, evaluations: list[Evaluation], query: RecallQuery, selection: TopicSelection | None = None
) -> RecallTogether:
    """Return the curves of every run and level on the selected topics, None for all.

    Raise MeasureError for more than MAX_TOGETHER of them, or none.
    """
    curves_of = dict(
        read_precision_recall_of(evaluations=evaluations, query=query, selected=flags_of(selection))
    )
    curves = [curves_of[evaluation.pk] for evaluation in evaluations]
    lines = sum(map(len, curves))
    if lines > MAX_TOGETHER:
        message = (
            f"{lines} curves, of {len(curves)} runs and {len(curves[0])} levels; a chart shows at "
            f"most {MAX_TOGETHER}: name one level with rel= or level=, or fewer runs"
        )

        raise MeasureError(
            message, code="too_many_levels", pointer="rel" if query.levels != [] else "level"
        )
    if not lines:
        raise MeasureError(
            "no level above 0 occurs in the judgements", code="nothing_to_draw", pointer="rel"
        )
    return RecallTogether(query, evaluations, curves, selection)
