"""The parameters of addresses for the OpenAPI description, as their questions declare them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter

from metrics.services.boards.board_question import BoardQuery, FileQuery
from metrics.services.boards.curves_together import TogetherQuery
from metrics.services.boards.standing_parts import StandingsQuery
from metrics.services.boards.what_if import WhatIfQuery
from metrics.services.comparisons.agreement import AgreementQuery
from metrics.services.comparisons.comparison import ComparisonQuery
from metrics.services.comparisons.design import DesignQuery
from metrics.services.comparisons.orders import OrdersQuery
from metrics.services.comparisons.shown_pairs import PairSelection
from metrics.services.question import Parameter, Question
from metrics.services.sessions.board import SessionBoardQuery
from metrics.services.sessions.sample import SessionComparisonQuery
from metrics.services.sessions.standings import SessionStandingsQuery
from metrics.services.tracking.frontier import FrontierQuery
from metrics.services.tracking.importance import ImportanceQuery
from metrics.services.values.curves import CurveQuery, RecallQuery

_TYPES = {
    "string": OpenApiTypes.STR,
    "integer": OpenApiTypes.INT,
    "number": OpenApiTypes.NUMBER,
    "boolean": OpenApiTypes.BOOL,
}


def parameter(
    name: str, text: str, kind: Any = OpenApiTypes.STR, choices: tuple[str, ...] = ()
) -> OpenApiParameter:
    return OpenApiParameter(name, kind, description=text, enum=choices or None)


def declared(question: type[Question], *names: str) -> tuple[OpenApiParameter, ...]:
    """Return the parameters of a question, or those with some names, in the order of the names."""
    described = {}
    for kind in question.parameters():
        for described_parameter in _describe(kind):
            described[described_parameter.name] = described_parameter

    return tuple(described[name] for name in names or described)


def _describe(kind: Parameter) -> list[OpenApiParameter]:
    """Return the descriptions of a parameter under its name and under its other one."""
    descriptions = [parameter(kind.name, kind.description, _TYPES[kind.type], kind.choices)]
    if kind.also:
        text = f"the same as {kind.name}, of which one is given"
        descriptions.append(parameter(kind.also, text))

    return descriptions


# The parameters of each chart of an address by the chart's name, in addition to those of all
# charts; a chart refuses the parameters of others.
Reads = Mapping[str, tuple[OpenApiParameter, ...]]


def names_of(parameters: Iterable[OpenApiParameter]) -> list[str]:
    return [parameter.name for parameter in parameters]


VIEW = parameter(
    "view", "the code of a saved view, whose parameters are used where they are not given here"
)
MEASURE_NAMES, SORT, ORDER, *PAGE = declared(
    BoardQuery, "measures", "sort", "order", "limit", "offset"
)
FILTER, COLUMNS, ARRANGE, VERSIONS, ENTRIES, SCORES, TOPICS, BY = declared(
    BoardQuery, "filter", "columns", "arrange", "versions", "entries", "scores", "topics", "by"
)
ROWS, (DECIMALS,) = (
    parameter("limit", "the first rows alone", _TYPES["integer"]),
    declared(FileQuery),
)
STATISTICS = declared(StandingsQuery)
# The parameters of a leaderboard, and those without effect if no statistics are requested.
BOARD = (*declared(BoardQuery), *STATISTICS)
HOW_MADE = tuple(StandingsQuery.option_names())
COMPARISON, PAIRS = declared(ComparisonQuery), declared(PairSelection)
ORDERS, DESIGN = declared(OrdersQuery), declared(DesignQuery)
AGREEMENT = declared(AgreementQuery)
TEST, CONFIDENCE, SEED = (
    *declared(StandingsQuery, "test"),
    *declared(OrdersQuery, "confidence", "seed"),
)
# The runs of an answer of curves, and how they are drawn.
CHOSEN_RUNS = declared(TogetherQuery)
(DEPTH,) = declared(CurveQuery, "depth")
# Of several runs there are no curves of single topics.
CURVES, RECALL = (
    tuple(option for option in declared(question) if option.name != "per_topic")
    for question in (CurveQuery, RecallQuery)
)
IMPORTANCE, FRONTIER = declared(ImportanceQuery), declared(FrontierQuery)
WHAT_IF = declared(WhatIfQuery)
SESSION_MEASURES, JUDGED_BY = declared(SessionBoardQuery, "measures", "judged_by")
SESSION = parameter("session", "its id or its number in the log, default: the first")
(SESSION_MEASURE,) = declared(SessionComparisonQuery, "measure")
COMPARED_FACTOR = declared(SessionComparisonQuery, "compare", "collections")
SESSION_COMPARISON = tuple(
    option
    for option in declared(SessionComparisonQuery)
    if option.name not in names_of(COMPARED_FACTOR)
)
SESSION_HOW_MADE = tuple(SessionStandingsQuery.option_names())
SESSION_BOARD = (
    *(option for option in declared(SessionBoardQuery) if option.name not in ("limit", "offset")),
    *declared(SessionStandingsQuery),
)
