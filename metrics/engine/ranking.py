"""RankedBlock: a part of a run as a reader yields it, whole topics in arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Hashes = npt.NDArray[np.uint64]

WORD = 8
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_FINISH = np.uint64(0xC2B2AE3D27D4EB4F)
_SHIFT = np.uint64(32)


@dataclass(frozen=True, slots=True)
class RankedBlock:
    """Complete topics of a run, rows in file order, doc ids as spans of `data`.

    Shapes: `topic_starts` has one entry per topic and one more (row offsets); the other arrays have one per row.
    `doc_hashes` comes from `hash_spans`, or a kernel equal to it, under the seed of the judgements it will meet.
    """

    data: Bytes
    topic_ids: list[bytes]
    topic_starts: Ints
    scores: Floats
    doc_starts: Ints
    doc_ends: Ints
    doc_hashes: Hashes


def span_words(data: Bytes, starts: Ints, ends: Ints, index: int) -> Hashes:
    """The index-th eight bytes of every span as one big-endian number; bytes past a span's end are left out."""
    words = np.zeros(len(starts), np.uint64)
    last = len(data) - 1
    for position in range(index * WORD, (index + 1) * WORD):
        at = starts + position
        inside = at < ends
        byte = data[np.minimum(at, last)].astype(np.uint64)
        words = np.where(inside, (words << np.uint64(8)) | byte, words)
    return words


def hash_spans(data: Bytes, starts: Ints, ends: Ints, seed: int) -> Hashes:
    """A seeded 64-bit hash of every span, eight bytes a step; the scanning kernel computes the same."""
    lengths = ends - starts
    hashes = np.full(len(starts), np.uint64(seed))
    for index in range(-(-int(lengths.max(initial=0)) // WORD)):
        mixed = (hashes ^ span_words(data, starts, ends, index)) * _MULTIPLIER
        hashes = np.where(lengths > index * WORD, mixed ^ (mixed >> _SHIFT), hashes)
    finished = (hashes ^ lengths.astype(np.uint64)) * _FINISH
    return finished ^ (finished >> _SHIFT)


def descending_id_keys(data: Bytes, starts: Ints, ends: Ints) -> list[Hashes]:
    """Sort keys, most significant first, that order spans bytewise descending under an ascending sort.

    Ids hold no NUL byte, so padding with zeros on the right orders a prefix before what it begins.
    """
    keys = []
    for index in range(-(-int((ends - starts).max(initial=0)) // WORD)):
        words = np.zeros(len(starts), np.uint64)
        for position in range(index * WORD, (index + 1) * WORD):
            at = starts + position
            byte = np.where(at < ends, data[np.minimum(at, len(data) - 1)], 0).astype(np.uint64)
            words = (words << np.uint64(8)) | byte
        keys.append(~words)
    return keys


def spans_equal(data: Bytes, starts: Ints, ends: Ints, other: Bytes, other_starts: Ints, other_ends: Ints) -> Flags:
    """Whether span i of `data` holds the same bytes as span i of `other`."""
    lengths = ends - starts
    equal: Flags = lengths == other_ends - other_starts
    candidates = np.flatnonzero(equal)
    for position in range(int(lengths.max(initial=0))):
        candidates = candidates[lengths[candidates] > position]
        if not len(candidates):
            break
        same = data[starts[candidates] + position] == other[other_starts[candidates] + position]
        equal[candidates[~same]] = False
        candidates = candidates[same]
    return equal
