"""Read a file of columns in pieces, and report all of its problems and warnings.

Runs, qrels, known documents and session logs are read so.
"""

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
from runs.formats.scanning.columns import (
    LABEL,
    NUMBER,
    QRELS,
    RUN,
    TOPIC,
    Columns,
    Layout,
    read_floats,
)
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
# If a file is in memory completely, this many rows are processed at a time.
_ROWS_AT_ONCE = 200_000
_DECODED_AT_ONCE = 1024 * 1024
_CONTROLS = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
# Commands of the client for files of another form, by the columns of what is read.
_CONVERSIONS = {RUN.columns: "evh convert run", QRELS.columns: "evh convert qrels"}
_NTCIR_LEVEL, _FRACTION = re.compile(rb"L\d+"), re.compile(rb"-?\d*\.\d+")
# Problems of a line that has all of its columns.
_LINE_PROBLEMS = CONTROL | LONG_LINE | LONG_ID
# Held while judgements, or a run with interleaved topics, are read completely. That takes up to a
# gigabyte, and otherwise every thread of a web process could take one.
WHOLE_FILE = threading.Lock()


class _LineCounter:
    """Counts lines while they are read.

    Too many lines, or a line without end, are refused before they fill the memory.
    """

    def __init__(self, stream: Reader, limits: Limits, report: FileReport) -> None:
        self._stream = stream
        self._limits = limits
        self._report = report
        self.newlines = 0
        self._open_line = 0

    @property
    def lines(self) -> int:
        return self.newlines + (self._open_line > 0)

    def read(self, size: int) -> bytes:
        content = self._stream.read(size)
        last = content.rfind(b"\n")
        self.newlines += int(np.count_nonzero(np.frombuffer(content, np.uint8) == _LF))
        self._open_line = len(content) - last - 1 + (self._open_line if last < 0 else 0)
        if self.lines > self._limits.lines:
            raise FileTooLarge(f"more than {self._limits.lines:,} lines", code="too_many_lines")

        if self._open_line > max(PIECE, self._limits.line_length):
            message = f"the line has more than {self._limits.line_length:,} bytes"
            self._report.problem(self.lines, "line_too_long", message)
            self._report.check()

        return content

    def read_start(self, size: int) -> bytes:
        """Return the first `size` bytes, or all if there are fewer."""
        content = b""
        while len(content) < size and (chunk := self.read(size - len(content))):
            content += chunk
        return content


