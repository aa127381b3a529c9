"""The parameters in which compared runs differ."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.html import format_html_join

from metrics.exports.table import Cell, Column, Row, Table
from metrics.pages.comparisons.answers import ShownComparison
from metrics.pages.tracking.configurations import distinct_texts
from metrics.services.comparisons.shown_pairs import names_of
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
    """The parameters in which the compared runs differ; the table has the first ones.

    `address` is the page with all of them, empty for more runs than an address names.
    """

    configurations: Configurations
    table: Table
    address: str


def differing_parameters(comparison: ShownComparison, reader: Any) -> Differing | None:
    """Return the parameters that differ, or None for runs without any, and for too many runs."""
    runs = [str(run.pk) for run in comparison.runs.values()]
    if not MIN_RUNS <= len(runs) <= MAX_RUNS:
        return None

    configurations = read_configurations(collection=comparison.collection, reader=reader, runs=runs)
    if not configurations.compared:
        return None

    baselines = [row for row in comparison.compared.pairs.baselines if row in comparison.runs]
    parameters = {"runs": ",".join(runs)}
    if baselines:
        # Changes are those since one run.
        parameters["baseline"] = str(comparison.runs[baselines[0]].pk)

    page = reverse("configurations-page", args=[comparison.collection.slug])
    address = f"{page}?{urlencode(parameters)}" if len(runs) <= _NAMED else ""

    return Differing(configurations, _table(comparison, configurations.differ[:_ROWS]), address)


def _table(comparison: ShownComparison, parameters: list[ComparedParameter]) -> Table:
    """Build the table of some parameters: for two runs their values, for many the most frequent
    ones with their runs."""
    columns = [Column("", "Parameter", head=True), Column("", "Values, with their runs", style="")]

    if comparison.pair:
        names = names_of(list(comparison.runs.values()))
        columns[1:] = [Column("", name, style="") for name in names.values()]

    rows = []
    for parameter in parameters:
        texts = distinct_texts(parameter.values)
        values: list[Any] = texts

        if not comparison.pair:
            counts = Counter(texts).most_common()
            frequent = format_html_join(
                "",
                '<span class="value">{} <span class="faint" title="runs">{}</span></span>&#32;',
                counts[:_VALUES],
            )
            more = len(counts) - _VALUES
            values = [Cell("", hint=f"and {more:,} more" if more > 0 else "", html=frequent)]

        rows.append(Row([Cell(parameter.name, hint=parameter.unit), *values]))

    return Table("parameters", columns, rows, title="Parameters that differ")
