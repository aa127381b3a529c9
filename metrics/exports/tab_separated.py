"""Lines of cells between tabs, numbers with every digit, below lines of comments."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from metrics.exports.table import Table
from runs.formats.comma_separated import neutral


def render(table: Table) -> Iterator[str]:
    """Yield the notes after #, a line of names, and a line for each row.

    A number is the shortest text that reads as the same double; an undefined one is an empty cell.
    """
    yield from (f"# {note}\n" for note in table.notes)
    yield "\t".join(column.name for column in table.columns) + "\n"
    for row in table.rows:
        yield "\t".join(map(_cell, row.values)) + "\n"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else ""
    if isinstance(value, int):
        return str(value)

    return neutral(" ".join(str(value).split()))