class TopicsInterleaved(Exception):
    """A topic occurs again after another one: the file must be read whole to group its lines."""


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
        """Yield the file's rows without comments, in pieces of whole topics or as a `whole`."""
        for columns in ahead(self._scan, self._pieces(stream, whole), THREADS):
            yield self._rows(columns)

    def read_usual(
        self,
        stream: Reader,
        read_lines: Callable[[bytes, int, int, Limits], T | None],
        whole: bool = False,
    ) -> Iterator[Columns | T]:
        """Yield the results of `read_lines` for pieces of usual lines, and the rows of others.

        It is called with bytes, the size of the whole topics in them, their first line and the
        limits, and returns None if the lines are not usual.
        """

        def read_or_scan(piece: tuple[bytes, int, int]) -> Columns | T:
            content, size, line = piece
            return read_lines(content, size, line, self.limits) or self._scan(piece)

        for lines in ahead(read_or_scan, self._pieces(stream, whole), THREADS):
            yield self._rows(lines) if isinstance(lines, Columns) else lines

    def _scan(self, piece: tuple[bytes, int, int]) -> Columns:
        content, size, line = piece
        return scan(content, size, self.layout, line, self.seed, self.limits)

    def _pieces(self, stream: Reader, whole: bool) -> Iterator[tuple[bytes, int, int]]:
        """Yield bytes that begin with whole topics, the size of these, and their first line."""
        keep_freed_memory()
        counter = _LineCounter(stream, self.limits, self.report)
        remainder, line, at_end = self._without_mark(counter.read_start(4)), 1, False
        usual_size = self.limits.bytes_at_once + 1 if whole else PIECE
        target_size = usual_size

        while not at_end:
            content, size, at_end = _fill(counter, remainder, max(target_size, len(remainder) + 1))
            self._check_room(size, counter.newlines + 1 - line)
            cut = size if at_end else last_topic(content, size)
            if cut or at_end:
                self._check_text(content, cut, line)
                yield content, cut, line
                remainder, target_size = content[cut:size], usual_size
                line = counter.newlines + 1 - remainder.count(b"\n")
            else:
                # One topic fills the piece: read on until it ends.
                columns = self._scan((content, content.rfind(b"\n", 0, size) + 1, line))
                self.check_documents(int(np.count_nonzero(columns.notes & HASH == 0)))
                remainder = content[:size]
                target_size = min(2 * size, self.limits.bytes_at_once + 1)

        self.lines = counter.lines

    def _check_room(self, size: int, lines: int) -> None:
        limits = self.limits
        if lines > limits.lines_at_once or size > limits.bytes_at_once:
            message = (
                f"more than {limits.bytes_at_once:,} bytes or {limits.lines_at_once:,} lines "
                "belong together; "
                "the lines of a topic must follow each other in a file of this size"
            )
            raise FileTooLarge(message, code="too_large_at_once")

    def check_documents(self, documents: int) -> None:
        """Raise FileTooLarge for a topic with more documents than the limit."""
        if documents > self.limits.documents_per_topic:
            message = f"more than {self.limits.documents_per_topic:,} documents for a topic"
            raise FileTooLarge(message, code="too_many_documents")

    def check_topics(self, topics: int) -> None:
        """Raise FileTooLarge for a file with more topics than the limit."""
        if topics > self.limits.topics:
            raise FileTooLarge(f"more than {self.limits.topics:,} topics", code="too_many_topics")

    def _without_mark(self, content: bytes) -> bytes:
        """Return the start of a file without its byte-order mark."""
        if content.startswith(_UTF16):
            self.report.problem(1, "undecodable_bytes", "the file is UTF-16; send it as UTF-8")
            self.report.check()
        return content.removeprefix(_BOM)

    def _check_text(self, content: bytes, end: int, first_line: int) -> None:
        position = None if content.isascii() else _find_undecodable(content[:end])
        if position is not None:
            line = first_line + content.count(b"\n", 0, position)
            message = f"byte {content[position]:#04x} is not UTF-8; send the file as UTF-8"
            self.report.problem(line, "undecodable_bytes", message)

    def _rows(self, columns: Columns) -> Columns:
        if columns.noted(HASH):
            self._note_comments(columns)
            columns = keep_rows(columns, columns.notes & HASH == 0)

        # Numbers with more digits than the scan reads.
        if columns.noted(SLOW_NUMBER):
            slow = np.flatnonzero(columns.notes & SLOW_NUMBER != 0)
            columns.number[slow] = read_floats(
                columns.data, columns.spans[slow, 4], columns.spans[slow, 5]
            )

        return columns

    def _note_comments(self, columns: Columns) -> None:
        """Collect comments: lines that begin with #. Report those that could be data."""
        rows = np.flatnonzero(columns.notes & HASH)
        after = columns.data[np.minimum(columns.spans[rows, 0] + 1, len(columns.data) - 1)]
        is_data = (columns.notes[rows] & (FEW | BAD_NUMBER)) == 0
        # A # before white space always begins a comment.
        is_data &= ~np.isin(after, (9, 10, 13, 32))
        is_data &= self.layout.ambiguous_comments
        message = (
            "a line that starts with # is a comment, but this one reads as data; "
            "rename the topic or write '# '"
        )
        self.add(columns.line[rows[is_data]], "ambiguous_comment", message)
        for row in rows[: _HEADER_LINES - len(self.comments)].tolist():
            self.comments.append(_line_at(columns, row).rstrip(b"\r"))

    def check_rows(self, columns: Columns, number: str, code: str) -> Flags:
        """Report the problems of each row. Return which rows are valid."""
        if not columns.noted(FEW | _LINE_PROBLEMS) and np.isfinite(columns.number).all():
            return np.ones(len(columns.line), np.bool_)

        notes = columns.notes
        is_short = notes & FEW != 0
        message = f"a line needs {self.layout.columns} columns separated by spaces or tabs"
        self._add_explained(columns, is_short, "too_few_columns", message, self._explain_few)
        bad_number = ~is_short & ~np.isfinite(columns.number)
        self.add_numbers(columns, np.flatnonzero(bad_number), number, code)
        valid: Flags = self.check_text(columns) & ~is_short & ~bad_number

        return valid

    def check_text(self, columns: Columns) -> Flags:
        """Report control characters, long lines and long ids. Return which rows have none."""
        if not columns.noted(_LINE_PROBLEMS):
            return np.ones(len(columns.line), np.bool_)

        notes = columns.notes
        has_control = notes & CONTROL != 0
        self._add_explained(
            columns,
            has_control,
            "control_character",
            "a control character inside a column",
            _explain_control,
        )

        long_line = f"the line has more than {self.limits.line_length:,} bytes"
        self.add(columns.line[notes & LONG_LINE != 0], "line_too_long", long_line)
        long_id = f"a topic_id or doc_id has more than {self.limits.id_length} bytes"
        self.add(columns.line[notes & LONG_ID != 0], "id_too_long", long_id)
        valid: Flags = notes & _LINE_PROBLEMS == 0

        return valid

    def _explain_few(self, line: bytes) -> str:
        return self._conversion(line) or _explain_few(line)

    def _conversion(self, line: bytes) -> str:
        """Name the command that converts a file with such a line, or return ""."""
        command, texts = _CONVERSIONS.get(self.layout.columns, ""), line.split()
        is_run, what = self.layout.columns == RUN.columns, ""
        if line.lstrip().startswith((b"{", b"[{")):
            what = "JSON is converted by {}"
        elif len(texts) == 3:
            source = "MS MARCO" if is_run else "BEIR"
            what = f"three columns, as of {source}, are converted by {{}}"
        elif not is_run and len(texts) == 4 and _NTCIR_LEVEL.fullmatch(texts[3]):
            what = "levels of NTCIR are converted by {}"
        elif not is_run and len(texts) == 4 and _FRACTION.fullmatch(texts[3]):
            what = "levels with decimals are made whole by {} --scale 10"

        return f"; {what.format(f'{command} FILE')}" if command and what else ""

    def _add_explained(
        self,
        columns: Columns,
        rows: Flags,
        code: str,
        message: str,
        explain: Callable[[bytes], str],
    ) -> None:
        """Add a problem for each of the rows, with an explanation of its bytes."""
        for row in np.flatnonzero(rows)[:PROBLEMS_SHOWN].tolist():
            self.report.problem(
                int(columns.line[row]), code, message + explain(_line_at(columns, row))
            )

        self.count_rest(code, int(np.count_nonzero(rows)))

    def add_numbers(self, columns: Columns, rows: Ints, number: str, code: str) -> None:
        """Add a problem for each of these rows: its number is not `number`."""
        for row in rows[:PROBLEMS_SHOWN].tolist():
            text = columns.text(row, NUMBER)
            quoted = text[:40].decode(errors="replace")
            header = text.lower() in (b"score", b"sim", b"relevance", b"rel", b"label")
            hint = "; this looks like a header line: remove it" if header else ""
            hint = self._conversion(_line_at(columns, row)) or hint
            self.report.problem(int(columns.line[row]), code, f"{quoted!r} is not {number}{hint}")

        self.count_rest(code, len(rows))

    def warn_extra_columns(self, columns: Columns) -> None:
        if not columns.noted(EXTRA):
            return
        extra = columns.line[columns.notes & EXTRA != 0]
        message = f"columns after the first {self.layout.columns} are ignored"
        self.add(extra, "extra_columns", message, warn=True)

    def add(self, lines: Ints, code: str, message: str, warn: bool = False) -> None:
        """Add a problem or warning for each of the first 50 lines, and count the others."""
        report = self.report.warning if warn else self.report.problem
        for line in lines[:PROBLEMS_SHOWN].tolist():
            report(line, code, message)
        self.count_rest(code, len(lines))

    def count_rest(self, code: str, total: int) -> None:
        """Count the lines after the first 50, which were not reported one by one."""
        if total > PROBLEMS_SHOWN:
            self.report.count_more(code, total - PROBLEMS_SHOWN)


