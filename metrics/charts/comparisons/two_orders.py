"""Two orders of the same runs against each other: the ranks of each run in both."""

from __future__ import annotations

from typing import Any

import altair as alt

from metrics.charts.figure import Figure
from metrics.charts.labels import MOST_NAMES, name_layers
from metrics.charts.look import Look, axis_title, layered_chart, marks
from metrics.questions.addresses import run_page
from metrics.services.comparisons.orders import Order, OrderPair, Orders
from metrics.services.comparisons.shown_pairs import names_of
from metrics.tables import with_minus
from runs.models import Collection


def two_orders_figure(collection: Collection, answer: Orders, pair: OrderPair) -> Figure:
    """Draw a point for each run at its ranks in both orders; on the diagonal they are the same."""
    a, b = answer.orders[pair.a], answer.orders[pair.b]
    names, titles = names_of(answer.runs), (title_of(a, b), title_of(b, a))
    moved = sum(change != 0 for change in pair.changes)
    tau = pair.agreements.tau
    caption = (
        f"Ranks of {len(answer.runs)} runs by {titles[0]} and by {titles[1]} "
        f"on {answer.topics} topics: {moved} of them differ. "
        f"Kendall’s tau {with_minus(f'{tau.value:.3f}')} "
        f"[{with_minus(f'{tau.low:.3f}')}, {with_minus(f'{tau.high:.3f}')}]."
    )

    rows: list[dict[str, Any]] = [
        {
            "run": names[run],
            "a": before,
            "b": after,
            "change": abs(change),
            "address": run_page(run),
        }
        for run, before, after, change in zip(
            answer.runs, a.ranks, b.ranks, pair.changes, strict=True
        )
    ]

    rows.sort(key=lambda row: (row["a"], row["b"]))
    figures = [[row["run"], str(row["a"]), str(row["b"])] for row in rows]
    runs = len(answer.runs)
    measures = " ".join(dict.fromkeys([a.measure.name, b.measure.name]))

    figure = Figure(
        name="orders",
        caption=caption,
        columns=["Run", *titles],
        rows=figures,
        drawing=lambda look: _draw(rows, titles, look),
    )

    return figure.of_topics(answer.selection).drawn_from(
        collection, a.qrels, b.qrels, measure=measures, runs=(runs, runs)
    )


def title_of(order: Order, other: Order) -> str:
    """Return the measure of an order, with the qrels version if both have the same measure."""
    if order.measure == other.measure:
        return f"{order.measure.name}, {order.qrels.name}"
    return order.measure.name


def _draw(rows: list[dict[str, Any]], titles: tuple[str, str], look: Look) -> Any:
    last = max(max(row["a"], row["b"]) for row in rows)
    domain = [0.5, last + 0.5]
    axis = alt.Axis(tickMinStep=1, format="d", tickCount=min(last, 6 if look.narrow else 12))
    across = axis_title(f"rank by {titles[0]}", look.plot[0])
    x = alt.X("a:Q", title=across, scale=alt.Scale(domain=domain, nice=False), axis=axis)
    # The best runs are at the top on the left.
    upwards = axis_title(f"rank by {titles[1]}", look.plot[1])
    y = alt.Y(
        "b:Q", title=upwards, scale=alt.Scale(domain=domain, nice=False, reverse=True), axis=axis
    )
    ends = [{"a": 0.5, "b": 0.5}, {"a": last + 0.5, "b": last + 0.5}]
    diagonal = marks(ends).mark_line(color=look.palette.grid, strokeWidth=2).encode(x=x, y=y)
    ranks = zip(("a:Q", "b:Q"), titles, strict=True)
    tooltip = ["run:N", *(alt.Tooltip(rank, title=f"rank by {title}") for rank, title in ranks)]
    points = marks(rows).mark_point(filled=True, size=60, opacity=0.85, color=look.palette.run)
    layers = [diagonal, points.encode(x=x, y=y, tooltip=tooltip, **look.link)]
    # The runs whose ranks differ most have their names in the chart.
    furthest = sorted(
        (number for number, row in enumerate(rows) if row["change"]),
        key=lambda number: -rows[number]["change"],
    )
    places = [((row["a"] - 0.5) / last, (row["b"] - 0.5) / last) for row in rows]
    layers += name_layers(rows, places, look, x=x, y=y, first=furthest[: 2 * MOST_NAMES])

    return layered_chart(
        layers, look, "Two orders of the same runs", "on the line a run has the same rank in both"
    )
