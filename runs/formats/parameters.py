r"""Parameters: the leaves of a run's metadata, each with a name and a type, and the costs of a run.

A dot in a key is nesting: {"bm25.k1": 0.9} is {"bm25": {"k1": 0.9}}. A dot inside a name is written
\. and a backslash \\. A list of mappings is flattened by `name` if each has a different one, else
by position, from 1.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from runs.errors import Unprocessable

MAX_KEY, MAX_PARTS, MAX_TEXT, MAX_LIST, MAX_LEAVES, MAX_COSTS = 200, 8, 6_000, 20, 300, 50
# Limits of metadata as a whole: characters of JSON, and levels of nesting.
MAX_JSON, MAX_DEPTH = 100_000, 20
# Characters at the beginning of a text by which it is searched.
SEARCHED = 200
# Integers with more digits are identifiers: a double does not hold them.
_MAX_DIGITS = 15
_COST_PARTS = ("value", "low", "high", "n")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_SPECIAL = re.compile(r"[\\.]")

Value = bool | int | float | str
Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Leaf:
    """A parameter: its dotted name, its value, and the keys and positions that lead to it."""

    name: str
    value: Value
    path: Path = ()


@dataclass(frozen=True)
class Flat:
    """The parameters of a run in the order of its metadata.

    `left_out` has the names of values that are stored but not searchable.
    """

    leaves: list[Leaf]
    left_out: list[str]


def split_name(name: str) -> list[str]:
    r"""Return the parts of a dotted name; \. is a dot and \\ a backslash inside a part."""
    if "\\" not in name:
        return name.split(".")

    parts, position = [""], 0
    while position < len(name):
        escaped = name[position] == "\\" and name[position + 1 : position + 2] in (".", "\\")
        position += escaped
        if name[position] == "." and not escaped:
            parts.append("")
        else:
            parts[-1] += name[position]

        position += 1

    return parts


def join_name(parts: list[str] | tuple[str, ...]) -> str:
    """Return the dotted name of its parts, in NFC."""
    name = ".".join(_SPECIAL.sub(r"\\\g<0>", part) for part in parts)
    return unicodedata.normalize("NFC", name)


def canonical_name(name: str) -> str:
    """Return the canonical spelling of a dotted name."""
    return join_name(split_name(name))


def fold(text: str) -> str:
    """Return the form of a text that is searched: its first 200 characters, case-folded."""
    return unicodedata.normalize("NFC", text).casefold()[:SEARCHED]


def nested(metadata: Mapping[str, Any], level: int = 0) -> dict[str, Any]:
    """Return metadata with a mapping for every dot in a key.

    Raise Unprocessable (key_conflict, bad_key) if a key has a value and keys below it, is given
    twice, has an empty part, or is more than 20 levels deep.
    """
    result: dict[str, Any] = {}

    for key, value in metadata.items():
        parts = split_name(key)
        depth = level + len(parts)

        if not all(part.strip() for part in parts):
            message = (
                f"the key {key[:60]!r} has an empty part; "
                "write a name on each side of a dot, or \\. for a dot"
            )
            raise Unprocessable(message, code="bad_key", pointer="/metadata")

        if depth > MAX_DEPTH:
            message = f"the key {key[:60]!r} lies {depth} levels deep; at most {MAX_DEPTH} are kept"
            raise Unprocessable(message, code="bad_key", pointer="/metadata")

        if isinstance(value, dict):
            value = nested(value, depth)
        elif isinstance(value, list):
            value = [nested(item, depth + 1) if isinstance(item, dict) else item for item in value]

        for part in reversed(parts):
            value = {join_name([part]): value}

        _join(result, value, "")

    return result


def _join(target: dict[str, Any], added: dict[str, Any], prefix: str) -> None:
    for key, value in added.items():
        name = f"{prefix}.{key}" if prefix else key
        if key not in target:
            target[key] = value
        elif isinstance(target[key], dict) and isinstance(value, dict):
            _join(target[key], value, name)
        else:
            message = (
                f"the key {name[:60]} is given twice, or with a value and with keys below it; "
                "give it once"
            )
            raise Unprocessable(message, code="key_conflict", pointer="/metadata")


def read_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata in the form that is stored, nested.

    Raise Unprocessable (not_finite, text_too_long, and the errors of `nested`).
    """
    result = nested(metadata)
    for parts, _, value in _walk(result, (), ()):
        for item in value if isinstance(value, list) else (value,):
            name = join_name(parts)[:60]
            if isinstance(item, float) and not math.isfinite(item):
                message = f"{name} is not a finite number; leave it out, or write it as a text"
                raise Unprocessable(message, code="not_finite", pointer="/metadata")

            if isinstance(item, str) and len(item) > MAX_TEXT:
                message = (
                    f"the text of {name} has {len(item):,} characters; "
                    f"at most {MAX_TEXT:,} are kept"
                )
                raise Unprocessable(message, code="text_too_long", pointer="/metadata")

    return result


