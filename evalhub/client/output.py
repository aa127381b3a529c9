"""Format rows for a person or a program: table, json, jsonl, csv, tsv, with selected fields."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

from .display import text_of
from .errors import EvalHubError, suggestion

FORMATS = ("table", "json", "jsonl", "csv", "tsv")
# A spreadsheet runs a text that begins with one of these.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_FORMAT = re.compile(r"(\w+)(?:\((.*)\))?")


class BadFormat(EvalHubError):
    """A format or field that does not exist."""


def format_rows(rows: list[dict[str, Any]], format_text: str, *, upright: bool = False) -> str:
    """Return rows in a format such as `table`, `csv` or `json(tag,AP)`.

    Every format but `table` has numbers in full. An `upright` table has a line for each field of
    each row. Raise BadFormat for an unknown format or field.
    """
    match = check_format(format_text)
    names = list(dict.fromkeys(name for row in rows for name in row))
    if match[2] is not None:
        selected = names_in(match[2])
        if unknown := [name for name in selected if rows and name not in names]:
            hint = suggestion(unknown[0], names)
            raise BadFormat(
                f"there is no field {', '.join(unknown)}; the fields are {', '.join(names)}{hint}"
            )
        names = selected

    rows = [{name: row.get(name) for name in names} for row in rows]
    if match[1] == "json":
        return json.dumps(rows, indent=2, default=str) + "\n"
    if match[1] == "jsonl":
        return "".join(json.dumps(row, default=str) + "\n" for row in rows)

    if match[1] == "table" and upright:
        width = max(map(len, names), default=0)
        lines = [
            f"{name.ljust(width)}  {text_of(_cell(row[name]))}" for row in rows for name in names
        ]
        return "".join(f"{line.rstrip()}\n" for line in lines)

    if match[1] == "table":
        return _table(names, rows)

    out = io.StringIO()
    writer = csv.writer(out, delimiter="," if match[1] == "csv" else "\t", lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_escape_formula(_cell(row[name])) for name in names] for row in rows)

    return out.getvalue()


def check_format(format_text: str) -> re.Match[str]:
    """Return the format and its fields; raise BadFormat for an unknown format."""
    match = _FORMAT.fullmatch(format_text.strip())
    if match and match[1] in FORMATS:
        return match

    hint = suggestion(match[1] if match else format_text, FORMATS)
    raise BadFormat(
        f"unknown format {format_text!r}; use {', '.join(FORMATS)}, or name fields, as in "
        f"'json(tag,AP)'{hint}"
    )


def names_in(text: str) -> list[str]:
    """Return the names between commas; a name such as nDCG(b=2,dis='jk') may contain some."""
    names, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            names.append("")
        else:
            names[-1] += letter

    return [name.strip() for name in names if name.strip()]


def _cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict | list) else value


def _escape_formula(cell: Any) -> Any:
    """Return a cell that no spreadsheet runs as a formula, as in the CSV files of the server."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


def _table(names: list[str], rows: list[dict[str, Any]]) -> str:
    """Return aligned columns; numbers to the right, with four decimals."""
    if not rows:
        return ""

    lines = [""] * (len(rows) + 1)
    for name in names:
        texts = [name, *(text_of(_cell(row[name])) for row in rows)]
        width = max(map(len, texts))
        numeric = any(isinstance(row[name], int | float) for row in rows)
        for index, text in enumerate(texts):
            lines[index] += (text.rjust(width) if numeric else text.ljust(width)) + "  "

    return "".join(f"{line.rstrip()}\n" for line in lines)
