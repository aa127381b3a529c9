"""The page that compares configurations: runs as columns, the parameters that differ, and the
changes since a baseline."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from metrics.pages.parts import Query, fill, query_of, query_string
from metrics.services.comparisons.shown_pairs import names_of
from metrics.services.snapshots import read_in_snapshot
from metrics.services.tracking.configurations import (
    NOT_SET,
    ComparedParameter,
    Configurations,
    RunMeans,
    best_first,
    read_means,
    typed_text,
)
from metrics.tables import NOTHING, Paging, mean_cell
from runs.api.tracking.configurations import configurations_in
from runs.formats.parameters import Value
from runs.models import Collection
from runs.parameters import MAX_OFFSET, integer_in
from runs.web.access import sees_scores, visible_collection
from runs.web.views import page, reads

# Runs of a page after the first one.
_COLUMNS = 20
# The characters that are shown of a long text, and how many of them are before the difference.
_CUT, _BEFORE = 120, 30
_SIGNS = {"changed": "≠", "added": "+", "removed": "\N{MINUS SIGN}"}


@dataclass(frozen=True)
class RunColumn:
    """A run: its name, page, mean and number of changes; `pinned` is the address with it as the
    baseline. A phone hides the columns that are `aside`."""

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
    """A parameter with the values of the runs."""

    parameter: ComparedParameter
    cells: list[ValueCell]


@page
@reads("runs", "filter", "baseline", "beside", "offset")
def configurations_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the configurations of the runs that the reader sees, side by side."""
    collection = visible_collection(request, slug)
    query = query_of(request, collection)
    context: dict[str, Any] = {"collection": collection, "query": query}
    status = fill(context, "answer", _answer, request, collection, query)
    return render(request, "metrics/configurations.html", context, status=status)


def _answer(request: HttpRequest, collection: Collection, query: Query) -> dict[str, Any]:
    offset = integer_in(query, "offset", 0, 0, MAX_OFFSET)
    scored = sees_scores(request, collection)

    def read() -> tuple[Configurations, RunMeans | None]:
        configurations = configurations_in(query, collection, request.user)
        if not scored:
            return configurations, None
        runs = [run.pk for run in configurations.runs]
        return configurations, read_means(collection=collection, runs=runs)

    configurations, means = read_in_snapshot(read)

    order, texts = best_first(configurations, means), _texts(means)

    # A phone shows one run after the first: the one of `beside`, or the next one.
    phone_run = None
    for place in order[1:]:
        if str(configurations.runs[place].pk) == query.get("beside"):
            phone_run = place
            break

    if phone_run is not None and not query.get("offset"):
        offset = (order.index(phone_run) - 1) // _COLUMNS * _COLUMNS

    places = [order[0], *order[1:][offset : offset + _COLUMNS]]
    on_phone = phone_run if phone_run in places else next(iter(places[1:]), None)
    aside = {place for place in places[1:] if place != on_phone}

    names = names_of(configurations.runs)
    baseline = configurations.baseline
    since_baseline = query_string({"baseline": query.get("baseline", "")})
    columns = []
    for place in places:
        run = configurations.runs[place]
        address = reverse("run-page", args=[run.pk])
        if baseline and run is not baseline:
            address = reverse("run-parameters-page", args=[run.pk]) + since_baseline

        columns.append(
            RunColumn(
                name=names[run],
                page=address,
                mean=texts.get(run.pk, NOTHING),
                baseline=run is baseline,
                changes=len(configurations.changes(place)),
                pinned=query_string(query, baseline=str(run.pk), beside=None, offset=None),
                aside=place in aside,
            )
        )

    def rows(parameters: Iterable[ComparedParameter]) -> list[ParameterRow]:
        return [_row(parameter, places, aside, baseline is not None) for parameter in parameters]

    return {
        "configurations": configurations,
        "measure": means.measure if means else None,
        "columns": columns,
        "rows": rows(configurations.differ),
        "ignored": rows(parameter for parameter in configurations.ignored if parameter.differs),
        "same": [
            (parameter, distinct_texts(parameter.values[:1])[0])
            for parameter in configurations.same
        ],
        "choices": [
            (str(configurations.runs[place].pk), names[configurations.runs[place]])
            for place in order
        ],
        "left_out": sum(configurations.left_out),
        "paging": Paging(offset, _COLUMNS, len(order) - 1),
        "unpinned": query_string(query, baseline=None),
        "json": query_string(
            {name: query.get(name, "") for name in ("runs", "filter", "baseline")}
        ),
    }


def _texts(means: RunMeans | None) -> dict[UUID, str]:
    if means is None:
        return {}
    return {
        pk: mean_cell(means.measure, mean, means.topics).text for pk, mean in means.means.items()
    }


def _row(
    parameter: ComparedParameter, places: list[int], aside: set[int], against: bool
) -> ParameterRow:
    """Return the values of the runs; with `against` each is compared with that of the first run."""
    texts = distinct_texts([parameter.values[place] for place in places])

    base = parameter.values[places[0]]
    cells = []
    for place, text in zip(places, texts, strict=True):
        value = parameter.values[place]
        kind = "unset" if value is None else ""
        if against and parameter.kinds[place] != parameter.kinds[places[0]]:
            kind = "removed" if value is None else "added" if base is None else "changed"
        cells.append(ValueCell(text, kind, place in aside))

    return ParameterRow(parameter, cells)


def distinct_texts(values: Sequence[Value | None]) -> list[str]:
    """Return values as texts that differ where the values do; NOT_SET if there is none.

    A text that looks like another type is in quotes, and long texts begin shortly before the first
    difference.
    """
    texts = ["" if value is None else typed_text(value) for value in values]
    present = [text for text in texts if text]
    start = 0

    if len(set(present)) > 1 and max(map(len, present)) > _CUT:
        # What the first and the last text in order have in common, all have in common.
        alike = takewhile(
            lambda pair: pair[0] == pair[1], zip(min(present), max(present), strict=False)
        )
        start = max(0, len(list(alike)) - _BEFORE)

    cut = [
        f"{'…' * (start > 0)}{text[start : start + _CUT]}{'…' * (len(text) > start + _CUT)}"
        for text in texts
    ]

    return [text if value is not None else NOT_SET for text, value in zip(cut, values, strict=True)]
