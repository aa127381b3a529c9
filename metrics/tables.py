"""Write the cells and marks of the tables of pages."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from metrics.engine.measures.definition import Aggregate
from metrics.engine.measures.external import ExternalDefinition
from metrics.engine.measures.grammar import Measure
from metrics.exports.table import Cell, Column, Sorting
from metrics.services.boards.leaderboard import Row
from metrics.services.values.judged_views import Mean
from metrics.services.values.values import RunValues
from runs.models import Collection, Qrels

NOTHING = "–"
# The format of a mean, and of what has another one.
_MEAN, _FORMATS = ".4f", {Aggregate.SUM: ",.0f"}


@dataclass(frozen=True, kw_only=True)
class SortableColumn(Column):
    """A column of a page, and how it is sorted now.

    If it has a `link`, which is an id, a click on its title asks for `next_order`; it sorts by a
    measure, or `arranges` the rows in another order.

    `ends` are those of the scale on which intervals are drawn in it; `note` says what its
    figures are.
    """

    note: str = ""
    next_order: str = ""
    link: str = ""
    arranges: bool = False
    ends: tuple[str, str] | None = None

    @property
    def parts(self) -> list[str]:
        """Return the title in parts, after which a line may break: behind each comma."""
        return re.findall(r"[^,]*,|[^,]+", self.title or self.name)


@dataclass(frozen=True)
class Paging:
    """Which rows of how many are shown.

    `previous` and `next` are offsets, None where there are no more.
    """

    offset: int
    limit: int
    total: int

    @property
    def first(self) -> int:
        return min(self.offset + 1, self.total)

    @property
    def last(self) -> int:
        return min(self.offset + self.limit, self.total)

    @property
    def previous(self) -> int | None:
        return max(0, self.offset - self.limit) if self.offset else None

    @property
    def next(self) -> int | None:
        return self.offset + self.limit if self.offset + self.limit < self.total else None

    @property
    def needed(self) -> bool:
        return self.total > self.limit or self.offset > 0


def columns_of(
    measures: list[Measure], sort: Measure | None, descending: bool
) -> list[SortableColumn]:
    sorting: Sorting = "descending" if descending else "ascending"
    other_order = "asc" if descending else "desc"

    columns = []
    for place, measure in enumerate(measures, 1):
        sorted_by = measure == sort
        columns.append(
            SortableColumn(
                measure.name,
                note=_note_of(measure),
                sorting=sorting if sorted_by else "",
                next_order=other_order if sorted_by else "desc",
                link=f"sort-{place}",
            )
        )

    return columns


def _note_of(measure: Measure) -> str:
    """Return what the figures of a column are, and who gave them."""
    figures, definition = aggregated(measure), measure.definition
    notes = [] if figures == "means" else [f"{figures}, not means"]
    if isinstance(definition, ExternalDefinition):
        notes = [definition.source_words, definition.unit, *notes, definition.description]
        if measure.lower_is_better:
            notes.insert(1, "lower is better")
    return "; ".join(note for note in notes if note)


def figure(measure: Measure, value: float | None) -> str:
    """Return a value to four decimals; counts are whole."""
    if value is None or math.isnan(value):
        return NOTHING
    return format(value, _FORMATS.get(measure.definition.aggregate, _MEAN))


def figures(measure: Measure, values: Iterable[float]) -> list[str]:
    """Return many values as `figure` does, NaN where there is none."""
    form = _FORMATS.get(measure.definition.aggregate, _MEAN)
    return [NOTHING if math.isnan(value) else format(value, form) for value in values]


def amount(measure: Measure, difference: float) -> str:
    """Return a difference without its sign, to two digits where `figure` would round it to zero."""
    text = figure(measure, abs(difference))
    if difference == 0 or text.strip("0."):
        return text
    return np.format_float_positional(
        abs(difference), precision=2, unique=False, fractional=False, trim="-"
    )


def mean_cell(
    measure: Measure, mean: Mean, judged: int, best: tuple[str, int] | None = None
) -> Cell:
    """Return a mean; if not all judged topics have a value, the note says how many do.

    A run with the text of the best mean, over as many topics, is equally good.
    """
    value, topics = mean
    note = f"{topics} of {judged} topics have a value" if topics != judged else ""
    text = figure(measure, value)
    return Cell(text, best == (text, topics), note, value=value)


def best_means(rows: Iterable[Row], measures: list[Measure]) -> dict[str, tuple[str, int]]:
    """Return the text of the best mean of each measure among the ranked rows, and its topics.

    It is among those over the most topics: a mean over fewer is not better by being higher.
    """
    ranked = [row for row in rows if row.rank is not None]
    best: dict[str, tuple[str, int]] = {}
    for measure in measures:
        sign = -1.0 if measure.definition.lower_is_better else 1.0

        means = [
            (topics, sign * mean)
            for mean, topics in (row.values[measure.name] for row in ranked)
            if mean is not None
        ]
        if means:
            topics, mean = max(means)
            best[measure.name] = figure(measure, sign * mean), topics

    return best


def direction_of(measure: Measure) -> Literal["higher", "lower"]:
    """Return which values of a measure are better."""
    return "lower" if measure.lower_is_better else "higher"


def aggregated(measure: Measure) -> str:
    """Return in words what the values of a measure on a leaderboard are."""
    return (
        "pooled ratios of averaged vectors"
        if measure.pools
        else f"{measure.definition.aggregate.value}s"
    )


@dataclass(frozen=True)
class TopicLine:
    """A topic of a run; `page` is the address of the topic's own page."""

    topic_id: str
    cells: list[Cell]
    title: str = ""
    page: str = ""


