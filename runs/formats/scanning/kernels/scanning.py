"""The kernels that scan the bytes of a run or qrels file to columns in one pass.

Lines end at LF (one CR before it is dropped); columns are separated only by spaces and tabs.
Python's definitions of white space and numbers are wider (NBSP, U+2028, full-width digits, 1_000):
they are not used here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from metrics.engine.compiled.kernels.words import (
    ALL,
    CR,
    HASH_SIGN,
    LF,
    NONE,
    ONE,
    SIX,
    SIXTY_THREE,
    SPACE,
    TAB,
    compiled,
    hash_of,
    inlined,
    same_bytes,
    same_span,
    trailing_zeros,
)
from runs.formats.scanning.kernels.decimal_numbers import (
    UNREAD,
    read_any_number,
    read_number,
    read_wide,
)
from runs.formats.scanning.notes import (
    ABSENT,
    BAD_NUMBER,
    CONTROL,
    EXTRA,
    EXTRA_NUMBER,
    FEW,
    HASH,
    LARGEST_RANK,
    LONG_ID,
    LONG_LINE,
    NEW_LABEL,
    NEW_TOPIC,
    NO_RANK,
)


@compiled
def _split(data: Any, position: Any, starts: Any, ends: Any, needed: Any) -> tuple[Any, int, Any]:
    """Find a line's first columns, at most one more than needed.

    Return their number, a note, and where the line ends.
    """
    count, note = NONE, 0

    while True:
        while data[position] == SPACE or data[position] == TAB:
            position += ONE

        if data[position] == LF:
            return count, note, position
        if data[position] == CR and data[position + ONE] == LF:
            return count, note, position + ONE

        if count > needed:
            position += ONE
            continue

        starts[count] = position
        while True:
            while data[position] > SPACE:
                position += ONE

            byte = data[position]
            if (
                byte == SPACE
                or byte == TAB
                or byte == LF
                or (byte == CR and data[position + ONE] == LF)
            ):
                break

            note = CONTROL
            position += ONE

        ends[count] = position
        count += ONE


@inlined
def _split_usual(
    data: Any,
    blanks: Any,
    block: Any,
    marks: Any,
    position: Any,
    starts: Any,
    ends: Any,
    columns: Any,
) -> tuple[bool, Any, Any, Any]:
    """Find the columns of a usual line: it has the right number, and one space or tab between them.

    Return whether the line is usual, the block, its marks, and where the line ends. `marks` are the
    remaining blanks in a block of 64 bytes: a column takes one step, while looking at every byte
    would take a step and a branch for each.
    """
    last, column = columns - ONE, NONE

    while True:
        while marks == NONE:
            block += ONE
            marks = blanks[block]

        stop = (block << SIX) + trailing_zeros(marks)
        marks &= marks - ONE
        byte = data[stop]
        if column > last:
            # The newline after a carriage return.
            return byte == LF and stop == position, block, marks, stop
        if stop == position:
            return False, block, marks, stop

        starts[column], ends[column] = position, stop
        position = stop + ONE
        if column == last and byte == LF:
            return True, block, marks, stop
        if byte != (CR if column == last else SPACE) and (byte != TAB or column == last):
            return False, block, marks, stop

        column += ONE


@compiled
def _split_any(
    data: Any, position: Any, starts: Any, ends: Any, columns: Any
) -> tuple[Any, int, Any]:
    """Find the columns of any line; missing ones are empty columns at its end.

    Return their number, a note, and where the line ends.
    """
    count, note, stop = _split(data, position, starts, ends, columns)
    if count > columns:
        _, number_note = read_any_number(data, starts[columns], ends[columns])
        note |= EXTRA if number_note & BAD_NUMBER else EXTRA | EXTRA_NUMBER

    if NONE < count < columns:
        note |= FEW
        while count < columns:
            starts[count] = ends[count] = stop
            count += ONE

    return count, note, stop


@compiled
def _has_delete(data: Any, position: Any, end: Any) -> bool:
    while position < end:
        if data[position] == 127:
            return True
        position += ONE
    return False


@inlined
def _store_spans(spans: Any, row: Any, starts: Any, ends: Any, column_numbers: Any) -> None:
    for index in range(4):
        spans[row, 2 * index], spans[row, 2 * index + 1] = (
            starts[column_numbers[index]],
            ends[column_numbers[index]],
        )


@compiled
def scan(
    data: Any, blanks: Any, begin: Any, end: Any, deletes: Any, columns: Any,
    column_numbers: Any, first_line: Any, seed: Any,
    id_length: Any, line_length: Any, starts: Any, ends: Any,
    line: Any, notes: Any, spans: Any, hashes: Any, numbers: Any, ranks: Any,
) -> Any:  # fmt: skip
    topic, document, number, label, rank_column = (
        column_numbers[0],
        column_numbers[1],
        column_numbers[2],
        column_numbers[3],
        column_numbers[4],
    )

    topic_start, topic_end, label_start, label_end = NONE, NONE, NONE, NONE
    position, row, current, block = begin, NONE, first_line, begin >> SIX
    marks = blanks[block] & (ALL << (begin & SIXTY_THREE))

    while position < end:
        count, note = columns, 0
        is_usual, block, marks, stop = _split_usual(
            data, blanks, block, marks, position, starts, ends, columns
        )
        if not is_usual:
            count, note, stop = _split_any(data, position, starts, ends, columns)
            block = stop >> SIX
            marks = blanks[block] & ((ALL << (stop & SIXTY_THREE)) << ONE)

        if count > NONE:
            if data[starts[0]] == HASH_SIGN:
                note |= HASH

            if deletes and _has_delete(data, starts[0], ends[count - ONE]):
                note |= CONTROL

            if stop - position > line_length:
                note |= LONG_LINE

            line[row] = current
            _store_spans(spans, row, starts, ends, column_numbers)

            if (
                ends[topic] - starts[topic] > id_length
                or ends[document] - starts[document] > id_length
            ):
                note |= LONG_ID

            hashes[row] = hash_of(data, starts[document], ends[document], seed)
            value, number_note = read_number(data, starts[number], ends[number])
            if number_note == UNREAD:
                value, number_note = read_wide(data, starts[number], ends[number])

            if number_note == UNREAD:
                value, number_note = read_any_number(data, starts[number], ends[number])

            numbers[row] = value
            note |= number_note

            if rank_column != ABSENT:
                ranks[row] = -1
                value, number_note = read_number(data, starts[rank_column], ends[rank_column])
                if number_note == UNREAD:
                    value, number_note = read_any_number(
                        data, starts[rank_column], ends[rank_column]
                    )

                if number_note or value < 0 or value >= LARGEST_RANK:
                    note |= NO_RANK
                else:
                    ranks[row] = np.int64(value)

            if row == NONE or not same_bytes(
                data, starts[topic], ends[topic], topic_start, topic_end
            ):
                note |= NEW_TOPIC
                topic_start, topic_end = starts[topic], ends[topic]

            if row == NONE or not same_bytes(
                data, starts[label], ends[label], label_start, label_end
            ):
                note |= NEW_LABEL
                label_start, label_end = starts[label], ends[label]

            notes[row] = note
            row += ONE

        current += 1
        position = stop + ONE

    return row


@compiled
def last_topic(data: Any, end: Any) -> Any:
    topic, topic_end, begin, line_end = NONE, NONE, NONE, end
    while line_end > NONE:
        line = line_end - ONE
        while line > NONE and data[line - ONE] != LF:
            line -= ONE

        start = line
        while data[start] == SPACE or data[start] == TAB:
            start += ONE

        stop = start
        while data[stop] != SPACE and data[stop] != TAB and data[stop] != LF:
            if data[stop] == CR and data[stop + ONE] == LF:
                break
            stop += ONE

        if stop > start and data[start] != HASH_SIGN:
            if topic_end > NONE and not same_span(data, start, stop, data, topic, topic_end):
                return begin
            topic, topic_end, begin = start, stop, line

        line_end = line

    return NONE if topic_end > NONE else end


@compiled
def duplicates(
    data: Any, spans: Any, hashes: Any, starts: Any, table: Any, first: Any, second: Any
) -> Any:
    """Return the number of rows that repeat a document of their topic, or -1.

    `first` and `second` get the document's first row and the row that repeats it. -1 means that two
    documents share a hash. `table` has 2^n entries that are -1.
    """
    mask = np.uint64(len(table) - 1)
    count = 0

    for topic in range(len(starts) - 1):
        begin, end = starts[topic], starts[topic + 1]
        for row in range(begin, end):
            slot = hashes[row] & mask
            while table[slot] >= begin and hashes[table[slot]] != hashes[row]:
                slot = (slot + np.uint64(1)) & mask

            earlier = table[slot]
            if earlier < begin:
                table[slot] = row
                continue

            if not same_bytes(
                data, np.uint64(spans[earlier, 2]), np.uint64(spans[earlier, 3]),
                np.uint64(spans[row, 2]), np.uint64(spans[row, 3]),
            ):  # fmt: skip
                return -1

            if count < len(first):
                first[count], second[count] = earlier, row

            count += 1

    return count
