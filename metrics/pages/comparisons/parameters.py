"""The parameters in which compared runs differ."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.html import format_html_join

from metrics.exports.table import Cell, Column, Row, Table
from metrics.pages.comparisons.answers import Shown
from metrics.pages.tracking.configurations import told_apart
from metrics.services.comparisons.shown_pairs import names_of, run_of
from metrics.services.tracking.configurations import (
    MAX_RUNS,
    MIN_RUNS,
    ComparedParameter,
    Configurations,
    read_configurations,
)

_ROWS, _VALUES = 15, 6
# An address names no more runs than this.
_NAMED = 60


@dataclass(frozen=True)
class Differing:
    """The parameters in which the compared runs differ; the table has the first ones, and `address`
    is the page that has all, empty for more runs than an address names."""

    found: Configurations
    table: Table
    address: str


def differing_parameters(shown: Shown, reader: Any) -> Differing | None:
    """Return the parameters that differ, or None where the runs say nothing of how they were made, or are too many."""
    runs = [str(run_of(shown.answer, shown.compared, row).pk) for row in shown.rows]
    if not MIN_RUNS <= len(runs) <= MAX_RUNS:
        return None
    found = read_configurations(collection=shown.collection, reader=reader, runs=runs)
    if not found.compared:
        return None
    baseline = shown.compared.pairs.baseline
    asked = {"runs": ",".join(runs)}
    if baseline is not None and baseline in shown.rows:
        asked["baseline"] = str(run_of(shown.answer, shown.compared, baseline).pk)
    page = reverse("configurations-page", args=[shown.collection.slug])
    address = f"{page}?{urlencode(asked)}" if len(runs) <= _NAMED else ""
    return Differing(found, _table(shown, found.differ[:_ROWS]), address)


def _table(shown: Shown, parameters: list[ComparedParameter]) -> Table:
    """Build the table of some parameters: of two runs the value of each, of many the most frequent
    values with their runs."""
    columns = [Column("", "Parameter", head=True), Column("", "Values, with their runs", style="")]
    if shown.pair:
        names = names_of([run_of(shown.answer, shown.compared, row) for row in shown.rows])
        columns[1:] = [Column("", name, style="") for name in names.values()]

    rows = []
    for parameter in parameters:
        texts = told_apart(parameter.values)
        values: list[Any] = texts
        if not shown.pair:
            counted = Counter(texts).most_common()
            frequent = format_html_join(
                "",
                '<span class="value">{} <span class="faint" title="runs">{}</span></span>&#32;',
                counted[:_VALUES],
            )
            more = len(counted) - _VALUES
            values = [Cell("", hint=f"and {more:,} more" if more > 0 else "", html=frequent)]
        rows.append(Row([Cell(parameter.name, hint=parameter.unit), *values]))
    return Table("parameters", columns, rows, title="Parameters that differ")
