"""The runs of a leaderboard over time: a point for each, and the best mean so far."""

from __future__ import annotations

from typing import Any

import altair as alt

from metrics.charts.figure import Figure
from metrics.charts.look import Look, axis_title, layered_chart, marks
from metrics.charts.text import width_of
from metrics.questions.addresses import run_page
from metrics.services.boards.leaderboard import Leaderboard
from metrics.services.comparisons.shown_pairs import names_of
from metrics.tables import figure
from runs.errors import InvalidInput

NAME = "over-time"
# More runs than these are drawn faint.
_MOST_SOLID = 200
# Of the names, and the room between two of them, in pixels.
_LETTER_SIZE, _GAP = 11, 8
# In milliseconds.
_HOUR = 3_600_000


def over_time_figure(board: Leaderboard) -> Figure:
    """Draw the mean of each ranked run of the board at its submission, and the best mean so far.

    Runs that were the best when they came are named where there is room. Raise InvalidInput if no
    run has a mean.
    """
    measure = board.sort
    rows = [
        row
        for row in board.rows
        if row.rank is not None and row.values[measure.name][0] is not None
    ]
    if not rows:
        message = f"no ranked run that is shown has a mean of {measure.name}"
        raise InvalidInput(message, code="nothing_to_draw", pointer="sort")

    rows.sort(key=lambda row: (row.run.created_at, row.run.pk))
    names = names_of([row.run for row in rows])
    better = min if measure.definition.lower_is_better else max

    points: list[dict[str, Any]] = []
    for row in rows:
        mean = row.values[measure.name][0]
        best = better(mean, points[-1]["best"]) if points else mean
        points.append(
            {
                "run": names[row.run],
                "submitted": f"{row.run.created_at:%Y-%m-%d %H:%M}",
                "time": round(1000 * row.run.created_at.timestamp()),
                "mean": mean,
                "best": best,
                "leads": not points or best != points[-1]["best"],
                "address": run_page(row.run),
            }
        )

    leaders = sum(point["leads"] for point in points)
    count = f"{len(points):,} of {board.ranked:,} ranked runs by the time of their submission"
    table = [
        [
            point["run"],
            point["submitted"],
            figure(measure, point["mean"]),
            figure(measure, point["best"]),
        ]
        for point in points
    ]

    return Figure(
        name=NAME,
        caption=(
            f"Mean {measure.name} of {count}. The line is the best mean so far; {leaders:,} "
            f"run{'s' * (leaders > 1)} moved it. The best of many runs looks better by chance."
        ),
        columns=["Run", "Submitted (UTC)", measure.name, "Best so far"],
        rows=table,
        drawing=lambda look: _draw(points, measure.name, count, look),
    ).drawn_from(board.qrels.collection, board.qrels, measure=measure.name)


def _draw(points: list[dict[str, Any]], measure: str, subtitle: str, look: Look) -> Any:
    palette, (width, height) = look.palette, look.plot
    left, right = _ends([point["time"] for point in points], least=_HOUR)
    bottom, top = _ends([point["mean"] for point in points], least=0.05)

    x = alt.X(
        "time:T",
        title="submitted",
        scale=alt.Scale(type="utc", domain=[round(left), round(right)], nice=False),
        axis=alt.Axis(grid=False, tickCount=4 if look.narrow else 8, labelOverlap=True),
    )

    def y(field: str) -> Any:
        title = axis_title(f"mean {measure}", 0.8 * height)
        scale = alt.Scale(domain=[bottom, top], nice=False, zero=False)
        return alt.Y(f"{field}:Q", title=title, scale=scale, axis=alt.Axis(tickCount=5))

    tooltip = [
        "run:N",
        "submitted:N",
        alt.Tooltip("mean:Q", format=".4f", title=measure),
        alt.Tooltip("best:Q", format=".4f", title="best so far"),
    ]
    dots = marks(points).mark_point(
        filled=True, size=45, opacity=0.4 if len(points) > _MOST_SOLID else 0.9
    )
    colour = {
        "condition": [{"test": "datum.leads", "value": palette.run}],
        "value": palette.faint,
    }
    best = marks(points).mark_line(interpolate="step-after", strokeWidth=1.5, color=palette.run)
    named = _with_room(points, left, width / (right - left))
    layers = [
        best.encode(x=x, y=y("best")),
        dots.encode(x=x, y=y("mean"), color=colour, tooltip=tooltip, **look.link),
        marks(named)
        .mark_text(align="right", baseline="bottom", dx=-4, dy=-4, color=palette.text)
        .encode(x=x, y=y("mean"), text="run:N"),
    ]

    return layered_chart(layers, look, f"{measure} over time", subtitle)


def _with_room(points: list[dict[str, Any]], left: float, pixels: float) -> list[dict[str, Any]]:
    """Return the points that moved the line and have room for their name before them.

    `pixels` are those of a millisecond. The last points, with the best means, are named first.
    """
    named, end = [], float("inf")
    for point in reversed(points):
        place = (point["time"] - left) * pixels
        begin = place - width_of(point["run"], _LETTER_SIZE) - _GAP
        if point["leads"] and begin > 0 and place < end:
            named.append(point)
            end = begin

    return named


def _ends(values: list[float], least: float) -> tuple[float, float]:
    """Return the ends of an axis with a margin; equal values are in its middle."""
    low, high = min(values), max(values)
    margin = 0.04 * (high - low) or least
    return low - margin, high + margin
