"""Scan a file with the compiled code of `runs.formats.scanning.kernels.scanning`."""

from __future__ import annotations

import numpy as np

from metrics.engine.machine_code import Kernel
from metrics.engine.ranking import Ints
from runs.formats.limits import Limits
from runs.formats.scanning.columns import Columns, Layout, find_duplicates_exactly
from runs.formats.scanning.notes import ABSENT

_MODULE = "runs.formats.scanning.kernels.scanning"
_SCAN = Kernel(
    _MODULE,
    "scan",
    "uint64(uint8[::1], uint64[::1], uint64, uint64, uint64, uint64[::1], int64, uint64, uint64, uint64, uint64[::1], "
    "uint64[::1], int32[::1], int32[::1], int32[:, ::1], uint64[::1], float64[::1], int64[::1])",
)
_LAST_TOPIC = Kernel(_MODULE, "last_topic", "uint64(uint8[::1], uint64)")
_DUPLICATES = Kernel(
    _MODULE,
    "duplicates",
    "int64(uint8[::1], int32[:, ::1], uint64[::1], int64[::1], int64[::1], int64[::1], int64[::1])",
)
KERNELS = (_SCAN, _LAST_TOPIC, _DUPLICATES)
_BLOCK = 64
_SPACE, _LF, _DELETE = 32, 10, b"\x7f"


def scan(content: bytes, size: int, layout: Layout, first_line: int, seed: int, limits: Limits) -> Columns:
    """Return the columns of whole lines, the first `size` bytes, with padding somewhere after them."""
    data = np.frombuffer(content, np.uint8)
    blanks = np.packbits(data[: len(data) - len(data) % _BLOCK] <= _SPACE, bitorder="little").view("<u8")
    lines = int(np.count_nonzero(data[:size] == _LF)) + 1
    line, notes = np.empty(lines, np.int32), np.empty(lines, np.int32)
    spans, hashes = np.empty((lines, 8), np.int32), np.empty(lines, np.uint64)
    number, rank = np.empty(lines, np.float64), np.empty(lines, np.int64)
    places = np.array([layout.topic, layout.document, layout.number, layout.label, layout.rank], np.uint64)
    rows = _SCAN(
        data, blanks, size, _DELETE in content, layout.columns, places, first_line, seed, limits.id_length,
        limits.line_length, *np.zeros((2, ABSENT + 1), np.uint64),
        line, notes, spans, hashes, number, rank,
    )  # fmt: skip
    return Columns(data, line, notes, spans, hashes, number, rank).take(slice(rows))


def last_topic(content: bytes, size: int) -> int:
    """Return where the last topic of some lines begins, 0 if they have only one, their end if none has a topic."""
    return int(_LAST_TOPIC(np.frombuffer(content, np.uint8), content.rfind(b"\n", 0, size) + 1))


def find_duplicates(columns: Columns, topic_starts: Ints) -> tuple[Ints, Ints]:
    """Return rows that repeat a document of their topic, in order: the document's first row, and the row that repeats
    it."""
    largest = int(np.diff(topic_starts).max(initial=1))
    # Twice the largest topic, so that probing stays short; rows of an earlier topic count as free places.
    bits = max(4, (2 * largest).bit_length())
    room = 1024
    while True:
        first, second = np.empty(room, np.int64), np.empty(room, np.int64)
        table = np.full(1 << bits, -1, np.int64)
        found = _DUPLICATES(columns.data, columns.spans, columns.hashes, topic_starts, table, first, second)
        if found < 0:
            return find_duplicates_exactly(columns, topic_starts)
        if found <= room:
            return first[:found], second[:found]
        room = found
