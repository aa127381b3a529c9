"""Parallel coordinates: a line for each run through the values of its parameters to its mean."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import altair as alt
import numpy as np

from metrics.charts.figure import Figure
from metrics.charts.look import Look, layered_chart, marks
from metrics.charts.text import shortened_names, width_of
from metrics.charts.tracking.parameter_axes import (
    LENGTH,
    ParameterAxis,
    apart,
    is_number,
    number_ticks,
    parameter_axis,
    text_of,
)
from metrics.questions.addresses import run_page
from metrics.services.boards.columns import ShownColumn
from metrics.services.comparisons.shown_pairs import names_of
from metrics.services.tracking.measured import Measured, MeasuredRun
from metrics.tables import with_minus

# If there are more lines than this, the best ones and some of the others are drawn.
_MOST, _BEST, _DRAWN = 300, 150, 150
# The best tenth of the runs has coloured lines.
_TENTH = 10
# The place where numbers begin on an axis that has values below them.
_START = 1_600
_LETTERS, _LINE = 11, 15
# The height of an axis on a phone, where axes lie below each other, and of all around them.
_ROW, _AROUND = 68, 120


def parallel_figure(measured: Measured, columns: tuple[ShownColumn, ...], seed: int = 0) -> Figure:
    """Draw the runs over up to 8 parameters, each on its own scale, and the measure.

    The lines of the best tenth are coloured.
    """
    runs, measure = measured.runs, measured.measure
    drawn_runs = _chosen(runs, seed)
    best = max(1, round(len(runs) / _TENTH))
    caption = f"{', '.join(column.title for column in columns)} and mean {measure.name} of "
    caption += f"{len(runs):,} of {measured.ranked:,} ranked runs, a line each."

    if len(drawn_runs) < len(runs):
        caption += (
            f" Drawn are the best {_BEST} and {_DRAWN} of the others, chosen with seed {seed}."
        )

    caption += f" Coloured: the best {best:,} by {measure.name}."
    logarithmic = [
        axis.column.title for axis in _axes(measured, columns, drawn_runs) if axis.logarithmic
    ]
    if logarithmic:
        caption += f" Logarithmic: {', '.join(logarithmic)}."

    names = names_of([run.run for run in drawn_runs])
    rows = [
        [
            names[run.run],
            *(text_of(run.values[column.name]) for column in columns),
            with_minus(f"{run.mean:.4f}"),
        ]
        for run in drawn_runs
    ]

    headings = ["Run", *(column.heading for column in columns), measure.name]

    def height(look: Look) -> int:
        rows_height = _AROUND + _ROW * (len(columns) + 1) if look.narrow else 0
        return max(look.height, rows_height)

    figure = Figure(
        name="parallel",
        caption=caption,
        columns=headings,
        rows=rows,
        drawing=lambda look: _draw(measured, columns, drawn_runs, best, look),
        height=height,
    )

    return figure.drawn_from(
        measured.qrels.collection,
        measured.qrels,
        measure=measure.name,
        runs=(len(drawn_runs), measured.ranked),
    )


def _chosen(runs: list[MeasuredRun], seed: int) -> list[MeasuredRun]:
    """Return the runs whose lines are drawn, best first."""
    if len(runs) <= _MOST:
        return runs
    others = np.random.default_rng(seed).choice(len(runs) - _BEST, _DRAWN, replace=False)
    return [*runs[:_BEST], *(runs[_BEST + int(place)] for place in np.sort(others))]


def _axes(
    measured: Measured, columns: tuple[ShownColumn, ...], runs: list[MeasuredRun]
) -> list[ParameterAxis]:
    lower = measured.measure.definition.lower_is_better
    return [
        parameter_axis(
            column, runs, lower_is_better=lower, start=_START if _has_others(column, runs) else 0
        )
        for column in columns
    ]


def _has_others(column: ShownColumn, runs: list[MeasuredRun]) -> bool:
    """Return whether a column has values below its axis: missing ones, or texts among numbers."""
    values = [run.values[column.name] for run in runs]
    return None in values or len({is_number(value) for value in values}) > 1


def _draw(
    measured: Measured,
    columns: tuple[ShownColumn, ...],
    runs: list[MeasuredRun],
    best: int,
    look: Look,
) -> Any:
    axes, palette, measure = _axes(measured, columns, runs), look.palette, measured.measure
    places, ticks = _of_measure(measured, runs)
    all_ticks = [*(axis.ticks for axis in axes), ticks]
    titles = [*(column.title for column in columns), measure.name]
    lines = [
        [*(axis.place(run.values[axis.column.name]) for axis in axes), place]
        for run, place in zip(runs, places, strict=True)
    ]
    along, across = _channels(len(titles), titles, look)
    rules = [{"axis": at, "at": 0, "end": LENGTH} for at in range(len(titles))]
    ends = {"y2": "end:Q"} if not look.narrow else {"x2": "end:Q"}
    layers = [
        marks(rules).mark_rule(color=palette.faint, opacity=0.6).encode(**along, **across, **ends)
    ]

    for chosen, colour, opacity, width in (
        (lines[best:], palette.faint, 0.25 if len(runs) > 60 else 0.45, 1.2),
        (lines[:best], palette.run, 0.85, 2),
    ):
        path = marks(_path(chosen)).mark_line(color=colour, opacity=opacity, strokeWidth=width)
        layers.append(path.encode(**along, **across, order=alt.Order("number:Q")))

    layers += _ticks(all_ticks, titles, along, across, look)
    layers.append(_ends(measured, runs, places, best, len(columns), along, across, look))
    count = (
        f"{len(runs):,} of {measured.ranked:,}"
        if len(runs) != measured.ranked
        else f"{len(runs):,}"
    )

    return layered_chart(
        layers,
        look,
        f"Parameters and {measure.name}",
        f"{count} ranked runs, the best tenth coloured",
    )


def _path(lines: list[list[int]]) -> Iterator[dict[str, Any]]:
    """Yield the points of all lines as one path, which breaks at points without a place.

    A path for each line takes Vega as long as all the rest of a chart.
    """
    number = 0
    for line in lines:
        for axis, place in enumerate([*line, None]):
            yield {"axis": min(axis, len(line) - 1), "at": place, "number": number}
            number += 1


def _of_measure(
    measured: Measured, runs: list[MeasuredRun]
) -> tuple[list[int], list[tuple[int, str]]]:
    """Return the places of the runs by their means, better ones higher, and the ticks."""
    low, high = runs[-1].mean, runs[0].mean
    span = high - low

    def at(mean: float) -> int:
        return round(LENGTH * (mean - low) / span) if span else LENGTH // 2

    # Different numbers, so that the ticks are round.
    inner = sorted(low + (high - low) * part / 10 for part in range(11))
    ticks = number_ticks(inner) if span else [(low, f"{low:.4g}")]

    return [at(run.mean) for run in runs], sorted((at(number), text) for number, text in ticks)


def _channels(number: int, titles: list[str], look: Look) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the channels in which axes follow each other, and that of the values on them."""
    margin = (0.13 if look.narrow else 0.03) * LENGTH
    values = alt.Scale(domain=[-margin, LENGTH + margin], nice=False)

    if look.narrow:
        scale = alt.Scale(domain=[-0.6, number - 0.4], reverse=True, nice=False)
        along_y = {"y": alt.Y("axis:Q", axis=None, scale=scale)}
        return along_y, {"x": alt.X("at:Q", axis=None, scale=values)}

    texts = shortened_names(titles, 0.94 * look.room / (number + 0.3), 12)
    axis = alt.Axis(
        orient="top",
        values=list(range(number)),
        labelExpr=f"{json.dumps(texts)}[datum.value]",
        labelAngle=0,
        labelLimit=0,
        labelOverlap=False,
        labelFlush=False,
        labelColor=look.palette.text,
        grid=False,
        ticks=False,
        domain=False,
        labelPadding=10,
    )

    scale = alt.Scale(domain=[-0.5, number - 0.2], nice=False)

    along = {"x": alt.X("axis:Q", title=None, axis=axis, scale=scale)}
    return along, {"y": alt.Y("at:Q", axis=None, scale=values)}


