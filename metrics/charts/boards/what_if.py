"""Two orders of the same runs side by side: the official one and another one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import altair as alt

from metrics.charts.figure import Figure
from metrics.charts.look import Look, axis_title, layered_chart, marks
from metrics.charts.text import shortened_names, width_of
from metrics.questions.addresses import run_page
from metrics.services.boards.what_if import Combination, WhatIf
from metrics.services.comparisons.shown_pairs import names_of

_MOST_RUNS = 200
# The height of a row and of everything around the rows, and the size of letters, in pixels.
_ROW, _AROUND, _LETTERS = 15, 140, 11
_SIDES = ("official", "what if")
# The runs that move furthest have a thick line: a hundred thin ones cannot be followed.
_FURTHEST = 12


def what_if_figure(answer: WhatIf, combination: Combination) -> Figure:
    """Draw a line for each run from its official rank to the other; the first 200 officially."""
    before = {place.run.pk: place for place in answer.official.places}
    after = {place.run.pk: place.rank for place in combination.places}
    ranked = [
        (place.run, place.rank, rank)
        for pk, place in before.items()
        if place.rank is not None and (rank := after[pk]) is not None
    ]
    moved = sum(rank != other for _, rank, other in ranked)
    measures = [answer.official.measure.name, combination.measure.name]
    caption = (
        f"Ranks of {len(ranked)} runs by {measures[0]} and by {measures[1]}: "
        f"{moved} of them differ."
    )
    names = names_of([run for run, _, _ in ranked])
    drawn_runs = ranked[:_MOST_RUNS]
    if len(drawn_runs) < len(ranked):
        caption += f" The first {len(drawn_runs)} by {measures[0]} are drawn."

    if moved:
        caption += " Blue runs rise, red ones fall; thick lines are the furthest moves."

    far = sorted((abs(rank - other) for _, rank, other in drawn_runs), reverse=True)[:_FURTHEST]
    rows = [
        {
            "run": names[run],
            "before": rank,
            "after": other,
            "rise": rank - other,
            "far": rank != other and abs(rank - other) >= far[-1],
            "address": run_page(run),
        }
        for run, rank, other in drawn_runs
    ]

    figures = [[str(row[key]) for key in ("run", "before", "after")] for row in rows]
    figure = Figure(
        name="what-if",
        caption=caption,
        columns=["Run", *measures],
        rows=figures,
        drawing=lambda look: _draw(rows, measures, look),
        height=lambda look: max(look.height, _AROUND + _ROW * len(rows)),
    )

    return figure.drawn_from(
        answer.qrels.collection,
        answer.qrels,
        measure=measures[1],
        runs=(len(rows), len(answer.runs)),
    )


def _draw(rows: list[dict[str, Any]], measures: list[str], look: Look) -> Any:
    points, palette = list(_points(rows, look)), look.palette
    ranks = zip(("before:Q", "after:Q"), measures, strict=True)
    tooltip = ["run:N", *(alt.Tooltip(rank, title=f"rank by {name}") for rank, name in ranks)]

    axes = _axes(measures, look)
    layers = []
    # Thin lines below thick ones.
    for far in sorted({point["far"] for point in points}):
        lines = marks(point for point in points if point["far"] == far)
        lines = lines.mark_line(
            point=True, strokeWidth=2.5 if far else 1.2, opacity=1 if far else 0.6
        )
        colour = {
            "condition": [
                {"test": "datum.rise > 0", "value": palette.run},
                {"test": "datum.rise < 0", "value": palette.other},
            ],
            "value": palette.faint,
        }

        layers.append(lines.encode(**axes, detail="run:N", color=colour, tooltip=tooltip))

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
                **axes, text="label:N", tooltip=tooltip, **look.link
            )
        )

    same = measures[0] == measures[1]
    subtitle = (
        f"{measures[0]} on both sides" if same else f"left by {measures[0]}, right by {measures[1]}"
    )

    return layered_chart(layers, look, "Ranks under the two measures", subtitle)


def _points(rows: list[dict[str, Any]], look: Look) -> Iterator[dict[str, Any]]:
    """Yield each run on both sides, in the order of that side: tied runs have a row each."""
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
        orient="top",
        labelAngle=0,
        labelLimit=0,
        domain=False,
        ticks=False,
        labelPadding=8,
        labelExpr=f"datum.value == '{_SIDES[0]}' ? {json.dumps(texts[0])} : {json.dumps(texts[1])}",
    )

    return {
        "x": alt.X("side:N", sort=_SIDES, title=None, axis=axis, scale=alt.Scale(padding=0.9)),
        "y": alt.Y(
            "place:Q", axis=None, scale=alt.Scale(reverse=True, zero=False, nice=False, padding=8)
        ),
    }
