"""Named arrays as bytes to store: a header in JSON, then arrays of the narrowest integer types."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np

# In the first format the bytes of each number are together. In this one the first bytes of all
# numbers of an array come before their second bytes: similar bytes are together, and compress
# better and faster.
FIRST, FORMAT = 1, 2
_HEADER = 8
_NARROW = [(kind, np.iinfo(kind).min, np.iinfo(kind).max) for kind in (np.int8, np.int16, np.int32)]


def pack(numbers: dict[str, int], arrays: Iterable[tuple[str, Any]]) -> bytes:
    """Return a compact form of some numbers and arrays, which `unpack` reads."""
    narrow = [(name, _smallest(array)) for name, array in arrays]
    shapes = [(name, array.dtype.str, len(array)) for name, array in narrow]
    header = json.dumps({"format": FORMAT, **numbers, "arrays": shapes}).encode()
    planes = [array.view(np.uint8).reshape(-1, array.itemsize).T.tobytes() for _, array in narrow]
    return len(header).to_bytes(_HEADER, "little") + header + b"".join(planes)


def unpack(stored: bytes, kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the header, with its `format`, and the arrays (int64 or float64) that `pack` wrote.
    Raise ValueError for a later version."""
    size = int.from_bytes(stored[:_HEADER], "little")
    header = json.loads(stored[_HEADER : _HEADER + size])
    if header["format"] not in (FIRST, FORMAT):
        raise ValueError(f"{kind} of format {header['format']}, this engine reads up to {FORMAT}")

    arrays: dict[str, Any] = {}
    offset = _HEADER + size
    for name, dtype, length in header.pop("arrays"):
        array = np.frombuffer(stored, dtype, length, offset)
        offset += array.nbytes
        if header["format"] != FIRST:
            array = _from_planes(array)
        arrays[name] = array.astype(np.float64 if array.dtype.kind == "f" else np.int64)

    return header, arrays


def _from_planes(array: Any) -> Any:
    if array.itemsize == 1:
        return array

    planes = array.view(np.uint8).reshape(array.itemsize, -1)
    numbers = np.empty(planes.shape[::-1], np.uint8)
    # Plane by plane: a transposed copy takes three times as long.
    for byte, plane in enumerate(planes):
        numbers[:, byte] = plane

    return numbers.view(array.dtype)[:, 0]


def _smallest(array: Any) -> Any:
    """Return the same numbers in the narrowest integer type that holds them; floats stay as they
    are."""
    if array.dtype.kind == "f":
        return array
    if array.size == 0:
        return array.astype(np.int8)

    low, high = int(array.min()), int(array.max())
    for narrow, lowest, highest in _NARROW:
        if lowest <= low and high <= highest:
            return array.astype(narrow)

    return array
