"""RankedBlock: a part of a run as a reader yields it: complete topics in arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metrics.engine.arrays import Bytes, Flags, Floats, Hashes, Ints, Positions
from metrics.engine.compiled.hashing import FINISH, MULTIPLIER, WORD

_SHIFT = np.uint64(32)


@dataclass(frozen=True)
class RankedBlock:
    """Complete topics of a run, rows in file order, doc ids as spans of `data`.

    Shapes: `topic_starts` has one entry per topic and one more (row offsets); the other arrays have
    one per row. `doc_hashes` comes from `hash_spans`, or an equal kernel, with the seed of the
    judgements with which it is compared.
    """

    data: Bytes
    topic_ids: list[bytes]
    topic_starts: Ints
    scores: Floats
    doc_starts: Positions
    doc_ends: Positions
    doc_hashes: Hashes

    def topics_of(self, rows: Ints) -> Ints:
        """Return the topic, as an index into `topic_ids`, of each row."""
        topics: Ints = np.searchsorted(self.topic_starts, rows, side="right") - 1
        return topics

    def rows_of(self, topics: Ints) -> Ints:
        """Return all rows of some topics, in order."""
        starts, sizes = self.topic_starts[topics], np.diff(self.topic_starts)[topics]
        offsets = np.cumsum(sizes) - sizes
        rows: Ints = np.arange(int(sizes.sum())) + np.repeat(starts - offsets, sizes)
        return rows


def span_words(data: Bytes, starts: Positions, ends: Positions, index: int) -> Hashes:
    """Return the index-th eight bytes of every span as one little-endian number, zeros past a
    span's end."""
    words = np.zeros(len(starts), np.uint64)
    last = len(data) - 1
    for offset in range(WORD):
        positions = starts + (index * WORD + offset)
        byte = data[np.minimum(positions, last)].astype(np.uint64)
        words |= np.where(positions < ends, byte, np.uint64(0)) << np.uint64(8 * offset)

    return words


def hash_spans(data: Bytes, starts: Positions, ends: Positions, seed: int) -> Hashes:
    """Return a seeded 64-bit hash of every span, computed in steps of eight bytes; the scanning
    kernel computes the same."""
    lengths = ends - starts
    hashes = np.full(len(starts), np.uint64(seed))
    for index in range(-(-int(lengths.max(initial=0)) // WORD)):
        mixed = (hashes ^ span_words(data, starts, ends, index)) * MULTIPLIER
        hashes = np.where(lengths > index * WORD, mixed ^ (mixed >> _SHIFT), hashes)

    finished = (hashes ^ lengths.astype(np.uint64)) * FINISH
    return finished ^ (finished >> _SHIFT)


def descending_id_keys(data: Bytes, starts: Positions, ends: Positions) -> list[Hashes]:
    """Return sort keys, most significant first, that order spans bytewise descending under an
    ascending sort.

    Ids contain no NUL byte, so padding with zeros on the right orders a prefix before its
    continuations.
    """
    words = -(-int((ends - starts).max(initial=0)) // WORD)
    return [~span_words(data, starts, ends, index).byteswap() for index in range(words)]


def spans_equal(
    data: Bytes,
    starts: Positions,
    ends: Positions,
    other_data: Bytes,
    other_starts: Positions,
    other_ends: Positions,
) -> Flags:
    """Return whether span i of `data` has the same bytes as span i of
    `other_data`."""
    lengths = ends - starts
    equal: Flags = lengths == other_ends - other_starts
    candidates = np.flatnonzero(equal)
    for position in range(int(lengths.max(initial=0))):
        candidates = candidates[lengths[candidates] > position]
        if not len(candidates):
            break
        same = (
            data[starts[candidates] + position] == other_data[other_starts[candidates] + position]
        )
        equal[candidates[~same]] = False
        candidates = candidates[same]

    return equal