def ensure_grouped(topic_ids: list[bytes], known: set[bytes]) -> None:
    """Add the topics of a piece to the known ones. Raise TopicsInterleaved if one is known."""
    count = len(known)
    known.update(topic_ids)
    if len(known) - count < len(topic_ids):
        raise TopicsInterleaved


def group_by_topic(columns: Columns) -> Columns:
    """Return rows grouped by topic, in order of first appearance.

    The rows of a topic keep their order.
    """
    numbers = _numbers(columns, TOPIC, _starts(columns, TOPIC))
    if (numbers[1:] > numbers[:-1]).all():
        return columns
    return _mark_changes(columns.take(np.argsort(numbered(columns, TOPIC), kind="stable")))


def topics_together(columns: Columns) -> Iterator[Columns]:
    """Yield rows grouped by topic, some whole topics at a time.

    A copy of all rows would need as much memory again.
    """
    topics = numbered(columns, TOPIC)
    order = np.argsort(topics, kind="stable").astype(np.int32)
    ends = np.cumsum(np.bincount(topics)).tolist()
    del topics
    start = 0

    for index, end in enumerate(ends):
        if end - start >= _ROWS_AT_ONCE or index == len(ends) - 1:
            yield _mark_changes(columns.take(order[start:end]))
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
    """Return the number of the topic or label that begins at each of the rows `starts`.

    Numbers are in order of first appearance.
    """
    numbers_by_text: dict[bytes, int] = {}
    numbers = np.empty(len(starts), np.int64)

    # If topics are interleaved, every row begins one: all of them as Python objects would fill the
    # memory.
    for start in range(0, len(starts), _ROWS_AT_ONCE):
        texts = columns.texts(starts[start : start + _ROWS_AT_ONCE], column)
        numbers[start : start + len(texts)] = [
            numbers_by_text.setdefault(text, len(numbers_by_text)) for text in texts
        ]

    return numbers


