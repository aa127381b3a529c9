"""Two orders of the same runs side by side: the collection's own and another one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import altair as alt

from metrics.charts.figure import Figure
from metrics.charts.look import Look, dressed, marks
from metrics.charts.text import shortened_names, width_of
from metrics.services.boards.what_if import Combination, WhatIf
from metrics.services.comparisons.shown_pairs import names_of

_MOST_RUNS = 40
# What a row and everything around the rows takes, in pixels, and the size of its letters.
_ROW, _AROUND, _LETTERS = 15, 110, 11
_SIDES = ("official", "what if")


def what_if_figure(answer: WhatIf, combination: Combination) -> Figure:
    """Draw a line for each run from its official rank to the other one; the first 40 by their official rank."""
    before = {place.run.pk: place for place in answer.official.places}
    after = {place.run.pk: place.rank for place in combination.places}
    ranked = [(place, after[pk]) for pk, place in before.items() if place.rank is not None and after[pk] is not None]
    moved = sum(place.rank != rank for place, rank in ranked)
    measures = [answer.official.measure.name, combination.measure.name]
    caption = f"Ranks of {len(ranked)} runs by {measures[0]} and by {measures[1]}: {moved} of them differ."
    names = names_of([place.run for place, _ in ranked])
    shown = ranked[:_MOST_RUNS]
    if len(shown) < len(ranked):
        caption += f" The first {len(shown)} by {measures[0]} are drawn."
    rows = [
        {"run": names[place.run], "before": place.rank, "after": rank, "moved": place.rank != rank}
        for place, rank in shown
    ]
    figures = [[str(row[key]) for key in ("run", "before", "after")] for row in rows]
    return Figure(
        "what-if", caption, ["Run", *measures], figures, lambda look: _draw(rows, measures, look),
        lambda look: max(look.height, _AROUND + _ROW * len(rows)),
    ).drawn_from(
        answer.qrels.collection, answer.qrels.version, measure=measures[1], shown=(len(rows), len(answer.runs))
    )  # fmt: skip


def _draw(rows: list[dict[str, Any]], measures: list[str], look: Look) -> Any:
    points, palette = list(_points(rows, look)), look.palette
    tooltip = ["run:N", "before:Q", "after:Q"]
    colour = alt.condition("datum.moved", alt.value(palette.run), alt.value(palette.faint))
    line = marks(points).mark_line(point=True, strokeWidth=2)
    layers = [line.encode(**_axes(), detail="run:N", color=colour, tooltip=tooltip)]
    for side, align, dx in zip(_SIDES, ("right", "left"), (-10, 10), strict=True):
        own = marks(point for point in points if point["side"] == side)
        mark: dict[str, Any] = {"align": align, "dx": dx, "baseline": "middle", "fontSize": _LETTERS, "limit": 0}
        layers.append(own.mark_text(**mark, color=palette.text).encode(**_axes(), text="label:N", tooltip=tooltip))
    same = measures[0] == measures[1]
    subtitle = f"{measures[0]} on both sides" if same else f"left by {measures[0]}, right by {measures[1]}"
    return dressed(layers, look, "Ranks under the two measures", subtitle)


def _points(rows: list[dict[str, Any]], look: Look) -> Iterator[dict[str, Any]]:
    """Place each run on both sides, in the order of that side: tied runs have a row each."""
    room = 0.3 * look.room - width_of("999  ", _LETTERS) - 8
    runs = [row["run"] for row in rows]
    labels = dict(zip(runs, shortened_names(runs, room, _LETTERS), strict=True))
    for side, own, other in zip(_SIDES, ("before", "after"), ("after", "before"), strict=True):
        for place, row in enumerate(sorted(rows, key=lambda row: (row[own], row[other], row["run"]))):
            yield {**row, "side": side, "place": place, "rank": row[own], "label": f"{row[own]}  {labels[row['run']]}"}


def _axes() -> dict[str, Any]:
    axis = alt.Axis(orient="top", labelAngle=0, domain=False, ticks=False, labelPadding=8)
    return {
        "x": alt.X("side:N", sort=_SIDES, title=None, axis=axis, scale=alt.Scale(padding=0.9)),
        "y": alt.Y("place:Q", axis=None, scale=alt.Scale(reverse=True, zero=False, nice=False, padding=8)),
    }
