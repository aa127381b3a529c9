"""The charts of a collection: what each is drawn from, and the parameters that it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from metrics.charts.boards.heat_map import heat_map_figure
from metrics.charts.boards.means import means_figure
from metrics.charts.boards.over_time import NAME as OVER_TIME
from metrics.charts.boards.over_time import over_time_figure
from metrics.charts.boards.scatter import scatter_figure
from metrics.charts.boards.what_if import what_if_figure
from metrics.charts.comparisons.charts import COMPARED_CHARTS, TOGETHER_CHARTS
from metrics.charts.figure import Figure
from metrics.charts.look import MOST_INTERVALS
from metrics.charts.tracking.frontier import frontier_figure
from metrics.charts.tracking.importance import importance_figure
from metrics.charts.tracking.parallel import parallel_figure
from metrics.charts.tracking.parameter import parameter_figure
from metrics.charts.tracking.progress import NAME as PROGRESS
from metrics.charts.tracking.progress import progress_figure
from metrics.questions.declared import (
    ARRANGE,
    CHOSEN_RUNS,
    COMPARISON,
    CONFIDENCE,
    DEPTH,
    DESIGN,
    ENTRIES,
    FILTER,
    FRONTIER,
    IMPORTANCE,
    MEASURE_NAMES,
    ORDER,
    ORDERS,
    PAGE,
    RECALL,
    SCORES,
    SEED,
    SORT,
    TOPICS,
    VERSIONS,
    WHAT_IF,
    Reads,
    declared,
    parameter,
)
from metrics.questions.measured import axes_in, columns_in, measured_board
from metrics.questions.parameters import scores_in, share_in
from metrics.questions.systems import default_measure, system_in
from metrics.questions.topics import HEAT_MAP
from metrics.services.boards.board_question import BoardQuery
from metrics.services.boards.heat_map import HeatQuery, read_heat_map
from metrics.services.boards.leaderboard import MAX_ROWS, read_leaderboard
from metrics.services.boards.mean_intervals import mean_intervals
from metrics.services.boards.versions import BEST
from metrics.services.boards.what_if import WhatIfQuery, ask_what_if
from metrics.services.question import MAX_SEED, measure_in, measures_in, run_ids_in
from metrics.services.tracking.frontier import FrontierQuery, read_frontier
from metrics.services.tracking.importance import ImportanceQuery, read_importance
from metrics.services.tracking.measured import read_measured
from metrics.services.tracking.progress import read_progress_of
from metrics.services.values.two_rankings import TwoRankingsQuery
from runs.errors import InvalidInput
from runs.models import Collection
from runs.parameters import integer_in
from runs.services.collections.collections import read_topic_titles

# The parameters of charts of parameters, in addition to the axes.
_OF_RUNS = (parameter("measure", "default: the collection's first"), FILTER, SCORES)
_Draw = Callable[[Collection, Mapping[str, str], Any], Figure]


def _what_if(collection: Collection, query: Mapping[str, str]) -> Figure:
    answer = ask_what_if(collection=collection, query=WhatIfQuery.read(query, collection))
    return what_if_figure(answer, answer.combinations[0])


def _heat_map(collection: Collection, query: Mapping[str, str]) -> Figure:
    heat_map = read_heat_map(collection=collection, query=HeatQuery.read(query, collection))
    return heat_map_figure(heat_map, read_topic_titles(collection, heat_map.topic_ids))


def _means(collection: Collection, query: Mapping[str, str], reader: Any) -> Figure:
    board = read_leaderboard(
        collection=collection, query=BoardQuery.read(query, collection, reader)
    )
    board = replace(board, measures=[board.sort])
    confidence = share_in(query, "confidence", 0.95)

    if board.versions == BEST:
        raise InvalidInput(
            "means of the best of several versions have no intervals", code="nothing_to_draw"
        )

    intervals = mean_intervals(board, confidence)
    if not intervals:
        raise InvalidInput(
            f"no ranked run has an interval of {board.sort.name}", code="nothing_to_draw"
        )

    return means_figure(board, intervals, confidence).of_topics(board.selection)


def _importance(collection: Collection, query: Mapping[str, str], reader: Any) -> Figure:
    question = ImportanceQuery.read(query, collection, reader)
    return importance_figure(read_importance(collection=collection, query=question))


def _frontier(collection: Collection, query: Mapping[str, str], reader: Any) -> Figure:
    return frontier_figure(
        read_frontier(collection=collection, query=FrontierQuery.read(query, collection, reader))
    )


def _parameter(collection: Collection, query: Mapping[str, str], reader: Any) -> Figure:
    x = axes_in(query, "x", collection, reader, most=1)[0]
    by = columns_in(query, "by", collection, reader)
    board = measured_board(query, collection, reader)
    confidence = share_in(query, "confidence", 0.95)
    measured = read_measured(
        collection=collection, query=board, columns=(x, *by), confidence=confidence
    )

    return parameter_figure(measured, x, by[0] if by else None, confidence)


def _parallel(collection: Collection, query: Mapping[str, str], reader: Any) -> Figure:
    board = measured_board(query, collection, reader)
    seed = integer_in(query, "seed", 0, 0, MAX_SEED)
    columns = axes_in(query, "columns", collection, reader)
    return parallel_figure(
        read_measured(collection=collection, query=board, columns=columns), columns, seed
    )


def _scatter(collection: Collection, query: Mapping[str, str], reader: Any) -> Figure:
    """Draw two measures: by default the collection's first upwards, and its second across."""
    own = measures_in({}, "measures", collection.measures, collection)
    upwards = measure_in(query, "y", own[0].name, collection)
    others = [measure.name for measure in own if measure != upwards]
    across = measure_in(query, "x", others[0] if others else upwards.name, collection)
    if across == upwards:
        message = f"both axes are {upwards.name}: name another measure with x= or y="
        raise InvalidInput(message, code="nothing_to_draw", pointer="x")

    question = BoardQuery.read({**query, "sort": upwards.name}, collection, reader)
    question = replace(question, measures=[upwards, across], limit=MAX_ROWS)
    board = read_leaderboard(collection=collection, query=question)
    rows = [row for row in board.rows if row.rank is not None]
    confidence = share_in(query, "confidence", 0.95)
    intervals = {}
    if len(rows) <= MOST_INTERVALS:
        intervals = mean_intervals(replace(board, rows=rows), confidence)

    baselines = run_ids_in(query, "baseline")
    figure = scatter_figure(board, across, upwards, intervals, confidence, baselines)
    return figure.of_topics(board.selection)


