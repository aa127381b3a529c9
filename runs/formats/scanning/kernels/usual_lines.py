"""The columns and numbers of usual lines, for the kernels that take only these.

The columns of a usual line have one space or tab between them. It has no other bytes of 32 or less,
except at its end.
"""

from __future__ import annotations

from typing import Any

from metrics.engine.compiled.kernels.words import (
    CR,
    HASH_SIGN,
    LF,
    NONE,
    ONE,
    SIXTY_FOUR,
    SPACE,
    TAB,
    blanks_at,
    compiled,
    inlined,
    spaces_at,
    trailing_zeros,
)
from runs.formats.scanning.kernels.decimal_numbers import (
    UNREAD,
    read_any_number,
    read_number,
    read_wide,
)


@compiled
def _far_blanks(data: Any, position: Any, blanks: Any) -> bool:
    """Store the offsets of a line's first blanks in `blanks`, as many as it has entries.

    Return whether they are apart, and all but the last one are spaces or tabs.
    """
    count, offset, previous = NONE, NONE, ~NONE
    while count < len(blanks):
        marks = blanks_at(data, position + offset)
        while marks != NONE and count < len(blanks):
            place = offset + trailing_zeros(marks)
            marks &= marks - ONE
            if place == previous + ONE:
                return False

            blanks[count], previous = place, place
            count += ONE
            byte = data[position + place]
            if byte != SPACE and byte != TAB:
                return bool(count == len(blanks))

        offset += SIXTY_FOUR

    return True


@inlined
def _next_blank(marks: Any) -> tuple[Any, Any]:
    """Return the place of the first marked blank, 64 if none is marked, and the other marks."""
    return trailing_zeros(marks), marks & (marks - ONE)


@inlined
def _are_apart(data: Any, position: Any, marks: Any, last: Any) -> Any:
    """Return whether a line's last column ends at `last`, within 64 bytes, and only single spaces
    are between the columns."""
    apart = last < SIXTY_FOUR
    if apart:
        unusual = (marks & (marks >> ONE)) | (marks ^ spaces_at(data, position)) | (marks & ONE)
        apart = (unusual & ((ONE << last) - ONE)) == NONE

    return apart


@inlined
def _newline(data: Any, position: Any, usual: Any, last: Any) -> tuple[bool, Any]:
    """Return whether a line with usual columns until `last` is usual, and where its newline is."""
    if usual and data[last] != LF:
        usual = data[last] == CR and data[last + ONE] == LF
        last += ONE
    return usual and data[position] != HASH_SIGN, last


@inlined
def four_columns(data: Any, position: Any, blanks: Any) -> tuple[bool, Any, Any, Any, Any]:
    """Return whether a line of four columns is usual, where the first three end, and its newline.

    `blanks` has four entries.
    """
    marks = blanks_at(data, position)
    a, others = _next_blank(marks)
    b, others = _next_blank(others)
    c, others = _next_blank(others)
    d, others = _next_blank(others)
    is_usual = _are_apart(data, position, marks, d)
    if not is_usual:
        is_usual = _far_blanks(data, position, blanks)
        a, b, c, d = blanks[0], blanks[1], blanks[2], blanks[3]

    is_usual, d = _newline(data, position, is_usual, position + d)
    return is_usual, position + a, position + b, position + c, d


@inlined
def six_columns(data: Any, position: Any, blanks: Any) -> tuple[bool, Any, Any, Any, Any, Any, Any]:
    """Return whether a line of six columns is usual, where the first five end, and its newline.

    `blanks` has six entries.
    """
    marks = blanks_at(data, position)
    a, others = _next_blank(marks)
    b, others = _next_blank(others)
    c, others = _next_blank(others)
    d, others = _next_blank(others)
    e, others = _next_blank(others)
    f, others = _next_blank(others)
    is_usual = _are_apart(data, position, marks, f)
    if not is_usual:
        is_usual = _far_blanks(data, position, blanks)
        a, b, c, d, e, f = blanks[0], blanks[1], blanks[2], blanks[3], blanks[4], blanks[5]

    is_usual, f = _newline(data, position, is_usual, position + f)
    return is_usual, position + a, position + b, position + c, position + d, position + e, f


@inlined
def usual_number(data: Any, start: Any, end: Any) -> tuple[Any, Any]:
    """Return a decimal number of up to nineteen digits, and a note: a fraction, or a problem."""
    value, note = read_number(data, start, end)
    if note == UNREAD:
        value, note = read_wide(data, start, end)

    if note == UNREAD:
        value, note = read_any_number(data, start, end)
    return value, note
