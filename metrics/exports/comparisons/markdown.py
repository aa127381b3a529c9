"""A Markdown table with its caption below."""

from __future__ import annotations

import re
from collections.abc import Iterator

from metrics.exports.comparisons.table import BETTER, WORSE, MeanCell, MeanTable, table_of
from metrics.services.shown_pairs import PairSelection
from metrics.services.stored_comparisons import Answer
from runs.models import Collection

_MARKS = {BETTER: "\N{UPWARDS ARROW}", WORSE: "\N{DOWNWARDS ARROW}"}
# What would be markup, HTML or the end of a cell.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&$])")


def render(collection: Collection, answer: Answer, selection: PairSelection) -> Iterator[str]:
    """The table, an empty line and the caption."""
    return iter([_written(table_of(collection, answer))])


def escaped(text: str) -> str:
    """Text that Markdown shows as it is, in one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _written(table: MeanTable) -> str:
    head = [f"| Run | {' | '.join(map(escaped, table.measures))} |", "| --- |" + " ---: |" * len(table.measures)]
    lines = [
        f"| {escaped(line.name)}{' (baseline)' if line.baseline else ''} | {' | '.join(map(_cell, line.cells))} |"
        for line in table.lines
    ]
    return "\n".join([*head, *lines, "", " ".join(map(escaped, table.caption)), ""])


def _cell(cell: MeanCell) -> str:
    text = f"**{cell.text}**" if cell.best else cell.text
    mark = _MARKS.get(cell.mark, cell.mark)
    return f"{text} {mark}".rstrip()