def _over_time(collection: Collection, query: Mapping[str, str], reader: Any) -> Figure:
    question = BoardQuery.read(query, collection, reader)
    question = replace(question, measures=[question.sort], limit=MAX_ROWS)
    board = read_leaderboard(collection=collection, query=question)
    return over_time_figure(board).of_topics(board.selection)


def _progress(collection: Collection, query: Mapping[str, str], reader: Any) -> Figure:
    system = system_in(query, reader)
    measure = measure_in(query, "measure", default_measure(collection), collection)
    scores = scores_in(query)
    progress = read_progress_of(
        system=system, collection=collection, measure=measure, reader=reader, scores=scores
    )

    if progress is None:
        raise InvalidInput(
            f"{system} has no evaluated version in {collection.slug}", code="nothing_to_draw"
        )

    return progress_figure(progress)


def _for_all(draw: Callable[[Collection, Mapping[str, str]], Figure]) -> _Draw:
    """Return a chart that is the same for every reader."""
    return lambda collection, query, _reader: draw(collection, query)


# Charts of chosen runs with their parameters and costs.
EXPLAINED_CHARTS: dict[str, _Draw] = {"importance": _importance, "frontier": _frontier}

# Charts of a collection. The reader matters: a filter may be about the reader's own runs.
COLLECTION_CHARTS: dict[str, _Draw] = {
    "means": _means,
    "scatter": _scatter,
    OVER_TIME: _over_time,
    PROGRESS: _progress,
    "what-if": _for_all(_what_if),
    "heat-map": _for_all(_heat_map),
    "parameter": _parameter,
    "parallel": _parallel,
    **{name: _for_all(draw) for name, draw in COMPARED_CHARTS.items()},
    **TOGETHER_CHARTS,
    **EXPLAINED_CHARTS,
}

COLLECTION_CHART_READS: Reads = {
    "means": (
        MEASURE_NAMES,
        SORT,
        ORDER,
        *PAGE,
        FILTER,
        ARRANGE,
        VERSIONS,
        ENTRIES,
        CONFIDENCE,
        SCORES,
        TOPICS,
    ),
    "scatter": (
        parameter("x", "the measure across; default: the collection's second"),
        parameter("y", "the measure upwards; default: the collection's first"),
        FILTER,
        CONFIDENCE,
        SCORES,
        parameter("baseline", "the ids of runs to point out, separated by commas"),
        TOPICS,
    ),
    OVER_TIME: (SORT, FILTER, SCORES, TOPICS),
    PROGRESS: (
        parameter("system", "a system with versions in this collection, as team/name"),
        parameter("measure", "default: the collection's first"),
        SCORES,
    ),
    "what-if": WHAT_IF,
    "heat-map": HEAT_MAP,
    "importance": IMPORTANCE,
    "frontier": FRONTIER,
    "parameter": (
        parameter(
            "x", "a parameter or cost, such as param:bm25.k1; default: a setting that differs"
        ),
        parameter("by", "another one, whose values are colours"),
        CONFIDENCE,
        *_OF_RUNS,
    ),
    "parallel": (
        parameter(
            "columns",
            "the axes, such as param:bm25.k1,param:model, at most 8; default: settings that differ",
        ),
        SEED,
        *_OF_RUNS,
    ),
    "significance": COMPARISON,
    "ranks": COMPARISON,
    "groups": COMPARISON,
    "curves": (
        parameter("measures", "one of nDCG, DCG, CG, P ...; default: nDCG"),
        parameter("measure", "the same as measures, of which one is given"),
        DEPTH,
        *CHOSEN_RUNS,
        TOPICS,
    ),
    "precision-recall": (*RECALL, *CHOSEN_RUNS, TOPICS),
    "topic-scatter": (
        *COMPARISON,
        parameter("comparison", "the stored comparison to which the points lead"),
    ),
    "rankings": declared(TwoRankingsQuery),
    "orders": ORDERS,
    "power": DESIGN,
}
