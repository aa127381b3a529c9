"""The page that compares configurations: runs as columns, the parameters that differ, and what changed since a
baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from metrics.pages.parts import Query, changed, fill, query_of
from metrics.services.comparisons.shown_pairs import names_of
from metrics.services.snapshots import read_in_snapshot
from metrics.services.tracking.configurations import (
    NOT_SET,
    ComparedParameter,
    Configurations,
    RunMeans,
    best_first,
    read_means,
    told_value,
)
from metrics.tables import NOTHING, Paging, mean_cell
from runs.api.tracking.configurations import configurations_in
from runs.formats.parameters import Value
from runs.models import Collection
from runs.parameters import MAX_OFFSET, integer_in
from runs.web.access import sees_scores, visible_collection
from runs.web.views import page, reads

# Runs of a page, beside the first one.
_COLUMNS = 20
# The characters that are shown of a long text, and how many of them lie before what differs.
_CUT, _BEFORE = 120, 30
_SIGNS = {"changed": "≠", "added": "+", "removed": "\N{MINUS SIGN}"}


@dataclass(frozen=True)
class RunColumn:
    """A run: its name, page, mean and number of changes, and the address with it as the baseline. On a phone those that
    are `aside` are hidden."""

    name: str
    page: str
    mean: str
    baseline: bool
    changes: int
    pinned: str
    aside: bool


@dataclass(frozen=True)
class ValueCell:
    """The value of a run; `kind` is changed, added or removed since the baseline, or unset."""

    text: str
    kind: str
    aside: bool

    @property
    def sign(self) -> str:
        """Return the sign of a change."""
        return _SIGNS.get(self.kind, "")

    @property
    def css(self) -> str:
        return f"{self.kind} aside" if self.aside else self.kind


@dataclass(frozen=True)
class ParameterRow:
    parameter: ComparedParameter
    cells: list[ValueCell]


@page
@reads("runs", "filter", "baseline", "beside", "offset")
def configurations_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Show how the runs that the reader sees were made, side by side."""
    collection = visible_collection(request, slug)
    query = query_of(request, collection)
    context: dict[str, Any] = {"collection": collection, "query": query}
    status = fill(context, "answer", _answer, request, collection, query)
    return render(request, "metrics/configurations.html", context, status=status)


def _answer(request: HttpRequest, collection: Collection, query: Query) -> dict[str, Any]:
    offset = integer_in(query, "offset", 0, 0, MAX_OFFSET)
    scored = sees_scores(request, collection)

    def read() -> tuple[Configurations, RunMeans | None]:
        found = configurations_in(query, collection, request.user)
        return found, read_means(
            collection=collection, runs=[run.pk for run in found.runs]
        ) if scored else None

    found, means = read_in_snapshot(read)
    order, texts = best_first(found, means), _texts(means)
    beside = next(
        (place for place in order[1:] if str(found.runs[place].pk) == query.get("beside")), None
    )
    if beside is not None and not query.get("offset"):
        offset = (order.index(beside) - 1) // _COLUMNS * _COLUMNS
    shown = [order[0], *order[1:][offset : offset + _COLUMNS]]
    kept = [beside] if beside in shown else shown[1:2]
    aside = {place for place in shown[1:] if place not in kept}
    names, since = (
        names_of(found.runs),
        changed({"baseline": query.get("baseline", "")}) + "#parameters",
    )
    ignored = [one for one in found.ignored if one.differs]
    return {
        "found": found,
        "measure": means.measure if means else None,
        "columns": [
            RunColumn(
                names[run := found.runs[place]],
                reverse("run-page", args=[run.pk])
                + (since if found.baseline and run is not found.baseline else ""),
                texts.get(run.pk, NOTHING),
                run is found.baseline,
                len(found.changes(place)),
                changed(query, baseline=str(run.pk), beside=None, offset=None),
                place in aside,
            )
            for place in shown
        ],
        "rows": [_row(one, shown, aside, found.baseline is not None) for one in found.differ],
        "ignored": [_row(one, shown, aside, found.baseline is not None) for one in ignored],
        "same": [(one, told_apart(one.values[:1])[0]) for one in found.same],
        "choices": [(str(found.runs[place].pk), names[found.runs[place]]) for place in order],
        "left_out": sum(found.left_out),
        "paging": Paging(offset, _COLUMNS, len(order) - 1),
        "unpinned": changed(query, baseline=None),
        "json": changed({name: query.get(name, "") for name in ("runs", "filter", "baseline")}),
    }


def _texts(means: RunMeans | None) -> dict[UUID, str]:
    if means is None:
        return {}
    return {
        pk: mean_cell(means.measure, mean, means.topics).text for pk, mean in means.means.items()
    }


def _row(
    parameter: ComparedParameter, shown: list[int], aside: set[int], against: bool
) -> ParameterRow:
    """Return the values of the shown runs, each with what changed since the first of them, if that is a baseline."""
    texts = told_apart([parameter.values[place] for place in shown])
    base = parameter.values[shown[0]]
    cells = []
    for place, text in zip(shown, texts, strict=True):
        value = parameter.values[place]
        kind = "unset" if value is None else ""
        if against and parameter.kinds[place] != parameter.kinds[shown[0]]:
            kind = "removed" if value is None else "added" if base is None else "changed"
        cells.append(ValueCell(text, kind, place in aside))
    return ParameterRow(parameter, cells)


def told_apart(values: Sequence[Value | None]) -> list[str]:
    """Return values as texts, "not set" where there is none. A text that looks like another type is in quotes, and long
    ones begin shortly before what differs."""
    texts = ["" if value is None else told_value(value) for value in values]
    there = [text for text in texts if text]
    start = 0
    if len(set(there)) > 1 and max(map(len, there)) > _CUT:
        alike = takewhile(
            lambda pair: pair[0] == pair[1], zip(min(there), max(there), strict=False)
        )
        start = max(0, len(list(alike)) - _BEFORE)
    cut = [
        f"{'…' * (start > 0)}{text[start : start + _CUT]}{'…' * (len(text) > start + _CUT)}"
        for text in texts
    ]
    return [text if value is not None else NOT_SET for text, value in zip(cut, values, strict=True)]
