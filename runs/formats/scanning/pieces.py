"""What runs and qrels share: a file is read in pieces into columns, and all problems and warnings are reported."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from metrics.engine.arrays import Flags, Ints
from metrics.engine.judgement.ranking import spans_equal
from runs.errors import PROBLEMS_SHOWN, FileReport, FileTooLarge
from runs.formats.compression import Reader
from runs.formats.limits import Limits
from runs.formats.scanning.ahead import THREADS, ahead
from runs.formats.scanning.columns import LABEL, NUMBER, TOPIC, Columns, Layout, read_floats
from runs.formats.scanning.memory import keep_freed_memory
from runs.formats.scanning.notes import (
    BAD_NUMBER,
    CONTROL,
    EXTRA,
    FEW,
    HASH,
    LONG_ID,
    LONG_LINE,
    NEW_LABEL,
    NEW_TOPIC,
    SLOW_NUMBER,
)
from runs.formats.scanning.scan import PADDING, last_topic, scan

T = TypeVar("T")

PIECE = 1024 * 1024
_LF = 10
_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_HEADER_LINES = 10_000
# Of a file that is in memory completely, this many rows are processed at a time.
_ROWS_AT_ONCE = 200_000
_STRETCH = 1024 * 1024
_CONTROLS = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
# What is wrong with a line that has all of its columns.
_WRONG = CONTROL | LONG_LINE | LONG_ID
# Held while judgements, or a run whose topics are interleaved, are read completely. That takes up
# to a gigabyte, and otherwise every thread of a web process could take one.
WHOLE_FILE = threading.Lock()


class _Guard:
    """Count lines as the bytes arrive: too many lines, or one without end, are refused before they fill the memory."""

    def __init__(self, stream: Reader, limits: Limits, report: FileReport) -> None:
        self._stream = stream
        self._limits = limits
        self._report = report
        self.ends = 0
        self._open = 0

    @property
    def lines(self) -> int:
        return self.ends + (self._open > 0)

    def read(self, size: int) -> bytes:
        content = self._stream.read(size)
        last = content.rfind(b"\n")
        self.ends += int(np.count_nonzero(np.frombuffer(content, np.uint8) == _LF))
        self._open = len(content) - last - 1 + (self._open if last < 0 else 0)
        if self.lines > self._limits.lines:
            raise FileTooLarge(f"more than {self._limits.lines:,} lines", code="too_many_lines")
        if self._open > max(PIECE, self._limits.line_length):
            message = f"the line has more than {self._limits.line_length:,} bytes"
            self._report.problem(self.lines, "line_too_long", message)
            self._report.check()
        return content

    def read_whole(self, size: int) -> bytes:
        """Return this many bytes, however few the stream gives at a time, or all there are."""
        content = b""
        while len(content) < size and (part := self.read(size - len(content))):
            content += part
        return content


class TopicsInterleaved(Exception):
    """A topic occurs again after another one: the file must be read completely to group its lines by topic."""


@dataclass
class PieceReader:
    """Read a file in pieces of whole topics, or completely if its topics are interleaved."""

    layout: Layout
    limits: Limits
    seed: int
    report: FileReport = field(default_factory=FileReport)
    comments: list[bytes] = field(default_factory=list)
    lines: int = 0

    def read(self, stream: Reader, whole: bool = False) -> Iterator[Columns]:
        """Yield the file's rows without comments. Each piece ends where a topic ends; `whole` makes it one piece."""
        for columns in ahead(self._scan, self._pieces(stream, whole), THREADS):
            yield self._rows(columns)

    def read_usual(
        self,
        stream: Reader,
        take: Callable[[bytes, int, int, Limits], T | None],
        whole: bool = False,
    ) -> Iterator[Columns | T]:
        """Yield the same, but what `take` returns of a piece instead of its rows: it takes bytes, how many of them are
        whole topics, their first line and the limits, and returns None where the lines are not
        usual."""

        def taken(piece: tuple[bytes, int, int]) -> Columns | T:
            content, size, line = piece
            return take(content, size, line, self.limits) or self._scan(piece)

        for each in ahead(taken, self._pieces(stream, whole), THREADS):
            yield self._rows(each) if isinstance(each, Columns) else each

    def _scan(self, piece: tuple[bytes, int, int]) -> Columns:
        content, size, line = piece
        return scan(content, size, self.layout, line, self.seed, self.limits)

    def _pieces(self, stream: Reader, whole: bool) -> Iterator[tuple[bytes, int, int]]:
        """Yield bytes that begin with whole topics, as many as are read at once, with their number and first line."""
        keep_freed_memory()
        guard = _Guard(stream, self.limits, self.report)
        rest, line, ended = self._without_mark(guard.read_whole(4)), 1, False
        usual = self.limits.bytes_at_once + 1 if whole else PIECE
        wanted = usual
        while not ended:
            content, size, ended = _fill(guard, rest, max(wanted, len(rest) + 1))
            self._check_room(size, guard.ends + 1 - line)
            cut = size if ended else last_topic(content, size)
            if cut or ended:
                self._check_text(content, cut, line)
                yield content, cut, line
                rest, wanted = content[cut:size], usual
                line = guard.ends + 1 - rest.count(b"\n")
            else:
                # One topic fills the piece: read on until it ends.
                columns = self._scan((content, content.rfind(b"\n", 0, size) + 1, line))
                self.check_documents(int(np.count_nonzero(columns.notes & HASH == 0)))
                rest, wanted = content[:size], min(2 * size, self.limits.bytes_at_once + 1)
        self.lines = guard.lines

    def _check_room(self, size: int, lines: int) -> None:
        limits = self.limits
        if lines > limits.lines_at_once or size > limits.bytes_at_once:
            message = (
                f"more than {limits.bytes_at_once:,} bytes or {limits.lines_at_once:,} lines belong together; "
                "the lines of a topic must follow each other in a file of this size"
            )
            raise FileTooLarge(message, code="too_large_at_once")

    def check_documents(self, documents: int) -> None:
        """Refuse a topic with more documents than the limit."""
        if documents > self.limits.documents_per_topic:
            message = f"more than {self.limits.documents_per_topic:,} documents for a topic"
            raise FileTooLarge(message, code="too_many_documents")

    def check_topics(self, topics: int) -> None:
        """Refuse a file with more topics than the limit."""
        if topics > self.limits.topics:
            raise FileTooLarge(f"more than {self.limits.topics:,} topics", code="too_many_topics")

    def _without_mark(self, content: bytes) -> bytes:
        """Return the start of a file without its byte-order mark."""
        if content.startswith(_UTF16):
            self.report.problem(1, "undecodable_bytes", "the file is UTF-16; send it as UTF-8")
            self.report.check()
        return content.removeprefix(_BOM)

    def _check_text(self, content: bytes, end: int, first_line: int) -> None:
        bad = None if content.isascii() else _undecodable(content[:end])
        if bad is not None:
            line = first_line + content.count(b"\n", 0, bad)
            message = f"byte {content[bad]:#04x} is not UTF-8; send the file as UTF-8"
            self.report.problem(line, "undecodable_bytes", message)

    def _rows(self, columns: Columns) -> Columns:
        if columns.noted(HASH):
            self._note_comments(columns)
            columns = keep_rows(columns, columns.notes & HASH == 0)
        # Numbers of more digits than the scan reads.
        if columns.noted(SLOW_NUMBER):
            slow = np.flatnonzero(columns.notes & SLOW_NUMBER != 0)
            columns.number[slow] = read_floats(
                columns.data, columns.spans[slow, 4], columns.spans[slow, 5]
            )
        return columns

    def _note_comments(self, columns: Columns) -> None:
        """Report comments. Lines whose first column begins with # are comments; one that could be data is ambiguous."""
        rows = np.flatnonzero(columns.notes & HASH)
        after = columns.data[np.minimum(columns.spans[rows, 0] + 1, len(columns.data) - 1)]
        data = ((columns.notes[rows] & (FEW | BAD_NUMBER)) == 0) & ~np.isin(after, (9, 10, 13, 32))
        data &= self.layout.ambiguous_comments
        say = "a line that starts with # is a comment, but this one reads as data; rename the topic or write '# '"
        self.add(columns.line[rows[data]], "ambiguous_comment", say)
        for row in rows[: _HEADER_LINES - len(self.comments)].tolist():
            self.comments.append(_line_at(columns, row).rstrip(b"\r"))

    def check_rows(self, columns: Columns, number: str, code: str) -> Flags:
        """Report the problems of each row. Return which rows are valid."""
        if not columns.noted(FEW | _WRONG) and np.isfinite(columns.number).all():
            return np.ones(len(columns.line), np.bool_)
        notes = columns.notes
        few = notes & FEW != 0
        names = f"a line needs {self.layout.columns} columns separated by spaces or tabs"
        self._add_explained(columns, few, "too_few_columns", names, _why_few)
        bad = ~few & ~np.isfinite(columns.number)
        self.add_numbers(columns, np.flatnonzero(bad), number, code)
        good: Flags = self.check_text(columns) & ~few & ~bad
        return good

    def check_text(self, columns: Columns) -> Flags:
        """Report control characters, long lines and long ids. Return which rows have none."""
        if not columns.noted(_WRONG):
            return np.ones(len(columns.line), np.bool_)
        notes = columns.notes
        controls = notes & CONTROL != 0
        self._add_explained(
            columns,
            controls,
            "control_character",
            "a control character inside a column",
            _which_control,
        )
        long_line = f"the line has more than {self.limits.line_length:,} bytes"
        self.add(columns.line[notes & LONG_LINE != 0], "line_too_long", long_line)
        long_id = f"a topic_id or doc_id has more than {self.limits.id_length} bytes"
        self.add(columns.line[notes & LONG_ID != 0], "id_too_long", long_id)
        good: Flags = notes & _WRONG == 0
        return good

    def _add_explained(
        self,
        columns: Columns,
        rows: Flags,
        code: str,
        message: str,
        explain: Callable[[bytes], str],
    ) -> None:
        """Add a problem for each of the rows, with the cause that their bytes show."""
        for row in np.flatnonzero(rows)[:PROBLEMS_SHOWN].tolist():
            self.report.problem(
                int(columns.line[row]), code, message + explain(_line_at(columns, row))
            )
        self.count_rest(code, int(np.count_nonzero(rows)))

    def add_numbers(self, columns: Columns, rows: Ints, number: str, code: str) -> None:
        """Add a problem for each row whose number is not `number`."""
        for row in rows[:PROBLEMS_SHOWN].tolist():
            text = columns.text(row, NUMBER)
            shown = text[:40].decode(errors="replace")
            header = text.lower() in (b"score", b"sim", b"relevance", b"rel", b"label")
            hint = "; this looks like a header line: remove it" if header else ""
            self.report.problem(int(columns.line[row]), code, f"{shown!r} is not {number}{hint}")
        self.count_rest(code, len(rows))

    def warn_extra_columns(self, columns: Columns) -> None:
        if not columns.noted(EXTRA):
            return
        extra = columns.line[columns.notes & EXTRA != 0]
        say = f"columns after the first {self.layout.columns} are ignored"
        self.add(extra, "extra_columns", say, warn=True)

    def add(self, lines: Ints, code: str, message: str, warn: bool = False) -> None:
        """Add a problem or warning for each line; beyond the first 50 of a piece they are only counted."""
        put = self.report.warning if warn else self.report.problem
        for line in lines[:PROBLEMS_SHOWN].tolist():
            put(line, code, message)
        self.count_rest(code, len(lines))

    def count_rest(self, code: str, total: int) -> None:
        """Count the lines that were not reported one by one: all except the first 50."""
        if total > PROBLEMS_SHOWN:
            self.report.count_more(code, total - PROBLEMS_SHOWN)


