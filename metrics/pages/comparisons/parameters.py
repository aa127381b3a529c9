"""The parameters in which compared runs differ."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from metrics.pages.boards.configurations import told_apart
from metrics.pages.comparisons.answers import Shown
from metrics.services.boards.configurations import (
    MAX_RUNS,
    MIN_RUNS,
    ComparedParameter,
    Configurations,
    read_configurations,
)
from metrics.services.comparisons.shown_pairs import run_of

_ROWS, _VALUES = 15, 6
# An address names no more runs than this.
_NAMED = 60


@dataclass(frozen=True)
class DifferingLine:
    """A parameter: of two runs the value of each, of many the most frequent values with their runs, and how many more
    there are."""

    parameter: ComparedParameter
    texts: list[str]
    counted: list[tuple[str, int]]
    more: int


@dataclass(frozen=True)
class Differing:
    """The parameters in which the compared runs differ; `more` are not shown, and `address` is the page that has them,
    empty for more runs than an address names."""

    found: Configurations
    lines: list[DifferingLine]
    more: int
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
    lines = [_line(one) for one in found.differ[:_ROWS]]
    return Differing(found, lines, len(found.differ) - len(lines), address)


def _line(parameter: ComparedParameter) -> DifferingLine:
    texts = told_apart(parameter.values)
    counted = Counter(texts).most_common()
    return DifferingLine(parameter, texts, counted[:_VALUES], max(0, len(counted) - _VALUES))
