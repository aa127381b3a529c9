"""A parameter against a measure: a point for each run, coloured by the value of another parameter."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

import altair as alt

from metrics.charts.figure import Figure
from metrics.charts.labels import names_beside
from metrics.charts.look import (
    Look,
    axis_title,
    dressed,
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
from metrics.services.boards.columns import Cell, ShownColumn
from metrics.services.comparisons.shown_pairs import names_of
from metrics.services.tracking.configurations import NOT_SET
from metrics.services.tracking.measured import MAX_INTERVALS, Measured, MeasuredRun
from metrics.tables import with_minus
from runs.errors import InvalidInput

# Colours that are told apart; more different numbers have a scale of colours.
_COLOURS = 8
# Rows of texts, and what one of them and everything around takes, in pixels.
_MOST_ROWS, _ROW, _AROUND, _LETTERS = 30, 26, 130, 11
# More intervals than this hide each other in rows; more different values than this are a table of
# ranges.
_OF_ROWS, _VALUES, _RANGES = 60, 50, 10
# The share of the axis that a place beside the numbers takes, and the most by which runs of one
# value are moved.
_BESIDE, _DODGE = 0.15, 0.012


@dataclass(frozen=True)
class Drawing:
    """What is drawn: the axis of the parameter, or its texts as rows, and for each run its point."""

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
    """Draw the mean of each run at its value of `x`, numbers on an axis and texts as rows by their mean; runs without a
    value have a place of their own. Raise InvalidInput where no run has a value."""
    runs, measure = measured.runs, measured.measure
    if all(run.values[x.name] is None for run in runs):
        raise InvalidInput(
            f"no ranked run that is shown has {x.title}", code="nothing_to_draw", pointer="x"
        )
    drawing = _drawing(measured, x, by)
    unset = sum(run.values[x.name] is None for run in runs)
    with_intervals = len(runs) <= (MAX_INTERVALS if drawing.axis else _OF_ROWS) and any(
        run.ends for run in runs
    )
    caption = (
        f"Mean {measure.name} of {len(runs):,} of {measured.ranked:,} ranked runs by {x.heading}"
    )
    caption += (
        f", each with its {100 * confidence:g}% confidence interval over the topics."
        if with_intervals
        else "."
    )
    if drawing.axis and drawing.axis.logarithmic:
        caption += f" The axis of {x.title} is logarithmic."
    if by:
        caption += (
            f" Coloured by {by.heading}{', grey where it is not a number' if drawing.ramp else ''}."
        )
    if unset:
        caption += f" {unset:,} run{'s have' if unset > 1 else ' has'} no {x.title}."
    columns, rows = _table(measured, x, by)
    legend = with_legend(drawing.groups) if drawing.groups else (lambda look: look.height)

    def height(look: Look) -> int:
        rows_need = _AROUND + _ROW * len(drawing.rows) if drawing.rows else 0
        return max(look.height, rows_need) + legend(look) - look.height + 20 * drawing.ramp

    return Figure(
        "parameter", caption, columns, rows, lambda look: _draw(drawing, with_intervals, look), height
    ).drawn_from(
        measured.qrels.collection, measured.qrels.version, measure=measure.name, shown=(len(runs), measured.ranked)
    )  # fmt: skip


def _drawing(measured: Measured, x: ShownColumn, by: ShownColumn | None) -> Drawing:
    runs, lower = measured.runs, measured.measure.definition.lower_is_better
    axis, rows = None, list[str]()
    if any(is_number(run.values[x.name]) for run in runs):
        axis = _axis_beside(parameter_axis(x, runs, lower_is_better=lower))
    else:
        means = text_means(x, runs, _MOST_ROWS)
        rows = sorted(
            (name for name in means if name != NOT_SET), key=means.__getitem__, reverse=not lower
        )
        rows += [NOT_SET] * (NOT_SET in means)
    groups, ramp, group_of = _groups(by, runs)
    names = names_of([run.run for run in runs])
    points = []
    for run in runs:
        value, other = run.values[x.name], run.values[by.name] if by else None
        low, high = run.ends or (None, None)
        point = {
            "run": names[run.run],
            "value": text_of(value),
            "mean": run.mean,
            "low": low,
            "high": high,
        }
        if by:
            point |= {"line": group_of(other), "by": text_of(other)}
            point |= {"ramp": float(other) if is_number(other) else None} if ramp else {}
        text = text_of(value)
        point["at"] = axis.place(value) if axis else rows.index(text if text in rows else OTHER)
        points.append(point)
    if axis:
        _dodge(points, groups)
    else:
        _spread(points)
    return Drawing(measured, x, by, axis, rows, groups, ramp, points)


def _axis_beside(axis: ParameterAxis) -> ParameterAxis:
    """Return an axis of numbers with the places of texts and of missing values to the right of them."""
    beside = [text for _, text in axis.ticks if text in (TEXT, NOT_SET)]
    room = LENGTH * (1 - _BESIDE * len(beside))
    margin = (0.06 if beside else 0.04) * room
    inner = axis.at

    def at(number: float) -> int:
        return round(margin + (room - 2 * margin) * (inner(number) if inner else 0) / LENGTH)

    places = {
        text: round(room + LENGTH * _BESIDE * (number + 0.5))
        for number, text in enumerate(sorted(beside)[::-1])
    }
    numbers = [(place, text) for place, text in axis.ticks if text not in beside]
    ticks = [
        (round(margin + (room - 2 * margin) * place / LENGTH), text) for place, text in numbers
    ]
    return ParameterAxis(
        axis.column, {}, at, axis.logarithmic, [*ticks, *((place, text) for text, place in places.items())],
        places.get(TEXT, 0), places.get(NOT_SET, 0),
    )  # fmt: skip


def _groups(
    by: ShownColumn | None, runs: Sequence[MeasuredRun]
) -> tuple[list[str], bool, Callable[[Cell], str]]:
    """Return the names of the colours, whether they are a scale of numbers instead, and the name of a value."""
    if by is None:
        return [], False, text_of
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
        return named + unset, False, text_of
    if len(numbers) > len(named) / 2:
        return [], True, text_of
    kept = {text for text, _ in counts.most_common() if text != NOT_SET}
    frequent = sorted(kept, key=lambda text: (-counts[text], text))[: _COLOURS - 1 - len(unset)]
    shown = [text for text in named if text in frequent]
    return [*shown, OTHER, *unset], False, lambda value: _kept(text_of(value), {*shown, NOT_SET})


def _kept(text: str, names: set[str]) -> str:
    return text if text in names else OTHER


def _dodge(points: list[dict[str, Any]], groups: list[str]) -> None:
    """Put the runs of different colours at one value side by side, as far as there is room between the values."""
    places = sorted({point["at"] for point in points})
    gap = min((b - a for a, b in pairwise(places)), default=LENGTH // 4)
    step = min(_DODGE * LENGTH, 0.6 * gap / max(1, len(groups)))
    for point in points:
        if len(groups) > 1:
            point["at"] = round(
                point["at"] + step * (groups.index(point["line"]) - (len(groups) - 1) / 2)
            )


def _spread(points: list[dict[str, Any]]) -> None:
    """Spread the runs of a row over its height, best first, so that none hides another."""
    rows = Counter(point["at"] for point in points)
    seen: Counter[int] = Counter()
    for point in points:
        row = point["at"]
        share = seen[row] / (rows[row] - 1) if rows[row] > 1 else 0.5
        seen[row] += 1
        point["at"] = round(row + 0.56 * (share - 0.5), 3)


def _draw(drawing: Drawing, with_intervals: bool, look: Look) -> Any:
    measure, points = drawing.measured.measure.name, drawing.points
    values = [
        end
        for point in points
        for end in (point["low"], point["high"], point["mean"])
        if end is not None
    ]
    if not with_intervals:
        values = [point["mean"] for point in points]
    margin = 0.05 * (max(values) - min(values)) or 0.01
    domain = [min(values) - margin, max(values) + margin]
    scale = alt.Scale(domain=domain, nice=False, zero=False)
    room = look.plot
    parameter, mean = (
        _parameter_axis(drawing, look),
        axis_title(f"mean {measure}", room[0 if drawing.rows else 1]),
    )
    if drawing.rows:
        x, y = alt.X("mean:Q", title=mean, scale=scale, axis=alt.Axis(tickCount=5)), parameter
        interval = {"x": alt.X("low:Q", title=mean, scale=scale), "x2": "high:Q", "y": y}
    else:
        x, y = parameter, alt.Y("mean:Q", title=mean, scale=scale, axis=alt.Axis(tickCount=5))
        interval = {"x": x, "y": alt.Y("low:Q", title=mean, scale=scale), "y2": "high:Q"}
    layers = []
    for own, channels in _coloured(drawing, look):
        if with_intervals:
            layers.append(_intervals(own, {**interval, **channels}, drawing))
        drawn = marks(own).mark_point(filled=True, size=60 if len(points) <= 60 else 45)
        layers.append(drawn.encode(x=x, y=y, tooltip=_told(drawing), **channels))
    if drawing.axis and len(points) <= 30:
        span = domain[1] - domain[0]
        places = [(point["at"] / LENGTH, (domain[1] - point["mean"]) / span) for point in points]
        layers += names_beside(points, places, look, x=x, y=y, first=range(min(3, len(points))))
    shown, ranked = len(points), drawing.measured.ranked
    subtitle = (
        f"{shown:,} ranked runs" if shown == ranked else f"{shown:,} of {ranked:,} ranked runs"
    )
    subtitle += f", coloured by {drawing.by.heading}" if drawing.by else ""
    return dressed(layers, look, f"{measure} by {drawing.x.title}", subtitle)


def _parameter_axis(drawing: Drawing, look: Look) -> Any:
    """Return the channel of the parameter: across with its ticks, or down with a row for each text."""
    if not drawing.axis:
        rows = row_axis(drawing.rows, _LETTERS, 0.36 * look.room)
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

    # The places beside the numbers keep their names.
    ticks = apart(reversed(drawing.axis.ticks), gap)
    texts = json.dumps({str(place): text for place, text in ticks})
    kind = ", logarithmic" if drawing.axis.logarithmic else ""
    axis = alt.Axis(
        values=[place for place, _ in ticks], labelExpr=f"{texts}[datum.value]", labelAngle=0, labelOverlap=False,
        labelFlush=False, labelLimit=0, grid=True,
    )  # fmt: skip
    scale = alt.Scale(domain=[0, LENGTH], nice=False)
    return alt.X("at:Q", title=axis_title(drawing.x.heading + kind, width), scale=scale, axis=axis)


def _intervals(points: list[dict[str, Any]], channels: dict[str, Any], drawing: Drawing) -> Any:
    """Return a line for the interval of each run that has one."""
    rules = marks(point for point in points if point["low"] is not None).mark_rule(strokeWidth=1.5)
    faint = alt.OpacityValue(0.5 if len(drawing.points) <= 30 else 0.3)
    colours = {
        name: channel for name, channel in channels.items() if name not in ("shape", "opacity")
    }
    return rules.encode(**colours, opacity=faint, tooltip=_told(drawing))


def _told(drawing: Drawing) -> list[Any]:
    """Return what a pointer is told of a run."""
    told = [alt.Tooltip("run:N"), alt.Tooltip("value:N", title=drawing.x.heading)]
    told += [alt.Tooltip("by:N", title=drawing.by.heading)] if drawing.by else []
    return [*told, alt.Tooltip("mean:Q", format=".4f", title=drawing.measured.measure.name)]


def _coloured(drawing: Drawing, look: Look) -> list[tuple[list[dict[str, Any]], dict[str, Any]]]:
    """Return the points with their channels of colour, shape and opacity: those without a number of a scale of colours
    by themselves."""
    points, palette = drawing.points, look.palette
    opacity = {
        "opacity": alt.OpacityValue(
            0.9 if len(points) <= 60 else 0.6 if len(points) <= 300 else 0.4
        )
    }
    if drawing.ramp and drawing.by:
        legend = alt.Legend(
            title=axis_title(drawing.by.heading, 0.6 * look.room), orient="top", gradientLength=160
        )
        colour = alt.Color("ramp:Q", scale=alt.Scale(scheme="viridis"), legend=legend)
        without = [point for point in points if point["ramp"] is None]
        found = [
            ([point for point in points if point["ramp"] is not None], {"color": colour, **opacity})
        ]
        return (
            [*found, (without, {"color": alt.ColorValue(palette.faint), **opacity})]
            if without
            else found
        )
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
    """Return the runs of each value, or range of values, with the mean over them, the lowest and the highest."""
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
    ordered = sorted(keyed, key=lambda one: (names[one[0]][0], one[1]))
    for (place, other), found in groupby(ordered, key=lambda one: (names[one[0]], one[1])):
        means = [mean for _, _, mean in found]
        numbers = (math.fsum(means) / len(means), min(means), max(means))
        named = [place[1], *([other[-1]] if other else [])]
        rows.append(
            [*named, f"{len(means):,}", *(with_minus(f"{number:.4f}") for number in numbers)]
        )
    return columns, rows


_Key = tuple[Any, ...]


def _key(column: ShownColumn, run: MeasuredRun) -> _Key:
    """Return what a value is sorted by, with its text last: numbers, texts, nothing."""
    value = run.values[column.name]
    if is_number(value):
        return 0, float(value), text_of(value)
    return (1, text_of(value)) if value is not None else (2, NOT_SET)


def _ranges(
    measured: Measured, x: ShownColumn, keyed: list[tuple[_Key, _Key, float]]
) -> dict[_Key, tuple[int, str]]:
    """Return place and name of the row of each value: ten ranges for many different numbers."""
    keys = sorted({key for key, _, _ in keyed})
    numbers = [key for key in keys if key[0] == 0]
    if len(numbers) <= _VALUES:
        return {key: (place, str(key[-1])) for place, key in enumerate(keys)}
    found: dict[_Key, tuple[int, str]] = {}
    for number, part in enumerate(_parts(numbers, _RANGES)):
        name = f"{part[0][-1]} to {part[-1][-1]}" if len(part) > 1 else str(part[0][-1])
        found |= dict.fromkeys(part, (number, name))
    others = [key for key in keys if key[0] != 0]
    return found | {key: (_RANGES + place, str(key[-1])) for place, key in enumerate(others)}


def _parts(keys: list[_Key], number: int) -> Iterator[list[_Key]]:
    for part in range(number):
        found = keys[len(keys) * part // number : len(keys) * (part + 1) // number]
        if found:
            yield found
