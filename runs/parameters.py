"""Read single parameters of a query string, with an error that names the parameter."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from typing import TypeVar

from metrics.engine.errors import MeasureError
from metrics.engine.measures.spelling import closest
from runs.errors import InvalidInput

# The largest offset of any list.
MAX_OFFSET = 1_000_000
# The most values of one parameter.
MAX_VALUES = 50
_TRUE = ("true", "True", "1")
_FLAGS = (*_TRUE, "false", "False", "0")
_T = TypeVar("_T")


def integer_in(parameters: Mapping[str, str], name: str, default: int, low: int, high: int) -> int:
    """Return the whole number of a parameter, or the default.

    Raise InvalidInput if it is not a whole number from `low` to `high`.
    """
    text = parameters.get(name) or str(default)
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and low <= int(text) <= high):
        raise InvalidInput(
            f"{name}={text[:40]}: {name} is a whole number from {low} to {high}", pointer=name
        )

    return int(text)


def number_in(name: str, text: str, low: float, high: float) -> float:
    """Return the number in `text`.

    Raise InvalidInput if it is not a number from `low` to `high`.
    """
    try:
        number = float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        number = math.nan

    if not low <= number <= high:
        bounds = f"from {low:g} to {high:g}" if high < sys.float_info.max else f"of {low:g} or more"
        raise InvalidInput(f"{name}={text[:40]}: {name} is a number {bounds}", pointer=name)

    return number


def choice_in(parameters: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str | None:
    """Return which of the choices is given, or None if the parameter is empty."""
    text = parameters.get(name)
    if text and text not in choices:
        near = closest(text, choices)
        suggestion = f"; did you mean {near!r}?" if near else ""
        raise InvalidInput(
            f"{name}={text[:40]!r}: {name} is one of {', '.join(choices)}{suggestion}", pointer=name
        )

    return text or None


def flag_in(parameters: Mapping[str, str], name: str, *, default: bool = False) -> bool:
    flag = choice_in(parameters, name, _FLAGS)
    return flag in _TRUE if flag else default


def one_of(parameters: Mapping[str, str], name: str, other: str) -> str:
    """Return which of two alternative names of a parameter is given."""
    if parameters.get(name) and parameters.get(other):
        message = f"{name} and {other} are the same parameter: give only one of them"
        raise InvalidInput(message, code="repeated_parameter", pointer=other)
    return name if parameters.get(name) else other


def several_in(
    parameters: Mapping[str, str], name: str, read: Callable[[str], _T], separator: str = ","
) -> list[_T]:
    """Return the values of a list without repetitions. Errors name the parameter."""
    parts = [part.strip() for part in parameters.get(name, "").split(separator)]
    parts = list(dict.fromkeys(part for part in parts if part))
    if len(parts) > MAX_VALUES:
        message = f"{name}: {len(parts)} values; at most {MAX_VALUES} at once"
        raise InvalidInput(message, code="too_many_values", pointer=name)

    try:
        return [read(part) for part in parts]
    except MeasureError as error:
        raise pointed(error, name) from error


def pointed(error: MeasureError, name: str) -> MeasureError:
    """Return the error with the parameter to which it points."""
    return MeasureError(error.message, code=error.code, pointer=name)
