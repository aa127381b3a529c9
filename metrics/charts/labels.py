"""Names at points: as many as have room, without touching each other or the edges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from metrics.charts.look import Look, marks
from metrics.charts.text import shortened_names, width_of
from metrics.engine.arrays import Floats

MOST_NAMES = 12
# Sizes in pixels: of letters, of those in narrow charts, of a line, and the radius of a point.
_LETTER_SIZE = 11
_NARROW_LETTER_SIZE = 10
_LINE_HEIGHT = 14
_POINT_RADIUS = 5
# The largest share of the width that a name takes.
_MAX_SHARE = 0.3
# A name that covers more points than this cannot be read.
_MOST_COVERED = 1


@dataclass(frozen=True)
class _Side:
    """A side of a point: the alignment of a text there, and its distance from the point."""

    align: str
    dx: int
    dy: int

    def middle(self, width: float) -> float:
        """Return the distance of the middle of a text of this width from its point."""
        return self.dx + {"left": 0.5, "center": 0.0, "right": -0.5}[self.align] * width


_SIDES = (
    _Side("left", 8, 0),
    _Side("right", -8, 0),
    _Side("center", 0, -13),
    _Side("center", 0, 13),
    _Side("left", 6, -11),
    _Side("right", -6, -11),
    _Side("left", 6, 11),
    _Side("right", -6, 11),
)


@dataclass(frozen=True)
class _Name:
    """A name at a point.

    `across` and `down` are the place of the point as shares of the plot, and `x` and `y` the
    distance of the middle of the name from there, in pixels.
    """

    across: float
    down: float
    x: float
    y: float
    width: float

    def within(self, plot: tuple[float, float]) -> bool:
        """Return whether the name lies in the plot, and so in every larger one."""
        x, y = self.across * plot[0] + self.x, self.down * plot[1] + self.y
        half = self.width / 2
        return half <= x <= plot[0] - half and _LINE_HEIGHT / 2 <= y <= plot[1] - _LINE_HEIGHT / 2

    def clear_of(
        self, other: _Name, smallest: tuple[float, float], largest: tuple[float, float]
    ) -> bool:
        """Return whether the name is apart from another one in all plots between these sizes."""
        apart_x = [
            (self.across - other.across) * width + self.x - other.x
            for width in (smallest[0], largest[0])
        ]
        apart_y = [
            (self.down - other.down) * height + self.y - other.y
            for height in (smallest[1], largest[1])
        ]
        return (
            _least(*apart_x) >= (self.width + other.width) / 2 or _least(*apart_y) >= _LINE_HEIGHT
        )

    def covers(self, points: Floats, plot: tuple[float, float]) -> int:
        """Return how many points the name touches; `points` has rows of shares across and down."""
        across = np.abs((points[0] - self.across) * plot[0] - self.x)
        down = np.abs((points[1] - self.down) * plot[1] - self.y)
        touched = (across < self.width / 2 + _POINT_RADIUS) & (
            down < _LINE_HEIGHT / 2 + _POINT_RADIUS
        )
        return int(np.count_nonzero(touched))


def _least(first: float, last: float) -> float:
    """Return the least distance from 0 on the way from one number to the other."""
    return 0.0 if first * last <= 0 else min(abs(first), abs(last))


def name_layers(
    rows: Sequence[dict[str, Any]],
    places: Sequence[tuple[float, float]],
    look: Look,
    *,
    x: Any,
    y: Any,
    name: str = "run",
    first: Iterable[int] | None = None,
    most: int = MOST_NAMES,
) -> list[Any]:
    """Return layers with the names of at most `most` points, without names that have no room.

    `places` are the places of the points in the plot, as shares of its width from the left and of
    its height from the top; `x` and `y` are the channels of the points, and `name` is the key of a
    row with its name. `first` are the numbers of the rows to name, the most important ones first;
    by default all rows in their order.
    """
    size = _NARROW_LETTER_SIZE if look.narrow else _LETTER_SIZE
    numbers = list(range(len(rows)) if first is None else first)
    names = shortened_names(
        [str(rows[number][name]) for number in numbers], _MAX_SHARE * look.plot[0], size
    )
    texts = dict(zip(numbers, names, strict=True))
    widths = {number: width_of(text, size) for number, text in texts.items()}

    # Altair aligns the texts of a layer alike, so that each side is a layer.
    by_side: dict[_Side, list[dict[str, Any]]] = {}
    for number, side in islice(_placements(widths, places, look), most):
        by_side.setdefault(side, []).append({**rows[number], "name": texts[number]})

    layers = []
    for side, named in by_side.items():
        text = marks(named).mark_text(
            align=side.align,
            dx=side.dx,
            dy=side.dy,
            baseline="middle",
            fontSize=size,
            limit=0,
            color=look.palette.text,
        )
        layers.append(text.encode(x=x, y=y, text="name:N"))

    return layers


def _placements(
    widths: dict[int, float], places: Sequence[tuple[float, float]], look: Look
) -> Iterator[tuple[int, _Side]]:
    """Yield the rows with room for their names, each with the side where it covers fewest points.

    The size of the plot depends on its labels: a place has to be free in the smallest plot, in the
    largest one and in all between.
    """
    points = np.array(places).T
    smallest, largest = look.plot, (float(look.width), float(look.height))
    placed: list[_Name] = []
    for number, width in widths.items():
        free = {}
        for side in _SIDES:
            name = _Name(*places[number], side.middle(width), side.dy, width)
            if name.within(smallest) and all(
                name.clear_of(other, smallest, largest) for other in placed
            ):
                free[side] = name

        covered = {side: name.covers(points, smallest) for side, name in free.items()}
        if covered and min(covered.values()) <= _MOST_COVERED:
            side = min(covered, key=lambda side: covered[side])
            placed.append(free[side])
            yield number, side
