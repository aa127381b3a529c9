"""The charts of a collection: what each is drawn from, and the parameters that it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from metrics.charts.boards.means import means_figure
from metrics.charts.boards.what_if import what_if_figure
from metrics.charts.comparisons.charts import COMPARED_CHARTS, TOGETHER_CHARTS
from metrics.charts.figure import Figure
from metrics.questions.boards import board_query, what_if_query
from metrics.questions.declared import (
    ARRANGE,
    CHOSEN_RUNS,
    COMPARISON,
    CONFIDENCE,
    DEPTH,
    DESIGN,
    FILTER,
    MEASURE_NAMES,
    ORDER,
    ORDERS,
    PAGE,
    RECALL,
    SCORES,
    SORT,
    WHAT_IF,
    Reads,
    parameter,
)
from metrics.questions.parameters import share_in
from metrics.services.boards.leaderboard import read_leaderboard
from metrics.services.boards.mean_intervals import mean_intervals
from metrics.services.boards.what_if import ask_what_if
from runs.errors import InvalidInput
from runs.models import Collection

_Draw = Callable[[Collection, Mapping[str, str], Any], Figure]


def _what_if(collection: Collection, query: Mapping[str, str]) -> Figure:
    answer = ask_what_if(collection=collection, query=what_if_query(query, collection))
    return what_if_figure(answer, answer.combinations[0])


def _means(collection: Collection, query: Mapping[str, str], reader: Any) -> Figure:
    board = read_leaderboard(collection=collection, query=board_query(query, collection, reader))
    board = replace(board, measures=[board.sort])
    confidence = share_in(query, "confidence", 0.95)
    intervals = mean_intervals(board, confidence)
    if not intervals:
        raise InvalidInput(f"no ranked run has an interval of {board.sort.name}", code="nothing_to_draw")
    return means_figure(board, intervals, confidence)


def _for_all(draw: Callable[[Collection, Mapping[str, str]], Figure]) -> _Draw:
    """Return a chart that is the same for every reader."""
    return lambda collection, query, _reader: draw(collection, query)


# Of a collection, the query string as text, and whoever asks: a filter may be about the reader's own runs.
COLLECTION_CHARTS: dict[str, _Draw] = {
    "means": _means,
    "what-if": _for_all(_what_if),
    **{name: _for_all(draw) for name, draw in COMPARED_CHARTS.items()},
    **TOGETHER_CHARTS,
}

COLLECTION_CHART_READS: Reads = {
    "means": (MEASURE_NAMES, SORT, ORDER, *PAGE, FILTER, ARRANGE, CONFIDENCE, SCORES),
    "what-if": WHAT_IF,
    "significance": COMPARISON,
    "ranks": COMPARISON,
    "curves": (
        parameter("measures", "one of nDCG, DCG, CG, P ...; default: nDCG"),
        parameter("measure", "the same as measures, of which one is given"),
        DEPTH,
        *CHOSEN_RUNS,
    ),
    "precision-recall": (*RECALL, *CHOSEN_RUNS),
    "rankings": (parameter("runs", "the ids of two runs"), parameter("topic", "the topic"), SCORES),
    "orders": ORDERS,
    "power": DESIGN,
}
