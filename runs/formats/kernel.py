"""The scanning kernel: from the bytes of a run or qrels file to columns, in one pass of compiled code.

Lines end at LF (one CR before it is dropped); columns are separated by spaces and tabs and by nothing else. Python's
own notion of white space and numbers is wider (NBSP, U+2028, full-width digits, 1_000): it is not used here.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numba
import numpy as np

from metrics.engine.ranking import WORD, Ints
from runs.formats.columns import (
    BAD_NUMBER,
    CONTROL,
    EXTRA,
    EXTRA_NUMBER,
    FEW,
    FRACTION,
    HASH,
    LONG_ID,
    LONG_LINE,
    NEW_LABEL,
    NEW_TOPIC,
    NO_RANK,
    RUN,
    SLOW_NUMBER,
    Columns,
    Layout,
)
from runs.formats.limits import DEFAULT_LIMITS, Limits

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_FINISH = np.uint64(0xC2B2AE3D27D4EB4F)
_NONE, _ONE, _EIGHT = np.uint64(0), np.uint64(1), np.uint64(8)
_THIRTY_TWO, _SIXTY_FOUR, _ALL = np.uint64(32), np.uint64(64), np.uint64(0xFFFFFFFFFFFFFFFF)
_POWERS = 10.0 ** np.arange(23)
_TAB, _LF, _CR, _SPACE, _HASH_SIGN, _PLUS, _MINUS, _POINT, _ZERO, _NINE = 9, 10, 13, 32, 35, 43, 45, 46, 48, 57


def scan(content: bytes, layout: Layout, first_line: int, seed: int, limits: Limits) -> Columns:
    """The columns of whole lines; `first_line` is the 1-based number of the first of them."""
    # Every line then ends in a newline, and the last column may be read eight bytes at a time.
    padded = content + b"\n" * WORD
    data = np.frombuffer(padded, np.uint8)
    words = np.ndarray(len(data) - WORD + 1, "<u8", padded, strides=(1,))
    size = int(np.count_nonzero(data == _LF))
    line, notes = np.empty(size, np.int32), np.empty(size, np.int32)
    spans, hashes = np.empty((size, 8), np.int32), np.empty(size, np.uint64)
    number, rank = np.empty(size, np.float64), np.empty(size, np.int64)
    places = np.array([layout.topic, layout.document, layout.number, layout.label, layout.rank], np.uint64)
    rows = _scan(
        data, words, np.uint64(len(content)), b"\x7f" in content, np.uint64(layout.columns), places, first_line,
        np.uint64(seed), np.uint64(limits.id_length), np.uint64(limits.line_length), _POWERS,
        line, notes, spans, hashes, number, rank,
    )  # fmt: skip
    return Columns(data, line, notes, spans, hashes, number, rank).take(slice(rows))


# Positions are unsigned throughout: with signed ones every access would first ask whether it counts from the end,
# and the scan would take four times as long. A signed number added to one would make it a float.
_compiled = numba.njit(cache=True, nogil=True, error_model="numpy")


@_compiled
def _number(data: Any, start: Any, end: Any, powers: Any) -> tuple[float, int]:
    """A decimal number, exact where 53 bits of mantissa and a power of ten up to 22 hold it; else a note.

    The grammar is [+-]?(digits[.digits]|.digits)([eE][+-]?digits)?, in ASCII digits: it is checked whole, so that a
    number noted as slow is a number.
    """
    position, negative = start, False
    if position < end and (data[position] == _PLUS or data[position] == _MINUS):
        negative = data[position] == _MINUS
        position += _ONE
    mantissa, digits, significant, fraction, point = np.int64(0), 0, 0, 0, False
    while position < end:
        byte = data[position]
        if _ZERO <= byte <= _NINE:
            digits += 1
            if significant < 15:
                mantissa = mantissa * 10 + np.int64(byte - _ZERO)
                fraction += point
            significant += significant > 0 or byte != _ZERO
        elif byte == _POINT and not point:
            point = True
        else:
            break
        position += _ONE
    if digits == 0:
        return np.nan, BAD_NUMBER
    note = FRACTION if point else 0
    if position < end:
        return np.nan, (note | SLOW_NUMBER | FRACTION) if _exponent(data, position, end) else BAD_NUMBER
    if significant > 15 or fraction > 22:
        return np.nan, note | SLOW_NUMBER
    value = mantissa / powers[fraction]
    return (-value if negative else value), note


@_compiled
def _exponent(data: Any, position: Any, end: Any) -> bool:
    if data[position] | 32 != 101:
        return False
    position += _ONE
    if position < end and (data[position] == _PLUS or data[position] == _MINUS):
        position += _ONE
    if position == end:
        return False
    while position < end:
        if data[position] < _ZERO or data[position] > _NINE:
            return False
        position += _ONE
    return True


@_compiled
def _word(words: Any, position: Any, end: Any) -> Any:
    """Eight bytes from `position`, those from `end` on as zeros; a machine word at once, little-endian."""
    left = end - position
    return words[position] if left >= _EIGHT else words[position] & (_ALL >> (_SIXTY_FOUR - _EIGHT * left))


@_compiled
def _hash(words: Any, start: Any, end: Any, seed: Any) -> Any:
    """Equal to `metrics.engine.ranking.hash_spans`."""
    value, position = seed, start
    while position < end:
        value = (value ^ _word(words, position, end)) * _MULTIPLIER
        value ^= value >> _THIRTY_TWO
        position += _EIGHT
    value = (value ^ (end - start)) * _FINISH
    return value ^ (value >> _THIRTY_TWO)


@_compiled
def _same(words: Any, a: Any, a_end: Any, b: Any, b_end: Any) -> bool:
    """Whether two spans hold the same bytes."""
    if a_end - a != b_end - b:
        return False
    while a < a_end:
        if _word(words, a, a_end) != _word(words, b, b_end):
            return False
        a += _EIGHT
        b += _EIGHT
    return True


@_compiled
def _split(data: Any, position: Any, starts: Any, ends: Any, wanted: Any) -> tuple[Any, int, Any]:
    """A line's first columns, one more than wanted at most: how many there are, a note, where the line ends."""
    count, note = _NONE, 0
    while True:
        while data[position] == _SPACE or data[position] == _TAB:
            position += _ONE
        if data[position] == _LF:
            return count, note, position
        if data[position] == _CR and data[position + _ONE] == _LF:
            return count, note, position + _ONE
        if count > wanted:
            position += _ONE
            continue
        starts[count] = position
        while True:
            while data[position] > _SPACE:
                position += _ONE
            byte = data[position]
            if byte == _SPACE or byte == _TAB or byte == _LF or (byte == _CR and data[position + _ONE] == _LF):
                break
            note = CONTROL
            position += _ONE
        ends[count] = position
        count += _ONE


