"""Two orders of the same runs against each other: where every run stands in both."""

from __future__ import annotations

from typing import Any

import altair as alt

from metrics.charts.figure import Figure
from metrics.charts.look import Look, dressed, marks
from metrics.services.comparisons.orders import Order, OrderPair, Orders
from metrics.services.comparisons.shown_pairs import names_of
from metrics.tables import with_minus
from runs.models import Collection

# So many runs have their names in the chart: those whose ranks differ most.
_NAMED, _LETTERS = 8, 11


def two_orders_figure(collection: Collection, answer: Orders, pair: OrderPair) -> Figure:
    """Draw a point for each run at its ranks in both orders; on the diagonal they are the same."""
    a, b = answer.orders[pair.a], answer.orders[pair.b]
    names, titles = names_of(answer.runs), (title_of(a, b), title_of(b, a))
    moved = sum(change != 0 for change in pair.changes)
    tau = pair.agreements.tau
    caption = (
        f"Ranks of {len(answer.runs)} runs by {titles[0]} and by {titles[1]} on {answer.topics} topics: "
        f"{moved} of them differ. Kendall’s tau {with_minus(f'{tau.value:.3f}')} "
        f"[{with_minus(f'{tau.low:.3f}')}, {with_minus(f'{tau.high:.3f}')}]."
    )
    rows: list[dict[str, Any]] = [
        {"run": names[run], "a": before, "b": after, "change": abs(change)}
        for run, before, after, change in zip(answer.runs, a.ranks, b.ranks, pair.changes, strict=True)
    ]
    rows.sort(key=lambda row: (row["a"], row["b"]))
    figures = [[row["run"], str(row["a"]), str(row["b"])] for row in rows]
    runs = len(answer.runs)
    measures = " ".join(dict.fromkeys([a.measure.name, b.measure.name]))
    return Figure(
        "orders", caption, ["Run", *titles], figures, lambda look: _draw(rows, titles, look)
    ).drawn_from(collection, a.qrels, b.qrels, measure=measures, shown=(runs, runs))  # fmt: skip


def title_of(order: Order, other: Order) -> str:
    """Return what tells an order from the other: its measure, its version of the judgements, or both."""
    if order.measure == other.measure:
        return f"{order.measure.name}, qrels v{order.qrels}"
    return order.measure.name


def _draw(rows: list[dict[str, Any]], titles: tuple[str, str], look: Look) -> Any:
    last = max(max(row["a"], row["b"]) for row in rows)
    domain = [0.5, last + 0.5]
    axis = alt.Axis(tickMinStep=1, format="d", tickCount=min(last, 6 if look.narrow else 12))
    x = alt.X("a:Q", title=f"rank by {titles[0]}", scale=alt.Scale(domain=domain, nice=False), axis=axis)
    # The best runs are at the top on the left.
    y = alt.Y("b:Q", title=f"rank by {titles[1]}", scale=alt.Scale(domain=domain, nice=False, reverse=True), axis=axis)
    ends = [{"a": 0.5, "b": 0.5}, {"a": last + 0.5, "b": last + 0.5}]
    diagonal = marks(ends).mark_line(color=look.palette.grid, strokeWidth=2).encode(x=x, y=y)
    points = marks(rows).mark_point(filled=True, size=60, opacity=0.85, color=look.palette.run)
    layers = [diagonal, points.encode(x=x, y=y, tooltip=["run:N", "a:Q", "b:Q"])]
    named = [row for row in sorted(rows, key=lambda row: -row["change"]) if row["change"]][:_NAMED]
    if named and not look.narrow:
        mark = marks(named).mark_text(align="left", dx=7, fontSize=_LETTERS, color=look.palette.text, limit=140)
        layers.append(mark.encode(x=x, y=y, text="run:N"))
    return dressed(layers, look, "Two orders of the same runs", "on the line a run has the same rank in both")