def topic_lines(
    values: RunValues, sort: Measure | None, descending: bool, shown: slice
) -> list[TopicLine]:
    """Return a run's values topic by topic, in the order of the judgements or by one measure.

    Those without a value come last. Only the lines `shown` are made.
    """
    topic_ids = values.topic_ids
    order = list(range(len(topic_ids)))
    if sort:
        column, sign = values.vectors[sort.name].tolist(), -1.0 if descending else 1.0
        order.sort(key=lambda index: (math.isnan(column[index]), sign * column[index]))

    rows = order[shown]
    columns = [
        figures(measure, values.vectors[measure.name][rows].tolist()) for measure in values.measures
    ]

    return [
        TopicLine(topic_ids[index], [Cell(column[row]) for column in columns])
        for row, index in enumerate(rows)
    ]


def with_minus(text: str) -> str:
    """Return a number as text with a minus sign instead of a hyphen, without one for zero."""
    negative = text.startswith("-") and any(digit in text for digit in "123456789")
    return f"\N{MINUS SIGN}{text[1:]}" if negative else text.removeprefix("-")


def signed(value: float) -> str:
    """Return a difference with its sign, without one where it rounds to zero."""
    text = f"{value:+.4f}"
    return "0.0000" if text in ("+0.0000", "-0.0000") else text.replace("-", "\N{MINUS SIGN}")


def statistic(value: float) -> str:
    """Return a test's statistic in four digits, a rank sum with all whole ones."""
    text = f"{value:.4g}"
    if abs(float(text)) >= 1000:
        text = f"{value:,.1f}".removesuffix(".0")
    return text.replace("-", "\N{MINUS SIGN}")


def probability(value: float) -> str:
    """Return a p value, NOTHING for NaN."""
    if math.isnan(value):
        return NOTHING
    return "< 0.0001" if value < 0.0001 else f"{value:.4f}"


def probability_words(value: float) -> str:
    """Return a p value as a text has it, such as `p = 0.0123`; `no p` for NaN."""
    if math.isnan(value):
        return "no p"
    text = probability(value)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def level_lines(collection: Collection, qrels: Qrels | None) -> list[tuple[str, str, int | None]]:
    """Return the levels, highest first, with their meanings and numbers of judgements."""
    counts = qrels.levels if qrels else {}
    levels = sorted({*counts, *collection.level_labels}, key=_level_order, reverse=True)
    return [
        (level, str(collection.level_labels.get(level, "")), counts.get(level)) for level in levels
    ]


def _level_order(level: str) -> tuple[bool, int, str]:
    digits = level.removeprefix("-")
    number = int(level) if digits.isascii() and digits.isdecimal() and len(digits) < 10 else None
    return number is not None, number or 0, level


def metadata_lines(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield the leaves of nested metadata with dotted names; a plain list stays in one line."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from metadata_lines(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        for number, inner in enumerate(value, 1):
            yield from metadata_lines(inner, f"{name}.{number}")
    elif isinstance(value, list):
        yield name, ", ".join(str(item) for item in value)
    elif value is not None:
        yield name, str(value)
