"""Two orders of the same runs side by side: the collection's own and another one."""

from __future__ import annotations

from typing import Any

import altair as alt

from metrics.charts.figure import Figure
from metrics.charts.look import Look, data, dressed
from metrics.services.boards.what_if import Combination, WhatIf

_MOST_RUNS = 40


def what_if_figure(answer: WhatIf, combination: Combination) -> Figure:
    """A line for each run from its official rank to the other one; the first 40 by their official rank."""
    before = {place.run.pk: place for place in answer.official.places}
    after = {place.run.pk: place.rank for place in combination.places}
    ranked = [(place, after[pk]) for pk, place in before.items() if place.rank is not None and after[pk] is not None]
    moved = sum(place.rank != rank for place, rank in ranked)
    names = [answer.official.measure.name, combination.measure.name]
    caption = f"Ranks of {len(ranked)} runs by {names[0]} and by {names[1]}: {moved} of them differ."
    rows = [
        {"run": place.run.tag, "before": place.rank, "after": rank, "moved": place.rank != rank}
        for place, rank in ranked[:_MOST_RUNS]
    ]
    figures = [[str(row[key]) for key in ("run", "before", "after")] for row in rows]
    return Figure("what-if", caption, ["Run", *names], figures, lambda look: _draw(rows, names, look))


def _draw(rows: list[dict[str, Any]], names: list[str], look: Look) -> Any:
    sides = ["official", "what if"]
    points = [
        {**row, "side": side, "rank": row[key]}
        for row in rows
        for side, key in zip(sides, ("before", "after"), strict=True)
    ]
    subtitle = f"left by {names[0]}, right by {names[1]}" if names[0] != names[1] else f"{names[0]} on both sides"
    layers = [_lines(points, sides, look), *(_labels(points, side, look) for side in sides)]
    return dressed(layers, look, "Ranks under the two measures", subtitle)


def _lines(points: list[dict[str, Any]], sides: list[str], look: Look) -> Any:
    palette = look.palette
    colour = alt.condition("datum.moved", alt.value(palette.run), alt.value(palette.faint))
    return (
        alt.Chart(data(points))
        .mark_line(point=True, strokeWidth=2)
        .encode(
            x=alt.X(
                "side:N",
                sort=sides,
                title=None,
                axis=alt.Axis(orient="top", labelAngle=0, domain=False, ticks=False, labelPadding=8),
                scale=alt.Scale(padding=0.9),
            ),
            y=alt.Y("rank:Q", axis=None, scale=alt.Scale(reverse=True, zero=False)),
            detail="run:N",
            color=colour,
            tooltip=["run:N", "before:Q", "after:Q"],
        )
    )


def _labels(points: list[dict[str, Any]], side: str, look: Look) -> Any:
    left = side == "official"
    own = [{**point, "label": f"{point['rank']}  {point['run']}"} for point in points if point["side"] == side]
    mark: dict[str, Any] = {"align": "right" if left else "left", "dx": -10 if left else 10, "fontSize": 11}
    limit = 90 if look.narrow else 200
    return (
        alt.Chart(data(own))
        .mark_text(**mark, limit=limit, color=look.palette.text)
        .encode(x=alt.X("side:N", sort=["official", "what if"]), y="rank:Q", text="label:N")
    )
