"""Parameters and costs of runs as CSV: a row for each run, a column for each parameter.

The columns `tag` and `team`, or `run` with ids, say which run a row is about. Every other column is
a parameter, `k1` or `param:k1`, or a cost, `cost:latency_ms`. A cell is a value as in the lines of
a form; an empty cell says that the run does not have the parameter.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from runs.errors import FileReport, FileTooLarge, Unprocessable
from runs.formats.comma_separated import neutral, write_csv
from runs.formats.parameter_lines import read_value, written_value
from runs.formats.parameters import MAX_KEY, canonical_name, nested

MAX_BYTES, MAX_ROWS = 2 * 1024 * 1024, 1_000
PARAM, COST = "param", "cost"
_RUN_COLUMNS = ("run", "team", "tag")
# Spreadsheets copy cells with tabs, and some write CSV with semicolons.
_DELIMITERS = ("\t", ";")

# Space and name of a parameter or cost.
Key = tuple[str, str]


@dataclass(frozen=True)
class TableRow:
    """A row: its first line in the file, the run that it names, and the values by key.

    The value is None for an empty cell.
    """

    line: int
    run: str = ""
    team: str = ""
    tag: str = ""
    values: dict[Key, Any] = field(default_factory=dict)


def column_of(space: str, name: str) -> str:
    """Return the name of the column of a parameter or a cost."""
    plain = space == PARAM and name not in _RUN_COLUMNS and not name.startswith(("param:", "cost:"))
    return name if plain and name == name.strip() else f"{space}:{name}"


def write_table(keys: Iterable[Key], rows: Iterable[tuple[str, str, Mapping[Key, Any]]]) -> str:
    """Write the team, the tag and the values of each run, as `read_table` reads them."""
    keys = list(keys)
    return "".join(
        write_csv(
            ["team", "tag", *(column_of(*key) for key in keys)],
            ([team, tag, *(_cell(values.get(key)) for key in keys)] for team, tag, values in rows),
        )
    )


def _cell(value: Any) -> Any:
    if value is None or isinstance(value, bool | float):
        return value
    return value if isinstance(value, int) else written_value(value)


def read_table(content: bytes) -> list[TableRow]:
    """Return the rows of a CSV.

    Raise InvalidFile with the line and the column of each problem, FileTooLarge beyond a limit.
    """
    if len(content) > MAX_BYTES:
        raise FileTooLarge(f"the CSV is larger than the limit of {MAX_BYTES:,} bytes")

    report = FileReport()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        report.problem(line, "undecodable_bytes", "this line is not UTF-8; save the CSV as UTF-8")
        report.check()
        raise

    records = _records(text, report)
    number, head = next(records, (1, []))
    columns = _read_head(number, head, report)
    report.check()

    rows: list[TableRow] = []
    for number, cells in records:
        if len(rows) >= MAX_ROWS:
            message = f"there are more than {MAX_ROWS:,} rows; upload them in parts"
            report.problem(number, "too_many_rows", message)
            break

        if len(cells) != len(columns):
            message = f"{len(cells)} cells; the first line has {len(columns)} columns"
            report.problem(number, "wrong_columns", message)
        else:
            rows.append(_read_row(number, columns, cells, report))
        report.stop_when_full(number)

    report.check()
    return rows


def _records(text: str, report: FileReport) -> Iterator[tuple[int, list[str]]]:
    """Yield the first line and the cells of each record that is not empty."""
    head = text.lstrip().partition("\n")[0]
    delimiter = next((sign for sign in _DELIMITERS if sign in head), ",")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = 1

    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield line, [_plain(cell.strip()) for cell in cells]
            line = reader.line_num + 1
    except csv.Error as error:
        message = f"this is not CSV ({error}); put a cell with quotes or commas into quotes"
        report.problem(line, "bad_csv", message)


def _plain(cell: str) -> str:
    """Remove the apostrophe that keeps a spreadsheet from running a text as a formula."""
    return cell[1:] if cell.startswith("'") and neutral(cell[1:]) == cell else cell


def _read_head(number: int, head: list[str], report: FileReport) -> list[str | Key]:
    """Return what each column is: one of run, team and tag, or the key of a value."""
    columns: list[str | Key] = []
    for position, name in enumerate(head, 1):
        column: str | Key = name.lower()
        if column not in _RUN_COLUMNS:
            column = _read_key(name)
            problem = _problem_of_key(column)
            if problem:
                report.problem(number, "bad_column", f"column {position}: {problem}")

        if column in columns:
            report.problem(number, "bad_column", f"column {name[:60]} is there twice; keep one")
        columns.append(column)

    if "run" not in columns and "tag" not in columns:
        message = "the first line has the names of the columns: tag, and one for each parameter"
        report.problem(number, "bad_column", message)
    elif "run" in columns and "tag" in columns:
        report.problem(number, "bad_column", "name the runs by run or by tag, not by both")

    return columns


def _read_key(name: str) -> Key:
    space, colon, rest = name.partition(":")
    if not colon or space not in (PARAM, COST):
        space, rest = PARAM, name

    rest = rest.strip()
    return space, canonical_name(rest) if space == PARAM else rest


def _problem_of_key(key: Key) -> str:
    _, name = key
    if not name:
        return "it has no name; write that of a parameter, such as k1"
    if len(name) > MAX_KEY:
        return f"the name has {len(name):,} characters; at most {MAX_KEY} are searched"

    try:
        nested({name: None})
    except Unprocessable as error:
        return error.message
    return ""


def _read_row(
    number: int, columns: list[str | Key], cells: list[str], report: FileReport
) -> TableRow:
    names: dict[str, str] = {}
    values: dict[Key, Any] = {}

    for column, cell in zip(columns, cells, strict=True):
        if isinstance(column, str):
            names[column] = cell
        elif not cell:
            values[column] = None
        elif cell.lower() in ("true", "false"):
            values[column] = cell.lower() == "true"
        else:
            try:
                values[column] = read_value(cell, f"column {column_of(*column)}: ")
            except Unprocessable as error:
                report.problem(number, error.code, error.message)

    if not names.get("run") and not names.get("tag"):
        report.problem(number, "unknown_run", "this row names no run")
    return TableRow(number, **names, values=values)
