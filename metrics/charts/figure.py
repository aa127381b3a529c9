"""The parts of every chart: an image to draw, a caption, and a table with the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from metrics.charts.look import Look


def _as_it_says(look: Look) -> int:
    return look.height


@dataclass(frozen=True)
class Figure:
    """A chart whose data are read; `draw` makes an Altair chart of it, `caption` and the table say the same in words.

    `name` is that of its kind; the first column of the table names the row. `height` is for charts that need more
    pixels than a size has: a row for each run, or the names of many in a legend.
    """

    name: str
    caption: str
    columns: list[str]
    rows: list[list[str]]
    drawing: Callable[[Look], Any]
    height: Callable[[Look], int] = _as_it_says

    def draw(self, look: Look) -> Any:
        return self.drawing(replace(look, grown=self.height(look)))

    def sides(self, size: str) -> tuple[int, int]:
        """Return width and height of the picture of this size."""
        look = Look(size=size)
        return look.width, self.height(look)
