"""Effectiveness against cost: a point for each run by its status, and the step line of the frontier."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import altair as alt
import numpy as np

from metrics.charts.boards.scatter import MOST_INTERVALS
from metrics.charts.figure import Figure
from metrics.charts.labels import names_beside
from metrics.charts.look import Look, axis_title, dressed, marks
from metrics.engine.analysis.frontier import DOMINATED, ON_FRONTIER, PERHAPS
from metrics.engine.errors import StatisticsError
from metrics.engine.measures.definition import Aggregate
from metrics.services.boards.columns import shown_value
from metrics.services.comparisons.shown_pairs import names_of
from metrics.services.tracking.frontier import CONFIDENCE, Frontier, Priced
from metrics.tables import probability, with_minus
from runs.models import Run

Ends = tuple[float, float]
STATUS_NAMES = {
    ON_FRONTIER: "on the frontier",
    PERHAPS: "perhaps dominated",
    DOMINATED: "surely dominated",
}
# Costs whose largest is so many times the smallest are drawn on a logarithmic axis.
_WIDE = 10
# Of an axis, what is free at each end.
_ROOM = 0.06
# The distance of points that stand for a line, as a share of the plot.
_CLOSE = 0.02
_SHAPES = ["circle", "triangle-up", "cross"]


def frontier_figure(found: Frontier) -> Figure:
    """Draw all runs with the cost; StatisticsError for none."""
    if not found.runs:
        message = f"no run has the cost {found.key.name}" if found.key.name else "no run has a cost"
        raise StatisticsError(
            f"{message}, so there is nothing to draw", code="nothing_to_draw", pointer="x"
        )
    measure, cost = found.query.measure.name, cost_name(found)
    names = names_of([one.run for one in found.runs])
    counts = {status: sum(one.status == status for one in found.runs) for status in STATUS_NAMES}
    said = ", ".join(f"{count} {STATUS_NAMES[status]}" for status, count in counts.items() if count)
    apart = (
        f" Runs on {len(found.hardware)} kinds of hardware are compared apart."
        if len(found.hardware) > 1
        else ""
    )
    spread = (
        f" Vertical bars: {100 * CONFIDENCE:g}% confidence intervals of the means."
        if _spread(found)
        else ""
    )
    caption = (
        f"Mean {measure} against {cost}: {len(found.runs):,} of {found.total:,} runs on {found.topics} topics; "
        f"{said}. The line joins the runs that no other one beats by the means at no higher "
        f"cost.{spread}{apart}"
    )
    texts = [
        [names[one.run], cost_text(one), with_minus(f"{one.mean:.4f}"), STATUS_NAMES[one.status],
         names[one.by] if one.by else "", "" if one.p_adjusted is None else probability(one.p_adjusted)]
        for one in found.runs
    ]  # fmt: skip
    columns = ["Run", cost, measure, "Status", "Beaten by", "Corrected p"]
    figure = Figure("frontier", caption, columns, texts, lambda look: _draw(found, names, look))
    return figure.drawn_from(
        found.qrels.collection,
        found.qrels.version,
        measure=measure,
        shown=(len(found.runs), found.total),
    )


def _spread(found: Frontier) -> list[Priced]:
    """Return the runs whose means are drawn with intervals; none where there are many."""
    if (
        len(found.runs) > MOST_INTERVALS
        or found.query.measure.definition.aggregate is not Aggregate.MEAN
    ):
        return []
    return [one for one in found.runs if math.isfinite(one.ends[0])]


def cost_name(found: Frontier) -> str:
    """Return the name of the cost with its unit."""
    return f"{found.key.name} ({found.key.unit})" if found.key.unit else found.key.name


def cost_text(one: Priced) -> str:
    """Return a cost with its interval, as far as it is given."""
    text, *ends = (
        shown_value(float(f"{end:.6g}")) for end in (one.cost, one.low, one.high) if end is not None
    )
    return f"{text} ({' to '.join(ends)})" if len(ends) == 2 else text


def _draw(found: Frontier, names: dict[Run, str], look: Look) -> Any:
    palette, measure, cost = look.palette, found.query.measure.name, cost_name(found)
    costs, means = [one.cost for one in found.runs], [one.mean for one in found.runs]
    wide = min(costs) > 0 and max(costs) >= _WIDE * min(costs)
    given = [
        end
        for one in found.runs
        for end in (one.low, one.high)
        if end is not None and (end > 0 or not wide)
    ]
    ends = [end for one in _spread(found) for end in one.ends]
    across, up = _axis([*costs, *given], wide), _axis([*means, *ends], False)
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
        {"run": names[one.run], "cost": one.cost, "mean": one.mean, "status": STATUS_NAMES[one.status],
         "faint": one.status == DOMINATED}
        for one in found.runs
    ]  # fmt: skip
    present = [
        text for text in STATUS_NAMES.values() if any(point["status"] == text for point in points)
    ]
    legend = alt.Legend(
        title=None, orient="top", direction="horizontal", columns=1 if look.narrow else 3, symbolSize=80,
        columnPadding=18,
    )  # fmt: skip
    colours = dict(
        zip(STATUS_NAMES.values(), (palette.run, palette.ideal, palette.faint), strict=True)
    )
    shapes = dict(zip(STATUS_NAMES.values(), _SHAPES, strict=True))
    by_status = {
        "color": alt.Color(
            "status:N", scale=alt.Scale(domain=present, range=[colours[one] for one in present])
        ),
        "shape": alt.Shape(
            "status:N", scale=alt.Scale(domain=present, range=[shapes[one] for one in present])
        ),
    }
    told = [
        "run:N",
        alt.Tooltip("cost:Q", title=cost),
        alt.Tooltip("mean:Q", title=measure, format=".4f"),
        "status:N",
    ]
    dots = marks(points).mark_point(filled=True, size=80).encode(
        x=x, y=y, opacity=alt.condition("datum.faint", alt.value(0.45), alt.value(1)), tooltip=told,
        **{name: channel.legend(legend) for name, channel in by_status.items()},
    )  # fmt: skip
    places = list(
        zip(
            _shares(costs, across, wide),
            (1 - share for share in _shares(means, up, False)),
            strict=True,
        )
    )
    lines = [[places[found.runs.index(one)] for one in line] for line in found.steps]
    on = [place for place, one in enumerate(found.runs) if one.status == ON_FRONTIER]
    # A name shall not lie on the line either, which is given as points that have no names.
    along = [place for line in lines for place in _along(line)]
    named = names_beside(
        [*points, *({"run": ""} for _ in along)], [*places, *along], look, x=x, y=y,
        first=sorted(on, key=lambda place: -means[place]),
    )  # fmt: skip
    return dressed(
        [*_lines(found, across, x, y, look), dots, *named],
        look,
        f"{measure} against {cost}",
        f"{len(points):,} of {found.total:,} runs",
    )


def _lines(found: Frontier, across: Ends, x: Any, y: Any, look: Look) -> list[Any]:
    """Return the step line of each kind of hardware, and the intervals of costs and means that have one."""
    steps = [
        {"frontier": place, "cost": one.cost, "mean": one.mean}
        for place, line in enumerate(found.steps)
        for one in line
    ]
    spans = [
        {"cost": max(one.low, across[0]), "high": one.high, "mean": one.mean}
        for one in found.runs
        if one.low is not None and one.high is not None
    ]
    line = marks(steps).mark_line(
        interpolate="step-after", strokeWidth=2, color=look.palette.run, opacity=0.6
    )
    span = marks(spans).mark_rule(strokeWidth=2, opacity=0.5, color=look.palette.faint)
    drawn = [span.encode(x=x, x2="high:Q", y=y)] if spans else []
    ends = [{"cost": one.cost, "mean": one.ends[0], "high": one.ends[1]} for one in _spread(found)]
    if ends:
        upwards = marks(ends).mark_rule(strokeWidth=1, opacity=0.5, color=look.palette.faint)
        drawn.append(upwards.encode(x=x, y=y, y2="high:Q"))
    return [line.encode(x=x, y=y, detail="frontier:N"), *drawn]


def _along(places: list[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Yield points of a step line, close to each other: across to the next place, then up to it."""
    for (left, low), (right, high) in pairwise(places):
        yield from (
            (across, low) for across in np.arange(left + 2 * _CLOSE, right, _CLOSE).tolist()
        )
        yield from (
            (right, up)
            for up in np.arange(min(low, high) + _CLOSE, max(low, high), _CLOSE).tolist()
        )


def _axis(values: list[float], logarithmic: bool) -> Ends:
    """Return the ends of an axis with some room beside the values."""
    low, high = min(values), max(values)
    if logarithmic:
        room = (high / low) ** _ROOM
        return low / room, high * room
    room = _ROOM * (high - low) or abs(high) * _ROOM or 1.0
    return low - room, high + room


def _shares(values: list[float], ends: Ends, logarithmic: bool) -> list[float]:
    """Return where each value lies on the axis, from 0 to 1."""
    change = math.log if logarithmic else float
    low, high = map(change, ends)
    return [(change(value) - low) / (high - low) for value in values]
