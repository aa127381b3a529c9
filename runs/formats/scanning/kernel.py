"""Scan a file with the compiled code of `runs.formats.scanning.kernels.scanning`."""

from __future__ import annotations

from itertools import accumulate, pairwise

import numpy as np

from metrics.engine.arrays import Ints
from metrics.engine.compiled.machine_code import Kernel
from runs.formats.limits import Limits
from runs.formats.scanning.ahead import ahead, most_threads
from runs.formats.scanning.columns import LABEL, TOPIC, Columns, Layout, find_duplicates_exactly
from runs.formats.scanning.notes import ABSENT, NEW_LABEL, NEW_TOPIC

_MODULE = "runs.formats.scanning.kernels.scanning"
_SCAN = Kernel(
    _MODULE,
    "scan",
    "uint64(uint8[::1], uint64[::1], uint64, uint64, uint64, uint64, uint64[::1], int64, uint64, uint64, uint64, "
    "uint64[::1], uint64[::1], int32[::1], int32[::1], int32[:, ::1], uint64[::1], float64[::1], int64[::1])",
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
# What a thread scans in a millisecond or two.
_LARGE = 2 * 1024 * 1024


def scan(
    content: bytes, size: int, layout: Layout, first_line: int, seed: int, limits: Limits
) -> Columns:
    """Return the columns of whole lines, the first `size` bytes, with padding somewhere after them.

    Large parts of them are scanned at the same time, each into rows of its own.
    """
    data = np.frombuffer(content, np.uint8)
    blanks = np.packbits(data[: len(data) - len(data) % _BLOCK] <= _SPACE, bitorder="little").view(
        "<u8"
    )
    parts, lines = large_parts(content, size)
    room, starts = sum(lines), [0, *accumulate(lines)]
    line, notes = np.empty(room, np.int32), np.empty(room, np.int32)
    spans, hashes = np.empty((room, 8), np.int32), np.empty(room, np.uint64)
    number, ranked = np.empty(room, np.float64), layout.rank != ABSENT
    rank = np.empty(room if ranked else 0, np.int64)
    places = np.array(
        [layout.topic, layout.document, layout.number, layout.label, layout.rank], np.uint64
    )
    deletes = _DELETE in content

    def scan_part(part: int) -> int:
        """Return the number of rows, which is less than that of lines where some are blank."""
        own = slice(starts[part], starts[part + 1])
        rows: int = _SCAN(
            data, blanks, *parts[part], deletes, layout.columns, places, first_line + starts[part], seed,
            limits.id_length, limits.line_length, *np.zeros((2, ABSENT + 1), np.uint64),
            line[own], notes[own], spans[own], hashes[own], number[own], rank[own],
        )  # fmt: skip
        return rows

    found = list(ahead(scan_part, iter(range(len(parts))), len(parts)))
    # One number for all rows takes no memory.
    columns = Columns(
        data,
        line,
        notes,
        spans,
        hashes,
        number,
        rank if ranked else np.broadcast_to(np.int64(-1), room),
    )
    return columns.take(slice(found[0])) if len(parts) == 1 else _joined(columns, starts, found)


def large_parts(content: bytes, size: int) -> tuple[list[tuple[int, int]], list[int]]:
    """Return where each part of some lines begins and ends, one for each thread if they are large, and how many lines
    it has."""
    number, parts, begin = max(1, min(most_threads(), size // _LARGE)), list[tuple[int, int]](), 0
    for part in range(1, number):
        end = content.find(b"\n", max(begin, part * size // number), size) + 1
        if end:
            parts.append((begin, end))
            begin = end
    parts.append((begin, size))
    data = np.frombuffer(content, np.uint8)
    lines = [int(np.count_nonzero(data[begin:end] == _LF)) for begin, end in parts]
    # The last one may lack its newline.
    lines[-1] += content[size - 1] != _LF
    return parts, lines


def _joined(columns: Columns, starts: list[int], found: list[int]) -> Columns:
    """Return the rows of parts that were scanned into rows of their own, of which `found` are used."""
    if any(
        rows < end - start
        for rows, (start, end) in zip(found[:-1], pairwise(starts[:-1]), strict=True)
    ):
        used = [np.arange(start, start + rows) for start, rows in zip(starts, found, strict=False)]
        columns = columns.take(np.concatenate(used))
    else:
        columns = columns.take(slice(starts[-2] + found[-1]))
    for row in accumulate(found[:-1]):
        # The first row of a part seems to have another topic and label than none.
        if 0 < row < len(columns.notes):
            for note, column in ((NEW_TOPIC, TOPIC), (NEW_LABEL, LABEL)):
                if columns.text(row - 1, column) == columns.text(row, column):
                    columns.notes[row] &= ~note
    return columns


def last_topic(content: bytes, size: int) -> int:
    """Return where the last topic of some lines begins, 0 if they have only one, their end if none has a topic."""
    return int(_LAST_TOPIC(np.frombuffer(content, np.uint8), content.rfind(b"\n", 0, size) + 1))


def find_duplicates(columns: Columns, topic_starts: Ints) -> tuple[Ints, Ints]:
    """Return rows that repeat a document of their topic, in order: the document's first row, and the row that repeats
    it."""
    largest = int(np.diff(topic_starts).max(initial=1))
    # Twice the largest topic, so that probing stays short; rows of an earlier topic count as free
    # places.
    bits = max(4, (2 * largest).bit_length())
    room = 1024
    while True:
        first, second = np.empty(room, np.int64), np.empty(room, np.int64)
        table = np.full(1 << bits, -1, np.int64)
        found = _DUPLICATES(
            columns.data, columns.spans, columns.hashes, topic_starts, table, first, second
        )
        if found < 0:
            return find_duplicates_exactly(columns, topic_starts)
        if found <= room:
            return first[:found], second[:found]
        room = found
