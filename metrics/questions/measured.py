"""The parameters of charts of runs' parameters and costs against a measure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from metrics.engine.errors import StatisticsError
from metrics.services.boards.board_question import BoardQuery
from metrics.services.boards.columns import ShownColumn, read_columns
from metrics.services.boards.conditions import visible_board
from metrics.services.tracking.measured import differing_columns
from runs.errors import InvalidInput
from runs.models import Collection
from runs.services.tracking.parameters import PARAM

MAX_AXES = 8


def measured_board(
    parameters: Mapping[str, str], collection: Collection, reader: Any
) -> BoardQuery:
    """Return the leaderboard by `measure` of the runs that `filter` selects."""
    board = {name: parameters.get(name, "") for name in ("filter", "scores")}
    board["measures"] = parameters.get("measure") or collection.measures[0]
    return BoardQuery.read(board, collection, reader)


def columns_in(
    parameters: Mapping[str, str], name: str, collection: Collection, reader: Any, most: int = 1
) -> tuple[ShownColumn, ...]:
    """Return the parameters and costs of runs that a parameter of the request names.

    Raise InvalidInput for more than `most`, and for other columns.
    """
    text = parameters.get(name, "").strip()
    if not text:
        return ()

    columns = read_columns(text, visible_board(collection, reader), name)
    if len(columns) > most or not all(column.key for column in columns):
        limit = "one parameter or cost" if most == 1 else f"at most {most} parameters or costs"
        raise InvalidInput(
            f"{name}: name {limit}, such as param:bm25.k1", code="bad_columns", pointer=name
        )

    return columns


def axes_in(
    parameters: Mapping[str, str],
    name: str,
    collection: Collection,
    reader: Any,
    most: int = MAX_AXES,
) -> tuple[ShownColumn, ...]:
    """Return the axes that a parameter names, by default the first differing settings."""
    columns = columns_in(parameters, name, collection, reader, most)
    if columns:
        return columns

    differing = differing_columns(
        collection=collection, reader=reader, filter=parameters.get("filter", "")
    )
    settings = tuple(column for column in differing if column.space == PARAM)

    if not settings:
        message = f"these runs differ in no setting that has an axis; name one with {name}="
        raise StatisticsError(message, code="nothing_to_draw", pointer=name)

    return settings[:most]
