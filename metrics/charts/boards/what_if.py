"""Two orders of the same runs side by side: the collection's own and another one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import altair as alt

from metrics.charts.figure import Figure
from metrics.charts.look import Look, axis_title, dressed, marks
from metrics.charts.text import shortened_names, width_of
from metrics.services.boards.what_if import Combination, WhatIf
from metrics.services.comparisons.shown_pairs import names_of

_MOST_RUNS = 200
# What a row and everything around the rows takes, in pixels, and the size of its letters.
_ROW, _AROUND, _LETTERS = 15, 140, 11
_SIDES = ("official", "what if")
# So many runs that move furthest have a thick line: of a hundred thin ones nobody follows one.
_FURTHEST = 12


def what_if_figure(answer: WhatIf, combination: Combination) -> Figure:
    """Draw a line for each run from its official rank to the other one; the first 200 by their official rank."""
    before = {place.run.pk: place for place in answer.official.places}
    after = {place.run.pk: place.rank for place in combination.places}
    ranked = [
        (place.run, place.rank, rank)
        for pk, place in before.items()
        if place.rank is not None and (rank := after[pk]) is not None
    ]
    moved = sum(rank != other for _, rank, other in ranked)
    measures = [answer.official.measure.name, combination.measure.name]
    caption = f"Ranks of {len(ranked)} runs by {measures[0]} and by {measures[1]}: {moved} of them differ."
    names = names_of([run for run, _, _ in ranked])
    shown = ranked[:_MOST_RUNS]
    if len(shown) < len(ranked):
        caption += f" The first {len(shown)} by {measures[0]} are drawn."
    if moved:
        caption += " Blue runs rise, red ones fall; thick lines are the furthest moves."
    far = sorted((abs(rank - other) for _, rank, other in shown), reverse=True)[:_FURTHEST]
    rows = [
        {"run": names[run], "before": rank, "after": other, "rise": rank - other,
         "far": rank != other and abs(rank - other) >= far[-1]}
        for run, rank, other in shown
    ]  # fmt: skip
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
    axes = _axes(measures, look)
    layers = []
    # Thin lines below thick ones.
    for far in sorted({point["far"] for point in points}):
        drawn = marks(point for point in points if point["far"] == far)
        drawn = drawn.mark_line(
            point=True, strokeWidth=2.5 if far else 1.2, opacity=1 if far else 0.6
        )
        colour = {
            "condition": [{"test": "datum.rise > 0", "value": palette.run},
                          {"test": "datum.rise < 0", "value": palette.other}],
            "value": palette.faint,
        }  # fmt: skip
        layers.append(drawn.encode(**axes, detail="run:N", color=colour, tooltip=tooltip))
    for side, align, dx in zip(_SIDES, ("right", "left"), (-10, 10), strict=True):
        own = marks(point for point in points if point["side"] == side)
        mark: dict[str, Any] = {
            "align": align,
            "dx": dx,
            "baseline": "middle",
            "fontSize": _LETTERS,
            "limit": 0,
        }
        layers.append(
            own.mark_text(**mark, color=palette.text).encode(
                **axes, text="label:N", tooltip=tooltip
            )
        )
    same = measures[0] == measures[1]
    subtitle = (
        f"{measures[0]} on both sides" if same else f"left by {measures[0]}, right by {measures[1]}"
    )
    return dressed(layers, look, "Ranks under the two measures", subtitle)


def _points(rows: list[dict[str, Any]], look: Look) -> Iterator[dict[str, Any]]:
    """Place each run on both sides, in the order of that side: tied runs have a row each."""
    room = 0.3 * look.room - width_of("999  ", _LETTERS) - 8
    runs = [row["run"] for row in rows]
    labels = dict(zip(runs, shortened_names(runs, room, _LETTERS), strict=True))
    for side, own, other in zip(_SIDES, ("before", "after"), ("after", "before"), strict=True):
        for place, row in enumerate(
            sorted(rows, key=lambda row: (row[own], row[other], row["run"]))
        ):
            yield {
                **row,
                "side": side,
                "place": place,
                "rank": row[own],
                "label": f"{row[own]}  {labels[row['run']]}",
            }


def _axes(measures: list[str], look: Look) -> dict[str, Any]:
    """Return a side for each measure, and places from the top down."""
    named = [f"official: {measures[0]}", f"what if: {measures[1]}"]
    texts = [axis_title(name, 0.45 * look.room) for name in named]
    axis = alt.Axis(
        orient="top", labelAngle=0, labelLimit=0, domain=False, ticks=False, labelPadding=8,
        labelExpr=f"datum.value == '{_SIDES[0]}' ? {json.dumps(texts[0])} : {json.dumps(texts[1])}",
    )  # fmt: skip
    return {
        "x": alt.X("side:N", sort=_SIDES, title=None, axis=axis, scale=alt.Scale(padding=0.9)),
        "y": alt.Y(
            "place:Q", axis=None, scale=alt.Scale(reverse=True, zero=False, nice=False, padding=8)
        ),
    }
