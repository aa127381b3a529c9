"""Rows as a person or a program reads them: table, json, jsonl, csv, tsv, with the fields that are asked for."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

from .display import text_of
from .errors import EvalHubError, suggestion

FORMATS = ("table", "json", "jsonl", "csv", "tsv")
# A spreadsheet runs a text that begins so.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_ASKED = re.compile(r"(\w+)(?:\((.*)\))?")


class BadFormat(EvalHubError):
    """A format or field that there is not."""


def rendered(rows: list[dict[str, Any]], asked: str, *, upright: bool = False) -> str:
    """Return rows in a format such as `table`, `csv` or `json(tag,AP)`; BadFormat for what there is not.

    Every format but `table` has numbers in full. An `upright` table has a line for each field of
    each row.
    """
    match = check_format(asked)
    names = list(dict.fromkeys(name for row in rows for name in row))
    if match[2] is not None:
        wanted = names_in(match[2])
        if unknown := [name for name in wanted if rows and name not in names]:
            near = suggestion(unknown[0], names)
            raise BadFormat(
                f"there is no field {', '.join(unknown)}; the fields are {', '.join(names)}{near}"
            )

        names = wanted

    kept = [{name: row.get(name) for name in names} for row in rows]
    if match[1] == "json":
        return json.dumps(kept, indent=2, default=str) + "\n"
    if match[1] == "jsonl":
        return "".join(json.dumps(row, default=str) + "\n" for row in kept)

    if match[1] == "table" and upright:
        width = max(map(len, names), default=0)
        lines = [
            f"{name.ljust(width)}  {text_of(_cell(row[name]))}" for row in kept for name in names
        ]
        return "".join(f"{line.rstrip()}\n" for line in lines)

    if match[1] == "table":
        return _table(names, kept)

    out = io.StringIO()
    writer = csv.writer(out, delimiter="," if match[1] == "csv" else "\t", lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_neutral(_cell(row[name])) for name in names] for row in kept)

    return out.getvalue()


def check_format(asked: str) -> re.Match[str]:
    """Return the parts of a format; BadFormat for one that there is not."""
    match = _ASKED.fullmatch(asked.strip())
    if match and match[1] in FORMATS:
        return match

    near = suggestion(match[1] if match else asked, FORMATS)
    raise BadFormat(
        f"unknown format {asked!r}; use {', '.join(FORMATS)}, or name fields, as in "
        f"'json(tag,AP)'{near}"
    )


def names_in(text: str) -> list[str]:
    """Return the names between commas; commas within brackets, as of nDCG(b=2,dis='jk'), belong to a name."""
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


def _neutral(cell: Any) -> Any:
    """Return a cell that no spreadsheet runs as a formula, as in the server's own CSV files; numbers stay numbers."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


def _table(names: list[str], rows: list[dict[str, Any]]) -> str:
    """Return aligned columns; numbers to the right, with four decimals."""
    if not rows:
        return ""

    cells = [[text_of(_cell(row[name])) for name in names] for row in rows]
    widths = [
        max(len(name), *(len(row[index]) for row in cells)) for index, name in enumerate(names)
    ]
    right = [any(isinstance(row[name], int | float) for row in rows) for name in names]
    lines = [
        "  ".join(
            text.rjust(width) if left else text.ljust(width)
            for text, width, left in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in [names, *cells]
    ]

    return "\n".join(lines) + "\n"
