"""Two measures of the runs of a leaderboard against each other, a point for each run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt

from metrics.charts.figure import Figure
from metrics.charts.labels import names_beside
from metrics.charts.look import Look, axis_title, dressed, marks
from metrics.engine.measures.grammar import Measure
from metrics.services.boards.leaderboard import Leaderboard
from metrics.services.boards.mean_intervals import Ends, within_range
from metrics.services.comparisons.shown_pairs import names_of
from metrics.tables import figure
from runs.errors import InvalidInput

# More runs than these have no intervals, and are drawn faint.
MOST_INTERVALS, _MOST_SOLID = 30, 200
_MARGIN = 0.04


def scatter_figure(
    board: Leaderboard,
    across: Measure,
    upwards: Measure,
    intervals: Mapping[tuple[int, str], Ends],
    confidence: float,
    baseline: str | None = None,
) -> Figure:
    """Draw a point for each ranked run of the board with both means, and its intervals if there are any; the names of
    up to 12 runs that have room, the baseline first. Raise InvalidInput if there is no such run."""
    ranked = [row for row in board.rows if row.rank is not None]
    shown = [
        row
        for row in ranked
        if None not in (row.values[across.name][0], row.values[upwards.name][0])
    ]
    if not shown:
        message = f"no ranked run that is shown has a mean of both {across.name} and {upwards.name}"
        raise InvalidInput(message, code="nothing_to_draw", pointer="x")
    names = names_of([row.run for row in shown])
    ends = {"x": within_range(intervals, across), "y": within_range(intervals, upwards)}
    points: list[dict[str, Any]] = []
    for row in shown:
        point: dict[str, Any] = {
            "run": names[row.run],
            "rank": row.rank,
            "baseline": str(row.run.pk) == baseline,
        }
        point |= {"x": row.values[across.name][0], "y": row.values[upwards.name][0]}
        for axis, found in ends.items():
            if row.evaluation.pk in found:
                point[f"{axis}low"], point[f"{axis}high"] = found[row.evaluation.pk]
        points.append(point)
    with_intervals = any("xlow" in point or "ylow" in point for point in points)
    interval = (
        f", each with its {100 * confidence:g}% confidence intervals" if with_intervals else ""
    )
    held = next((f"; baseline: {point['run']}" for point in points if point["baseline"]), "")
    count = f"{len(points):,} of {board.ranked:,} ranked runs{interval}{held}"
    table = [
        [point["run"], figure(across, point["x"]), figure(upwards, point["y"])] for point in points
    ]
    return Figure(
        "scatter", f"Mean {upwards.name} over mean {across.name} of {count}.", ["Run", across.name, upwards.name],
        table, lambda look: _draw(points, across.name, upwards.name, count, look),
    ).drawn_from(board.qrels.collection, board.qrels.version, measure=upwards.name)  # fmt: skip


def _draw(
    points: list[dict[str, Any]], across: str, upwards: str, subtitle: str, look: Look
) -> Any:
    palette, (width, height) = look.palette, look.plot
    (left, right), (bottom, top) = _ends(points, "x"), _ends(points, "y")
    ticks = 4 if look.narrow else 8

    def x(field: str = "x") -> Any:
        scale = alt.Scale(domain=[left, right], nice=False, zero=False)
        title = axis_title(f"mean {across}", 0.8 * width)
        return alt.X(f"{field}:Q", title=title, scale=scale, axis=alt.Axis(tickCount=ticks))

    def y(field: str = "y") -> Any:
        scale = alt.Scale(domain=[bottom, top], nice=False, zero=False)
        title = axis_title(f"mean {upwards}", 0.8 * height)
        return alt.Y(f"{field}:Q", title=title, scale=scale, axis=alt.Axis(tickCount=ticks))

    means = (("x", across), ("y", upwards))
    told = [
        "run:N",
        "rank:Q",
        *(alt.Tooltip(f"{axis}:Q", format=".4f", title=title) for axis, title in means),
    ]
    across_rule, upwards_rule = (
        marks(point for point in points if f"{axis}low" in point).mark_rule(
            color=palette.faint, opacity=0.5
        )
        for axis in ("x", "y")
    )
    dots = marks(points).mark_point(
        filled=True, size=45, opacity=0.4 if len(points) > _MOST_SOLID else 0.9
    )
    colour = {
        "condition": [{"test": "datum.baseline", "value": palette.other}],
        "value": palette.run,
    }
    places = [
        ((point["x"] - left) / (right - left), (top - point["y"]) / (top - bottom))
        for point in points
    ]
    first = sorted(range(len(points)), key=lambda at: not points[at]["baseline"])
    layers = [
        across_rule.encode(x=x("xlow"), x2="xhigh:Q", y=y()),
        upwards_rule.encode(x=x(), y=y("ylow"), y2="yhigh:Q"),
        dots.encode(x=x(), y=y(), color=colour, tooltip=told),
        *names_beside(points, places, look, x=x(), y=y(), first=first),
    ]
    return dressed(layers, look, f"{upwards} over {across}", subtitle)


def _ends(points: list[dict[str, Any]], axis: str) -> tuple[float, float]:
    """Return the ends of an axis: those of the points and their intervals, and a margin."""
    values = [
        point[name]
        for point in points
        for name in (axis, f"{axis}low", f"{axis}high")
        if name in point
    ]
    low, high = min(values), max(values)
    margin = _MARGIN * (high - low) or 0.05 * abs(high) or 0.05
    return low - margin, high + margin
