"""Decimal numbers out of the bytes of a file, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from metrics.engine.kernels.words import (
    EIGHT,
    FIFTEEN,
    FOUR,
    MINUS,
    NINE,
    NONE,
    ONE,
    PLUS,
    POINT,
    SEVEN,
    SIXTEEN,
    TEN,
    THIRTY_TWO,
    THREE,
    ZERO,
    compiled,
    inlined,
    load_word,
    trailing_zeros,
)
from runs.formats.scanning.columns import BAD_NUMBER, FRACTION, SLOW_NUMBER

UNREAD = 1 << 30
_POWERS = 10.0 ** np.arange(23)
_TENS = 10 ** np.arange(9, dtype=np.uint64)
_SIGNS = np.array([1.0, -1.0])
# Eight bytes at once: each holds the constant that its name says.
_ONES, _SIXES, _ZEROS, _POINTS = (np.uint64(byte * 0x0101010101010101) for byte in (1, 6, 48, 46))
_HIGH_BITS, _HIGH_HALVES = np.uint64(0x8080808080808080), np.uint64(0xF0F0F0F0F0F0F0F0)
_OUTER, _OUTER_WEIGHTS = np.uint64(0x000000FF000000FF), np.uint64(0x000F424000000064)
_INNER_WEIGHTS = np.uint64(0x0000271000000001)


@inlined
def _digits(word: Any, length: Any) -> tuple[Any, Any]:
    """The number that the first `length` (0 to 8) bytes of a word spell, and a word that is 0 where they are digits.

    Pairs of digits, then fours, then eight are put together by multiplication (Lemire, "Quickly parsing eight
    digits", 2018).
    """
    # In two steps, because a word cannot be shifted by all of its 64 bits.
    half = THIRTY_TWO - FOUR * length
    value = ((word ^ _ZEROS) << half) << half
    odd = ((value + _SIXES) | value) & _HIGH_HALVES
    value = value * TEN + (value >> EIGHT)
    value = (value & _OUTER) * _OUTER_WEIGHTS + ((value >> SIXTEEN) & _OUTER) * _INNER_WEIGHTS
    return value >> THIRTY_TWO, odd


@inlined
def read_number(data: Any, start: Any, end: Any) -> tuple[Any, Any]:
    """A decimal number of few digits (seven before a point, eight after it), and a note: UNREAD for any other text."""
    if end - start <= EIGHT:
        value, note = _read_short(data, start, end - start)
        if note != UNREAD:
            return value, note
    return _read_longer(data, start, end)


@inlined
def _read_short(data: Any, start: Any, length: Any) -> tuple[Any, Any]:
    """The same without a sign in up to eight bytes: the digits after the point are moved to those before it."""
    word = load_word(data, start)
    points = word ^ _POINTS
    marks = (points - _ONES) & ~points & _HIGH_BITS
    # The bytes before the point: all where there is none.
    before = ((marks & (~marks + ONE)) >> SEVEN) - ONE
    point = min(trailing_zeros(marks) >> THREE, length)
    count = length - np.uint64(point < length)
    number, odd = _digits((word & before) | ((word >> EIGHT) & ~before), count)
    if odd or count == NONE:
        return np.nan, UNREAD
    return np.float64(number) / _POWERS[count - point], FRACTION * np.int64(point < length)


@inlined
def _read_longer(data: Any, start: Any, end: Any) -> tuple[Any, Any]:
    negative = np.uint64(data[start] == MINUS)
    first = start + negative
    length = end - first
    points = load_word(data, first) ^ _POINTS
    point = trailing_zeros((points - _ONES) & ~points & _HIGH_BITS) >> THREE
    whole = min(point, length)
    fraction = length - whole - np.uint64(point < length)
    beyond = (point == EIGHT) & (length > EIGHT)
    if beyond | (fraction > EIGHT) | (whole + fraction - ONE >= FIFTEEN):
        return np.nan, UNREAD
    above, odd = _digits(load_word(data, first), whole)
    below, also = _digits(load_word(data, first + whole + ONE), fraction)
    if odd | also:
        return np.nan, UNREAD
    value = np.float64(above * _TENS[fraction] + below) / _POWERS[fraction]
    return value * _SIGNS[negative], FRACTION * np.int64(point < length)


@compiled
def read_any_number(data: Any, start: Any, end: Any) -> tuple[float, int]:
    """Return a decimal number, exact where 53 bits of mantissa and a power of ten up to 22 hold it; else a note.

    The grammar is [+-]?(digits[.digits]|.digits)([eE][+-]?digits)?, in ASCII digits: it is checked whole, so that a
    number noted as slow is a number.
    """
    position, negative = start, False
    if position < end and (data[position] == PLUS or data[position] == MINUS):
        negative = data[position] == MINUS
        position += ONE
    mantissa, digits, significant, fraction, point = np.int64(0), 0, 0, 0, False
    while position < end:
        byte = data[position]
        if ZERO <= byte <= NINE:
            digits += 1
            if significant < 15:
                mantissa = mantissa * 10 + np.int64(byte - ZERO)
                fraction += point
            significant += significant > 0 or byte != ZERO
        elif byte == POINT and not point:
            point = True
        else:
            break
        position += ONE
    if digits == 0:
        return np.nan, BAD_NUMBER
    note = FRACTION if point else 0
    if position < end:
        return np.nan, (note | SLOW_NUMBER | FRACTION) if _exponent(data, position, end) else BAD_NUMBER
    if significant > 15 or fraction > 22:
        return np.nan, note | SLOW_NUMBER
    value = mantissa / _POWERS[fraction]
    return (-value if negative else value), note


@compiled
def _exponent(data: Any, position: Any, end: Any) -> bool:
    if data[position] | 32 != 101:
        return False
    position += ONE
    if position < end and (data[position] == PLUS or data[position] == MINUS):
        position += ONE
    if position == end:
        return False
    while position < end:
        if data[position] < ZERO or data[position] > NINE:
            return False
        position += ONE
    return True
