"""JSON in its canonical form (RFC 8785, JSON Canonicalization Scheme): one text for each value.

Names of an object are in the order of their UTF-16 code units, there is no white space between
tokens, and numbers are written as in ECMAScript: the shortest digits that read as the same double.
"""

from __future__ import annotations

import json
import math
from typing import Any

# Larger whole numbers are not all doubles, and another reader would read another number.
_LARGEST = 2**53 - 1
_ESCAPED = {
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\f": "\\f",
    "\r": "\\r",
    '"': '\\"',
    "\\": "\\\\",
}


def canonical(value: Any) -> bytes:
    """Return the canonical text of a value of JSON types.

    Raise ValueError for values without one: NaN, infinity, a whole number beyond 2^53, half of a
    surrogate pair, or a name that is not text.
    """
    return _text(value).encode()


def is_canonical(text: bytes) -> bool:
    """Return whether a text is the canonical text of its value."""
    try:
        # All numbers of JSON are doubles here, also those without a point.
        return canonical(json.loads(text, parse_int=float)) == text
    except (ValueError, RecursionError):
        return False


def number_text(value: float) -> str:
    """Return the text of a double, like Number.prototype.toString of ECMAScript."""
    if not math.isfinite(value):
        raise ValueError(f"{value} is not a number of JSON")
    if value == 0:
        return "0"

    sign = "-" if value < 0 else ""

    # Python and ECMAScript choose the same digits: the shortest that read as the same double.
    mantissa, _, exponent = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")

    # The value is 0.digits times ten to this power.
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    if len(digits) <= point <= 21:
        return f"{sign}{digits}{'0' * (point - len(digits))}"
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"

    power = f"e{'+' if point > 0 else '-'}{abs(point - 1)}"
    return f"{sign}{digits[0]}{'.' if digits[1:] else ''}{digits[1:]}{power}"


def _text(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]

    if isinstance(value, int):
        if abs(value) > _LARGEST:
            raise ValueError(
                f"{value} is beyond the whole numbers that every reader of JSON reads the same"
            )
        return str(value)

    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_text, value)) + "]"

    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
        raise ValueError(
            f"a {type(value).__name__} is not a value of JSON, "
            "whose objects have names that are texts"
        )

    names = sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
    return "{" + ",".join(f"{_quoted(name)}:{_text(value[name])}" for name in names) + "}"


def _quoted(text: str) -> str:
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("half of a surrogate pair is not a character")

    escaped = (
        _ESCAPED.get(character) or (character if character >= " " else f"\\u{ord(character):04x}")
        for character in text
    )
    return f'"{"".join(escaped)}"'
