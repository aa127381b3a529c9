"""The titles and decimals that the organisers of a phase chose for tables that people read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from metrics.engine.measures.definition import Aggregate
from metrics.engine.measures.grammar import Measure
from metrics.exports.table import Cell, Column, Table
from runs.models import Phase

T = TypeVar("T", bound=Table)


def as_shown(table: T, phase: Phase, measures: Sequence[Measure]) -> T:
    """Return a table of means with the titles of the phase as heads, and with its decimals.

    A note says which measure has which title. Names of columns and values stay, so that files of
    data are the same.
    """
    titles, decimals = phase.measure_titles or {}, phase.decimals
    means = {m.name for m in measures if m.definition.aggregate is not Aggregate.SUM}
    columns = [
        replace(column, title=titles[column.name]) if column.name in titles else column
        for column in table.columns
    ]
    notes = [f"{titles[m.name]}: {m.name}." for m in measures if m.name in titles]
    rows = table.rows
    if decimals is not None:
        rows = [
            replace(row, values=_rounded(table.columns, row.values, means, decimals))
            for row in table.rows
        ]

    return replace(table, columns=columns, rows=rows, notes=[*table.notes, *notes])


def _rounded(
    columns: Sequence[Column], values: Sequence[Any], means: set[str], decimals: int
) -> list[Any]:
    return [
        replace(value, text=f"{value.value:.{decimals}f}")
        if column.name in means and isinstance(value, Cell) and value.value is not None
        else value
        for column, value in zip(columns, values, strict=True)
    ]