def keep_rows(columns: Columns, valid: Flags) -> Columns:
    """Return only the valid rows, with the changes of topics and labels marked again."""
    return columns if valid.all() else _mark_changes(columns.take(np.flatnonzero(valid)))


def topic_segments(columns: Columns) -> tuple[list[bytes], Ints]:
    """Return the topics of a piece, and the rows at which they start, followed by their end."""
    starts = _starts(columns, TOPIC)
    return columns.texts(starts, TOPIC), np.append(starts, len(columns.line))


def _fill(counter: _LineCounter, remainder: bytes, target_size: int) -> tuple[bytes, int, bool]:
    """Read on until `target_size` bytes, and add PADDING.

    Return the remainder with these bytes, their size without the padding, and whether the file ends
    there.
    """
    chunks, size, at_end = [remainder], len(remainder), False
    while size < target_size and not at_end:
        chunk = counter.read(min(PIECE, target_size - size))
        chunks.append(chunk)
        size += len(chunk)
        at_end = not chunk

    return b"".join([*chunks, PADDING]), size, at_end


def _find_undecodable(content: bytes) -> int | None:
    """Return the position of the first byte that is not UTF-8, or None.

    Some lines are decoded at a time, because text takes up to four times as much memory.
    """
    start = 0
    while start < len(content):
        end = content.find(b"\n", start + _DECODED_AT_ONCE) + 1 or len(content)
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


def _mark_changes(columns: Columns) -> Columns:
    """Mark again where topics and labels change, after rows were moved or removed."""
    notes = columns.notes & ~(NEW_TOPIC | NEW_LABEL)

    for flag, column in ((NEW_TOPIC, TOPIC), (NEW_LABEL, LABEL)):
        starts, ends = columns.spans[:, 2 * column], columns.spans[:, 2 * column + 1]
        equal = spans_equal(
            columns.data, starts[1:], ends[1:], columns.data, starts[:-1], ends[:-1]
        )
        notes[1:][~equal] |= flag
        notes[:1] |= flag

    return replace(columns, notes=notes)


def _explain_few(line: bytes) -> str:
    """Name the probable separators of a line with too few columns."""
    if b"\xc2\xa0" in line:
        return (
            "; this one has no-break spaces (U+00A0), which belong to ids: "
            "write plain spaces instead"
        )

    if b"\v" in line or b"\f" in line:
        return "; this one has vertical tabs or form feeds: write plain spaces instead"
    if b"," in line:
        return "; this one has commas: write spaces or tabs instead"

    return ""


def _explain_control(line: bytes) -> str:
    """Name the first control character of a line."""
    match = _CONTROLS.search(line)
    if not match:
        return ""
    if match[0] == b"\r":
        return ": a carriage return (CR) without a line feed; end lines with LF or CRLF"
    return f": byte {match[0][0]:#04x}"


Opener = Callable[[], Reader]
