"""Read decimal numbers from the bytes of a file, in compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from metrics.engine.compiled.kernels.words import (
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
    SIXTY_THREE,
    TEN,
    THIRTY_TWO,
    THREE,
    ZERO,
    as_float,
    compiled,
    high_product,
    inlined,
    leading_zeros,
    load_word,
    trailing_zeros,
)
from runs.formats.scanning.notes import BAD_NUMBER, FRACTION, SLOW_NUMBER

UNREAD = 1 << 30
_POWERS = 10.0 ** np.arange(23)
_TENS = 10 ** np.arange(20, dtype=np.uint64)
_SIGNS = np.array([1.0, -1.0])
# Words with the same constant in each of their eight bytes.
_ONES, _SIXES, _ZEROS, _POINTS = (np.uint64(byte * 0x0101010101010101) for byte in (1, 6, 48, 46))
_HIGH_BITS, _HIGH_HALVES = np.uint64(0x8080808080808080), np.uint64(0xF0F0F0F0F0F0F0F0)
_OUTER, _OUTER_WEIGHTS = np.uint64(0x000000FF000000FF), np.uint64(0x000F424000000064)
_INNER_WEIGHTS = np.uint64(0x0000271000000001)
_NINE_DIGITS, _MOST_DIGITS = np.uint64(9), np.uint64(19)
# The digits of a line can never make up for a larger exponent.
_LARGEST_EXPONENT = np.int64(1 << 40)
# With powers of ten outside these, products with whole numbers of 64 bits are 0 or infinite.
_LEAST_POWER, _LARGEST_POWER = -342, 308
_INFINITY, _MANTISSA_BITS = np.uint64(0x7FF0000000000000), np.uint64(52)
# The bits of a product of 64 bits beyond the mantissa. If they are all ones, the next product may
# matter.
_SPARE_BITS, _BEYOND = np.uint64(9), np.uint64(0x1FF)
# The power of two in a power of ten, times 2^16, and what exponents of doubles are counted from.
_LOG2_OF_TEN, _BIAS = 217706, 63 + 1023


def _fives() -> npt.NDArray[np.uint64]:
    """Return the 128 highest bits of each power of five. Shape (powers, 2).

    Reciprocals of powers with at most 64 bits are rounded up, so that quotients of multiples of the
    powers are exact.
    """
    words = []

    for power in range(_LEAST_POWER, _LARGEST_POWER + 1):
        five = 5 ** abs(power)
        bits = five.bit_length()
        if power < 0:
            five = (1 << (bits + 127)) // five + (power >= -27)
        else:
            five = five << (128 - bits) if bits <= 128 else five >> (bits - 128)

        words.append((five >> 64, five & 0xFFFFFFFFFFFFFFFF))

    return np.array(words, np.uint64)


_FIVES = _fives()


@inlined
def _digits(word: Any, length: Any) -> tuple[Any, Any]:
    """Return the number in the first `length` (0 to 8) bytes of a word, and 0 if all are digits.

    Pairs of digits, then fours, then eight are put together by multiplication (Lemire, "Quickly
    parsing eight digits", 2018).
    """
    # In two steps, because a word cannot be shifted by all of its 64 bits.
    half = THIRTY_TWO - FOUR * length
    value = ((word ^ _ZEROS) << half) << half
    invalid = ((value + _SIXES) | value) & _HIGH_HALVES
    value = value * TEN + (value >> EIGHT)
    value = (value & _OUTER) * _OUTER_WEIGHTS + ((value >> SIXTEEN) & _OUTER) * _INNER_WEIGHTS

    return value >> THIRTY_TWO, invalid


@inlined
def read_number(data: Any, start: Any, end: Any) -> tuple[Any, Any]:
    """Return a decimal number of up to seven digits before a point and eight after it, and a note.

    The note is UNREAD for any other text.
    """
    if end - start <= EIGHT:
        value, note = _read_short(data, start, end - start)
        if note != UNREAD:
            return value, note

    return _read_longer(data, start, end)


@inlined
def _read_short(data: Any, start: Any, length: Any) -> tuple[Any, Any]:
    """Return a number without a sign in up to eight bytes, and a note.

    The digits after the point are moved to those before it.
    """
    word = load_word(data, start)
    points = word ^ _POINTS
    marks = (points - _ONES) & ~points & _HIGH_BITS

    # The bytes before the point, or all without one.
    before = ((marks & (~marks + ONE)) >> SEVEN) - ONE
    point = min(trailing_zeros(marks) >> THREE, length)
    count = length - np.uint64(point < length)
    number, invalid = _digits((word & before) | ((word >> EIGHT) & ~before), count)
    if invalid or count == NONE:
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

    above, invalid = _digits(load_word(data, first), whole)
    below, invalid_fraction = _digits(load_word(data, first + whole + ONE), fraction)
    if invalid | invalid_fraction:
        return np.nan, UNREAD

    value = np.float64(above * _TENS[fraction] + below) / _POWERS[fraction]
    return value * _SIGNS[negative], FRACTION * np.int64(point < length)


@inlined
def read_wide(data: Any, start: Any, end: Any) -> tuple[Any, Any]:
    """Return a decimal number with nine to nineteen digits after the point, and a note.

    Python prints most doubles so. The number is correctly rounded. The note is UNREAD for any other
    text.
    """
    negative = np.uint64(data[start] == MINUS)
    first = start + negative
    points = load_word(data, first) ^ _POINTS
    point = trailing_zeros((points - _ONES) & ~points & _HIGH_BITS) >> THREE
    fraction = end - first - point - ONE
    if (point == EIGHT) | (fraction - _NINE_DIGITS > TEN):
        return np.nan, UNREAD

    after = first + point + ONE
    middle_size = min(fraction - EIGHT, EIGHT)
    whole, invalid = _digits(load_word(data, first), point)
    high, invalid_part = _digits(load_word(data, after), EIGHT)
    middle, invalid_middle = _digits(load_word(data, after + EIGHT), middle_size)
    low = NONE
    invalid |= invalid_part | invalid_middle

    if fraction > SIXTEEN:
        low, invalid_part = _digits(load_word(data, after + SIXTEEN), fraction - SIXTEEN)
        invalid |= invalid_part

    if invalid | ((point + fraction > _MOST_DIGITS) & (whole != NONE)):
        return np.nan, UNREAD

    number = whole * _TENS[fraction] + high * _TENS[fraction - EIGHT]
    number += middle * _TENS[fraction - EIGHT - middle_size] + low
    return _rounded(number, -np.int64(fraction), negative), FRACTION


@compiled
def _rounded(number: Any, power: Any, negative: Any) -> Any:
    """Return the double nearest to a whole number times a power of ten, the even one of two.

    The number is multiplied by the 128 highest bits of the power of five; the first 64 are enough
    for nearly all numbers (Lemire, "Number parsing at a gigabyte per second", 2021), and 128 for
    all of them (Mushtak and Lemire, "Fast number parsing without fallback", 2023).
    """
    sign = negative << SIXTY_THREE
    if number == NONE or power < _LEAST_POWER:
        return as_float(sign)
    if power > _LARGEST_POWER:
        return as_float(sign | _INFINITY)

    row, zeros = np.uint64(power - _LEAST_POWER), leading_zeros(number)
    number <<= zeros
    low, high = number * _FIVES[row, 0], high_product(number, _FIVES[row, 0])
    if high & _BEYOND == _BEYOND:
        carry = high_product(number, _FIVES[row, 1])
        low += carry
        high += np.uint64(low < carry)

    top_bit = high >> SIXTY_THREE
    shift = top_bit + _SPARE_BITS

    # The mantissa has one bit more than the double, which decides about rounding.
    mantissa = high >> shift
    exponent = ((_LOG2_OF_TEN * power) >> 16) + _BIAS + np.int64(top_bit) - np.int64(zeros)
    if exponent <= 0:
        # A subnormal number, with fewer bits.
        if exponent <= -63:
            return as_float(sign)
        mantissa >>= np.uint64(1 - exponent)
        mantissa = (mantissa + (mantissa & ONE)) >> ONE
        return as_float(sign | mantissa)

    halfway = (
        low <= ONE and -4 <= power <= 23 and mantissa & THREE == ONE and mantissa << shift == high
    )
    mantissa = (mantissa + (mantissa & ONE & ~np.uint64(halfway))) >> ONE

    # If rounding gives one bit more, the addition raises the exponent, which is correct.
    bits = (np.uint64(exponent - 1) << _MANTISSA_BITS) + mantissa
    return as_float(sign | min(bits, _INFINITY))


@compiled
def read_any_number(data: Any, start: Any, end: Any) -> tuple[float, int]:
    """Return a decimal number of up to nineteen significant digits, correctly rounded, and a note.

    The grammar is [+-]?(digits[.digits]|.digits)([eE][+-]?digits)?, in ASCII digits. All of it is
    checked: a number noted as slow is valid, but has more digits or is too large for a double. The
    number is NaN then, and for invalid texts.
    """
    position, negative = start, NONE
    if position < end and (data[position] == PLUS or data[position] == MINUS):
        negative = np.uint64(data[position] == MINUS)
        position += ONE

    mantissa, digits, significant, power, point = NONE, 0, 0, np.int64(0), False
    while position < end:
        byte = data[position]
        if ZERO <= byte <= NINE:
            digits += 1
            if significant < 19:
                mantissa = mantissa * TEN + np.uint64(byte - ZERO)
                power -= np.int64(point)
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
        is_valid, exponent = _exponent(data, position, end)
        if not is_valid:
            return np.nan, BAD_NUMBER
        note = FRACTION
        power += exponent

    value = _rounded(mantissa, power, negative)
    if significant > 19 or np.isinf(value):
        return np.nan, note | SLOW_NUMBER

    return value, note


@compiled
def _exponent(data: Any, position: Any, end: Any) -> tuple[bool, Any]:
    """Return whether a text is a valid exponent, and its number, limited by _LARGEST_EXPONENT."""
    exponent, negative = np.int64(0), False
    if data[position] | 32 != 101:
        return False, exponent

    position += ONE
    if position < end and (data[position] == PLUS or data[position] == MINUS):
        negative = data[position] == MINUS
        position += ONE

    if position == end:
        return False, exponent

    while position < end:
        if data[position] < ZERO or data[position] > NINE:
            return False, exponent
        exponent = min(exponent * 10 + np.int64(data[position] - ZERO), _LARGEST_EXPONENT)
        position += ONE

    return True, -exponent if negative else exponent