def _ticks(
    all_ticks: list[list[tuple[int, str]]],
    titles: list[str],
    along: dict[str, Any],
    across: dict[str, Any],
    look: Look,
) -> Iterator[Any]:
    """Yield the texts of the ticks with a halo that keeps lines away; on a phone also titles."""
    width, height = look.room - 20, look.plot[1]

    room = 0.9 * width if look.narrow else 0.75 * look.room / (len(titles) + 0.3)
    rows = []
    for number, ticks in enumerate(all_ticks):
        texts = shortened_names(
            [text for _, text in ticks], 0.22 * room if look.narrow else room, _LETTERS
        )
        short_ticks = [(place, text) for (place, _), text in zip(ticks, texts, strict=True)]

        def gap(a: str, b: str) -> float:
            if not look.narrow:
                return _LINE / height * LENGTH
            return ((width_of(a, _LETTERS) + width_of(b, _LETTERS)) / 2 + 8) / width * LENGTH

        rows += [
            {"axis": number, "at": place, "text": text} for place, text in apart(short_ticks, gap)
        ]

    for ground in (True, False):
        mark: dict[str, Any] = {
            "fontSize": _LETTERS,
            "limit": 0,
            "align": "left",
            "baseline": "middle",
            "dx": 5,
        }

        if look.narrow:
            mark |= {"align": "center", "dx": 0, "dy": 12}

        halo: dict[str, Any] = {}

        if ground:
            halo = {
                "stroke": look.palette.ground,
                "strokeWidth": 4,
                "strokeJoin": "round",
                "opacity": 0.8,
            }

        mark |= halo
        yield (
            marks(rows)
            .mark_text(color=look.palette.text, **mark)
            .encode(**along, **across, text="text:N")
        )

        if look.narrow:
            short_titles = shortened_names(titles, 0.95 * width, 12)
            title_marks = marks(
                {"axis": at, "at": 0, "text": text} for at, text in enumerate(short_titles)
            )
            mark = {
                "fontSize": 12,
                "fontWeight": 600,
                "limit": 0,
                "align": "left",
                "dy": -14,
                **halo,
            }

            yield title_marks.mark_text(color=look.palette.text, **mark).encode(
                **along, **across, text="text:N"
            )


def _ends(
    measured: Measured,
    runs: list[MeasuredRun],
    places: list[int],
    best: int,
    last: int,
    along: dict[str, Any],
    across: dict[str, Any],
    look: Look,
) -> Any:
    """Return a point for each run on the axis of the measure, which names it to the pointer."""
    names = names_of([run.run for run in runs])
    rows = [
        {
            "axis": last,
            "at": place,
            "run": names[run.run],
            "mean": run.mean,
            "best": number < best,
            "address": run_page(run.run),
        }
        for number, (run, place) in enumerate(zip(runs, places, strict=True))
    ]
    tooltip = [
        alt.Tooltip("run:N"),
        alt.Tooltip("mean:Q", format=".4f", title=measured.measure.name),
    ]
    colour = {
        "condition": {"test": "datum.best", "value": look.palette.run},
        "value": look.palette.faint,
    }
    points = marks(rows).mark_point(filled=True, size=22, opacity=0.8)

    return points.encode(**along, **across, color=colour, tooltip=tooltip, **look.link)