@_compiled
def _has_delete(data: Any, position: Any, end: Any) -> bool:
    while position < end:
        if data[position] == 127:
            return True
        position += _ONE
    return False


@_compiled
def _scan(
    data: Any, words: Any, size: Any, deletes: bool, columns: Any, places: Any, first_line: int, seed: Any,
    id_length: Any, line_length: Any, powers: Any,
    line: Any, notes: Any, spans: Any, hashes: Any, numbers: Any, ranks: Any,
) -> Any:  # fmt: skip
    topic, document, number, label, rank_column = places[0], places[1], places[2], places[3], places[4]
    starts, ends = np.zeros(8, np.uint64), np.zeros(8, np.uint64)
    topic_start, topic_end, label_start, label_end = _NONE, _NONE, _NONE, _NONE
    position, row, current = _NONE, _NONE, first_line
    while position < size:
        count, note, stop = _split(data, position, starts, ends, columns)
        if count > _NONE:
            if data[starts[0]] == _HASH_SIGN:
                note |= HASH
            if count > columns:
                value, how = _number(data, starts[columns], ends[columns], powers)
                note |= EXTRA if how & BAD_NUMBER else EXTRA | EXTRA_NUMBER
            if deletes and _has_delete(data, starts[0], ends[min(count, columns + _ONE) - _ONE]):
                note |= CONTROL
            if count < columns:
                note |= FEW
                while count < columns:
                    starts[count] = ends[count] = stop
                    count += _ONE
            if stop - position > line_length:
                note |= LONG_LINE
            line[row] = current
            spans[row, 0], spans[row, 1] = starts[topic], ends[topic]
            spans[row, 2], spans[row, 3] = starts[document], ends[document]
            spans[row, 4], spans[row, 5] = starts[number], ends[number]
            spans[row, 6], spans[row, 7] = starts[label], ends[label]
            if ends[topic] - starts[topic] > id_length or ends[document] - starts[document] > id_length:
                note |= LONG_ID
            hashes[row] = _hash(words, starts[document], ends[document], seed)
            numbers[row], how = _number(data, starts[number], ends[number], powers)
            note |= how
            ranks[row] = -1
            if rank_column < _EIGHT:
                value, how = _number(data, starts[rank_column], ends[rank_column], powers)
                if how or value < 0:
                    note |= NO_RANK
                else:
                    ranks[row] = np.int64(value)
            if row == _NONE or not _same(words, starts[topic], ends[topic], topic_start, topic_end):
                note |= NEW_TOPIC
                topic_start, topic_end = starts[topic], ends[topic]
            if row == _NONE or not _same(words, starts[label], ends[label], label_start, label_end):
                note |= NEW_LABEL
                label_start, label_end = starts[label], ends[label]
            notes[row] = note
            row += _ONE
        current += 1
        position = stop + _ONE
    return row


