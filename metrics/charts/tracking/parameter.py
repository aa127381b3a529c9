"""A parameter against a measure: a point for each run, coloured by another parameter."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import altair as alt

from metrics.charts.figure import Figure
from metrics.charts.labels import name_layers
from metrics.charts.look import (
    Look,
    axis_title,
    layered_chart,
    marks,
    named_shapes,
    row_axis,
    with_legend,
)
from metrics.charts.text import width_of
from metrics.charts.tracking.parameter_axes import (
    LENGTH,
    OTHER,
    TEXT,
    ParameterAxis,
    apart,
    is_number,
    parameter_axis,
    text_means,
    text_of,
)
from metrics.questions.addresses import run_page
from metrics.services.boards.columns import Cell, ShownColumn
from metrics.services.comparisons.shown_pairs import names_of
from metrics.services.tracking.configurations import NOT_SET
from metrics.services.tracking.measured import MAX_INTERVALS, Measured, MeasuredRun
from metrics.tables import with_minus
from runs.errors import InvalidInput

# The number of colours that differ clearly; more different numbers have a scale of colours.
_COLOURS = 8
_MAX_ROWS = 30
# The height of a row of texts and of everything around the rows, and the size of letters, in pixels.
_ROW_HEIGHT = 26
_HEIGHT_AROUND = 130
_LETTER_SIZE = 11
# More intervals would hide each other in rows.
_MAX_INTERVALS_IN_ROWS = 60
# A table of more different numbers has a row for each of so many ranges instead.
_MAX_TABLE_VALUES = 50
_RANGES = 10
# The share of the axis that a place next to the numbers takes.
_SIDE_PLACE = 0.15
# How far the runs of one value are moved apart at most, as a share of the axis.
_DODGE = 0.012


@dataclass(frozen=True)
class Drawing:
    """The parts of the chart: the axis of the parameter, or its texts as rows, and the points.

    `groups` are the names of the colours, and `ramp` says that they are a scale instead.
    """

    measured: Measured
    x: ShownColumn
    by: ShownColumn | None
    axis: ParameterAxis | None
    rows: list[str]
    groups: list[str]
    ramp: bool
    points: list[dict[str, Any]]


def parameter_figure(
    measured: Measured, x: ShownColumn, by: ShownColumn | None, confidence: float
) -> Figure:
    """Draw the mean of each run at its value of `x`.

    Numbers have an axis, and texts are rows by their mean; runs without a value have a place of
    their own. Raise InvalidInput if no run has a value.
    """
    runs, measure = measured.runs, measured.measure
    if all(run.values[x.name] is None for run in runs):
        raise InvalidInput(
            f"no ranked run that is shown has {x.title}", code="nothing_to_draw", pointer="x"
        )

    drawing = _drawing(measured, x, by)
    unset = sum(run.values[x.name] is None for run in runs)
    max_intervals = MAX_INTERVALS if drawing.axis else _MAX_INTERVALS_IN_ROWS
    with_intervals = len(runs) <= max_intervals and any(run.ends for run in runs)

    count = f"{len(runs):,} of {measured.ranked:,}"
    caption = f"Mean {measure.name} of {count} ranked runs by {x.heading}"
    if with_intervals:
        caption += f", each with its {100 * confidence:g}% confidence interval over the topics"

    caption += "."
    if drawing.axis and drawing.axis.logarithmic:
        caption += f" The axis of {x.title} is logarithmic."

    if by:
        grey = ", grey where it is not a number" if drawing.ramp else ""
        caption += f" Coloured by {by.heading}{grey}."

    if unset:
        caption += f" {unset:,} run{'s have' if unset > 1 else ' has'} no {x.title}."

    legend = with_legend(drawing.groups) if drawing.groups else (lambda look: look.height)

    def height(look: Look) -> int:
        rows_need = _HEIGHT_AROUND + _ROW_HEIGHT * len(drawing.rows) if drawing.rows else 0
        return max(look.height, rows_need) + legend(look) - look.height + 20 * drawing.ramp

    columns, rows = _table(measured, x, by)
    figure = Figure(
        name="parameter",
        caption=caption,
        columns=columns,
        rows=rows,
        drawing=lambda look: _draw(drawing, with_intervals, look),
        height=height,
    )

    return figure.drawn_from(
        measured.qrels.collection,
        measured.qrels,
        measure=measure.name,
        runs=(len(runs), measured.ranked),
    )


class _Colours(NamedTuple):
    """The names of the colours, or that they are a scale, and the name for a value."""

    groups: list[str]
    ramp: bool
    group_of: Callable[[Cell], str]


def _drawing(measured: Measured, x: ShownColumn, by: ShownColumn | None) -> Drawing:
    runs, lower = measured.runs, measured.measure.definition.lower_is_better
    axis: ParameterAxis | None = None
    rows: list[str] = []

    if any(is_number(run.values[x.name]) for run in runs):
        axis = _axis_with_others(parameter_axis(x, runs, lower_is_better=lower))
    else:
        means = text_means(x, runs, _MAX_ROWS)
        rows = sorted(
            (name for name in means if name != NOT_SET), key=means.__getitem__, reverse=not lower
        )
        if NOT_SET in means:
            rows.append(NOT_SET)

    colours = _colours(by, runs)
    names = names_of([run.run for run in runs])
    points = []
    for run in runs:
        text = text_of(run.values[x.name])
        low, high = run.ends or (None, None)
        point = {"run": names[run.run], "value": text, "mean": run.mean, "low": low, "high": high}
        point["address"] = run_page(run.run)

        if by:
            value = run.values[by.name]
            point |= {"line": colours.group_of(value), "by": text_of(value)}
            if colours.ramp:
                point["ramp"] = float(value) if is_number(value) else None

        if axis:
            point["at"] = axis.place(run.values[x.name])
        else:
            point["at"] = rows.index(text if text in rows else OTHER)

        points.append(point)

    if axis:
        _dodge(points, colours.groups)
    else:
        _spread(points)

    return Drawing(
        measured=measured,
        x=x,
        by=by,
        axis=axis,
        rows=rows,
        groups=colours.groups,
        ramp=colours.ramp,
        points=points,
    )


def _axis_with_others(axis: ParameterAxis) -> ParameterAxis:
    """Return an axis of numbers with places for texts and missing values to the right of them."""
    others = [text for _, text in axis.ticks if text in (TEXT, NOT_SET)]
    room = LENGTH * (1 - _SIDE_PLACE * len(others))

    margin = (0.06 if others else 0.04) * room
    inner = axis.at

    def at(number: float) -> int:
        return round(margin + (room - 2 * margin) * (inner(number) if inner else 0) / LENGTH)

    places = {
        text: round(room + LENGTH * _SIDE_PLACE * (number + 0.5))
        for number, text in enumerate(sorted(others)[::-1])
    }
    numbers = [(place, text) for place, text in axis.ticks if text not in others]
    ticks = [
        (round(margin + (room - 2 * margin) * place / LENGTH), text) for place, text in numbers
    ]

    return ParameterAxis(
        column=axis.column,
        texts={},
        at=at,
        logarithmic=axis.logarithmic,
        ticks=[*ticks, *((place, text) for text, place in places.items())],
        rest=places.get(TEXT, 0),
        unset=places.get(NOT_SET, 0),
    )


def _colours(by: ShownColumn | None, runs: Sequence[MeasuredRun]) -> _Colours:
    """Return how runs are coloured by a parameter; without one they all have the same colour."""
    if by is None:
        return _Colours([], ramp=False, group_of=text_of)

    counts = Counter(text_of(run.values[by.name]) for run in runs)
    numbers = {
        text_of(value): float(value) for run in runs if is_number(value := run.values[by.name])
    }
    named = sorted(
        (text for text in counts if text != NOT_SET),
        key=lambda text: (numbers.get(text, math.inf), text),
    )
    unset = [NOT_SET] * (NOT_SET in counts)
    if len(named) + len(unset) <= _COLOURS:
        return _Colours(named + unset, ramp=False, group_of=text_of)
    if len(numbers) > len(named) / 2:
        return _Colours([], ramp=True, group_of=text_of)

    # The most frequent values have colours of their own, in the order of all values.
    frequent = sorted(named, key=lambda text: (-counts[text], text))[: _COLOURS - 1 - len(unset)]
    chosen = [text for text in named if text in frequent]

    def group_of(value: Cell) -> str:
        text = text_of(value)
        return text if text in {*chosen, NOT_SET} else OTHER

    return _Colours([*chosen, OTHER, *unset], ramp=False, group_of=group_of)


def _dodge(points: list[dict[str, Any]], groups: list[str]) -> None:
    """Put the runs of different colours at one value side by side, as far as there is room."""
    places = sorted({point["at"] for point in points})
    gap = min((b - a for a, b in pairwise(places)), default=LENGTH // 4)

    # Fewer than all the room to the next value is taken, so that the values stay apart.
    step = min(_DODGE * LENGTH, 0.6 * gap / max(1, len(groups)))
    for point in points:
        if len(groups) > 1:
            steps = groups.index(point["line"]) - (len(groups) - 1) / 2
            point["at"] = round(point["at"] + step * steps)


def _spread(points: list[dict[str, Any]]) -> None:
    """Spread the runs of a row over its height, best first, so that none hides another."""
    rows = Counter(point["at"] for point in points)
    placed: Counter[int] = Counter()
    for point in points:
        row = point["at"]
        share = placed[row] / (rows[row] - 1) if rows[row] > 1 else 0.5
        placed[row] += 1
        point["at"] = round(row + 0.56 * (share - 0.5), 3)


def _draw(drawing: Drawing, with_intervals: bool, look: Look) -> Any:
    measure, points = drawing.measured.measure.name, drawing.points
    values = [point["mean"] for point in points]

    if with_intervals:
        values += [
            end for point in points for end in (point["low"], point["high"]) if end is not None
        ]

    margin = 0.05 * (max(values) - min(values)) or 0.01
    domain = [min(values) - margin, max(values) + margin]
    scale = alt.Scale(domain=domain, nice=False, zero=False)
    room = look.plot
    parameter = _parameter_axis(drawing, look)
    mean = axis_title(f"mean {measure}", room[0 if drawing.rows else 1])

    if drawing.rows:
        x, y = alt.X("mean:Q", title=mean, scale=scale, axis=alt.Axis(tickCount=5)), parameter
        interval = {"x": alt.X("low:Q", title=mean, scale=scale), "x2": "high:Q", "y": y}
    else:
        x, y = parameter, alt.Y("mean:Q", title=mean, scale=scale, axis=alt.Axis(tickCount=5))
        interval = {"x": x, "y": alt.Y("low:Q", title=mean, scale=scale), "y2": "high:Q"}

    layers = []
    for own, channels in _colour_layers(drawing, look):
        if with_intervals:
            layers.append(_intervals(own, {**interval, **channels}, drawing))
        dots = marks(own).mark_point(filled=True, size=60 if len(points) <= 60 else 45)
        layers.append(dots.encode(x=x, y=y, tooltip=_tooltip(drawing), **channels, **look.link))

    if drawing.axis and len(points) <= 30:
        span = domain[1] - domain[0]
        places = [(point["at"] / LENGTH, (domain[1] - point["mean"]) / span) for point in points]
        layers += name_layers(points, places, look, x=x, y=y, first=range(min(3, len(points))))

    count, ranked = len(points), drawing.measured.ranked
    subtitle = (
        f"{count:,} ranked runs" if count == ranked else f"{count:,} of {ranked:,} ranked runs"
    )
    subtitle += f", coloured by {drawing.by.heading}" if drawing.by else ""

    return layered_chart(layers, look, f"{measure} by {drawing.x.title}", subtitle)


def _parameter_axis(drawing: Drawing, look: Look) -> Any:
    """Return the axis of the parameter: across with ticks, or down with a row for each text."""
    if not drawing.axis:
        rows = row_axis(drawing.rows, _LETTER_SIZE, 0.36 * look.room)
        scale = alt.Scale(domain=[-0.6, len(drawing.rows) - 0.4], reverse=True, nice=False)
        return alt.Y(
            "at:Q",
            title=None,
            scale=scale,
            axis=alt.Axis(values=list(range(len(drawing.rows))), **rows),
        )

    width = look.plot[0]

    def gap(a: str, b: str) -> float:
        return ((width_of(a, 12) + width_of(b, 12)) / 2 + 10) / width * LENGTH

    # The places next to the numbers keep their names.
    ticks = apart(reversed(drawing.axis.ticks), gap)
    texts = json.dumps({str(place): text for place, text in ticks})
    kind = ", logarithmic" if drawing.axis.logarithmic else ""
    axis = alt.Axis(
        values=[place for place, _ in ticks],
        labelExpr=f"{texts}[datum.value]",
        labelAngle=0,
        labelOverlap=False,
        labelFlush=False,
        labelLimit=0,
        grid=True,
    )

    scale = alt.Scale(domain=[0, LENGTH], nice=False)

    return alt.X("at:Q", title=axis_title(drawing.x.heading + kind, width), scale=scale, axis=axis)


def _intervals(points: list[dict[str, Any]], channels: dict[str, Any], drawing: Drawing) -> Any:
    """Return the intervals of the runs that have one."""
    rules = marks(point for point in points if point["low"] is not None).mark_rule(strokeWidth=1.5)
    faint = alt.OpacityValue(0.5 if len(drawing.points) <= 30 else 0.3)
    colours = {
        name: channel for name, channel in channels.items() if name not in ("shape", "opacity")
    }
    return rules.encode(**colours, opacity=faint, tooltip=_tooltip(drawing))


def _tooltip(drawing: Drawing) -> list[Any]:
    """Return the tooltip of a run."""
    tooltip = [alt.Tooltip("run:N"), alt.Tooltip("value:N", title=drawing.x.heading)]
    tooltip += [alt.Tooltip("by:N", title=drawing.by.heading)] if drawing.by else []
    return [*tooltip, alt.Tooltip("mean:Q", format=".4f", title=drawing.measured.measure.name)]


def _colour_layers(
    drawing: Drawing, look: Look
) -> list[tuple[list[dict[str, Any]], dict[str, Any]]]:
    """Return layers of points with their channels of colour, shape and opacity.

    Points without a number are apart from those on a scale of colours.
    """
    points, palette = drawing.points, look.palette
    share = 0.4
    if len(points) <= 300:
        share = 0.9 if len(points) <= 60 else 0.6

    opacity = {"opacity": alt.OpacityValue(share)}

    if drawing.ramp and drawing.by:
        legend = alt.Legend(
            title=axis_title(drawing.by.heading, 0.6 * look.room), orient="top", gradientLength=160
        )
        colour = alt.Color("ramp:Q", scale=alt.Scale(scheme="viridis"), legend=legend)
        numbers = [point for point in points if point["ramp"] is not None]
        others = [point for point in points if point["ramp"] is None]
        layers = [(numbers, {"color": colour, **opacity})]
        if others:
            layers.append((others, {"color": alt.ColorValue(palette.faint), **opacity}))

        return layers

    if not drawing.groups:
        return [(points, {"color": alt.ColorValue(palette.run), **opacity})]

    plain = [name for name in drawing.groups if name not in (OTHER, NOT_SET)]
    own = dict(zip(plain, palette.systems, strict=False))
    colours = [own.get(name, palette.faint) for name in drawing.groups]
    colour, shape = named_shapes(drawing.groups, colours, look)

    return [(points, {"color": colour, "shape": shape, **opacity})]


def _table(
    measured: Measured, x: ShownColumn, by: ShownColumn | None
) -> tuple[list[str], list[list[str]]]:
    """Return the columns and a row for each value or range: the mean, the lowest, the highest."""
    columns = [
        x.heading,
        *([by.heading] if by else []),
        "Runs",
        f"Mean {measured.measure.name}",
        "Lowest",
        "Highest",
    ]

    keyed = [(_key(x, run), _key(by, run) if by else (), run.mean) for run in measured.runs]
    names = _ranges(measured, x, keyed)

    rows = []
    ordered = sorted(keyed, key=lambda key: (names[key[0]][0], key[1]))
    for (place, other), group in groupby(ordered, key=lambda key: (names[key[0]], key[1])):
        means = [mean for _, _, mean in group]
        numbers = (math.fsum(means) / len(means), min(means), max(means))
        named = [place[1], *([other[-1]] if other else [])]
        rows.append(
            [*named, f"{len(means):,}", *(with_minus(f"{number:.4f}") for number in numbers)]
        )

    return columns, rows


_Key = tuple[Any, ...]


def _key(column: ShownColumn, run: MeasuredRun) -> _Key:
    """Return the sort key of a value, with its text last: numbers, texts, nothing."""
    value = run.values[column.name]
    if is_number(value):
        return 0, float(value), text_of(value)
    return (1, text_of(value)) if value is not None else (2, NOT_SET)


def _ranges(
    measured: Measured, x: ShownColumn, keyed: list[tuple[_Key, _Key, float]]
) -> dict[_Key, tuple[int, str]]:
    """Return place and name of the row of each value; many different numbers have ten ranges."""
    keys = sorted({key for key, _, _ in keyed})
    numbers = [key for key in keys if key[0] == 0]
    if len(numbers) <= _MAX_TABLE_VALUES:
        return {key: (place, str(key[-1])) for place, key in enumerate(keys)}

    rows: dict[_Key, tuple[int, str]] = {}
    for number, part in enumerate(_parts(numbers, _RANGES)):
        name = f"{part[0][-1]} to {part[-1][-1]}" if len(part) > 1 else str(part[0][-1])
        rows |= dict.fromkeys(part, (number, name))

    others = [key for key in keys if key[0] != 0]
    return rows | {key: (_RANGES + place, str(key[-1])) for place, key in enumerate(others)}


def _parts(keys: list[_Key], number: int) -> Iterator[list[_Key]]:
    for part in range(number):
        keys_of_part = keys[len(keys) * part // number : len(keys) * (part + 1) // number]
        if keys_of_part:
            yield keys_of_part
