"""A Markdown table with its caption below."""

from __future__ import annotations

import re
from collections.abc import Iterator

from metrics.exports.comparisons.differences import DifferenceTable, difference_table, two_kinds
from metrics.exports.comparisons.table import BETTER, WORSE, MeanCell, MeanTable, table_of
from metrics.services.comparisons.shown_pairs import PairSelection
from metrics.services.comparisons.stored import Answer
from runs.models import Collection

_MARKS = {BETTER: "\N{UPWARDS ARROW}", WORSE: "\N{DOWNWARDS ARROW}"}
# What would be markup, HTML or the end of a cell.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&$])")


def render(collection: Collection, answer: Answer, selection: PairSelection) -> Iterator[str]:
    """Yield the table, an empty line and the caption; of two kinds of tests, the table of differences."""
    if two_kinds(answer.query):
        return iter([_differences(difference_table(collection, answer))])
    return iter([written(table_of(collection, answer))])


def escaped(text: str) -> str:
    """Escape text for Markdown, in one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def written(table: MeanTable) -> str:
    """Return the table, an empty line and the caption."""
    behind = len(table.measures) + len(table.after)
    head = [
        _row(
            *table.before, table.subject, *map(escaped, table.measures), *map(escaped, table.after)
        ),
        _row(*["---:"] * len(table.before), "---", *["---:"] * behind),
    ]
    lines = []
    for line in table.lines:
        name = escaped(line.name) + (" (baseline)" if line.baseline else "")
        lines.append(_row(*line.start, name, *map(_cell, line.cells), *map(escaped, line.after)))
    return "\n".join([*head, *lines, "", " ".join(map(escaped, table.caption)), ""])


def _differences(table: DifferenceTable) -> str:
    lines = [
        _row("Run", *map(escaped, table.measures)),
        _row("---", *["---:"] * len(table.measures)),
        *(_row(escaped(name), *means) for name, means in table.means),
        *(
            _row(
                f"{escaped(a)} \N{MINUS SIGN} {escaped(b)}",
                *(f"{cell.text} {escaped(cell.marks)}".rstrip() for cell in cells),
            )
            for (a, b), cells in table.differences
        ),
        *(_row(f"{name}, p", *map(escaped, found)) for name, found in table.omnibus),
    ]
    return "\n".join([*lines, "", " ".join(map(escaped, table.caption)), ""])


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: MeanCell) -> str:
    text = f"**{cell.text}**" if cell.best else cell.text
    mark = _MARKS.get(cell.mark, cell.mark)
    return f"{text} {mark}".rstrip()
