"""Columns of a leaderboard beside its measures, and the order of its rows by one of them.

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

from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast

from metrics.services.boards.conditions import KINDS, PLAIN_KEY, Board, find_key, written
from runs.errors import InvalidInput
from runs.formats.parameters import Value, canonical_name, cost_leaves, flatten
from runs.models import Parameter, Run
from runs.services.labels import labels_of
from runs.services.parameters import COST, PARAM

MAX_COLUMNS = 12
SUBMITTED, LABEL = "submitted", "label"
_NAMES = f"{PARAM}:name, {COST}:name, {LABEL} or {SUBMITTED}"
_COLUMN = re.compile(
    rf'(?P<space>{PARAM}|{COST}):(?:"(?P<phrase>[^"]+)"|(?P<key>{PLAIN_KEY.pattern}))|(?P<plain>{SUBMITTED}|{LABEL})'
)

Cell = Value | datetime | None


@dataclass(frozen=True)
class ShownColumn:
    """A column: a parameter or a cost with its key, or the moment of submission or the labels, which have none."""

    space: str
    key: str
    unit: str = ""
    key_id: int | None = None

    @property
    def name(self) -> str:
        """Return its name in an address."""
        return written(self.space, self.key) if self.key else self.space

    @property
    def title(self) -> str:
        return self.key or self.space.capitalize()

    @property
    def heading(self) -> str:
        """Return its title with its unit."""
        return f"{self.title} ({self.unit})" if self.unit else self.title


@dataclass(frozen=True)
class Arrangement:
    """The order of rows by a column: runs without a value come last both ways, equal ones by rank."""

    column: ShownColumn
    descending: bool = False

    @property
    def name(self) -> str:
        return f"-{self.column.name}" if self.descending else self.column.name


def read_columns(text: str, board: Board, parameter: str = "columns") -> tuple[ShownColumn, ...]:
    """Return the columns of a text such as param:bm25.k1,cost:latency_ms,submitted. Raise InvalidInput, which names the
    parameter, for one that cannot be read or that no visible run has, and for more than 12."""
    found: dict[ShownColumn, None] = {}
    at = 0
    while at < len(text):
        match = _COLUMN.match(text, at)
        if match is None or text[match.end() : match.end() + 1] not in ("", ","):
            message = f"{parameter}, character {at + 1}: a column is {_NAMES}; names with other characters need quotes"
            raise InvalidInput(message, code="bad_columns", pointer=parameter)
        found[_column(match, board, parameter)] = None
        at = match.end() + 1
    if len(found) > MAX_COLUMNS:
        message = f"{len(found)} columns; at most {MAX_COLUMNS} are shown"
        raise InvalidInput(message, code="bad_columns", pointer=parameter)
    return tuple(found)


def read_arrangement(text: str, board: Board) -> Arrangement | None:
    """Return the order of a text such as param:k1 or -param:k1, None for an empty one. Raise InvalidInput."""
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
        found = find_key(board, space, name, f"{parameter}: ")
    except InvalidInput as error:
        raise InvalidInput(error.message, code="bad_columns", pointer=parameter) from error
    return ShownColumn(space, name, found.unit, found.pk)


def read_cells(columns: Iterable[ShownColumn], runs: Iterable[UUID]) -> dict[UUID, dict[str, Cell]]:
    """Return the values of the columns of each run by the name of the column, as its metadata and costs have them; of
    labels their names."""
    wanted = list(columns)
    if not wanted:
        return {}
    found: dict[UUID, dict[str, Cell]] = {}
    named = [(column.name, (column.space, column.key)) for column in wanted]
    with_parameters = any(column.space == PARAM for column in wanted)
    runs = list(runs)
    labels = labels_of(runs) if any(column.space == LABEL for column in wanted) else {}
    rows = Run.objects.filter(pk__in=runs).order_by()
    for pk, metadata, costs, created in rows.values_list("pk", "metadata", "costs", "created_at"):
        values: dict[tuple[str, str], Cell] = {(SUBMITTED, ""): created}
        if pk in labels:
            values[LABEL, ""] = ", ".join(labels[pk])
        if with_parameters:
            values |= {(PARAM, leaf.name): leaf.value for leaf in flatten(metadata).leaves}
        values |= {(COST, leaf.name): leaf.value for leaf in cost_leaves(costs)}
        found[pk] = {name: values.get(key) for name, key in named}
    return found


def arranged(names: list[Any], values: Sequence[Mapping[Any, Any]], descending: bool) -> list[int]:
    """Return the places of rows, whose names are in the order of their ranks, in the order of their values.

    `values` are those of each kind, such as numbers, texts and booleans. The first kind comes before the next one, in
    the other direction after it; rows without a value come last.
    """
    order, without = list[int](), list(range(len(names)))
    # Only values of one kind are compared with each other: pairs of kind and value take several times as long.
    for kind in filter(None, reversed(values) if descending else values):
        own: list[Any] = [kind.get(name) for name in names]
        # Both ways equal ones stay in the order of their ranks.
        having = [place for place in without if own[place] is not None]
        order += sorted(having, key=own.__getitem__, reverse=descending)
        without = [place for place in without if own[place] is None]
    return order + without


def values_of(column: ShownColumn, rows: QuerySet[Any], to_run: str) -> list[dict[Any, Any]]:
    """Return what orders runs, or their evaluations, by their keys, for each kind of value; `to_run` leads from these
    to the run."""
    if column.space == LABEL:
        labelled = rows.filter(**{f"{to_run}labels__isnull": False}).order_by(f"-{to_run}labels__name")
        # The first of several names is the last one read.
        return [dict(labelled.values_list("pk", f"{to_run}labels__name"))]
    if column.key_id is None:
        return [dict(rows.order_by().values_list("pk", f"{to_run}created_at"))]
    path = f"{to_run}parameter_set__parameters__"
    found = []
    for kind in KINDS:
        having = rows.filter(**{f"{path}key": column.key_id, f"{path}{kind}__isnull": False}).order_by()
        found.append(dict(having.values_list("pk", f"{path}{kind}")))
    return found


def values_of_key(key: int) -> list[dict[str, Any]]:
    """Return what orders runs by a parameter or cost, by their keys as the database writes them: of ten thousand runs
    faster than by way of their evaluations."""
    rows = Parameter.objects.filter(key=key).annotate(name=Cast("owner__run", TextField())).order_by()
    return [dict(rows.filter(**{f"{kind}__isnull": False}).values_list("name", kind)) for kind in KINDS]


def shown_value(value: Cell) -> str:
    """Return a value as a table shows it: numbers in their shortest form, whole ones without decimals."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d}"
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.12g}"
    return str(value)
