"""The kernel that reads topics, documents and levels from the bytes of a qrels file in one pass.

It takes only usual lines: four columns with one space or tab between them, whole numbers for
levels, the iteration of the first line in all of them, no comment, and nothing to report.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from metrics.engine.compiled.kernels.words import (
    CR,
    NONE,
    ONE,
    TWO,
    ZERO,
    compiled,
    hash_of,
    same_bytes,
)
from runs.formats.scanning.kernels.usual_lines import four_columns, usual_number


@compiled
def read(
    data: Any, begin: Any, end: Any, seed: Any, largest_level: Any,
    id_length: Any, line_length: Any,
    blanks: Any, topics: Any, starts: Any, ends: Any, hashes: Any, levels: Any,
) -> Any:  # fmt: skip
    """Return the number of topics between two positions, or 0 if there is anything to report.

    A line that is not usual gives 0, too. A row of `topics` has start and end of a topic's id, and
    the first of its rows. A topic that comes again after another one is counted again. Levels are
    at most `largest_level`, whatever their sign.
    """
    is_usual, first, label_end, _, _ = four_columns(data, NONE, blanks)
    if not is_usual:
        return NONE

    label = first + ONE
    position, topic, topic_end, row, count = begin, NONE, NONE, NONE, NONE
    while position < end:
        is_usual, a, b, c, stop = four_columns(data, position, blanks)
        if not is_usual or not same_bytes(data, label, label_end, a + ONE, b):
            return NONE

        level_end = stop - np.uint64(data[stop - ONE] == CR)
        level = np.int64(data[c + ONE]) - ZERO
        if level_end - c > TWO or level < 0 or level > 9:
            value, note = usual_number(data, c + ONE, level_end)
            if note or not abs(value) <= largest_level:
                return NONE
            level = np.int64(value)

        if a - position > id_length or c - b - ONE > id_length or stop - position > line_length:
            return NONE

        if row == NONE or not same_bytes(data, topic, topic_end, position, a):
            topic, topic_end = position, a
            topics[count, 0], topics[count, 1], topics[count, 2] = position, a, row
            count += ONE

        starts[row], ends[row] = b + ONE, c
        hashes[row] = hash_of(data, b + ONE, c, seed)
        levels[row] = level
        row += ONE
        position = stop + ONE

    return count
