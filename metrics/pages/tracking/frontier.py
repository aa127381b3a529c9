"""The page of effectiveness against cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from metrics.charts.tracking.frontier import STATUS_NAMES, cost_name, cost_text, frontier_figure
from metrics.engine.analysis.frontier import ON_FRONTIER
from metrics.exports.formats import FORMATS
from metrics.exports.tracking.explanations import KINDS
from metrics.pages.parts import Query, ShownFigure, fill, query_of
from metrics.questions.answer_cache import all_once_public, kept_page, of_visible_collection
from metrics.questions.declared import FRONTIER, names_of
from metrics.services.boards.conditions import visible_board, visible_keys
from metrics.services.boards.selection import tested_measures
from metrics.services.comparisons.shown_pairs import names_of as names_of_runs
from metrics.services.tracking.frontier import Frontier, FrontierQuery, read_frontier
from metrics.tables import probability, with_minus
from runs.models import Collection, Run
from runs.parameters import flag_in
from runs.services.tracking.parameters import COST
from runs.web.access import check_scores, visible_collection
from runs.web.views import page, reads

# Of the table.
_ROWS = 200


@dataclass(frozen=True)
class PricedLine:
    """A run with the texts of its row; `by` is the run that beats it."""

    run: Run
    name: str
    mean: str
    cost: str
    measured: int | None
    hardware: str
    status: str
    best: bool
    by: Run | None
    by_name: str
    p_value: str


@page
@reads(*names_of(FRONTIER))
@kept_page(of_visible_collection, shared_by=all_once_public)
def frontier_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Show effectiveness against cost, and which runs no other one beats at no higher cost."""
    collection = visible_collection(request, slug)
    query = query_of(request, collection)
    context: dict[str, Any] = {
        "collection": collection,
        "query": query,
        "tab": "frontier",
        "kinds": {kind: FORMATS[kind].title for kind in KINDS},
        "measure": query.get("y") or tested_measures(collection)[0],
        "costs": list(visible_keys(visible_board(collection, request.user), COST).order_by("name")),
        "asked": query.get("x", "").removeprefix(f"{COST}:"),
    }
    status = fill(context, "answer", _answer, request, collection, query)
    return render(request, "metrics/frontier.html", context, status=status)


def _answer(request: HttpRequest, collection: Collection, query: Query) -> dict[str, Any]:
    check_scores(request, collection)
    found = read_frontier(
        collection=collection, query=FrontierQuery.read(query, collection, request.user)
    )
    asked = {name: query.get(name, "") for name in names_of(FRONTIER)}
    figure = frontier_figure(found) if found.runs else None
    return {
        "found": found,
        "across": flag_in(query, "across"),
        "cost": cost_name(found),
        "lines": _lines(found),
        "more": len(found.runs) > _ROWS,
        "several": len(found.hardware) > 1 or found.query.across,
        "cautions": [caution.message for caution in found.cautions],
        "figure": figure
        and ShownFigure(figure, "collection-chart", {"collection": collection.slug}, asked),
    }


def _lines(found: Frontier) -> list[PricedLine]:
    """Return a line for each run, the cheapest first: of many, those on the frontier and the cheapest others."""
    others = [one for one in found.runs if one.status != ON_FRONTIER]
    left_out = {one.run.pk for one in others[max(0, _ROWS - len(found.runs) + len(others)) :]}
    names = names_of_runs([one.run for one in found.runs])
    return [
        PricedLine(
            one.run,
            names[one.run],
            with_minus(f"{one.mean:.4f}"),
            cost_text(one),
            one.measured,
            one.hardware,
            STATUS_NAMES[one.status],
            one.status == ON_FRONTIER,
            one.by,
            names[one.by] if one.by else "",
            "" if one.p_adjusted is None else probability(one.p_adjusted),
        )
        for one in found.runs
        if len(found.runs) <= _ROWS or one.run.pk not in left_out
    ]
