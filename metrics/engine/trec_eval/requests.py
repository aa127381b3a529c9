"""The arguments of trec_eval's -m: `map`, `P.5,10`, `ndcg.1=3,2=9`, `all_trec`, or any name of the
grammar."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from metrics.engine.errors import MeasureError
from metrics.engine.judgement.gains import GainMap
from metrics.engine.measures.definition import MAX_CUTOFF
from metrics.engine.measures.grammar import Measure, parse_measure
from metrics.engine.trec_eval.table import (
    ENTRIES,
    GROUPS,
    NICKNAMES,
    PREFERENCES,
    TABLE,
    Entry,
    Takes,
    Version,
)

# A whole number as the C library reads it, without the decimals that follow.
_WHOLE = re.compile(r"\s*\+?([0-9]{1,7})(\.[0-9]*)?")
_NUMBER = re.compile(r"\s*[+-]?([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,2})?")
_LEVEL = re.compile(r"\+?[0-9]{1,9}")


@dataclass(frozen=True)
class Request:
    """A measure of the table with its parameters; `suffix` is what its name ends in, where it is
    not each number."""

    entry: Entry
    numbers: tuple[float, ...]
    gains: GainMap | None = None
    suffix: str = ""

    @property
    def names(self) -> list[str]:
        """Return the names of its lines: one for each depth or share."""
        name = self.entry.name
        if self.entry.takes is Takes.DEPTHS:
            return [f"{name}_{number:.0f}" for number in self.numbers]
        if self.entry.takes is Takes.SHARES:
            return [f"{name}_{number:3.2f}" for number in self.numbers]
        return [f"{name}_{self.suffix}" if self.suffix else name]


def read_requests(
    texts: Iterable[str], version: Version, level: int = 1, documents: int | None = None
) -> tuple[list[Request], list[Measure]]:
    """Return trec_eval's measures in its order and the others as they come, each once.

    Raise MeasureError for an invalid name.

    As in trec_eval, the first parameters given for a measure hold. The others take `level` where
    they name none, and `documents`, the size of the collection, where they need it.
    """
    parameters_of: dict[str, str | None] = {}
    others: dict[Measure, None] = {}
    for text in texts:
        name, point, parameters = text.partition(".")
        if name in NICKNAMES and not point:
            parameters_of = (
                dict.fromkeys(member for member in NICKNAMES[name] if _has(version, member))
                | parameters_of
            )
        elif name in ENTRIES:
            if not _has(version, name):
                raise MeasureError(
                    f"trec_eval {version} has no {name}; it came with version {ENTRIES[name].since}"
                )
            parameters_of[name] = parameters_of.get(name) or (parameters if point else None)
        elif name.startswith(PREFERENCES) or name.endswith(GROUPS):
            raise MeasureError(
                f"{name}: preferences and judgement groups are not read here; use trec_eval for "
                "them"
            )
        else:
            others[_at_level(parse_measure(text, documents), text, level)] = None

    return [
        _read(entry, parameters_of[entry.name]) for entry in TABLE if entry.name in parameters_of
    ], list(others)


def _at_level(measure: Measure, text: str, level: int) -> Measure:
    if "rel=" in text or measure.parameters.get("level") is not None:
        return measure

    values = tuple(
        (name, level if name == "rel" and value == 1 else value) for name, value in measure.values
    )
    return replace(measure, values=values)


def _has(version: Version, name: str) -> bool:
    return version in ("10", ENTRIES[name].since)


def _read(entry: Entry, parameters: str | None) -> Request:
    if parameters is None:
        return Request(entry, entry.default)
    if entry.takes is Takes.NOTHING:
        raise _refusal(f"{entry.name} takes no parameters, but .{parameters} was given")

    parts = parameters.split(",")
    if entry.takes is Takes.PAIRS:
        return _read_pairs(entry, parts, parameters)

    numbers = tuple(
        _whole(entry, part) if entry.takes is Takes.DEPTHS else _number(entry, part)
        for part in parts
    )
    if entry.takes is Takes.NUMBERS:
        return _together(entry, numbers, parameters)
    if len(set(numbers)) < len(numbers):
        raise _refusal(f"{entry.name}.{parameters} names a cutoff twice")

    if numbers and min(numbers) < 0:
        raise _refusal(f"{entry.name}.{parameters}: a share is 0 or more")
    return Request(entry, tuple(sorted(numbers)))


def _together(entry: Entry, numbers: tuple[float, ...], parameters: str) -> Request:
    """Return the request with these numbers instead of the default ones: as many, except for the
    points of an average."""
    if entry.name != "11pt_avg" and len(numbers) != len(entry.default):
        raise _refusal(
            f"{entry.name}.{parameters}: {entry.name} takes {len(entry.default)} numbers, not "
            f"{len(numbers)}"
        )
    return Request(entry, numbers, suffix=parameters)


def _read_pairs(entry: Entry, parts: list[str], parameters: str) -> Request:
    pairs = dict(part.partition("=")[::2] for part in parts)
    named_number = pairs.pop(entry.named, None) if entry.named else None
    invalid = [
        level
        for level, gain in pairs.items()
        if not (_LEVEL.fullmatch(level) and _NUMBER.fullmatch(gain))
    ]

    if invalid or len(pairs) + (named_number is not None) < len(parts):
        pair = f" or {entry.named}=number" if entry.named else ""
        raise _refusal(
            f"{entry.name}.{parameters}: write level=gain{pair}, each once, separated by commas"
        )

    numbers = () if named_number is None else (_number(entry, named_number),)
    if numbers and not 0 < numbers[0] < 1:
        raise _refusal(f"{entry.name}.{parameters}: {entry.named} is a number above 0 and below 1")
    gains = ",".join(f"{level}:{gain}" for level, gain in pairs.items())
    return Request(entry, numbers, GainMap.parse(gains) if gains else None, parameters)


def _whole(entry: Entry, text: str) -> int:
    match = _WHOLE.fullmatch(text)
    if not match or not 1 <= int(match[1]) <= MAX_CUTOFF:
        raise _refusal(f"{entry.name}: {text!r} is not a whole number from 1 to {MAX_CUTOFF}")
    return int(match[1])


def _number(entry: Entry, text: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise _refusal(f"{entry.name}: {text!r} is not a number")
    return float(text)


def _refusal(message: str) -> MeasureError:
    return MeasureError(message, code="bad_parameter")
