"""A Markdown table with its notes below."""

from __future__ import annotations

import re
from collections.abc import Iterator

from metrics.exports.table import BETTER, WORSE, Cell, Row, Table

_MARKS = {BETTER: "\N{UPWARDS ARROW}", WORSE: "\N{DOWNWARDS ARROW}"}
# Characters of markup and HTML, and the end of a cell.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&$])")


def render(table: Table) -> Iterator[str]:
    """Yield the table, an empty line and the notes."""
    headings = table.headings
    lines = [
        _line(*(_escaped(column.heading) for column in headings)),
        _line(*("---" if column.head else "---:" for column in headings)),
        *(_row(table, row) for row in table.rows),
    ]
    yield "\n".join([*lines, "", " ".join(map(_escaped, table.notes)), ""])


def _escaped(text: str) -> str:
    """Escape text for Markdown, in one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _row(table: Table, row: Row) -> str:
    texts = []
    for column, cell in zip(table.headings, table.cells(row), strict=True):
        baseline = " (baseline)" if column.head and row.baseline else ""
        texts.append(_cell(cell) + baseline)

    return _line(*texts)


def _cell(cell: Cell) -> str:
    text = _escaped(cell.text)
    parts = [
        f"**{text}**" if cell.best else text,
        _MARKS.get(cell.mark) or _escaped(cell.mark),
        _escaped(cell.aside),
    ]
    return " ".join(part for part in parts if part)


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
