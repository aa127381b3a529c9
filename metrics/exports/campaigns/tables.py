"""Tables of packets and snapshots: lines of cells between tabs, numbers with every digit, below lines of comments."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from runs.formats.comma_separated import neutral


def tab_separated(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], comments: Sequence[str] = ()
) -> str:
    """Return the table: comments after #, a line of names, a line for each row. A number is the shortest text that
    reads as the same double; an undefined one is an empty cell."""
    lines = [*(f"# {comment}" for comment in comments), "\t".join(columns)]
    lines += ["\t".join(_cell(value) for value in row) for row in rows]
    return "".join(f"{line}\n" for line in lines)


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