def ensure_grouped(topic_ids: list[bytes], seen: set[bytes]) -> None:
    """Raise TopicsInterleaved if a topic of this piece occurred before; remember its topics."""
    before = len(seen)
    seen.update(topic_ids)
    if len(seen) - before < len(topic_ids):
        raise TopicsInterleaved


def group_by_topic(columns: Columns) -> Columns:
    """Return rows grouped by topic, topics in order of first appearance, with the order within a topic kept."""
    numbers = _numbers(columns, TOPIC, _starts(columns, TOPIC))
    if (numbers[1:] > numbers[:-1]).all():
        return columns
    return _renote(columns.take(np.argsort(numbered(columns, TOPIC), kind="stable")))


def topics_together(columns: Columns) -> Iterator[Columns]:
    """Yield the same rows, some whole topics at a time: a copy of all rows would need as much memory again."""
    topics = numbered(columns, TOPIC)
    order = np.argsort(topics, kind="stable").astype(np.int32)
    ends = np.cumsum(np.bincount(topics)).tolist()
    del topics
    start = 0
    for place, end in enumerate(ends):
        if end - start >= _ROWS_AT_ONCE or place == len(ends) - 1:
            yield _renote(columns.take(order[start:end]))
            start = end


def numbered(columns: Columns, column: int) -> Ints:
    """Return for each row the number of its topic or label, in order of first appearance."""
    starts = _starts(columns, column)
    return np.repeat(
        _numbers(columns, column, starts), np.diff(np.append(starts, len(columns.line)))
    )


