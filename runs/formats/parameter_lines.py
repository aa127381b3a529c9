"""Parameters and costs as lines `key = value`, for forms.

A value is a number, true, false, JSON in quotes or brackets, or else a text. A key with an equals
sign is in quotes.
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
    """Return the text of a value in a line."""
    if not isinstance(value, str):
        return compact(value)

    plain = value == value.strip() and value.isprintable() and not value.startswith(_QUOTED)
    ambiguous = not value or value in ("true", "false", "null") or _NUMBER.fullmatch(value)
    return compact(value) if ambiguous or not plain else value


def read_lines(text: str, source: str) -> dict[str, Any]:
    """Return the values of lines by their names; empty lines are ignored.

    Raise Unprocessable (bad_line) with the number of a line that cannot be read. `source` names the
    lines in messages.
    """
    values: dict[str, Any] = {}
    lines = [
        (number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()
    ]
    if len(lines) > _MOST:
        raise Unprocessable(
            f"{len(lines):,} lines of {source}; at most {_MOST:,} are read", code="bad_line"
        )

    for number, line in lines:
        where = f"{source}, line {number}: "
        name, value = _read_line(line, where)
        if name in values:
            raise _bad_line(where, f"{name[:60]} is there twice; keep one of the lines")
        values[name] = value

    return values


def _read_line(line: str, where: str) -> tuple[str, Any]:
    if line.startswith('"'):
        try:
            name, end = json.JSONDecoder().raw_decode(line)
        except ValueError:
            raise _bad_line(where, "the quoted key is never closed") from None
        equals, rest = line[end:].lstrip()[:1], line[end:].lstrip()[1:]
    else:
        name, equals, rest = line.partition("=")
        name = name.strip()

    name, value = canonical_name(str(name)), rest.strip()
    if not equals:
        raise _bad_line(where, f"{line[:40]!r} has no =; write key = value")
    if not name.strip():
        raise _bad_line(where, "there is no key before =")

    if not value:
        raise _bad_line(
            where, "there is no value after =; leave the whole line out to remove the key"
        )

    return name, read_value(value, where)


def read_value(text: str, where: str) -> Any:
    """Return the value that a text stands for. Raise Unprocessable (bad_line) if it is none."""
    if text in ("true", "false"):
        return text == "true"
    if text == "null":
        raise _bad_line(where, "null is not a value; leave the whole line out to remove the key")

    if not (text.startswith(_QUOTED) or _NUMBER.fullmatch(text)):
        if len(text) > MAX_TEXT:
            raise _bad_line(
                where, f"the text has {len(text):,} characters; at most {MAX_TEXT:,} are kept"
            )
        return text

    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        message = (
            f"{text[:40]!r} begins like JSON but cannot be read; "
            f"write a text in quotes if it begins with {text[0]}"
        )
        raise _bad_line(where, message) from None


def _bad_line(where: str, message: str) -> Unprocessable:
    return Unprocessable(f"{where}{message}", code="bad_line")


def shown_values(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the searchable values of metadata by name, as stored: the form can change these."""
    return {leaf.name: _at(metadata, leaf.path) for leaf in flatten(metadata).leaves}


def edited(metadata: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata with these as its searchable values; other values stay as they are.

    Raise Unprocessable for values that are not permitted.
    """
    for name, value in values.items():
        if isinstance(value, dict):
            raise Unprocessable(f"{name[:60]}: write a line for each key below it", code="bad_line")

    result, old_names = copy.deepcopy(dict(metadata)), set()
    for leaf in flatten(metadata).leaves:
        old_names.add(leaf.name)
        *above, last = leaf.path
        parent = _at(result, tuple(above))

        if leaf.name in values:
            if compact(parent[last]) != compact(values[leaf.name]):
                parent[last] = values[leaf.name]
        elif isinstance(parent, dict):
            del parent[last]
        else:
            # A plain value among mappings in a list, which keep their positions.
            parent[last] = None

    new = {name: value for name, value in values.items() if name not in old_names}
    if not new:
        return result

    return merged_metadata(result, read_metadata(new))


def _at(metadata: Any, path: Path) -> Any:
    for step in path:
        metadata = metadata[step]
    return metadata
