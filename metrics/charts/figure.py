"""What every kind of chart is: a picture to draw, a sentence about it, and the same in figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from metrics.charts.look import Look


@dataclass(frozen=True)
class Figure:
    """A chart whose data are read; `draw` makes an Altair chart of it, `caption` and the table say the same in words.

    `name` is that of its kind; the first column of the table names the row.
    """

    name: str
    caption: str
    columns: list[str]
    rows: list[list[str]]
    draw: Callable[[Look], Any]
