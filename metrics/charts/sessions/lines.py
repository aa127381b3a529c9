"""The parts that charts of sessions share: colours of systems, points of lines, axes."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import altair as alt

from metrics.charts.look import Look, marks, whole_ticks
from metrics.engine.arrays import Floats

# There are no more colours that differ clearly.
MOST_SYSTEMS = 6
# The most positions of a line, and the most rows of the table.
MOST_PLACES = 400
MOST_ROWS = 40
TICKS, TICKS_NARROW = 20, 8


def colours_of(places: Iterable[tuple[str, int]], palette: tuple[str, ...]) -> dict[str, str]:
    """Return the colour of each system by its place among those of the collection, or the next
    free one if it is taken in this chart."""
    colours: dict[str, str] = {}
    for name, place in places:
        turned = [palette[(place + step) % len(palette)] for step in range(len(palette))]
        colours[name] = next(colour for colour in turned if colour not in colours.values())
    return colours


def points(name: str, values: Floats) -> list[dict[str, Any]]:
    """Return the points of a line; places count from 1."""
    return [
        {"line": name, "place": place, "value": value}
        for place, value in enumerate(values.tolist(), 1)
    ]


def place_axis(
    length: int, depth: int | None, look: Look, title: str = "position in the session"
) -> Any:
    """Return the axis of positions, or of other places from 1 on.

    With `depth` it marks the ends of queries, as far as there is room.
    """
    axis: dict[str, Any] = {"grid": depth is not None, "format": "d"}

    if depth and length >= depth:
        room = TICKS_NARROW if look.narrow else TICKS
        step = depth * (1 + length // depth // room)
        axis["values"] = [1, *range(step, length + 1, step)]
    else:
        axis["values"] = whole_ticks(1, length, look)

    scale = alt.Scale(domain=[1, max(2, length)], nice=False)
    return alt.X("place:Q", title=title, scale=scale, axis=alt.Axis(**axis))


def value_axis(points: list[dict[str, Any]], title: str) -> Any:
    """Return the axis of values, from 0 to 1 at least."""
    top = max(point["value"] for point in points) or 1.0
    scale = alt.Scale(domain=[0, max(top, 1.0)], nice=top > 1)
    return alt.Y("value:Q", title=title, scale=scale, axis=alt.Axis(tickCount=5))


def tooltip_layer(points: list[dict[str, Any]], places: Collection[int]) -> Any:
    """Return an invisible layer that answers the pointer at these places."""
    tooltip = ["line:N", "place:Q", alt.Tooltip("value:Q", format=".4f")]
    return (
        marks(point for point in points if point["place"] in places)
        .mark_point(size=120, opacity=0)
        .encode(x="place:Q", y="value:Q", tooltip=tooltip)
    )
