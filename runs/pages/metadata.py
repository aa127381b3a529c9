"""Metadata as lines of a form: `key = value`."""

from __future__ import annotations

import json
from typing import Any

from runs.errors import InvalidInput


def metadata_in(text: str) -> Any:
    """Return the metadata of lines such as `k1 = 0.9`; the text itself if it is JSON, which a serializer reads.

    A value is JSON where it can be: a number, `true`, a list, a text in quotation marks; else it is text. Raise
    InvalidInput, with the number of the line, for a line without a key.
    """
    if text.lstrip().startswith("{"):
        return text
    found: dict[str, Any] = {}
    for number, line in enumerate(text.splitlines(), 1):
        key, sign, value = (part.strip() for part in line.partition("="))
        if not line.strip():
            continue
        if not key or not sign:
            message = f"line {number}: write a key, an equals sign and a value, as in: k1 = 0.9"
            raise InvalidInput(message, pointer="/metadata")
        if key in found:
            raise InvalidInput(f"line {number}: {key[:100]} is given twice", pointer="/metadata")
        try:
            found[key] = json.loads(value)
        except (ValueError, RecursionError):
            found[key] = value
    return found
