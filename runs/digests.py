"""Digests of stored values, bound to the objects to which they belong.

They are stored with the values and compared at every reading, so that a flipped bit or an exchanged
row is noticed. A CRC-32 detects every single flipped bit, every burst of up to 32, and all but one
in four thousand million of other changes; a mean's digest detects every change of one number. They
do not protect against people who can write to the database, because they could write the digest
too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from isal import isal_zlib

Integers = npt.NDArray[np.int64]

# Odd, so that multiplying loses no information: the multiplier of SplitMix64.
_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
_HALF = np.uint64(32)
# The digest of an unreadable value; other values never have it.
UNREADABLE = -1


def digest_of_bytes(owner: tuple[object, ...], *contents: bytes | memoryview[int]) -> int:
    """Return the CRC-32 of the contents, preceded by the object to which they belong.

    Return UNREADABLE for a text.
    """
    digest: int = isal_zlib.crc32(json.dumps([str(part) for part in owner]).encode())

    for content in contents:
        if isinstance(content, str):
            # SQLite returns text for bytes if a bit of the row's head was flipped.
            return UNREADABLE
        digest = isal_zlib.crc32(content, digest)

    return digest


def digest_of_vector(
    evaluation: int, qrels: int, measure: str, content: bytes | memoryview[int]
) -> int:
    """Return the digest of the values of one measure."""
    return digest_of_bytes(("vector", evaluation, qrels, measure), content)


def digest_of_depth(evaluation: int, qrels: int, files: str, depth: int) -> int:
    """Return the digest of the depth to which a run is judged, by judgements and files."""
    return digest_of_bytes(("depth", evaluation, qrels, files), str(depth).encode())


def digest_of_json(owner: tuple[object, ...], value: object) -> int:
    """Return the digest of a JSON value, or UNREADABLE if it is not a JSON value.

    It is the same for the value from either database: it ignores the order of keys and whether a
    number is written as 1 or 1.0.
    """
    try:
        return digest_of_bytes(
            owner, json.dumps(_without_formatting(value), sort_keys=True).encode()
        )
    except (OverflowError, TypeError, ValueError, RecursionError):
        return UNREADABLE


def digests_of_means(
    evaluations: Sequence[int],
    qrels: Sequence[int] | int,
    measures: Sequence[str] | str,
    means: Sequence[Any],
    topics: Sequence[int],
) -> Integers:
    """Return a digest for each mean, including None, with its number of topics.

    They are computed together, because a leaderboard reads thousands. Version of judgements and
    measure are one for all, or one for each. Every step is a bijection of each word, so that every
    change of one is detected.
    """
    names = [measures] if isinstance(measures, str) else measures
    seeds = {name: isal_zlib.crc32(name.encode()) for name in set(names)}
    state = np.array([seeds[name] for name in names], np.int64).view(np.uint64)

    # SQLite does not keep the sign of a zero.
    values = np.array(means, np.float64) + 0.0
    values[np.isnan(values)] = np.nan

    for word in (
        np.array(evaluations, np.int64),
        np.array(qrels, np.int64),
        values,
        np.array(topics, np.int64),
    ):
        state = (state ^ word.view(np.uint64)) * _FACTOR
        state ^= state >> _HALF

    return state.view(np.int64)


def _without_formatting(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_formatting(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [inner if isinstance(inner, str) else _without_formatting(inner) for inner in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) + 0.0
    return value
