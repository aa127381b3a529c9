"""trec_eval's own text, byte for byte: lines of measure, topic and value, last those of the run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from metrics.engine.trec_eval.columns import Column, Value
from metrics.exports.sheet import Sheet

# In place of a topic's id; neither ids nor values contain it.
_TOPIC = "\0"


def render(sheets: Iterable[Sheet], *, by_topic: bool, summary: bool) -> Iterator[str]:
    """Yield one piece for each run."""
    for sheet in sheets:
        lines = list(_topic_lines(sheet)) if by_topic else []
        for column in sheet.columns:
            if summary and column.figure is not None:
                lines.append(f"{_head(sheet, column)}all\t{_text(column.figure)}\n")

        yield "".join(lines)


def _topic_lines(sheet: Sheet) -> Iterator[str]:
    """Yield the lines of each topic as one text: large runs have very many values."""
    forms, columns = [], []
    for column in sheet.columns:
        if column.values is None:
            continue

        head = _head(sheet, column)
        if {*map(type, column.values)} == {float}:
            forms.append(f"{head.replace('%', '%%')}{_TOPIC}\t%6.4f\n")
            columns.append(column.values)
        else:
            texts = [
                f"'{value}'" if isinstance(value, str) else _text(value) for value in column.values
            ]
            forms.append("%s")
            columns.append([f"{head}{_TOPIC}\t{text}\n" if text else "" for text in texts])

    # All numbers of a topic are written at once.
    if columns:
        form = "".join(forms)
        for topic, values in zip(sheet.topics, zip(*columns, strict=True), strict=True):
            yield (form % values).replace(_TOPIC, topic)


def _head(sheet: Sheet, column: Column) -> str:
    """Return the beginning of a line; Z marks deviations, which texts do not have."""
    texts = any(isinstance(value, str) for value in (column.figure, *(column.values or ())[:1]))
    scaled = sheet.scaled and not texts
    return f"{'Z' if scaled else ''}{column.name:<22}\t"


def _text(value: Value) -> str:
    """Return the value as text; nothing if there is none."""
    if isinstance(value, float):
        return f"{value:6.4f}"
    return "" if value is None else str(value)
