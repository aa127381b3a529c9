"""CSV at full precision that spreadsheets open without running anything."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from typing import Any

# What a spreadsheet takes for the beginning of a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_ROWS = 500


def neutral(text: str) -> str:
    """Put an apostrophe before a text cell that a spreadsheet would run as a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def written(rows: Iterator[dict[str, Any]]) -> Iterator[str]:
    """Yield a line of names, those of the first row, then pieces of some hundred rows."""
    buffer = io.StringIO()
    writer = None
    for number, row in enumerate(rows):
        if writer is None:
            writer = csv.DictWriter(buffer, list(row), lineterminator="\r\n")
            writer.writeheader()
        writer.writerow({name: _cell(value) for name, value in row.items()})
        if number % _ROWS == _ROWS - 1:
            yield _taken(buffer)
    yield _taken(buffer)


def _taken(buffer: io.StringIO) -> str:
    text = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return text


def _cell(value: Any) -> str:
    """Return numbers as they are, an empty cell for none."""
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else ""
    return neutral(value) if isinstance(value, str) else str(value)
