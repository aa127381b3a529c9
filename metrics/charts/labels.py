"""Names beside points: as many as have room, none on another and none outside of the picture."""

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
_LETTERS, _LETTERS_NARROW, _LINE = 11, 10, 14
# The half of a point, and the most that a name takes of the width.
_POINT, _SHARE = 5, 0.3
# A name over more points than this cannot be read.
_MOST_COVERED = 1


@dataclass(frozen=True)
class _Side:
    """Where a name stands: how its text is aligned, and by how much it is moved from its point."""

    align: str
    dx: int
    dy: int

    def middle(self, width: float) -> float:
        """Return how far the middle of a text of this width is from its point."""
        return self.dx + {"left": 0.5, "center": 0.0, "right": -0.5}[self.align] * width


_SIDES = (
    _Side("left", 8, 0), _Side("right", -8, 0), _Side("center", 0, -13), _Side("center", 0, 13),
    _Side("left", 6, -11), _Side("right", -6, -11), _Side("left", 6, 11), _Side("right", -6, 11),
)  # fmt: skip


@dataclass(frozen=True)
class _Name:
    """A name beside a point: the place of its point as shares of the plot, and from there, in pixels, its middle."""

    across: float
    down: float
    x: float
    y: float
    width: float

    def within(self, plot: tuple[float, float]) -> bool:
        """Return whether it lies in the plot; a name that lies in the smallest plot lies in every larger one."""
        x, y = self.across * plot[0] + self.x, self.down * plot[1] + self.y
        return (
            self.width / 2 <= x <= plot[0] - self.width / 2
            and _LINE / 2 <= y <= plot[1] - _LINE / 2
        )

    def clear_of(
        self, other: _Name, smallest: tuple[float, float], largest: tuple[float, float]
    ) -> bool:
        """Return whether it touches another name in no plot between these sizes."""
        apart_x = [
            (self.across - other.across) * width + self.x - other.x
            for width in (smallest[0], largest[0])
        ]
        apart_y = [
            (self.down - other.down) * height + self.y - other.y
            for height in (smallest[1], largest[1])
        ]
        return _least(*apart_x) >= (self.width + other.width) / 2 or _least(*apart_y) >= _LINE

    def covers(self, points: Floats, plot: tuple[float, float]) -> int:
        """Return how many points it touches; `points` has a row for the shares across and one for those down."""
        x = np.abs((points[0] - self.across) * plot[0] - self.x) < self.width / 2 + _POINT
        return int(
            np.count_nonzero(
                x & (np.abs((points[1] - self.down) * plot[1] - self.y) < _LINE / 2 + _POINT)
            )
        )


def _least(first: float, last: float) -> float:
    """Return the least distance from 0 on the way from one number to another."""
    return 0.0 if first * last <= 0 else min(abs(first), abs(last))


def names_beside(
    rows: Sequence[dict[str, Any]], places: Sequence[tuple[float, float]], look: Look, *, x: Any, y: Any,
    name: str = "run", first: Iterable[int] | None = None, most: int = MOST_NAMES,
) -> list[Any]:  # fmt: skip
    """Return layers with the names of points, at most `most`, each where it touches no other name and no edge.

    `places` has where each row's point stands in the plot, as shares of its width from the left and
    of its height from the top; `x` and `y` are the channels of the points, and `name` is the key of
    a row with its name. `first` are the numbers of the rows to name, the most important ones first;
    by default all, in their order. A name that no free place can be found for is left out.
    """
    size = _LETTERS_NARROW if look.narrow else _LETTERS
    asked = list(range(len(rows)) if first is None else first)
    names = shortened_names([str(rows[at][name]) for at in asked], _SHARE * look.plot[0], size)
    widths = {at: width_of(text, size) for at, text in zip(asked, names, strict=True)}
    texts = dict(zip(asked, names, strict=True))
    chosen: dict[_Side, list[dict[str, Any]]] = {}
    for at, side in islice(_placed(widths, places, look), most):
        chosen.setdefault(side, []).append({**rows[at], "name": texts[at]})
    return [
        marks(named)
        .mark_text(align=side.align, dx=side.dx, dy=side.dy, baseline="middle", fontSize=size, limit=0,
                   color=look.palette.text)
        .encode(x=x, y=y, text="name:N")
        for side, named in chosen.items()
    ]  # fmt: skip


def _placed(
    widths: dict[int, float], places: Sequence[tuple[float, float]], look: Look
) -> Iterator[tuple[int, _Side]]:
    """Yield the rows whose names have a place, each where it covers the fewest points.

    How large the plot is depends on its labels, so that a place must be free in every size between
    two.
    """
    points, smallest, largest = (
        np.array(places).T,
        look.plot,
        (float(look.width), float(look.height)),
    )
    taken: list[_Name] = []
    for at, width in widths.items():
        tried = {side: _Name(*places[at], side.middle(width), side.dy, width) for side in _SIDES}
        free = {
            side: placed
            for side, placed in tried.items()
            if placed.within(smallest)
            and all(placed.clear_of(other, smallest, largest) for other in taken)
        }
        covered = {side: placed.covers(points, smallest) for side, placed in free.items()}
        if covered and min(covered.values()) <= _MOST_COVERED:
            side = min(covered, key=lambda side: covered[side])
            taken.append(free[side])
            yield at, side
