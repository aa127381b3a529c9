"""How many documents a pool has at each depth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from metrics.charts.figure import Figure
from metrics.charts.look import Look, axis_title, layered_chart, marks


def growth_figure(growth: Sequence[tuple[int, int]], *, title: str) -> Figure:
    """Draw the documents with a best rank up to each depth. Points are (depth, documents)."""
    depth, documents = growth[-1]
    return Figure(
        name="growth",
        caption=(
            f"Documents of {title} at ranks 1 to k of at least one run: {documents:,} at rank "
            f"{depth:,}. A curve that still rises says that deeper ranks have other documents."
        ),
        columns=["Depth", "Documents"],
        rows=[[f"{rank:,}", f"{count:,}"] for rank, count in growth],
        drawing=lambda look: _draw(growth, title, look),
    )


def _draw(growth: Sequence[tuple[int, int]], title: str, look: Look) -> Any:
    points = [{"depth": rank, "documents": count} for rank, count in growth]
    x = alt.X("depth:Q", title="depth", axis=alt.Axis(tickMinStep=1))
    y = alt.Y(
        "documents:Q",
        title=axis_title("documents", 0.8 * look.plot[1]),
        axis=alt.Axis(tickCount=5),
    )
    tooltip = [
        alt.Tooltip("depth:Q", title="depth"),
        alt.Tooltip("documents:Q", title="documents", format=","),
    ]
    line = marks(points).mark_line(color=look.palette.run, strokeWidth=1.5)
    dots = marks(points).mark_point(filled=True, size=30, color=look.palette.run)
    layers = [line.encode(x=x, y=y), dots.encode(x=x, y=y, tooltip=tooltip)]

    return layered_chart(layers, look, "Documents by depth", title)
