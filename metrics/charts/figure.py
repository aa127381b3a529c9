"""The parts of every chart: an image to draw, a caption, a table with the same numbers, and what it was drawn from."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from django.utils import timezone

from metrics.charts.look import Look
from runs.models import Collection

# Characters that have no place in the name of a file, and how long a part of one may be.
_ODD = re.compile(r"[^A-Za-z0-9.@=_]+")
_LONGEST = 80


def _as_it_says(look: Look) -> int:
    return look.height


@dataclass(frozen=True)
class Source:
    """What a chart was drawn from, which its caption and the names of its files say.

    `versions` are those of the judgements, `shown` is how many runs are drawn of how many.
    """

    collection: str
    title: str
    made: date
    measure: str = ""
    versions: tuple[int, ...] = ()
    shown: tuple[int, int] | None = None

    def sentence(self, said: str) -> str:
        """Return the source as a sentence after a caption, without the measure if the caption names it."""
        parts = [self.title]
        if self.measure and self.measure not in said:
            parts.append(self.measure)
        if self.versions:
            parts.append(f"qrels {' and '.join(f'v{version}' for version in self.versions)}")
        if self.shown:
            drawn, runs = self.shown
            some = f"{runs:,} runs" if drawn == runs else f"{drawn:,} of {runs:,} runs"
            parts.append("1 run" if runs == 1 else some)
        return f"{', '.join([*parts, self.made.isoformat()])}."


@dataclass(frozen=True)
class Figure:
    """A chart whose data are read; `draw` makes an Altair chart of it, `caption` and the table say the same in words.

    `name` is that of its kind; the first column of the table names the row. `height` is for charts
    that need more pixels than a size has: a row for each run, or the names of many in a legend.
    """

    name: str
    caption: str
    columns: list[str]
    rows: list[list[str]]
    drawing: Callable[[Look], Any]
    height: Callable[[Look], int] = _as_it_says
    source: Source | None = None

    def draw(self, look: Look) -> Any:
        return self.drawing(replace(look, grown=self.height(look)))

    def sides(self, size: str) -> tuple[int, int]:
        """Return width and height of the picture of this size."""
        look = Look(size=size)
        return look.width, self.height(look)

    def drawn_from(
        self,
        collection: Collection,
        *versions: int,
        measure: str = "",
        shown: tuple[int, int] | None = None,
    ) -> Figure:
        """Return the chart with its source."""
        numbers = tuple(dict.fromkeys(versions))
        source = Source(
            collection.slug, collection.name, timezone.localdate(), measure, numbers, shown
        )
        return replace(self, source=source)

    @property
    def full_caption(self) -> str:
        """Return the caption with the source of the chart."""
        return (
            f"{self.caption} {self.source.sentence(self.caption)}" if self.source else self.caption
        )

    def file_name(self, form: str) -> str:
        """Return the name of a file: collection, chart, measure, version of the judgements and date."""
        parts = [self.name]
        if self.source:
            parts = [self.source.collection, self.name, self.source.measure]
            parts += [f"v{version}" for version in self.source.versions]
            parts.append(f"{self.source.made:%Y%m%d}")
        tidy = (_ODD.sub("-", part)[:_LONGEST].strip("-") for part in parts)
        return f"{'-'.join(part for part in tidy if part)}.{form}"
