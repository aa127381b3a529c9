"""What the kernels that take only usual lines have in common: where such a line's columns end, and its numbers.

The columns of a usual line have one space or tab between them, and no other byte of 32 or less is
in it but its end.
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
    """Whether a line's first blanks stand apart, all but the last one spaces or tabs; puts how far away they are into
    `blanks`, as many as it has places."""
    count, offset, before = NONE, NONE, ~NONE
    while count < len(blanks):
        left = blanks_at(data, position + offset)
        while left != NONE and count < len(blanks):
            place = offset + trailing_zeros(left)
            left &= left - ONE
            if place == before + ONE:
                return False
            blanks[count], before = place, place
            count += ONE
            byte = data[position + place]
            if byte != SPACE and byte != TAB:
                return bool(count == len(blanks))
        offset += SIXTY_FOUR
    return True


@inlined
def _next_blank(left: Any) -> tuple[Any, Any]:
    """Where the first of some marked blanks is, 64 if none is marked, and the marks of the others."""
    return trailing_zeros(left), left & (left - ONE)


@inlined
def _are_apart(data: Any, position: Any, marks: Any, last: Any) -> Any:
    """Whether a line's last column ends at `last`, within 64 bytes, and a space alone stands between the columns."""
    usual = last < SIXTY_FOUR
    if usual:
        odd = (marks & (marks >> ONE)) | (marks ^ spaces_at(data, position)) | (marks & ONE)
        usual = (odd & ((ONE << last) - ONE)) == NONE
    return usual


@inlined
def _newline(data: Any, position: Any, usual: Any, last: Any) -> tuple[bool, Any]:
    """Whether a line is usual whose columns are, and the last of which ends at `last`; where its newline is."""
    if usual and data[last] != LF:
        usual = data[last] == CR and data[last + ONE] == LF
        last += ONE
    return usual and data[position] != HASH_SIGN, last


@inlined
def four_columns(data: Any, position: Any, blanks: Any) -> tuple[bool, Any, Any, Any, Any]:
    """Whether a line of four columns is usual; where its first three end, and the newline. `blanks` has four places."""
    marks = blanks_at(data, position)
    a, left = _next_blank(marks)
    b, left = _next_blank(left)
    c, left = _next_blank(left)
    d, left = _next_blank(left)
    usual = _are_apart(data, position, marks, d)
    if not usual:
        usual = _far_blanks(data, position, blanks)
        a, b, c, d = blanks[0], blanks[1], blanks[2], blanks[3]
    usual, d = _newline(data, position, usual, position + d)
    return usual, position + a, position + b, position + c, d


@inlined
def six_columns(data: Any, position: Any, blanks: Any) -> tuple[bool, Any, Any, Any, Any, Any, Any]:
    """Whether a line of six columns is usual; where its first five end, and the newline. `blanks` has six places."""
    marks = blanks_at(data, position)
    a, left = _next_blank(marks)
    b, left = _next_blank(left)
    c, left = _next_blank(left)
    d, left = _next_blank(left)
    e, left = _next_blank(left)
    f, left = _next_blank(left)
    usual = _are_apart(data, position, marks, f)
    if not usual:
        usual = _far_blanks(data, position, blanks)
        a, b, c, d, e, f = blanks[0], blanks[1], blanks[2], blanks[3], blanks[4], blanks[5]
    usual, f = _newline(data, position, usual, position + f)
    return usual, position + a, position + b, position + c, position + d, position + e, f


@inlined
def usual_number(data: Any, start: Any, end: Any) -> tuple[Any, Any]:
    """A decimal number of up to nineteen digits, and a note: of a fraction, or why it is none."""
    value, note = read_number(data, start, end)
    if note == UNREAD:
        value, note = read_wide(data, start, end)
    if note == UNREAD:
        value, note = read_any_number(data, start, end)
    return value, note
