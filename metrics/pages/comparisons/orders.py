"""The page of agreement between orders of runs: by several measures, or versions of the qrels."""

from __future__ import annotations

import math
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from metrics.charts.comparisons.two_orders import title_of, two_orders_figure
from metrics.engine.agreement.intervals import Agreement
from metrics.exports.table import Column, Row, Table
from metrics.pages.parts import PageFigure, Query, fill, query_of, query_string
from metrics.questions.answer_cache import all_who_signed_in, cached_page, of_visible_collection
from metrics.questions.declared import ORDERS, names_of
from metrics.services.boards.selection import tested_measures
from metrics.services.comparisons.orders import Orders, OrdersQuery, compare_orders
from metrics.tables import NOTHING, with_minus
from runs.models import Collection, can_see_scores
from runs.services.collections.topic_attributes import attribute_keys
from runs.web.access import check_scores, visible_collection
from runs.web.views import page, reads

# The number of the collection's measures that are compared by default: more pairs make a long
# table, and take long for many runs.
_FIRST = 4


@page
@reads(*names_of(ORDERS))
@cached_page(of_visible_collection, shared_by=all_who_signed_in)
def orders_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the agreement of the orders of the runs."""
    collection = visible_collection(request, slug)
    query = query_of(request, collection)
    own = tested_measures(collection)
    measures = query.get("measures") or ", ".join(own[:_FIRST])
    context: dict[str, Any] = {
        "collection": collection,
        "query": query,
        "measures": measures,
        "more": 0 if query.get("measures") else len(own[_FIRST:]),
    }

    if can_see_scores(request.user, collection):
        context["versions"] = collection.qrels.count()
        context["topic_keys"] = attribute_keys(collection)

    status = fill(context, "answer", _answer, request, collection, {**query, "measures": measures})
    return render(request, "metrics/orders.html", context, status=status)


def _answer(request: HttpRequest, collection: Collection, query: Query) -> dict[str, Any]:
    check_scores(request, collection)
    answer = compare_orders(collection=collection, query=OrdersQuery.read(query, collection))
    arguments = {"collection": collection.slug}
    parameters = {name: query.get(name, "") for name in names_of(ORDERS)}

    return {
        "orders": answer,
        "interval": f"{100 * answer.query.confidence:g}%",
        "cautions": [caution.message for caution in answer.cautions],
        "table": _table(answer),
        "json": query_string(parameters),
        "figure": PageFigure(
            two_orders_figure(collection, answer, answer.pairs[0]),
            "collection-chart",
            arguments,
            parameters,
        ),
    }


def _table(answer: Orders) -> Table:
    """Build the table of every two orders: how many runs change their rank, and the coefficients
    with their intervals."""
    columns = [
        Column("", "Ranking", head=True),
        Column("", "Other ranking", style=""),
        Column("", "Runs moved"),
        Column("", "τ", format=_interval),
        Column("", "τ AP", format=_interval),
        Column("", "RBO", format=_interval),
    ]

    rows = []
    for pair in answer.pairs:
        a, b = answer.orders[pair.a], answer.orders[pair.b]
        agreements = pair.agreements
        moved = sum(change != 0 for change in pair.changes)
        coefficients = (agreements.tau, agreements.symmetric_tau_ap, agreements.rbo)
        rows.append(Row([title_of(a, b), title_of(b, a), moved, *coefficients]))

    return Table("pairs", columns, rows, title="Agreement of every pair of rankings")


def _interval(agreement: Agreement) -> str:
    if math.isnan(agreement.value):
        return NOTHING

    value, low, high = (
        with_minus(f"{figure:.3f}") for figure in (agreement.value, agreement.low, agreement.high)
    )
    return f"{value} [{low}, {high}]"
