"""Scan a file in plain NumPy, with the same results as `kernel` and without compiled code.

Loading the kernel takes longer than reading a small file this way; `scan` chooses between the two.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from math import isinf
from typing import Self

import numpy as np
import numpy.typing as npt

from metrics.engine.arrays import Bytes, Flags, Floats, Hashes, Ints, Positions
from metrics.engine.compiled.hashing import FINISH, MULTIPLIER, WORD
from runs.formats.limits import Limits
from runs.formats.scanning.columns import Columns, Layout, find_duplicates_exactly, read_floats
from runs.formats.scanning.notes import (
    ABSENT,
    BAD_NUMBER,
    CONTROL,
    EXTRA,
    EXTRA_NUMBER,
    FEW,
    FRACTION,
    HASH,
    LARGEST_RANK,
    LONG_ID,
    LONG_LINE,
    NEW_LABEL,
    NEW_TOPIC,
    NO_RANK,
    SLOW_NUMBER,
)

Notes = npt.NDArray[np.int32]
_TOPIC_MIX = np.uint64(0xD6E8FEB86659FD93)
_THIRTY_TWO, _ALL = np.uint64(32), np.uint64(0xFFFFFFFFFFFFFFFF)
_POWERS = 10.0 ** np.arange(23)
# The most digits that fit into a word of the kernel.
_DIGITS = 19
_LF, _CR, _HASH_SIGN, _PLUS, _MINUS, _POINT, _ZERO = 10, 13, 35, 43, 45, 46, 48
# The kinds of bytes: part of a column, space after it, or refused.
_PART, _SPACE, _CONTROL = range(3)
_KIND = bytes(
    _SPACE if byte in b"\t\n " else _CONTROL if byte < 32 or byte == 127 else _PART
    for byte in range(256)
)
# Longer numbers are read one by one, and so are texts with more than a sign, digits and a point.
_WIDE_NUMBER = 32
_BLANKS = re.compile(rb"[ \t]")
_NUMBER = re.compile(rb"([+-]?)([0-9]*+)(?:(\.)([0-9]*+))?([eE][+-]?[0-9]++)?")


def scan(
    content: bytes, size: int, layout: Layout, first_line: int, seed: int, limits: Limits
) -> Columns:
    """Return the columns of whole lines, the first `size` bytes."""
    lines = _Lines.of(content[:size] + b"\n" * WORD, layout.columns)
    starts, ends = lines.columns()
    spans = np.zeros((len(starts), 8), np.int32)

    for index, column in enumerate((layout.topic, layout.document, layout.number, layout.label)):
        if column != ABSENT:
            spans[:, 2 * index], spans[:, 2 * index + 1] = starts[:, column], ends[:, column]

    number, notes = _numbers(lines.data, spans[:, 4], spans[:, 5])
    notes |= lines.notes(limits)
    is_long = (spans[:, 1] - spans[:, 0] > limits.id_length) | (
        spans[:, 3] - spans[:, 2] > limits.id_length
    )
    notes[is_long] |= LONG_ID
    rank = np.full(len(notes), -1, np.int64)

    if layout.rank != ABSENT:
        values, number_notes = _numbers(lines.data, starts[:, layout.rank], ends[:, layout.rank])
        whole = (number_notes == 0) & (values >= 0) & (values < LARGEST_RANK)
        rank[whole] = values[whole].astype(np.int64)
        notes[~whole] |= NO_RANK

    hashes = np.empty(len(notes), np.uint64)
    columns = Columns(
        lines.data, (lines.line + first_line).astype(np.int32), notes, spans, hashes, number, rank
    )
    words = np.ndarray(len(columns.data) - WORD + 1, "<u8", columns.data, strides=(1,))
    notes[_changes(words, spans[:, 0], spans[:, 1])] |= NEW_TOPIC
    notes[_changes(words, spans[:, 6], spans[:, 7])] |= NEW_LABEL

    return replace(columns, hashes=_hash(words, spans[:, 2], spans[:, 3], seed))


@dataclass(frozen=True)
class _Lines:
    """The lines that are not blank.

    Over all lines, columns begin at `starts` and end before `ends`. Shapes: `line` (0-based),
    `begins`, `stops` (the newline), `first` (column) and `count` (of columns, at most one more than
    `needed`) have one entry per line.
    """

    data: Bytes
    needed: int
    starts: Ints
    ends: Ints
    controls: Ints
    line: Ints
    begins: Ints
    stops: Ints
    first: Ints
    count: Ints

    @classmethod
    def of(cls, padded: bytes, needed: int) -> Self:
        data = np.frombuffer(padded, np.uint8)
        kinds = np.frombuffer(bytearray(padded).translate(_KIND), np.uint8)

        if b"\r\n" in padded:
            returns = np.flatnonzero(data == _CR)
            kinds[returns[data[returns + 1] == _LF]] = _SPACE

        spaces = kinds == _SPACE
        edges = np.flatnonzero(spaces[1:] != spaces[:-1]) + 1
        edges = edges if spaces[0] else np.append(0, edges)
        starts, ends = edges[0::2], edges[1::2]
        stops = np.flatnonzero(data == _LF)
        begins = np.append(0, stops[:-1] + 1)
        first = np.searchsorted(starts, begins)
        count = np.minimum(np.diff(np.append(first, len(starts))), needed + 1)
        line = np.flatnonzero(count)
        controls = np.flatnonzero(kinds == _CONTROL)

        return cls(
            data,
            needed,
            starts,
            ends,
            controls,
            line,
            begins=begins[line],
            stops=stops[line],
            first=first[line],
            count=count[line],
        )

    def columns(self) -> tuple[Ints, Ints]:
        """Return where the needed columns start and end; shape (lines, needed).

        Missing columns are at the newline of their line.
        """
        offsets = np.arange(self.needed)
        indices = self.first[:, None] + offsets
        present = self.count[:, None] > offsets
        if present.all():
            return self.starts[indices], self.ends[indices]

        indices = np.minimum(indices, len(self.starts) - 1)
        stops = self.stops[:, None]
        return np.where(present, self.starts[indices], stops), np.where(
            present, self.ends[indices], stops
        )

    def notes(self, limits: Limits) -> Notes:
        """Return the notes on each line, except on its numbers and the length of its ids."""
        notes = np.zeros(len(self.line), np.int32)
        notes[self.data[self.starts[self.first]] == _HASH_SIGN] |= HASH
        notes[self.count < self.needed] |= FEW
        notes[self.stops - self.begins > limits.line_length] |= LONG_LINE
        column = np.searchsorted(self.starts, self.controls, side="right") - 1
        row = np.searchsorted(self.first, column, side="right") - 1
        notes[row[column - self.first[row] <= self.needed]] |= CONTROL
        longer = np.flatnonzero(self.count > self.needed)
        column = self.first[longer] + self.needed
        _, number_notes = _numbers(self.data, self.starts[column], self.ends[column])
        notes[longer] |= np.where(number_notes & BAD_NUMBER, EXTRA, EXTRA | EXTRA_NUMBER).astype(
            np.int32
        )

        return notes


def _numbers(data: Bytes, starts: Positions, ends: Positions) -> tuple[Floats, Notes]:
    """Return decimal numbers, correctly rounded, and a note on each.

    Numbers with more than nineteen significant digits are NaN, and so are texts that are not
    numbers.
    """
    size = ends - starts
    first = data[starts]
    is_signed = (first == _PLUS) | (first == _MINUS)
    mantissa, digits, significant, points, fraction = np.zeros((5, len(size)), np.int64)

    for offset in range(min(int(size.max(initial=0)), _WIDE_NUMBER)):
        byte = np.where(offset < size, data[np.minimum(starts + offset, len(data) - 1)], 0)
        digit = byte - np.uint8(_ZERO)
        is_digit = digit <= 9
        points += byte == _POINT
        digits += is_digit
        fraction += is_digit & (points > 0)
        significant += is_digit & ((significant > 0) | (digit > 0))
        mantissa = np.where(is_digit, mantissa * 10 + digit, mantissa)

    # A double holds both numbers, so that their quotient is rounded once.
    exact, is_readable = (significant <= 15) & (fraction <= 22), significant <= _DIGITS
    values = np.where(exact, mantissa / _POWERS[np.minimum(fraction, 22)], np.nan)
    values[first == _MINUS] *= -1
    notes = np.where(is_readable, 0, SLOW_NUMBER) | np.where(points, FRACTION, 0)
    plain = (digits > 0) & (points <= 1) & (is_signed + digits + points == size)
    if len(wide := np.flatnonzero(plain & is_readable & ~exact)):
        values[wide] = read_floats(data, starts[wide], ends[wide])

    for row in np.flatnonzero(~plain).tolist():
        values[row], notes[row] = _number(data[starts[row] : ends[row]].tobytes())

    return values, notes.astype(np.int32)


def _number(text: bytes) -> tuple[float, int]:
    """Return a single number of any kind, and a note. See `_numbers`."""
    match = _NUMBER.fullmatch(text)
    if not match or not (match[2] or match[4]):
        return np.nan, BAD_NUMBER

    digits = (match[2] + (match[4] or b"")).lstrip(b"0")
    note = FRACTION if match[3] or match[5] else 0
    value = float(text)

    return (np.nan, note | SLOW_NUMBER) if len(digits) > _DIGITS or isinf(value) else (value, note)


def _word(words: Hashes, starts: Positions, sizes: Positions, offset: int) -> Hashes:
    """Return eight bytes of each span from `offset` on, with zeros past its end.

    The offset must be before the end.
    """
    unused = WORD - np.minimum(sizes - offset, WORD)
    word: Hashes = words[starts + offset] & (_ALL >> (8 * unused).astype(np.uint64))

    return word


def _hash(words: Hashes, starts: Positions, ends: Positions, seed: int) -> Hashes:
    """Return the hashes of `metrics.engine.judgement.ranking.hash_spans`, word by word."""
    sizes = ends - starts
    hashes = np.full(len(sizes), np.uint64(seed))

    for offset in range(0, int(sizes.max(initial=0)), WORD):
        rows = np.flatnonzero(sizes > offset)
        mixed = (hashes[rows] ^ _word(words, starts[rows], sizes[rows], offset)) * MULTIPLIER
        hashes[rows] = mixed ^ (mixed >> _THIRTY_TWO)

    finished = (hashes ^ sizes.astype(np.uint64)) * FINISH
    return finished ^ (finished >> _THIRTY_TWO)


def _changes(words: Hashes, starts: Positions, ends: Positions) -> Flags:
    """Return which spans differ from the previous one; the first span counts as changed."""
    sizes = ends - starts
    changed = np.ones(len(sizes), np.bool_)
    changed[1:] = sizes[1:] != sizes[:-1]

    for offset in range(0, int(sizes.max(initial=0)), WORD):
        rows = np.flatnonzero(~changed & (sizes > offset))
        changed[rows] = _word(words, starts[rows], sizes[rows], offset) != _word(
            words, starts[rows - 1], sizes[rows], offset
        )

    return changed


def find_duplicates(columns: Columns, topic_starts: Ints) -> tuple[Ints, Ints]:
    """Return the first row of each repeated document of a topic, and the row that repeats it."""
    sizes = np.diff(topic_starts)
    keys = columns.hashes ^ np.repeat(
        np.arange(1, len(sizes) + 1).astype(np.uint64) * _TOPIC_MIX, sizes
    )
    keys.sort()
    if not (keys[1:] == keys[:-1]).any():
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    return find_duplicates_exactly(columns, topic_starts)


def last_topic(content: bytes, size: int) -> int:
    """Return where the last topic of some lines begins, line by line from the end.

    The last topic is usually a small part of a piece.
    """
    topic, begin = b"", 0
    line_end = end = content.rfind(b"\n", 0, size) + 1
    while line_end:
        line = content.rfind(b"\n", 0, line_end - 1) + 1
        first = _BLANKS.split(
            content[line:line_end].lstrip(b" \t").removesuffix(b"\n").removesuffix(b"\r"), 1
        )[0]
        if first and not first.startswith(b"#"):
            if topic and first != topic:
                return begin
            topic, begin = first, line

        line_end = line

    return 0 if topic else end