def flatten(metadata: Mapping[str, Any] | None) -> Flat:
    """Return the parameters of any stored metadata.

    Values that are too long, too deep, not finite, given twice, or beyond 300 are left out.
    """
    leaves: dict[str, Leaf] = {}
    left_out = []

    for parts, path, raw in _walk(metadata or {}, (), ()):
        name, value = join_name(parts), _searchable(raw)
        fits = (
            all(parts)
            and len(parts) <= MAX_PARTS
            and len(name) <= MAX_KEY
            and not _CONTROL.search(name)
        )
        if value is None or not fits or name in leaves or len(leaves) >= MAX_LEAVES:
            left_out.append(name)
        else:
            leaves[name] = Leaf(name, value, path)

    return Flat(list(leaves.values()), left_out)


def _walk(
    value: Any, parts: tuple[str, ...], path: Path
) -> Iterator[tuple[tuple[str, ...], Path, Any]]:
    """Yield the parts of the name, the path and the value of everything that is set.

    A list of plain values is one value.
    """
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _walk(inner, (*parts, *split_name(key)), (*path, key))
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        names = [
            item["name"]
            for item in value
            if isinstance(item, dict) and isinstance(item.get("name"), str)
        ]
        if not len(value) == len(names) == len({*names} - {""}):
            names = [str(position) for position in range(1, len(value) + 1)]

        for position, (name, inner) in enumerate(zip(names, value, strict=True)):
            yield from _walk(inner, (*parts, name), (*path, position))
    elif value is not None:
        yield parts, path, value


def _searchable(value: Any) -> Value | None:
    """Return the value of a parameter, or None if it is not searchable."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) < 10**_MAX_DIGITS else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None

    if isinstance(value, list):
        value = compact(value) if len(value) <= MAX_LIST else None

    return value if value is not None and len(value) <= MAX_TEXT else None


def compact(value: Any) -> str:
    """Return compact JSON."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def merged_metadata(stored: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return stored metadata with a patch that `read_metadata` has read.

    Raise Unprocessable (too_large, and the errors of `nested` for metadata of an earlier release
    that cannot be nested).
    """
    merged: dict[str, Any] = merge_patch(nested(stored), patch)
    if len(compact(merged)) > MAX_JSON:
        message = (
            f"with this change the metadata would have more than {MAX_JSON:,} characters of JSON; "
            "remove something"
        )
        raise Unprocessable(message, code="too_large", pointer="/metadata")

    return merged


def merge_patch(target: Any, patch: Any) -> Any:
    """Apply a patch of RFC 7396: null removes a key, a list replaces the whole list."""
    if not isinstance(patch, dict):
        return patch

    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)

    return merged


def read_costs(costs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the costs of a run by normalised name. Raise Unprocessable (bad_cost).

    A cost is a number that is not negative, or {"value", "low", "high", "n"}: an interval around
    the value and the number of measurements.
    """
    if len(costs) > MAX_COSTS:
        raise _bad_cost(f"{len(costs)} costs; at most {MAX_COSTS} are kept")

    for name, cost in costs.items():
        if (
            not name.strip()
            or len(name) > MAX_KEY
            or _CONTROL.search(name)
            or _SPECIAL.search(name)
        ):
            raise _bad_cost(
                f"{name[:60]!r} cannot be the name of a cost; "
                "write one such as latency_ms, without a dot"
            )

        parts = cost if isinstance(cost, dict) else {"value": cost}
        if unknown := [key for key in parts if key not in _COST_PARTS]:
            raise _bad_cost(
                f"{name[:60]}: {unknown[0][:60]!r} is not known; "
                f"a cost has {', '.join(_COST_PARTS)}"
            )

        numbers = {key: parts[key] for key in ("low", "value", "high") if key in parts}
        for key, number in numbers.items():
            real = (
                isinstance(number, int | float)
                and not isinstance(number, bool)
                and abs(number) < 1e300
            )
            if not real or number < 0:
                raise _bad_cost(
                    f"{name[:60]}: {key} is not a finite number from 0 on, such as 12.1"
                )

        if "value" not in numbers or list(numbers.values()) != sorted(numbers.values()):
            raise _bad_cost(f"{name[:60]}: give the value, and where known low <= value <= high")

        n = parts.get("n", 1)
        if not isinstance(n, int) or isinstance(n, bool) or not 1 <= n <= 10**9:
            raise _bad_cost(
                f"{name[:60]}: n is the number of measurements, a whole number from 1 on"
            )

    return {unicodedata.normalize("NFC", name): cost for name, cost in costs.items()}


def _bad_cost(message: str) -> Unprocessable:
    return Unprocessable(message, code="bad_cost", pointer="/costs")


def cost_leaves(costs: Mapping[str, Any] | None) -> list[Leaf]:
    """Return the values of costs as parameters."""
    return [
        Leaf(name, cost["value"] if isinstance(cost, dict) else cost, (name,))
        for name, cost in (costs or {}).items()
    ]
