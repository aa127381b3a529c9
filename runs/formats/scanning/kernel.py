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
    "uint64(uint8[::1], uint64[::1], uint64, uint64, uint64, uint64, uint64[::1], int64, uint64, "
    "uint64, uint64, uint64[::1], uint64[::1], "
    "int32[::1], int32[::1], int32[:, ::1], uint64[::1], float64[::1], int64[::1])",
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
# Bytes that a thread scans in a millisecond or two.
_LARGE = 2 * 1024 * 1024


def scan(
    content: bytes, size: int, layout: Layout, first_line: int, seed: int, limits: Limits
) -> Columns:
    """Return the columns of whole lines: the first `size` bytes, with padding after them.

    Large parts of them are scanned at the same time, each into rows of its own.
    """
    data = np.frombuffer(content, np.uint8)
    blanks = np.packbits(data[: len(data) - len(data) % _BLOCK] <= _SPACE, bitorder="little").view(
        "<u8"
    )
    parts, lines = large_parts(content, size)
    line_count, starts = sum(lines), [0, *accumulate(lines)]
    line, notes = np.empty(line_count, np.int32), np.empty(line_count, np.int32)
    spans, hashes = np.empty((line_count, 8), np.int32), np.empty(line_count, np.uint64)
    number, has_ranks = np.empty(line_count, np.float64), layout.rank != ABSENT
    rank = np.empty(line_count if has_ranks else 0, np.int64)
    column_numbers = np.array(
        [layout.topic, layout.document, layout.number, layout.label, layout.rank], np.uint64
    )
    deletes = _DELETE in content

    def scan_part(part: int) -> int:
        """Return the number of rows, which is less than that of lines if some are blank."""
        rows = slice(starts[part], starts[part + 1])
        count: int = _SCAN(
            data, blanks, *parts[part], deletes, layout.columns, column_numbers,
            first_line + starts[part], seed, limits.id_length, limits.line_length,
            *np.zeros((2, ABSENT + 1), np.uint64),
            line[rows], notes[rows], spans[rows], hashes[rows], number[rows], rank[rows],
        )  # fmt: skip

        return count

    row_counts = list(ahead(scan_part, iter(range(len(parts))), len(parts)))

    # One number for all rows takes no memory.
    columns = Columns(
        data,
        line,
        notes,
        spans,
        hashes,
        number,
        rank if has_ranks else np.broadcast_to(np.int64(-1), line_count),
    )
    return (
        columns.take(slice(row_counts[0]))
        if len(parts) == 1
        else _joined(columns, starts, row_counts)
    )


def large_parts(content: bytes, size: int) -> tuple[list[tuple[int, int]], list[int]]:
    """Divide lines into parts, one for each thread if they are large.

    Return where each part begins and ends, and how many lines it has.
    """
    part_count, parts, begin = (
        max(1, min(most_threads(), size // _LARGE)),
        list[tuple[int, int]](),
        0,
    )
    for part in range(1, part_count):
        end = content.find(b"\n", max(begin, part * size // part_count), size) + 1
        if end:
            parts.append((begin, end))
            begin = end

    parts.append((begin, size))
    data = np.frombuffer(content, np.uint8)
    lines = [int(np.count_nonzero(data[begin:end] == _LF)) for begin, end in parts]

    # The last one may lack its newline.
    lines[-1] += content[size - 1] != _LF
    return parts, lines


def _joined(columns: Columns, starts: list[int], row_counts: list[int]) -> Columns:
    """Return the rows of parts that were scanned apart, with `row_counts` rows from `starts` on."""
    has_gaps = any(
        rows < end - start
        for rows, (start, end) in zip(row_counts[:-1], pairwise(starts[:-1]), strict=True)
    )
    if has_gaps:
        row_numbers = [
            np.arange(start, start + rows) for start, rows in zip(starts, row_counts, strict=False)
        ]
        columns = columns.take(np.concatenate(row_numbers))
    else:
        columns = columns.take(slice(starts[-2] + row_counts[-1]))

    for row in accumulate(row_counts[:-1]):
        # In the scan, the first row of a part always has a new topic and label.
        if 0 < row < len(columns.notes):
            for note, column in ((NEW_TOPIC, TOPIC), (NEW_LABEL, LABEL)):
                if columns.text(row - 1, column) == columns.text(row, column):
                    columns.notes[row] &= ~note

    return columns


def last_topic(content: bytes, size: int) -> int:
    """Return where the last topic of some lines begins.

    Return 0 if they have only one, and their end if none has a topic.
    """
    return int(_LAST_TOPIC(np.frombuffer(content, np.uint8), content.rfind(b"\n", 0, size) + 1))


def find_duplicates(columns: Columns, topic_starts: Ints) -> tuple[Ints, Ints]:
    """Return the first row of each repeated document of a topic, and the row that repeats it."""
    largest = int(np.diff(topic_starts).max(initial=1))

    # The table has twice the rows of the largest topic, so that probing is short. Rows of earlier
    # topics count as free.
    bits = max(4, (2 * largest).bit_length())
    capacity = 1024

    while True:
        first, second = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
        table = np.full(1 << bits, -1, np.int64)
        count = _DUPLICATES(
            columns.data, columns.spans, columns.hashes, topic_starts, table, first, second
        )
        if count < 0:
            return find_duplicates_exactly(columns, topic_starts)
        if count <= capacity:
            return first[:count], second[:count]

        capacity = count