def _starts(columns: Columns, column: int) -> Ints:
    """Return the rows at which the topic or label changes."""
    return np.flatnonzero(columns.notes & (NEW_TOPIC if column == TOPIC else NEW_LABEL) != 0)


def _numbers(columns: Columns, column: int, starts: Ints) -> Ints:
    """Return for each row at which the topic or label changes its number, in order of first appearance."""
    first: dict[bytes, int] = {}
    numbers = np.empty(len(starts), np.int64)
    # If topics are interleaved every row begins one: as Python numbers all of them would fill the
    # memory.
    for begin in range(0, len(starts), _ROWS_AT_ONCE):
        texts = columns.texts(starts[begin : begin + _ROWS_AT_ONCE], column)
        numbers[begin : begin + len(texts)] = [first.setdefault(text, len(first)) for text in texts]
    return numbers


def keep_rows(columns: Columns, good: Flags) -> Columns:
    """Return only the valid rows, with the places where topics change marked again."""
    return columns if good.all() else _renote(columns.take(np.flatnonzero(good)))


def topic_segments(columns: Columns) -> tuple[list[bytes], Ints]:
    """Return the topics of a piece, and the row at which each starts with the number of rows at the end."""
    starts = _starts(columns, TOPIC)
    return columns.texts(starts, TOPIC), np.append(starts, len(columns.line))


