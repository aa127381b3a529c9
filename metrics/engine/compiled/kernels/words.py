"""The common parts of kernels: their compilation, and eight bytes at once as a machine word."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import float64, uint64
from numba.extending import intrinsic

from metrics.engine.compiled.hashing import FINISH, MULTIPLIER

NONE, ONE, TWO, THREE, FOUR, SIX, SEVEN, EIGHT, TEN = (
    np.uint64(number) for number in (0, 1, 2, 3, 4, 6, 7, 8, 10)
)
FIFTEEN, SIXTEEN, THIRTY_TWO, SIXTY_THREE, SIXTY_FOUR = (
    np.uint64(number) for number in (15, 16, 32, 63, 64)
)
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
TAB, LF, CR, SPACE, HASH_SIGN = 9, 10, 13, 32, 35
PLUS, MINUS, POINT, ZERO, NINE = 43, 45, 46, 48, 57

# All positions are unsigned: with signed ones every access would check whether it counts from the
# end, and the scan would take four times as long. The sum with a signed number would be a float.
compiled = numba.njit(error_model="numpy")
# For values that are rounded anyway: they may be added or compared in any order, and are never NaN.
rounded = numba.njit(error_model="numpy", fastmath={"nnan", "ninf", "nsz", "reassoc"})
# Passing an array to a function takes seven numbers: functions that run for every row are inlined.
inlined = numba.njit(error_model="numpy", forceinline=True)


def _trailing_zeros(_: Any, word: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return word(word), generate


# How many of a word's lowest bits are zero, 64 for no bit: one instruction.
trailing_zeros: Any = intrinsic(_trailing_zeros)


def _leading_zeros(_: Any, word: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return word(word), generate


# How many of a word's highest bits are zero.
leading_zeros: Any = intrinsic(_leading_zeros)


def _high_product(_: Any, left: Any, right: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(*(builder.zext(argument, wide) for argument in arguments))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return uint64(left, right), generate


# The upper half of the 128 bits of the product of two words: one instruction.
high_product: Any = intrinsic(_high_product)


def _as_float(_: Any, word: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return float64(word), generate


# The double with these bits.
as_float: Any = intrinsic(_as_float)


def _load_word(_: Any, data: Any, position: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        start = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        place = builder.bitcast(builder.gep(start, [arguments[1]]), ir.IntType(64).as_pointer())
        return builder.load(place, align=1)

    return uint64(data, position), generate


# The eight bytes of `data` from `position` on as one number, little-endian.
load_word: Any = intrinsic(_load_word)


def _marks(comparison: str) -> Any:
    def marks(_: Any, data: Any, position: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            start = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            lanes = ir.VectorType(ir.IntType(8), 64)
            place = builder.bitcast(builder.gep(start, [arguments[1]]), lanes.as_pointer())
            flags = builder.icmp_unsigned(
                comparison, builder.load(place, align=1), ir.Constant(lanes, [SPACE] * 64)
            )

            return builder.bitcast(flags, ir.IntType(64))

        return uint64(data, position), generate

    return intrinsic(marks)


# A bit for each of the 64 bytes of `data` from `position` on, the first the lowest: whether it is a
# space or below, and whether it is a space.
blanks_at, spaces_at = _marks("<="), _marks("==")


def _swapped(_: Any, word: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bswap(arguments[0])

    return word(word), generate


# A word with its bytes in reverse order: words of text then compare as the text does.
swapped: Any = intrinsic(_swapped)


@inlined
def word_at(data: Any, position: Any, end: Any) -> Any:
    """Return eight bytes from `position` as a little-endian word, with zeros from `end` on."""
    word, length = load_word(data, position), end - position
    return word if length >= EIGHT else word & (ALL >> (SIXTY_FOUR - EIGHT * length))


@inlined
def hash_of(data: Any, start: Any, end: Any, seed: Any) -> Any:
    """Return the same hash as `metrics.engine.judgement.ranking.hash_spans`."""
    value, position = seed, start
    while position < end:
        value = (value ^ word_at(data, position, end)) * MULTIPLIER
        value ^= value >> THIRTY_TWO
        position += EIGHT

    value = (value ^ (end - start)) * FINISH
    return value ^ (value >> THIRTY_TWO)


@inlined
def same_bytes(data: Any, a: Any, a_end: Any, b: Any, b_end: Any) -> bool:
    """Return whether two spans have the same bytes."""
    if a_end - a != b_end - b:
        return False

    while a < a_end:
        if word_at(data, a, a_end) != word_at(data, b, b_end):
            return False
        a += EIGHT
        b += EIGHT

    return True


@inlined
def is_greater(data: Any, a: Any, a_end: Any, b: Any, b_end: Any) -> bool:
    """Return whether a span is after another in the order of bytes; both without zero bytes."""
    while a < a_end and b < b_end:
        word, other_word = swapped(word_at(data, a, a_end)), swapped(word_at(data, b, b_end))
        if word != other_word:
            return bool(word > other_word)
        a += EIGHT
        b += EIGHT

    return bool(a < a_end)


@inlined
def same_span(
    data: Any, start: Any, end: Any, other_data: Any, other_start: Any, other_end: Any
) -> bool:
    """Return whether spans of two arrays have the same bytes, without reading beyond their ends."""
    if end - start != other_end - other_start:
        return False

    for offset in range(end - start):
        if data[start + offset] != other_data[other_start + offset]:
            return False
    return True
