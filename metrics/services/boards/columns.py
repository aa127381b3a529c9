"""Add columns to a leaderboard, and order its rows by one of them.

Neither changes who is compared: ranks, tiers and p values are those of the whole leaderboard.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from django.db.models import TextField
from django.db.models.functions import Cast

from metrics.services.boards.conditions import KINDS, PLAIN_KEY, Board, find_key, term_of_key
from metrics.services.boards.ranked_evaluations import Recent
from metrics.services.snapshots import revision_in_snapshot
from runs.errors import InvalidInput
from runs.formats.parameters import Value, canonical_name, cost_leaves, flatten
from runs.models import Collection, Label, Parameter, Run
from runs.services.tracking.labels import labels_of
from runs.services.tracking.parameters import COST, PARAM

MAX_COLUMNS = 12
SUBMITTED, LABEL = "submitted", "label"
_NAMES = f"{PARAM}:name, {COST}:name, {LABEL} or {SUBMITTED}"
_COLUMN = re.compile(
    rf'(?P<space>{PARAM}|{COST}):(?:"(?P<phrase>[^"]+)"|(?P<key>{PLAIN_KEY.pattern}))'
    rf"|(?P<plain>{SUBMITTED}|{LABEL})"
)

# Runs in all orders that are remembered, of 200 bytes each.
_MOST_PLACES = 100_000

Cell = Value | datetime | None
_PLACES = Recent[Mapping[str, int]](_MOST_PLACES)


@dataclass(frozen=True)
class ShownColumn:
    """A column: a parameter or cost with its key, or submission time or labels without one."""

    space: str
    key: str
    unit: str = ""
    key_id: int | None = None

    @property
    def name(self) -> str:
        """Return its name in an address."""
        return term_of_key(self.space, self.key) if self.key else self.space

    @property
    def title(self) -> str:
        return self.key or self.space.capitalize()

    @property
    def heading(self) -> str:
        """Return its title with its unit."""
        return f"{self.title} ({self.unit})" if self.unit else self.title


@dataclass(frozen=True)
class Arrangement:
    """The order of rows by a column: runs without a value last, equal ones by rank."""

    column: ShownColumn
    descending: bool = False

    @property
    def name(self) -> str:
        return f"-{self.column.name}" if self.descending else self.column.name


def read_columns(text: str, board: Board, parameter: str = "columns") -> tuple[ShownColumn, ...]:
    """Return the columns of a text such as param:bm25.k1,cost:latency_ms,submitted.

    Raise InvalidInput, which names the parameter, for one that cannot be read or that no
    visible run has, and for more than 12.
    """
    columns: dict[ShownColumn, None] = {}
    position = 0
    while position < len(text):
        match = _COLUMN.match(text, position)
        if match is None or text[match.end() : match.end() + 1] not in ("", ","):
            message = (
                f"{parameter}, character {position + 1}: a column is {_NAMES}; names with other "
                "characters need quotes"
            )
            raise InvalidInput(message, code="bad_columns", pointer=parameter)
        columns[_column(match, board, parameter)] = None
        position = match.end() + 1

    if len(columns) > MAX_COLUMNS:
        message = f"{len(columns)} columns; at most {MAX_COLUMNS} are shown"
        raise InvalidInput(message, code="bad_columns", pointer=parameter)
    return tuple(columns)


def read_arrangement(text: str, board: Board) -> Arrangement | None:
    """Return the order of a text such as param:k1 or -param:k1, None for an empty one.

    Raise InvalidInput.
    """
    if not text:
        return None

    match = _COLUMN.fullmatch(text.removeprefix("-"))
    if match is None:
        message = f"arrange={text[:60]}: rows are arranged by {_NAMES}, downwards with - before it"
        raise InvalidInput(message, code="bad_columns", pointer="arrange")
    return Arrangement(_column(match, board, "arrange"), text.startswith("-"))


def _column(match: re.Match[str], board: Board, parameter: str) -> ShownColumn:
    space, key = match["space"], match["phrase"] or match["key"]
    if space is None:
        return ShownColumn(match["plain"], "")

    name = canonical_name(key) if space == PARAM else key
    try:
        parameter_key = find_key(board, space, name, f"{parameter}: ")
    except InvalidInput as error:
        raise InvalidInput(error.message, code="bad_columns", pointer=parameter) from error

    return ShownColumn(space, name, parameter_key.unit, parameter_key.pk)


def read_cells(columns: Iterable[ShownColumn], runs: Iterable[UUID]) -> dict[UUID, dict[str, Cell]]:
    """Return the values of the columns of each run by the name of the column.

    They are those of its metadata and costs, and the names of its labels.
    """
    shown_columns = list(columns)
    if not shown_columns:
        return {}

    cells: dict[UUID, dict[str, Cell]] = {}
    named = [(column.name, (column.space, column.key)) for column in shown_columns]
    with_parameters = any(column.space == PARAM for column in shown_columns)
    runs = list(runs)
    labels = labels_of(runs) if any(column.space == LABEL for column in shown_columns) else {}

    rows = Run.objects.filter(pk__in=runs).order_by()
    for pk, metadata, costs, created in rows.values_list("pk", "metadata", "costs", "created_at"):
        values: dict[tuple[str, str], Cell] = {(SUBMITTED, ""): created}
        if pk in labels:
            values[LABEL, ""] = ", ".join(labels[pk])

        if with_parameters:
            values |= {(PARAM, leaf.name): leaf.value for leaf in flatten(metadata).leaves}

        values |= {(COST, leaf.name): leaf.value for leaf in cost_leaves(costs)}
        cells[pk] = {name: values.get(key) for name, key in named}

    return cells


def arranged(names: Sequence[str], places: Mapping[str, int], descending: bool) -> list[int]:
    """Return the order of runs by the places of their values (`places_of`).

    Names come in the order of ranks, in which equal ones stay. Those without a value come last,
    both ways.
    """
    place_of_run = np.fromiter((places.get(name, -1) for name in names), np.int64, len(names))
    order: list[int] = np.argsort(
        np.where(place_of_run < 0, len(places), -place_of_run if descending else place_of_run),
        kind="stable",
    ).tolist()

    return order


def places_of(column: ShownColumn, collection: Collection) -> Mapping[str, int]:
    """Return the place of each run's value in the collection.

    Keys of runs are as the database writes them. Equal values share a place; numbers come before
    texts, and texts before booleans.

    Those of a parameter or cost are remembered by each process until one of any run changes.
    """
    if column.key_id is not None:
        key, revision = column.key_id, revision_in_snapshot(collection.pk)
        return _PLACES.of((key, revision), lambda: _in_order(_values_of_key(key)), len)
    if column.space == LABEL:
        labels = Label.objects.filter(collection=collection).order_by("-name")
        # The first of several names is the last one read.
        return _in_order(
            [
                dict(
                    labels.annotate(run_name=Cast("run", TextField())).values_list(
                        "run_name", "name"
                    )
                )
            ]
        )

    runs = (
        Run.objects.filter(collection=collection).annotate(name=Cast("pk", TextField())).order_by()
    )
    return _in_order([dict(runs.values_list("name", "created_at"))])


def _values_of_key(key: int) -> list[dict[str, Any]]:
    """Return the values of a parameter or cost, of each kind.

    For ten thousand runs this is faster than by way of their evaluations.
    """
    rows = (
        Parameter.objects.filter(key=key).annotate(name=Cast("owner__run", TextField())).order_by()
    )
    return [
        dict(rows.filter(**{f"{kind}__isnull": False}).values_list("name", kind)) for kind in KINDS
    ]


def _in_order(values: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return the places of values. Only those of one kind are compared with each other."""
    places: dict[str, int] = {}
    first = 0
    for values_of_kind in values:
        distinct = sorted(set(values_of_kind.values()))
        place = dict(zip(distinct, range(first, first + len(distinct)), strict=True))
        places |= {name: place[value] for name, value in values_of_kind.items()}
        first += len(distinct)

    return places


def shown_value(value: Cell) -> str:
    """Return a value as a table shows it.

    Numbers are in their shortest form, whole ones without decimals.
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d}"
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.12g}"
    return str(value)