def _fill(guard: _Guard, rest: bytes, wanted: int) -> tuple[bytes, int, bool]:
    """Return `rest`, the following bytes up to `wanted`, and PADDING; their size without the padding, and whether the
    file ends there."""
    parts, size, ended = [rest], len(rest), False
    while size < wanted and not ended:
        part = guard.read(min(PIECE, wanted - size))
        parts.append(part)
        size += len(part)
        ended = not part
    return b"".join([*parts, PADDING]), size, ended


def _undecodable(content: bytes) -> int | None:
    """Return the place of the first byte that is not UTF-8. Some lines are decoded at a time, because text takes up to
    four times as much memory."""
    start = 0
    while start < len(content):
        end = content.find(b"\n", start + _STRETCH) + 1 or len(content)
        try:
            content[start:end].decode()
        except UnicodeDecodeError as error:
            return start + error.start
        start = end
    return None


def _line_at(columns: Columns, row: int) -> bytes:
    data, start = columns.data, int(columns.spans[row, 0])
    rest = data[start : start + 8192]
    ends = np.flatnonzero(rest == 10)
    return rest[: ends[0] if len(ends) else len(rest)].tobytes().removesuffix(b"\r")


def _renote(columns: Columns) -> Columns:
    """Mark again where topics and labels change, after rows were moved or removed."""
    notes = columns.notes & ~(NEW_TOPIC | NEW_LABEL)
    for flag, column in ((NEW_TOPIC, TOPIC), (NEW_LABEL, LABEL)):
        starts, ends = columns.spans[:, 2 * column], columns.spans[:, 2 * column + 1]
        same = spans_equal(columns.data, starts[1:], ends[1:], columns.data, starts[:-1], ends[:-1])
        notes[1:][~same] |= flag
        notes[:1] |= flag
    return replace(columns, notes=notes)


def _why_few(line: bytes) -> str:
    """Return the text in a line where separators should be."""
    if b"\xc2\xa0" in line:
        return "; this one has no-break spaces (U+00A0), which belong to ids: write plain spaces instead"
    if b"\v" in line or b"\f" in line:
        return "; this one has vertical tabs or form feeds: write plain spaces instead"
    if b"," in line:
        return "; this one has commas: write spaces or tabs instead"
    return ""


def _which_control(line: bytes) -> str:
    """Return the name of the first control character of a line."""
    found = _CONTROLS.search(line)
    if not found:
        return ""
    if found[0] == b"\r":
        return ": a carriage return (CR) without a line feed; end lines with LF or CRLF"
    return f": byte {found[0][0]:#04x}"


Opener = Callable[[], Reader]
