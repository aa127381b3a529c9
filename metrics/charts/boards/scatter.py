"""Two measures of the runs of a leaderboard against each other, a point for each run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from metrics.charts.figure import Figure
from metrics.charts.labels import name_layers
from metrics.charts.look import Look, axis_title, layered_chart, marks
from metrics.engine.measures.grammar import Measure
from metrics.questions.addresses import run_page
from metrics.services.boards.leaderboard import Leaderboard
from metrics.services.boards.mean_intervals import Ends, within_range
from metrics.services.comparisons.shown_pairs import names_of
from metrics.tables import figure
from runs.errors import InvalidInput

# More runs than these are drawn faint.
_MOST_SOLID = 200
_MARGIN = 0.04


def scatter_figure(
    board: Leaderboard,
    across: Measure,
    upwards: Measure,
    intervals: Mapping[tuple[int, str], Ends],
    confidence: float,
    baselines: Sequence[str] = (),
) -> Figure:
    """Draw a point for each ranked run of the board, with its intervals if there are any.

    Up to 12 runs that have room are named, the baselines first. Raise InvalidInput if no run has
    both means.
    """
    ranked = [row for row in board.rows if row.rank is not None]
    drawn_rows = [
        row
        for row in ranked
        if None not in (row.values[across.name][0], row.values[upwards.name][0])
    ]
    if not drawn_rows:
        message = f"no ranked run that is shown has a mean of both {across.name} and {upwards.name}"
        raise InvalidInput(message, code="nothing_to_draw", pointer="x")

    names = names_of([row.run for row in drawn_rows])

    ends = {"x": within_range(intervals, across), "y": within_range(intervals, upwards)}
    points: list[dict[str, Any]] = []
    for row in drawn_rows:
        point: dict[str, Any] = {
            "run": names[row.run],
            "rank": row.rank,
            "baseline": str(row.run.pk) in baselines,
            "address": run_page(row.run),
        }
        point |= {"x": row.values[across.name][0], "y": row.values[upwards.name][0]}

        for axis, intervals_of_axis in ends.items():
            if row.evaluation.pk in intervals_of_axis:
                point[f"{axis}low"], point[f"{axis}high"] = intervals_of_axis[row.evaluation.pk]

        points.append(point)

    with_intervals = any("xlow" in point or "ylow" in point for point in points)
    interval = (
        f", each with its {100 * confidence:g}% confidence intervals" if with_intervals else ""
    )
    named = [point["run"] for point in points if point["baseline"]]
    baseline_words = f"; baseline{'s' * (len(named) > 1)}: {', '.join(named)}" if named else ""
    count = f"{len(points):,} of {board.ranked:,} ranked runs{interval}{baseline_words}"
    table = [
        [point["run"], figure(across, point["x"]), figure(upwards, point["y"])] for point in points
    ]
    scatter = Figure(
        name="scatter",
        caption=f"Mean {upwards.name} over mean {across.name} of {count}.",
        columns=["Run", across.name, upwards.name],
        rows=table,
        drawing=lambda look: _draw(points, across.name, upwards.name, count, look),
    )

    return scatter.drawn_from(board.qrels.collection, board.qrels, measure=upwards.name)


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
    tooltip = [
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
    first = sorted(range(len(points)), key=lambda number: not points[number]["baseline"])
    layers = [
        across_rule.encode(x=x("xlow"), x2="xhigh:Q", y=y()),
        upwards_rule.encode(x=x(), y=y("ylow"), y2="yhigh:Q"),
        dots.encode(x=x(), y=y(), color=colour, tooltip=tooltip, **look.link),
        *name_layers(points, places, look, x=x(), y=y(), first=first),
    ]

    return layered_chart(layers, look, f"{upwards} over {across}", subtitle)


def _ends(points: list[dict[str, Any]], axis: str) -> tuple[float, float]:
    """Return the ends of an axis: those of all points and intervals, with a margin."""
    values = [
        point[name]
        for point in points
        for name in (axis, f"{axis}low", f"{axis}high")
        if name in point
    ]
    low, high = min(values), max(values)
    margin = _MARGIN * (high - low) or 0.05 * abs(high) or 0.05

    return low - margin, high + margin
