"""Pages of measures: all of them, one of them, and suggestions for a name while it is typed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import cast

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from metrics.engine.curve.curves import CURVES
from metrics.engine.errors import MeasureError
from metrics.engine.measures.definition import Cutoff, MeasureDefinition, Parameter, show
from metrics.engine.measures.external import is_external
from metrics.engine.measures.finding import names_of
from metrics.engine.measures.grammar import parse_measure, split_names
from metrics.engine.sessions.grammar import VECTORS, parse_session_measure
from metrics.pages.parts import query_of
from metrics.questions.answer_cache import cached_page, everybody
from metrics.services.values.examples import (
    EXAMPLE_LEVELS,
    EXAMPLE_MISSED,
    EXAMPLE_QUERIES,
    example_values,
)
from metrics.services.values.known_measures import OF, Of, find_measure, of_what, search_measures
from metrics.tables import figure
from runs.parameters import choice_in
from runs.web.views import page, reads

_SUGGESTED = 6
# A leaderboard adds columns of these, too.
_COLUMN = re.compile(r"(?:param|cost):|(?:label|submitted)\Z")
# Suggested cutoffs while none is typed yet.
_CUTOFFS = {
    Cutoff.NONE: [""],
    Cutoff.OPTIONAL: ["", "@5", "@10", "@20", "@100"],
    Cutoff.SHARE: ["@0.1", "@0.5"],
    Cutoff.REQUIRED: ["@1", "@5", "@10", "@20", "@100"],
}


@dataclass(frozen=True)
class MeasureLine:
    """A measure on a page."""

    definition: MeasureDefinition

    @property
    def text(self) -> dict[str, str]:
        return self.definition.sections()

    @property
    def other_names(self) -> list[str]:
        return names_of(self.definition)[1:]

    @property
    def parameters(self) -> list[tuple[Parameter, str]]:
        return [(parameter, show(parameter.default)) for parameter in self.definition.parameters]

    @property
    def names(self) -> list[str]:
        """Return the names without parameters."""
        return [f"{self.definition.name}{cutoff}" for cutoff in _CUTOFFS[self.definition.cutoff]]

    @property
    def of(self) -> Of:
        return of_what(self.definition)

    @property
    def curve(self) -> bool:
        return self.definition.name in CURVES or self.definition.name in VECTORS


@page
@reads("search", "of")
@cached_page(None, shared_by=everybody)
def measures_page(request: HttpRequest) -> HttpResponse:
    """Show every measure, or those of runs or sessions (`of`) that a search finds."""
    query = query_of(request)
    text, of = query.get("search", ""), cast(Of | None, choice_in(query, "of", tuple(OF)))
    measures = [MeasureLine(definition) for definition in search_measures(text, of)]
    context = {"measures": measures, "search": text, "of": of, "all": len(search_measures("", of))}
    return render(request, "metrics/measures.html", context)


@page
@cached_page(None, shared_by=everybody)
def measure_page(request: HttpRequest, measure: str) -> HttpResponse:
    """Show one measure by any of its names: its definition, and its values for a small ranking."""
    try:
        definition = find_measure(measure)
    except MeasureError as error:
        raise Http404(error.message) from error

    values = [
        (example.measure.name, figure(example.measure, example.value))
        for example in example_values(definition)
    ]
    context = {
        "measure": MeasureLine(definition),
        "values": values,
        "levels": list(enumerate(EXAMPLE_LEVELS, 1)),
        "queries": [list(enumerate(levels, 1)) for levels in EXAMPLE_QUERIES],
        "missed": EXAMPLE_MISSED,
    }

    return render(request, "metrics/measure.html", context)


@page
@reads("add", "measures", "measure", "by", "of")
def measure_suggestions(request: HttpRequest) -> HttpResponse:
    """Show a fragment of a page: the meaning of the last name of a list, or names that complete it.

    The names are those of measures of runs, or of sessions with `of`.
    """
    of = choice_in(query_of(request), "of", tuple(OF)) or "runs"
    names = [
        text
        for name in ("add", "measures", "measure", "by")
        for text in request.GET.getlist(name)
        if text.strip()
    ]

    last = _last_name(names[0]) if names else ""
    if "add" in request.GET and _COLUMN.match(last):
        return render(request, "metrics/_measure_suggestions.html", {"column": last})

    if is_external(last):
        return render(request, "metrics/_measure_suggestions.html", {"external": last})

    # A form that adds measures has buttons for it: they keep the text before the last name.
    before = names[0][: names[0].rindex(last)] if names and last in names[0] else ""
    context: dict[str, object] = {
        "typed": last,
        "choose": "add" in request.GET,
        "before": before,
        "of": of,
    }

    parse = parse_session_measure if of == "sessions" else parse_measure
    try:
        # Any number of documents will do, because the collection's is not known here.
        measure, other = (parse(last, number) if last else None for number in (1, 2))
    except MeasureError as error:
        # The text before the parameters is what an incomplete name may mean.
        stem = last.partition("(")[0].partition("@")[0]
        similar = search_measures(stem, cast(Of, of))[:_SUGGESTED]
        lines = [MeasureLine(definition) for definition in similar]
        context |= {"problem": error.message, "lines": lines}
    else:
        if measure:
            # A name that depends on the number of documents is shown as it was typed.
            name = measure.name if measure == other else last
            context |= {"name": name, "lines": [MeasureLine(measure.definition)]}

    return render(request, "metrics/_measure_suggestions.html", context)


def _last_name(text: str) -> str:
    try:
        return split_names(text)[-1]
    except (MeasureError, IndexError):
        return text[-40:]