@_compiled
def _duplicates(
    words: Any, spans: Any, hashes: Any, starts: Any, table_bits: int, first: Any, second: Any
) -> tuple[int, bool]:  # fmt: skip
    """Rows that repeat a document of their topic, each with its first row; and whether two documents share a hash."""
    mask = np.uint64((1 << table_bits) - 1)
    table = np.full(1 << table_bits, -1, np.int64)
    found = 0
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
            if not _same(
                words, np.uint64(spans[earlier, 2]), np.uint64(spans[earlier, 3]),
                np.uint64(spans[row, 2]), np.uint64(spans[row, 3]),
            ):  # fmt: skip
                return found, True
            if found < len(first):
                first[found], second[found] = earlier, row
            found += 1
    return found, False


def find_duplicates(columns: Columns, topic_starts: Ints) -> tuple[Ints, Ints]:
    """Rows that repeat a document of their topic, in order: the document's first row, and the row that repeats it."""
    largest = int(np.diff(topic_starts).max(initial=1))
    # Twice the largest topic, so that probing stays short; rows of an earlier topic count as free places.
    bits = max(4, (2 * largest).bit_length())
    room = 1024
    while True:
        first, second = np.empty(room, np.int64), np.empty(room, np.int64)
        found, collided = _duplicates(
            columns.words, columns.spans, columns.hashes, topic_starts, bits, first, second
        )  # fmt: skip
        if collided:
            return _find_duplicates_exactly(columns, topic_starts)
        if found <= room:
            return first[:found], second[:found]
        room = found


def _find_duplicates_exactly(columns: Columns, topic_starts: Ints) -> tuple[Ints, Ints]:
    """The same by Python's own keyed hash: ids that share one of ours were made to, and could hide a duplicate."""
    content, pairs = columns.data.tobytes(), list[tuple[int, int]]()
    for begin, end in pairwise(topic_starts.tolist()):
        seen: dict[bytes, int] = {}
        for row, (start, stop) in enumerate(columns.spans[begin:end, 2:4].tolist(), begin):
            earlier = seen.setdefault(content[start:stop], row)
            if earlier != row:
                pairs.append((earlier, row))
    found = np.array(pairs, np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def warm_up() -> None:
    """Load the compiled kernels, or compile them into their cache: seconds once, that no request should wait for."""
    columns = scan(b"1 Q0 a 1 2.5 t\n", RUN, 1, 0, DEFAULT_LIMITS)
    find_duplicates(columns, np.array([0, 1]))
