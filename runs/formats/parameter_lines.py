"""Parameters and costs as lines `key = value`, as a form has them.

A value is a number, true, false, JSON in quotes or brackets, or else the text as it stands. A key
with an equals sign is in quotes.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping
from typing import Any

from runs.errors import Unprocessable
from runs.formats.parameters import (
    MAX_TEXT,
    Path,
    canonical_name,
    compact,
    flatten,
    merged_metadata,
    read_metadata,
)

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_MOST = 1_000
_QUOTED = ('"', "[", "{")


def write_lines(values: Mapping[str, Any]) -> str:
    """Return a line for each value by its dotted name."""
    return "".join(
        f"{_written_key(name)} = {written_value(value)}\n" for name, value in values.items()
    )


def _written_key(name: str) -> str:
    return compact(name) if "=" in name or name.startswith('"') or name != name.strip() else name


def written_value(value: Any) -> str:
    """Return a value as a line has it."""
    if not isinstance(value, str):
        return compact(value)
    plain = value == value.strip() and value.isprintable() and not value.startswith(_QUOTED)
    odd = not value or value in ("true", "false", "null") or _NUMBER.fullmatch(value)
    return compact(value) if odd or not plain else value


def read_lines(text: str, what: str) -> dict[str, Any]:
    """Return the values of lines by their names; empty lines are passed over. Raise Unprocessable (bad_line) with the
    number of a line that cannot be read; `what` names the lines."""
    found: dict[str, Any] = {}
    lines = [
        (number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()
    ]
    if len(lines) > _MOST:
        raise Unprocessable(
            f"{len(lines):,} lines of {what}; at most {_MOST:,} are read", code="bad_line"
        )
    for number, line in lines:
        name, value = _read_line(line, f"{what}, line {number}: ")
        if name in found:
            raise _bad(
                f"{what}, line {number}: ", f"{name[:60]} is there twice; keep one of the lines"
            )
        found[name] = value
    return found


def _read_line(line: str, where: str) -> tuple[str, Any]:
    if line.startswith('"'):
        try:
            name, end = json.JSONDecoder().raw_decode(line)
        except ValueError:
            raise _bad(where, "the quoted key is never closed") from None
        equals, rest = line[end:].lstrip()[:1], line[end:].lstrip()[1:]
    else:
        name, equals, rest = line.partition("=")
        name = name.strip()
    name, value = canonical_name(str(name)), rest.strip()
    if not equals:
        raise _bad(where, f"{line[:40]!r} has no =; write key = value")
    if not name.strip() or not value:
        missing = (
            "key before ="
            if not name.strip()
            else "value after =; leave the whole line out to remove the key"
        )
        raise _bad(where, f"there is no {missing}")
    return name, _read_value(value, where)


def _read_value(text: str, where: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    if text == "null":
        raise _bad(where, "null is not a value; leave the whole line out to remove the key")
    if not (text.startswith(_QUOTED) or _NUMBER.fullmatch(text)):
        if len(text) > MAX_TEXT:
            raise _bad(
                where, f"the text has {len(text):,} characters; at most {MAX_TEXT:,} are kept"
            )
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        message = f"{text[:40]!r} begins like JSON but cannot be read; write a text in quotes if it begins with {text[0]}"
        raise _bad(where, message) from None


def _bad(where: str, message: str) -> Unprocessable:
    return Unprocessable(f"{where}{message}", code="bad_line")


def shown_values(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the searched values of metadata by name, as they are stored: what the form can change."""
    return {leaf.name: _at(metadata, leaf.path) for leaf in flatten(metadata).leaves}


def edited(metadata: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata in which these are the searched values; what is not searched stays as it is.

    Raise Unprocessable for values that cannot be kept.
    """
    for name, value in values.items():
        if isinstance(value, dict):
            raise Unprocessable(f"{name[:60]}: write a line for each key below it", code="bad_line")
    made, known = copy.deepcopy(dict(metadata)), set()
    for leaf in flatten(metadata).leaves:
        known.add(leaf.name)
        *above, last = leaf.path
        holder = _at(made, tuple(above))
        if leaf.name in values:
            if compact(holder[last]) != compact(values[leaf.name]):
                holder[last] = values[leaf.name]
        elif isinstance(holder, dict):
            del holder[last]
        else:
            # A plain value beside mappings in a list, whose positions stay.
            holder[last] = None
    new = {name: value for name, value in values.items() if name not in known}
    if not new:
        return made
    return merged_metadata(made, read_metadata(new))


def _at(metadata: Any, path: Path) -> Any:
    for step in path:
        metadata = metadata[step]
    return metadata
