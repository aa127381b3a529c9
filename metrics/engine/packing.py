"""Named arrays as bytes to store: a header in JSON, then the arrays, whole numbers in the narrowest type that holds
them."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

import numpy as np

_HEADER = 8
# JSON is loaded where views are stored: a command that evaluates files does without.
_JSON = "json"


def pack(format: int, numbers: dict[str, int], arrays: Iterable[tuple[str, Any]]) -> bytes:
    """Return a compact form of some numbers and arrays, which `unpack` reads."""
    narrow = [(name, _smallest(array)) for name, array in arrays]
    shapes = [(name, array.dtype.str, len(array)) for name, array in narrow]
    header: bytes = import_module(_JSON).dumps({"format": format, **numbers, "arrays": shapes}).encode()
    return len(header).to_bytes(_HEADER, "little") + header + b"".join(array.tobytes() for _, array in narrow)


def unpack(stored: bytes, format: int, what: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the header and the arrays, int64 or float64, that `pack` wrote. Raise ValueError if they have another
    format."""
    size = int.from_bytes(stored[:_HEADER], "little")
    header = import_module(_JSON).loads(stored[_HEADER : _HEADER + size])
    if header["format"] != format:
        raise ValueError(f"{what} of format {header['format']}, this engine reads {format}")
    arrays: dict[str, Any] = {}
    offset = _HEADER + size
    for name, dtype, length in header.pop("arrays"):
        array = np.frombuffer(stored, dtype, length, offset)
        offset += array.nbytes
        arrays[name] = array.astype(np.float64 if array.dtype.kind == "f" else np.int64)
    return header, arrays


def _smallest(array: Any) -> Any:
    """Return the same numbers in the narrowest integer type that holds them; floats stay as they are."""
    if array.dtype.kind == "f":
        return array
    for narrow in (np.int8, np.int16, np.int32):
        if array.size == 0 or (np.iinfo(narrow).min <= array.min() and array.max() <= np.iinfo(narrow).max):
            return array.astype(narrow)
    return array
