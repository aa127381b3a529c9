"""CSV at full precision that spreadsheets open without running anything."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

# Spreadsheets read a text with one of these beginnings as a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_ROWS = 500


def neutral(text: str) -> str:
    """Put an apostrophe before a text cell that a spreadsheet would run as a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def write_csv(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Yield CSV: a line of names, then chunks of some hundred rows."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\r\n")

    if names:
        writer.writerow(map(neutral, names))

    for number, row in enumerate(rows, 1):
        writer.writerow(map(_cell, row))
        if number % _ROWS == 0:
            yield _empty(buffer)

    yield _empty(buffer)


def _empty(buffer: io.StringIO) -> str:
    """Return the text of the buffer, and empty it."""
    text = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return text


def _cell(value: Any) -> str:
    """Return the text of a cell: booleans as in JSON, and an empty text for None and NaN."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else ""
    if isinstance(value, datetime):
        return value.isoformat()

    return neutral(value) if isinstance(value, str) else str(value)
