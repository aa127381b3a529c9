"""Read the ranked runs of a leaderboard with means and parameters, as charts show them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from metrics.engine.errors import StatisticsError
from metrics.engine.measures.grammar import Measure
from metrics.models import Evaluation
from metrics.services.boards.board_question import BoardQuery
from metrics.services.boards.columns import Cell, ShownColumn, read_cells
from metrics.services.boards.conditions import term_of_key
from metrics.services.boards.leaderboard import read_leaderboard, runs_shown
from metrics.services.boards.mean_intervals import Ends, intervals_of, within_range
from metrics.services.tracking.parameters import MAX_LIMIT, Facet, read_facets
from runs.models import Collection, ParameterKey, Qrels, Run
from runs.services.tracking.parameters import PARAM

# Runs of one chart.
MAX_RUNS = 1_000
# More intervals than this would hide each other, and none are read.
MAX_INTERVALS = 150
# A text of more different values than this makes no axis that anybody can read.
MAX_TEXTS = 12
_SHOWN = ("qrels_id", "run__tag", "run__team__slug")


@dataclass(frozen=True)
class MeasuredRun:
    """A ranked run: its mean, its interval within the measure's range, and its values by column.

    A value is None where it is not set.
    """

    run: Run
    mean: float
    ends: Ends | None
    values: dict[str, Cell]


@dataclass(frozen=True)
class Measured:
    """The ranked runs that a filter shows, best first, of `ranked` in all."""

    qrels: Qrels
    measure: Measure
    runs: list[MeasuredRun]
    ranked: int


def read_measured(
    *,
    collection: Collection,
    query: BoardQuery,
    columns: tuple[ShownColumn, ...],
    confidence: float | None = None,
) -> Measured:
    """Return the ranked runs with values of columns, and intervals if `confidence` is set.

    Raise StatisticsError if there is no such run, or if there are more than 1,000. More than
    150 have no intervals.
    """
    board = read_leaderboard(
        collection=collection, query=replace(query, filter=None, offset=0, limit=1)
    )
    order = dict(board.order)

    runs_by_evaluation = {
        evaluation.pk: evaluation.run
        for evaluation in Evaluation.objects.filter(pk__in=list(order))
        .select_related("run__team")
        .only(*_SHOWN)
    }

    if query.filter:
        selected = set(runs_shown(collection=collection, query=query))
        runs_by_evaluation = {
            pk: run for pk, run in runs_by_evaluation.items() if run.pk in selected
        }

    if not runs_by_evaluation:
        scope = "that the filter shows " if query.filter else ""
        raise StatisticsError(
            f"no run {scope}is ranked, so there is nothing to draw", code="nothing_to_draw"
        )
    if len(runs_by_evaluation) > MAX_RUNS:
        message = (
            f"{len(runs_by_evaluation):,} runs; a chart has at most {MAX_RUNS:,}: select fewer "
            "with filter="
        )
        raise StatisticsError(message, code="too_many_runs", pointer="filter")

    cells = read_cells(columns, [run.pk for run in runs_by_evaluation.values()])
    ends: dict[int, Ends] = {}
    if confidence is not None and len(runs_by_evaluation) <= MAX_INTERVALS:
        ends = within_range(
            intervals_of(list(runs_by_evaluation), [query.sort], confidence, board.qrels.topics),
            query.sort,
        )

    runs = [
        MeasuredRun(
            runs_by_evaluation[pk], mean, ends.get(pk), cells.get(runs_by_evaluation[pk].pk, {})
        )
        for pk, mean in board.order
        if pk in runs_by_evaluation
    ]

    return Measured(board.qrels, query.sort, runs, board.ranked)


def differing_columns(
    *, collection: Collection, reader: Any, filter: str = ""
) -> list[ShownColumn]:
    """Return the settings in which filtered runs differ, the most frequent first, then costs.

    Texts with more than 12 different values are left out: they name runs rather than settings.
    """
    facets = read_facets(
        collection=collection, reader=reader, filter=filter, limit=MAX_LIMIT
    ).results
    differing = [facet for facet in facets if _tells_apart(facet)]
    differing.sort(key=lambda facet: (facet.key.space != PARAM, -facet.runs, facet.key.name))

    return [
        ShownColumn(facet.key.space, facet.key.name, facet.key.unit, facet.key.pk)
        for facet in differing
    ]


def _tells_apart(facet: Facet) -> bool:
    key = facet.key
    if key.role == ParameterKey.Role.IGNORED or not term_of_key(key.space, key.name):
        return False
    # Texts among numbers share a place.
    return facet.distinct > 1 and (
        facet.distinct <= MAX_TEXTS or facet.types.get("number", 0) > facet.runs / 2
    )
