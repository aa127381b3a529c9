"""Records of run, measure, topic and value at full precision, as TSV and JSON.

The figure of a run has the topic `all`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from metrics.engine.trec_eval.columns import Value
from metrics.exports.sheet import Sheet

_FIELDS = ("run", "measure", "topic", "value")
Record = tuple[str, str, str, Value]


def render_tsv(sheets: Iterable[Sheet], *, by_topic: bool, summary: bool) -> Iterator[str]:
    """Yield a line of names, then one piece for each run; an undefined value is an empty field."""
    yield "\t".join(_FIELDS) + "\n"
    for sheet in sheets:
        records = _records(sheet, by_topic, summary)
        yield "".join(
            "\t".join((*names, "" if value is None else str(value))) + "\n"
            for *names, value in records
        )


def render_json(sheets: Iterable[Sheet], *, by_topic: bool, summary: bool) -> Iterator[str]:
    """Yield an array of objects, one a line; an undefined value is null."""
    before = "[\n"
    for sheet in sheets:
        for record in _records(sheet, by_topic, summary):
            yield before + json.dumps(dict(zip(_FIELDS, record, strict=True)), ensure_ascii=False)
            before = ",\n"

    yield "\n]\n" if before == ",\n" else "[]\n"


def _records(sheet: Sheet, by_topic: bool, summary: bool) -> Iterator[Record]:
    for row, topic in enumerate(sheet.topics if by_topic else []):
        for column in sheet.columns:
            if column.values is not None:
                yield sheet.run, column.name, topic, column.values[row]

    for column in sheet.columns if summary else []:
        if column.has_figure:
            yield sheet.run, column.name, "all", column.figure
