"""Effectiveness against cost: a point for each run, and the step line of the frontier."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import altair as alt
import numpy as np

from metrics.charts.figure import Figure
from metrics.charts.labels import name_layers
from metrics.charts.look import MOST_INTERVALS, Look, axis_title, layered_chart, marks
from metrics.engine.analysis.frontier import DOMINATED, ON_FRONTIER, PERHAPS
from metrics.engine.errors import StatisticsError
from metrics.engine.measures.definition import Aggregate
from metrics.questions.addresses import run_page
from metrics.services.boards.columns import shown_value
from metrics.services.comparisons.shown_pairs import names_of
from metrics.services.tracking.frontier import CONFIDENCE, Frontier, Priced
from metrics.tables import probability, with_minus
from runs.models import Run

Ends = tuple[float, float]
STATUS_NAMES = {
    ON_FRONTIER: "on the frontier",
    PERHAPS: "dominated (means only)",
    DOMINATED: "dominated (significant)",
}
# Costs whose largest is so many times the smallest are drawn on a logarithmic axis.
_WIDE = 10
# The share of an axis that is free at each end.
_ROOM = 0.06
# The distance of the points that represent a line, as a share of the plot.
_CLOSE = 0.02
_SHAPES = ["circle", "triangle-up", "cross"]


def frontier_figure(frontier: Frontier) -> Figure:
    """Draw all runs with the cost; raise StatisticsError if there are none."""
    if not frontier.runs:
        cost = frontier.key.name
        message = f"no run has the cost {cost}" if cost else "no run has a cost"
        raise StatisticsError(
            f"{message}, so there is nothing to draw", code="nothing_to_draw", pointer="x"
        )

    measure, cost = frontier.query.measure.name, cost_name(frontier)
    names = names_of([priced.run for priced in frontier.runs])
    counts = {
        status: sum(priced.status == status for priced in frontier.runs) for status in STATUS_NAMES
    }
    counts_words = ", ".join(
        f"{count} {STATUS_NAMES[status]}" for status, count in counts.items() if count
    )
    hardware_words = interval_words = ""
    if len(frontier.hardware) > 1:
        kinds = len(frontier.hardware)
        hardware_words = f" Runs on {kinds} kinds of hardware are compared apart."

    if _with_interval(frontier):
        level = f"{100 * CONFIDENCE:g}%"
        interval_words = f" Vertical bars: {level} confidence intervals of the means."

    caption = (
        f"Mean {measure} against {cost}: {len(frontier.runs):,} of {frontier.total:,} runs "
        f"on {frontier.topics} topics; {counts_words}. "
        "The line joins the runs that no run of the same or lower cost beats by the "
        f"means.{interval_words}{hardware_words}"
    )

    texts = []
    for priced in frontier.runs:
        p_value = "" if priced.p_adjusted is None else probability(priced.p_adjusted)
        texts.append(
            [
                names[priced.run],
                cost_text(priced),
                with_minus(f"{priced.mean:.4f}"),
                STATUS_NAMES[priced.status],
                names[priced.by] if priced.by else "",
                p_value,
            ]
        )

    columns = ["Run", cost, measure, "Status", "Beaten by", "Corrected p"]
    figure = Figure("frontier", caption, columns, texts, lambda look: _draw(frontier, names, look))

    return figure.drawn_from(
        frontier.qrels.collection,
        frontier.qrels,
        measure=measure,
        runs=(len(frontier.runs), frontier.total),
    )


def _with_interval(frontier: Frontier) -> list[Priced]:
    """Return the runs whose means have intervals in the chart; none if there are many."""
    if (
        len(frontier.runs) > MOST_INTERVALS
        or frontier.query.measure.definition.aggregate is not Aggregate.MEAN
    ):
        return []
    return [priced for priced in frontier.runs if math.isfinite(priced.ends[0])]


def cost_name(frontier: Frontier) -> str:
    """Return the name of the cost with its unit."""
    return f"{frontier.key.name} ({frontier.key.unit})" if frontier.key.unit else frontier.key.name


def cost_text(priced: Priced) -> str:
    """Return a cost, with its interval if it has one."""
    text, *ends = (
        shown_value(float(f"{end:.6g}"))
        for end in (priced.cost, priced.low, priced.high)
        if end is not None
    )
    return f"{text} ({' to '.join(ends)})" if len(ends) == 2 else text


def _draw(frontier: Frontier, names: dict[Run, str], look: Look) -> Any:
    palette, measure, cost = look.palette, frontier.query.measure.name, cost_name(frontier)
    costs, means = (
        [priced.cost for priced in frontier.runs],
        [priced.mean for priced in frontier.runs],
    )
    wide = min(costs) > 0 and max(costs) >= _WIDE * min(costs)
    ends_of_costs = [
        end
        for priced in frontier.runs
        for end in (priced.low, priced.high)
        if end is not None and (end > 0 or not wide)
    ]

    ends = [end for priced in _with_interval(frontier) for end in priced.ends]
    across, up = _axis([*costs, *ends_of_costs], wide), _axis([*means, *ends], False)
    kind: Any = "log" if wide else "linear"
    scale = alt.Scale(type=kind, domain=list(across), nice=False)
    x = alt.X(
        "cost:Q", title=axis_title(cost, 0.5 * look.room), scale=scale, axis=alt.Axis(tickCount=5)
    )
    title = axis_title(f"mean {measure}", 0.5 * look.height)
    y = alt.Y(
        "mean:Q",
        title=title,
        scale=alt.Scale(domain=list(up), nice=False),
        axis=alt.Axis(tickCount=6),
    )

    points = [
        {
            "run": names[priced.run],
            "cost": priced.cost,
            "mean": priced.mean,
            "status": STATUS_NAMES[priced.status],
            "faint": priced.status == DOMINATED,
            "address": run_page(priced.run),
        }
        for priced in frontier.runs
    ]

    present = [
        text for text in STATUS_NAMES.values() if any(point["status"] == text for point in points)
    ]
    legend = alt.Legend(
        title=None,
        orient="top",
        direction="horizontal",
        columns=1 if look.narrow else 3,
        symbolSize=80,
        columnPadding=18,
    )

    colours = dict(
        zip(STATUS_NAMES.values(), (palette.run, palette.ideal, palette.faint), strict=True)
    )
    shapes = dict(zip(STATUS_NAMES.values(), _SHAPES, strict=True))
    by_status = {
        "color": alt.Color(
            "status:N",
            scale=alt.Scale(domain=present, range=[colours[status] for status in present]),
            legend=legend,
        ),
        "shape": alt.Shape(
            "status:N",
            scale=alt.Scale(domain=present, range=[shapes[status] for status in present]),
            legend=legend,
        ),
    }

    tooltip = [
        "run:N",
        alt.Tooltip("cost:Q", title=cost),
        alt.Tooltip("mean:Q", title=measure, format=".4f"),
        "status:N",
    ]

    opacity = alt.condition("datum.faint", alt.value(0.45), alt.value(1))
    dots = marks(points).mark_point(filled=True, size=80)
    dots = dots.encode(x=x, y=y, opacity=opacity, tooltip=tooltip, **by_status, **look.link)

    down = [1 - share for share in _shares(means, up, False)]
    places = list(zip(_shares(costs, across, wide), down, strict=True))

    lines = [[places[frontier.runs.index(priced)] for priced in line] for line in frontier.steps]
    best = [place for place, priced in enumerate(frontier.runs) if priced.status == ON_FRONTIER]
    # Names keep clear of the line, too: it is represented by points without names.
    along = [place for line in lines for place in _along(line)]
    layers_of_names = name_layers(
        [*points, *({"run": ""} for _ in along)],
        [*places, *along],
        look,
        x=x,
        y=y,
        first=sorted(best, key=lambda place: -means[place]),
    )

    return layered_chart(
        [*_lines(frontier, across, x, y, look), dots, *layers_of_names],
        look,
        f"{measure} against {cost}",
        f"{len(points):,} of {frontier.total:,} runs",
    )


def _lines(frontier: Frontier, across: Ends, x: Any, y: Any, look: Look) -> list[Any]:
    """Return the step line of each kind of hardware, and the intervals of costs and means."""
    steps = [
        {"frontier": place, "cost": priced.cost, "mean": priced.mean}
        for place, line in enumerate(frontier.steps)
        for priced in line
    ]
    spans = [
        {"cost": max(priced.low, across[0]), "high": priced.high, "mean": priced.mean}
        for priced in frontier.runs
        if priced.low is not None and priced.high is not None
    ]
    line = marks(steps).mark_line(
        interpolate="step-after", strokeWidth=2, color=look.palette.run, opacity=0.6
    )
    span = marks(spans).mark_rule(strokeWidth=2, opacity=0.5, color=look.palette.faint)
    rules = [span.encode(x=x, x2="high:Q", y=y)] if spans else []
    ends = [
        {"cost": priced.cost, "mean": priced.ends[0], "high": priced.ends[1]}
        for priced in _with_interval(frontier)
    ]
    if ends:
        upwards = marks(ends).mark_rule(strokeWidth=1, opacity=0.5, color=look.palette.faint)
        rules.append(upwards.encode(x=x, y=y, y2="high:Q"))

    return [line.encode(x=x, y=y, detail="frontier:N"), *rules]


def _along(places: list[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Yield points of a step line: across to the next place, then up to it."""
    for (left, low), (right, high) in pairwise(places):
        yield from (
            (across, low) for across in np.arange(left + 2 * _CLOSE, right, _CLOSE).tolist()
        )
        yield from (
            (right, up)
            for up in np.arange(min(low, high) + _CLOSE, max(low, high), _CLOSE).tolist()
        )


def _axis(values: list[float], logarithmic: bool) -> Ends:
    """Return the ends of an axis with some room at the values."""
    low, high = min(values), max(values)
    if logarithmic:
        room = (high / low) ** _ROOM
        return low / room, high * room

    room = _ROOM * (high - low) or abs(high) * _ROOM or 1.0
    return low - room, high + room


def _shares(values: list[float], ends: Ends, logarithmic: bool) -> list[float]:
    """Return the place of each value on the axis, from 0 to 1."""
    change = math.log if logarithmic else float
    low, high = map(change, ends)
    return [(change(value) - low) / (high - low) for value in values]
