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
# More fit into no word of the kernel's.
_DIGITS = 19
_LF, _CR, _HASH_SIGN, _PLUS, _MINUS, _POINT, _ZERO = 10, 13, 35, 43, 45, 46, 48
# The kind of a byte: a part of a column, the space after it, or a byte that is refused.
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
    for place, column in enumerate((layout.topic, layout.document, layout.number, layout.label)):
        if column != ABSENT:
            spans[:, 2 * place], spans[:, 2 * place + 1] = starts[:, column], ends[:, column]
    number, notes = _numbers(lines.data, spans[:, 4], spans[:, 5])
    notes |= lines.notes(limits)
    long_id = (spans[:, 1] - spans[:, 0] > limits.id_length) | (
        spans[:, 3] - spans[:, 2] > limits.id_length
    )
    notes[long_id] |= LONG_ID
    rank = np.full(len(notes), -1, np.int64)
    if layout.rank != ABSENT:
        values, how = _numbers(lines.data, starts[:, layout.rank], ends[:, layout.rank])
        whole = (how == 0) & (values >= 0) & (values < LARGEST_RANK)
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
    """The lines that are not blank. A column begins at `starts` and ends before `ends`, over all lines.

    Shapes: `line` (0-based), `begins`, `stops` (the newline), `first` (column) and `count` (of
    columns, one more than `wanted` at most) have one entry per line.
    """

    data: Bytes
    wanted: int
    starts: Ints
    ends: Ints
    controls: Ints
    line: Ints
    begins: Ints
    stops: Ints
    first: Ints
    count: Ints

    @classmethod
    def of(cls, padded: bytes, wanted: int) -> Self:
        data, kinds = (
            np.frombuffer(padded, np.uint8),
            np.frombuffer(bytearray(padded).translate(_KIND), np.uint8),
        )
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
        count = np.minimum(np.diff(np.append(first, len(starts))), wanted + 1)
        line = np.flatnonzero(count)
        controls = np.flatnonzero(kinds == _CONTROL)
        return cls(
            data, wanted, starts, ends, controls, line, begins[line], stops[line], first[line], count[line]
        )  # fmt: skip

    def columns(self) -> tuple[Ints, Ints]:
        """Return where each line's wanted columns start and end, its newline for those it lacks; shape (lines,
        wanted)."""
        place = np.arange(self.wanted)
        at = self.first[:, None] + place
        there = self.count[:, None] > place
        if there.all():
            return self.starts[at], self.ends[at]
        at = np.minimum(at, len(self.starts) - 1)
        stops = self.stops[:, None]
        return np.where(there, self.starts[at], stops), np.where(there, self.ends[at], stops)

    def notes(self, limits: Limits) -> Notes:
        """Return the notes on each line, except on its numbers, its length and the length of its ids."""
        notes = np.zeros(len(self.line), np.int32)
        notes[self.data[self.starts[self.first]] == _HASH_SIGN] |= HASH
        notes[self.count < self.wanted] |= FEW
        notes[self.stops - self.begins > limits.line_length] |= LONG_LINE
        column = np.searchsorted(self.starts, self.controls, side="right") - 1
        row = np.searchsorted(self.first, column, side="right") - 1
        notes[row[column - self.first[row] <= self.wanted]] |= CONTROL
        more = np.flatnonzero(self.count > self.wanted)
        column = self.first[more] + self.wanted
        _, how = _numbers(self.data, self.starts[column], self.ends[column])
        notes[more] |= np.where(how & BAD_NUMBER, EXTRA, EXTRA | EXTRA_NUMBER).astype(np.int32)
        return notes


def _numbers(data: Bytes, starts: Positions, ends: Positions) -> tuple[Floats, Notes]:
    """Return decimal numbers of up to nineteen digits from the first that is not zero, correctly rounded; else NaN and
    a note."""
    size = ends - starts
    first = data[starts]
    signed = (first == _PLUS) | (first == _MINUS)
    mantissa, digits, significant, points, fraction = np.zeros((5, len(size)), np.int64)
    for place in range(min(int(size.max(initial=0)), _WIDE_NUMBER)):
        byte = np.where(place < size, data[np.minimum(starts + place, len(data) - 1)], 0)
        digit = byte - np.uint8(_ZERO)
        is_digit = digit <= 9
        points += byte == _POINT
        digits += is_digit
        fraction += is_digit & (points > 0)
        significant += is_digit & ((significant > 0) | (digit > 0))
        mantissa = np.where(is_digit, mantissa * 10 + digit, mantissa)
    # A double holds both numbers, so that their quotient is rounded once.
    exact, read = (significant <= 15) & (fraction <= 22), significant <= _DIGITS
    values = np.where(exact, mantissa / _POWERS[np.minimum(fraction, 22)], np.nan)
    values[first == _MINUS] *= -1
    notes = np.where(read, 0, SLOW_NUMBER) | np.where(points, FRACTION, 0)
    plain = (digits > 0) & (points <= 1) & (signed + digits + points == size)
    if len(wide := np.flatnonzero(plain & read & ~exact)):
        values[wide] = read_floats(data, starts[wide], ends[wide])
    for row in np.flatnonzero(~plain).tolist():
        values[row], notes[row] = _number(data[starts[row] : ends[row]].tobytes())
    return values, notes.astype(np.int32)


def _number(text: bytes) -> tuple[float, int]:
    """Return the same for one number of any kind."""
    match = _NUMBER.fullmatch(text)
    if not match or not (match[2] or match[4]):
        return np.nan, BAD_NUMBER
    digits = (match[2] + (match[4] or b"")).lstrip(b"0")
    note = FRACTION if match[3] or match[5] else 0
    value = float(text)
    return (np.nan, note | SLOW_NUMBER) if len(digits) > _DIGITS or isinf(value) else (value, note)


def _word(words: Hashes, starts: Positions, sizes: Positions, offset: int) -> Hashes:
    """Return eight bytes of each span from `offset` on, which is before its end; bytes past its end are zeros."""
    unused = WORD - np.minimum(sizes - offset, WORD)
    found: Hashes = words[starts + offset] & (_ALL >> (8 * unused).astype(np.uint64))
    return found


def _hash(words: Hashes, starts: Positions, ends: Positions, seed: int) -> Hashes:
    """Return the hash of `metrics.engine.judgement.ranking.hash_spans`, reading a machine word at a time."""
    sizes = ends - starts
    hashes = np.full(len(sizes), np.uint64(seed))
    for offset in range(0, int(sizes.max(initial=0)), WORD):
        rows = np.flatnonzero(sizes > offset)
        mixed = (hashes[rows] ^ _word(words, starts[rows], sizes[rows], offset)) * MULTIPLIER
        hashes[rows] = mixed ^ (mixed >> _THIRTY_TWO)
    finished = (hashes ^ sizes.astype(np.uint64)) * FINISH
    return finished ^ (finished >> _THIRTY_TWO)


def _changes(words: Hashes, starts: Positions, ends: Positions) -> Flags:
    """Return where a span has other bytes than the one before it; the first span counts as changed."""
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
    """Return rows that repeat a document of their topic, in order: the document's first row, and the row that repeats
    it."""
    sizes = np.diff(topic_starts)
    keys = columns.hashes ^ np.repeat(
        np.arange(1, len(sizes) + 1).astype(np.uint64) * _TOPIC_MIX, sizes
    )
    keys.sort()
    if not (keys[1:] == keys[:-1]).any():
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    return find_duplicates_exactly(columns, topic_starts)


def last_topic(content: bytes, size: int) -> int:
    """Return the same as the kernel's, line by line from the end: a piece's last topic is a small part of it."""
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
