"""trec_eval's own text, byte for byte: measure, topic and value in columns, topic by topic, then the run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from metrics.engine.trec_eval.columns import Column, Value
from metrics.exports.sheet import Sheet


def render(sheets: Iterable[Sheet], *, by_topic: bool, summary: bool) -> Iterator[str]:
    """Yield one piece for each run."""
    for sheet in sheets:
        lines = list(_topic_lines(sheet)) if by_topic else []
        for column in sheet.columns:
            if summary and column.figure is not None:
                lines.append(f"{_head(sheet, column)}all\t{_text(column.figure)}\n")
        yield "".join(lines)


def _topic_lines(sheet: Sheet) -> Iterator[str]:
    """Yield the lines of each topic, made column by column: large runs have hundreds of thousands of values."""
    heads, columns = [], []
    for column in sheet.columns:
        if column.values is not None:
            heads.append(_head(sheet, column))
            columns.append([f"'{value}'" if isinstance(value, str) else _text(value) for value in column.values])
    for topic, *texts in zip(sheet.topics, *columns, strict=True):
        yield "".join([f"{head}{topic}\t{text}\n" for head, text in zip(heads, texts, strict=True) if text])


def _head(sheet: Sheet, column: Column) -> str:
    """Return what a line begins with; Z marks deviations, which texts have none of."""
    texts = any(isinstance(value, str) for value in (column.figure, *(column.values or ())[:1]))
    scaled = sheet.scaled and not texts
    return f"{'Z' if scaled else ''}{column.name:<22}\t"


def _text(value: Value) -> str:
    """Return the value as text; nothing if there is none."""
    if isinstance(value, float):
        return f"{value:6.4f}"
    return "" if value is None else str(value)
