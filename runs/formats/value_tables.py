"""Value tables: columns `run topic measure value`, or JSON, one object a line.

    bm25	301	x:vital_strict	0.25
    lab/dense	301	x:vital_strict	null

    {"run": "bm25", "topic": "301", "measure": "vital_strict", "value": 0.25}

Columns are separated by tabs, or else by blanks. Lines with the names of the columns are passed
over, which files that were put together have in their middle. `null` takes a value of an earlier
table away. An object may also be a judged answer (judged_answers.py), which has several values. The
order of the columns is that of TIRA's format trec-eval-leaderboard.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from metrics.engine.measures.external import MAX_VALUE, PREFIX
from runs.errors import FileReport
from runs.formats.judged_answers import BadAnswer, answer_values, is_answer
from runs.formats.lines import read_lines
from runs.formats.scanning.pieces import Opener

MAX_VALUES = 500_000
# A judged answer has the texts of its nuggets or passages.
_MAX_LINE = 1024 * 1024
_MAX_ID_BYTES = 1024
_COLUMNS = ("run", "topic", "measure", "value")
_OTHER_NAMES = {
    "run_id": "run", "topic_id": "topic", "query": "topic", "query_id": "topic", "qid": "topic",
    "metric": "measure",
}  # fmt: skip
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")
_NOT_IN_ID = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_TABLE = "a line has four columns: run, topic, measure and value"


class TableRow(NamedTuple):
    """A value of a table: `measure` has no prefix, and `value` is None for null.

    A value of a judged answer is one by the formula that is documented for its `measure`.
    """

    line: int
    run: str
    topic: str
    measure: str
    value: float | None
    of_answer: bool = False


class _BadLine(Exception):
    """A problem of a line: a code and a sentence."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def read_table(open_table: Opener, report: FileReport) -> Iterator[TableRow]:
    """Yield the lines of a table; problems go to the report.

    Raise InvalidFile after the last line if there is any problem, or when 50 are listed.
    """
    parse: Callable[[int, str], list[TableRow]] | None = None
    number = 0

    # Blank lines count as values: together with them a file has at most as many lines.
    for line, content in read_lines(open_table(), report, 2 * MAX_VALUES, _MAX_LINE):
        if not content.strip():
            continue

        try:
            text = _decode(line, content)
            parse = parse or (_parse_object if text.lstrip().startswith("{") else _parse_columns)
            if _is_header(text):
                continue

            rows = parse(line, text)
            number += len(rows)
            if number > MAX_VALUES:
                message = f"the table has more than {MAX_VALUES:,} values; send it in parts"
                report.problem(line, "too_many_values", message)
                report.check()
        except _BadLine as problem:
            report.problem(line, problem.code, problem.message)
            report.stop_when_full(line)
        else:
            yield from rows

    if not number and not report.problems:
        report.problem(0, "no_values", "the table contains no values")
    report.check()


def _decode(line: int, content: bytes) -> str:
    if line == 1 and content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise _BadLine("undecodable_bytes", "the table is UTF-16; send it as UTF-8")

    try:
        return content.decode().rstrip("\r")
    except UnicodeDecodeError as error:
        message = f"byte {content[error.start]:#04x} is not UTF-8; send the table as UTF-8"
        raise _BadLine("undecodable_bytes", message) from error


def _is_header(text: str) -> bool:
    names = text.lower().split()
    return tuple(_OTHER_NAMES.get(name, name) for name in names) == _COLUMNS


def _parse_columns(line: int, text: str) -> list[TableRow]:
    columns = text.split("\t")
    if len(columns) != len(_COLUMNS):
        # Some programs write a blank behind the run, and tabs between the others.
        columns = text.split()
    if len(columns) != len(_COLUMNS):
        code = "too_few_columns" if len(columns) < len(_COLUMNS) else "too_many_columns"
        raise _BadLine(code, f"{_TABLE}; this one has {len(columns)}")

    run, topic, measure, value = (column.strip(" ") for column in columns)
    return [_row(line, run, topic, measure, None if value == "null" else value)]


def _parse_object(line: int, text: str) -> list[TableRow]:
    try:
        # Numbers stay as they are written: the sign of bad ones is theirs.
        record = json.loads(text, parse_float=str, parse_int=str, parse_constant=str)
    except json.JSONDecodeError as error:
        message = f"each line must be a JSON object; column {error.colno}: {error.msg}"
        raise _BadLine("bad_json", message) from error
    except RecursionError as error:
        raise _BadLine("bad_json", "the object is nested too deeply") from error

    if not isinstance(record, dict):
        raise _BadLine("bad_json", "each line must be a JSON object")

    if is_answer(record):
        try:
            values = list(answer_values(record))
        except BadAnswer as problem:
            raise _BadLine("bad_answer", str(problem)) from problem
        return [
            _row(line, run, topic, measure, repr(value))._replace(of_answer=True)
            for run, topic, measure, value in values
        ]

    fields = {_OTHER_NAMES.get(name, name): value for name, value in record.items()}
    missing = [name for name in _COLUMNS if name not in fields]
    if missing:
        message = f"the object lacks {', '.join(missing)}; it has run, topic, measure and value"
        raise _BadLine("missing_field", message)
    return [_row(line, *(fields[name] for name in _COLUMNS))]


def _row(line: int, run: Any, topic: Any, measure: Any, value: Any) -> TableRow:
    for name, text in (("run", run), ("topic", topic), ("measure", measure)):
        if not isinstance(text, str) or not text:
            raise _BadLine("missing_field", f"{name} must be a text that is not empty")
        if _NOT_IN_ID.search(text) or len(text.encode()) > _MAX_ID_BYTES:
            message = f"{name} {text[:60]!r} has control characters, or more than 1,024 bytes"
            raise _BadLine("bad_field", message)

    return TableRow(line, run, topic, measure.removeprefix(PREFIX), _number(value))


def _number(value: Any) -> float | None:
    if value is None:
        return None

    if isinstance(value, str) and _NUMBER.fullmatch(value):
        number = float(value)
        if abs(number) <= MAX_VALUE:
            # A database may not keep the sign of a zero.
            return number + 0.0

    message = (
        f"{str(value)[:40]!r} is not a number from -{MAX_VALUE:g} to {MAX_VALUE:g}; write one such "
        "as 0.25, or null for none"
    )
    raise _BadLine("bad_value", message)
