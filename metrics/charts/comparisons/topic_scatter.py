"""Two runs against each other, a point for each topic."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import altair as alt

from metrics.charts.figure import Figure
from metrics.charts.labels import name_layers
from metrics.charts.look import Look, axis_title, layered_chart, marks
from metrics.charts.text import NO_TITLES, with_title
from metrics.engine.measures.grammar import Measure
from metrics.tables import figure, signed

# More topics than these are thinned out: a page has no room for each.
_MOST_POINTS = 1000
# More topics than these are drawn faint.
_MOST_SOLID = 60
# At most this many topics are named, those farthest from the diagonal.
_MOST_NAMES = 8
_MARGIN = 0.04


@dataclass(frozen=True)
class TopicPair:
    """The values of both runs on a topic."""

    topic: str
    a: float
    b: float

    @property
    def difference(self) -> float:
        return self.a - self.b


def topic_scatter_figure(
    topics: list[TopicPair],
    *,
    measure: Measure,
    names: tuple[str, str],
    address: str,
    titles: Mapping[str, str] = NO_TITLES,
) -> Figure:
    """Draw the first run across and the second upwards, with the diagonal of equal values.

    `names` are those of the runs; `address` is the page of both runs up to the topic at its end.
    Topics without a value of both runs are left out.
    """
    drawn = [pair for pair in topics if math.isfinite(pair.difference)]
    # The outermost topics first: they are named, and remain where topics are thinned out.
    drawn.sort(key=lambda pair: -abs(pair.difference))
    below = sum(pair.difference > 0 for pair in drawn)
    above = sum(pair.difference < 0 for pair in drawn)
    a, b = names
    lower = measure.definition.lower_is_better
    caption = (
        f"{measure.name} of {a} (across) and {b} (upwards), a point for each of "
        f"{len(drawn):,} topics: {below:,} below the diagonal, where {b if lower else a} is better, "
        f"{above:,} above it, {len(drawn) - above - below:,} on it."
    )

    return Figure(
        name="topic-scatter",
        caption=caption,
        columns=["Topic", a, b, "Difference"],
        rows=[
            [
                pair.topic,
                figure(measure, pair.a),
                figure(measure, pair.b),
                signed(pair.difference),
            ]
            for pair in drawn
        ],
        drawing=lambda look: _draw(drawn, titles, measure, names, address, look),
    )


def _draw(
    topics: list[TopicPair],
    titles: Mapping[str, str],
    measure: Measure,
    names: tuple[str, str],
    address: str,
    look: Look,
) -> Any:
    palette, (width, height) = look.palette, look.plot
    step = -(-len(topics) // _MOST_POINTS) or 1
    points: list[dict[str, Any]] = [
        {
            "topic": pair.topic,
            "titled": with_title(pair.topic, titles),
            "x": pair.a,
            "y": pair.b,
            "difference": pair.difference,
        }
        for pair in topics[::step]
    ]
    low, high = _ends(points)
    scale = alt.Scale(domain=[low, high], nice=False, zero=False)
    ticks = alt.Axis(tickCount=5)
    x = alt.X("x:Q", title=axis_title(names[0], 0.8 * width), scale=scale, axis=ticks)
    y = alt.Y("y:Q", title=axis_title(names[1], 0.8 * height), scale=scale, axis=ticks)

    encodings: dict[str, Any] = {
        "tooltip": [
            alt.Tooltip("titled:N", title="topic"),
            alt.Tooltip("x:Q", format=".4f", title=names[0]),
            alt.Tooltip("y:Q", format=".4f", title=names[1]),
            alt.Tooltip("difference:Q", format="+.4f"),
        ]
    }
    if look.linked:
        points = [
            {**point, "address": f"{address}{quote(point['topic'], safe='')}#rankings"}
            for point in points
        ]
        encodings |= look.link

    diagonal = marks([{"x": low, "y": low}, {"x": high, "y": high}])
    dots = marks(points).mark_point(
        filled=True, size=60, opacity=0.5 if len(points) > _MOST_SOLID else 0.85
    )
    colour = alt.condition("datum.difference < 0", alt.value(palette.other), alt.value(palette.run))
    span = (high - low) or 1.0
    places = [((point["x"] - low) / span, (high - point["y"]) / span) for point in points]
    layers = [
        diagonal.mark_line(color=palette.faint, strokeWidth=1, strokeDash=[4, 4]).encode(x=x, y=y),
        dots.encode(x=x, y=y, color=colour, **encodings),
        *name_layers(points, places, look, x=x, y=y, name="topic", most=_MOST_NAMES),
    ]

    words = f"a point for each of {len(topics):,} topics"
    if step > 1:
        words = f"{len(points):,} of {len(topics):,} topics"

    lower = ", lower is better" if measure.definition.lower_is_better else ""
    title = f"{measure.name} by topic: {names[0]} against {names[1]}"

    return layered_chart(layers, look, title, f"{words}; dashed: equal{lower}")


def _ends(points: list[dict[str, Any]]) -> tuple[float, float]:
    """Return the ends of both axes, which are alike: 0 and 1, or those of all values."""
    values = [point[axis] for point in points for axis in ("x", "y")] or [0.0]
    low, high = min(0.0, *values), max(values)
    if low == 0.0 and high <= 1.0:
        high = 1.0

    margin = _MARGIN * (high - low) or 0.05
    return low - margin, high + margin
