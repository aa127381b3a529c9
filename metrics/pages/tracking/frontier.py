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
from metrics.pages.parts import PageFigure, Query, fill, query_of
from metrics.questions.answer_cache import all_who_signed_in, cached_page, of_visible_collection
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

# Rows of the table.
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
@cached_page(of_visible_collection, shared_by=all_who_signed_in)
def frontier_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Show effectiveness against cost, and the runs that no cheaper one beats."""
    collection = visible_collection(request, slug)
    query = query_of(request, collection)
    context: dict[str, Any] = {
        "collection": collection,
        "query": query,
        "tab": "frontier",
        "kinds": {kind: FORMATS[kind].title for kind in KINDS},
        "measure": query.get("y") or tested_measures(collection)[0],
        "costs": list(visible_keys(visible_board(collection, request.user), COST).order_by("name")),
        "cost": query.get("x", "").removeprefix(f"{COST}:"),
    }

    status = fill(context, "answer", _answer, request, collection, query)
    return render(request, "metrics/frontier.html", context, status=status)


def _answer(request: HttpRequest, collection: Collection, query: Query) -> dict[str, Any]:
    check_scores(request, collection)
    frontier = read_frontier(
        collection=collection, query=FrontierQuery.read(query, collection, request.user)
    )
    parameters = {name: query.get(name, "") for name in names_of(FRONTIER)}
    figure = frontier_figure(frontier) if frontier.runs else None

    return {
        "frontier": frontier,
        "across": flag_in(query, "across"),
        "cost": cost_name(frontier),
        "lines": _lines(frontier),
        "more": len(frontier.runs) > _ROWS,
        "several": len(frontier.hardware) > 1 or frontier.query.across,
        "cautions": [caution.message for caution in frontier.cautions],
        "figure": figure
        and PageFigure(figure, "collection-chart", {"collection": collection.slug}, parameters),
    }


def _lines(frontier: Frontier) -> list[PricedLine]:
    """Return a line for each run, cheapest first; of many runs, not all off the frontier."""
    others = [priced for priced in frontier.runs if priced.status != ON_FRONTIER]
    left_out = {
        priced.run.pk for priced in others[max(0, _ROWS - len(frontier.runs) + len(others)) :]
    }

    names = names_of_runs([priced.run for priced in frontier.runs])
    lines = []
    for priced in frontier.runs:
        if priced.run.pk in left_out:
            continue

        lines.append(
            PricedLine(
                run=priced.run,
                name=names[priced.run],
                mean=with_minus(f"{priced.mean:.4f}"),
                cost=cost_text(priced),
                measured=priced.measured,
                hardware=priced.hardware,
                status=STATUS_NAMES[priced.status],
                best=priced.status == ON_FRONTIER,
                by=priced.by,
                by_name=names[priced.by] if priced.by else "",
                p_value="" if priced.p_adjusted is None else probability(priced.p_adjusted),
            )
        )

    return lines
