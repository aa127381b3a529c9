"""The parts of every chart: an image to draw, a caption, a table of its numbers, and its source."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from django.utils import timezone

from metrics.charts.look import Look
from metrics.services.boards.topic_selection import TopicSelection
from runs.models import Collection, Qrels

# Characters that are replaced in the name of a file, and the longest part of one.
_ODD = re.compile(r"[^A-Za-z0-9.@=_]+")
_LONGEST = 80


def _height_of_size(look: Look) -> int:
    return look.height


@dataclass(frozen=True)
class Source:
    """The source of a chart, for its caption and the names of its files.

    `qrels` are the versions of the judgements; `runs` are the number of runs drawn and of all runs.
    """

    collection: str
    title: str
    day: date
    measure: str = ""
    qrels: tuple[Qrels, ...] = ()
    runs: tuple[int, int] | None = None

    def sentence(self, caption: str) -> str:
        """Return the source as a sentence after a caption, without a measure that it names."""
        parts = [self.title]
        if self.measure and self.measure not in caption:
            parts.append(self.measure)

        if self.qrels:
            versions = " and ".join(qrels.name.removeprefix("qrels ") for qrels in self.qrels)
            parts.append(f"qrels {versions}")

        if self.runs:
            drawn, total = self.runs
            count = f"{total:,} runs" if drawn == total else f"{drawn:,} of {total:,} runs"
            parts.append("1 run" if total == 1 else count)

        return f"{', '.join([*parts, self.day.isoformat()])}."


@dataclass(frozen=True)
class Figure:
    """A chart with its data: `draw` makes an Altair chart, caption and table say the same.

    `name` is its kind; the first column of the table names the row. `height` is for charts that
    need more pixels than a size has: a row for each run, or many names in a legend.
    """

    name: str
    caption: str
    columns: list[str]
    rows: list[list[str]]
    drawing: Callable[[Look], Any]
    height: Callable[[Look], int] = _height_of_size
    source: Source | None = None

    def draw(self, look: Look) -> Any:
        return self.drawing(replace(look, grown=self.height(look)))

    def of_topics(self, selection: TopicSelection | None) -> Figure:
        """Return the chart with its selection of topics, if it has one, in the caption."""
        if selection is None:
            return self
        return replace(self, caption=f"{self.caption} On {selection.sentence}.")

    def drawn_from(
        self,
        collection: Collection,
        *qrels: Qrels,
        measure: str = "",
        runs: tuple[int, int] | None = None,
    ) -> Figure:
        """Return the chart with its source."""
        versions = tuple({version.version: version for version in qrels}.values())
        source = Source(
            collection.slug, collection.name, timezone.localdate(), measure, versions, runs
        )
        return replace(self, source=source)

    @property
    def full_caption(self) -> str:
        """Return the caption with the source of the chart."""
        if self.source is None:
            return self.caption
        return f"{self.caption} {self.source.sentence(self.caption)}"

    def file_name(self, form: str) -> str:
        """Return the name of a file: collection, chart, measure, version of the qrels and date."""
        parts = [self.name]

        if self.source:
            parts = [self.source.collection, self.name, self.source.measure]
            parts += [f"v{qrels.version}" for qrels in self.source.qrels]
            parts.append(f"{self.source.day:%Y%m%d}")

        tidy = (_ODD.sub("-", part)[:_LONGEST].strip("-") for part in parts)
        return f"{'-'.join(part for part in tidy if part)}.{form}"
