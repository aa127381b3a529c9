"""The difference of two systems in each collection of a suite, and over all: a forest plot."""

from __future__ import annotations

import math
from typing import Any

import altair as alt

from evalhub.suites.exports.suites import summaries
from evalhub.suites.services.comparison import SuiteComparison
from metrics.charts.figure import Figure
from metrics.charts.look import Look, layered_chart, marks, row_axis
from metrics.tables import signed

# The height of a row and of everything around the rows, and the size of letters, in pixels.
_ROW, _AROUND, _LETTERS = 24, 130, 12


def forest_figure(comparison: SuiteComparison) -> Figure:
    """Draw a dot with its interval for each collection, and below them the means over all."""
    first, second = comparison.values.short_names
    rows: list[dict[str, Any]] = [
        {
            "name": line.row.member.collection.slug,
            "difference": line.interval.difference,
            "low": line.interval.low,
            "high": line.interval.high,
            "summary": False,
        }
        for line in comparison.lines
    ]
    rows += [
        {
            "name": name,
            "difference": interval.difference,
            "low": interval.low,
            "high": interval.high,
            "summary": True,
        }
        for name, interval in summaries(comparison)
    ]
    count = len(comparison.lines)
    collections = "1 collection" if count == 1 else f"{count} collections"
    texts = [[row["name"], signed(row["difference"]), _interval(row)] for row in rows]
    return Figure(
        "forest",
        caption=(
            f"Mean difference of {first} from {second} in {collections} with 95% intervals over "
            "topics. Diamonds: means over all collections."
        ),
        columns=["Collection", "Difference", "95% interval"],
        rows=texts,
        drawing=lambda look: _draw(rows, f"{first} and {second}", collections, look),
        height=lambda _look: _AROUND + _ROW * len(rows),
    )


def _interval(row: dict[str, Any]) -> str:
    if math.isnan(row["low"]):
        return "none"
    return f"{signed(row['low'])} to {signed(row['high'])}"


def _draw(rows: list[dict[str, Any]], title: str, subtitle: str, look: Look) -> Any:
    palette = look.palette
    points = [
        {
            **row,
            "row": place,
            # Without an interval there is a dot alone.
            "low": row["difference"] if math.isnan(row["low"]) else row["low"],
            "high": row["difference"] if math.isnan(row["high"]) else row["high"],
        }
        for place, row in enumerate(rows)
    ]
    axis = row_axis([row["name"] for row in rows], _LETTERS, 0.4 * look.room)
    names = alt.Y("row:O", title=None, axis=alt.Axis(grid=False, **axis))
    x = alt.X("low:Q", title="difference of means", axis=alt.Axis(tickCount=5, labelOverlap=True))
    tooltip = [
        "name:N",
        *(alt.Tooltip(f"{key}:Q", format="+.4f") for key in ("difference", "low", "high")),
    ]
    base = marks(points)
    colour = alt.condition("datum.summary", alt.value(palette.other), alt.value(palette.run))
    shape = alt.condition("datum.summary", alt.value("diamond"), alt.value("circle"))
    layers = [
        marks([{"low": 0}]).mark_rule(strokeDash=[4, 3], color=palette.faint).encode(x=x),
        base.mark_rule(strokeWidth=2).encode(
            x=x, x2="high:Q", y=names, color=colour, tooltip=tooltip
        ),
        base.mark_point(size=80, opacity=1, filled=True).encode(
            x="difference:Q", y=names, color=colour, shape=shape, tooltip=tooltip
        ),
    ]
    return layered_chart(layers, look, title, subtitle)
