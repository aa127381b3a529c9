"""What runs and qrels have in common: a file read by pieces into columns, and everything odd about it reported."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from metrics.engine.errors import FileReport, FileTooLarge
from metrics.engine.ranking import Flags, Floats, Ints, spans_equal
from runs.formats.compression import Reader
from runs.formats.limits import Limits
from runs.formats.scan import (
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
    Columns,
    Layout,
    scan,
)

PIECE = 8 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
# Longer numbers than this are read one by one rather than in an array as wide as the longest.
_WIDE_NUMBER = 64
_HEADER_LINES = 10_000
TOPIC, DOCUMENT, NUMBER, LABEL = range(4)


class TopicsInterleaved(Exception):
    """A topic comes back after another one: the file must be read whole to bring its topics together."""


@dataclass
class PieceReader:
    """Reads a file in pieces of whole topics (or whole, for files whose topics are interleaved)."""

    layout: Layout
    limits: Limits
    seed: int
    report: FileReport = field(default_factory=FileReport)
    comments: list[bytes] = field(default_factory=list)
    lines: int = 0

    def read(self, stream: Reader, whole: bool = False) -> Iterator[Columns]:
        """The file's rows, comments taken out. Each piece ends where a topic ends; `whole` makes it one piece."""
        rest, line, ended = b"", 1, False
        wanted = self.limits.bytes_out + 1 if whole else PIECE
        while not ended:
            content, ended = _fill(stream, rest, wanted)
            if line == 1:
                content = self._without_bom(content)
            content, rest = _cut_after_newline(content, ended)
            self._check_text(content, line)
            columns = self._rows(content, line)
            kept = len(columns.line) if ended else _last_topic(columns)
            if kept == 0 and not ended and len(columns.line):
                # One topic fills the piece: read on until it ends.
                rest, wanted = content + rest, 2 * max(wanted, len(content))
                self._check_line(rest, line)
                continue
            if not ended and len(columns.line):
                cut = int(columns.spans[kept, 0])
                content, rest = content[:cut], content[cut:] + rest
            yield columns.take(slice(kept))
            line += content.count(b"\n")
            wanted = PIECE
            self._check_line(rest, line)
        self.lines = line - 1 + (1 if content and not content.endswith(b"\n") else 0)

    def _without_bom(self, content: bytes) -> bytes:
        if content.startswith(_UTF16):
            self.report.problem(1, "undecodable_bytes", "the file is UTF-16; send it as UTF-8")
            self.report.check()
        return content.removeprefix(_BOM)

    def _check_text(self, content: bytes, first_line: int) -> None:
        if content.isascii():
            return
        try:
            content.decode()
        except UnicodeDecodeError as error:
            line = first_line + content.count(b"\n", 0, error.start)
            message = f"byte {content[error.start]:#04x} is not UTF-8; send the file as UTF-8"
            self.report.problem(line, "undecodable_bytes", message)

    def _check_line(self, rest: bytes, line: int) -> None:
        """Refuse a line without end before it fills the memory."""
        end = rest.rfind(b"\n")
        if len(rest) - end > max(PIECE, self.limits.line_length):
            self.report.problem(line + rest.count(b"\n"), "line_too_long", self._long_line())
            self.report.check()
        if line > self.limits.lines:
            raise FileTooLarge(f"more than {self.limits.lines:,} lines", code="too_many_lines")

    def _long_line(self) -> str:
        return f"the line has more than {self.limits.line_length:,} bytes"

    def _rows(self, content: bytes, line: int) -> Columns:
        columns = scan(content, self.layout, line, self.seed, self.limits)
        if (columns.notes & HASH).any():
            columns = self._without_comments(columns)
        _read_slow_numbers(columns)
        return columns

    def _without_comments(self, columns: Columns) -> Columns:
        """Lines that begin with # are comments; one that reads as a line of data is refused as ambiguous."""
        hash_rows = np.flatnonzero(columns.notes & HASH)
        after = columns.data[np.minimum(columns.spans[hash_rows, 0] + 1, len(columns.data) - 1)]
        data = ((columns.notes[hash_rows] & (FEW | BAD_NUMBER)) == 0) & ~np.isin(after, (9, 10, 13, 32))
        say = "a line that starts with # is a comment, but this one reads as data; rename the topic"
        self.add(columns.line[hash_rows[data]], "ambiguous_comment", say)
        for row in hash_rows[: _HEADER_LINES - len(self.comments)].tolist():
            self.comments.append(_line_at(columns, row))
        return keep_rows(columns, columns.notes & HASH == 0)

    def check_rows(self, columns: Columns, number: str, code: str) -> Flags:
        """Report what is wrong with each row; returns which rows are good."""
        notes = columns.notes
        names = f"a line needs {self.layout.columns} columns separated by spaces or tabs"
        few = notes & FEW != 0
        self.add(columns.line[few], "too_few_columns", names)
        bad = ~few & ~np.isfinite(columns.number)
        for row in self._shown(np.flatnonzero(bad)):
            text = columns.text(row, NUMBER)[:40].decode(errors="replace")
            self.report.problem(int(columns.line[row]), code, f"{text!r} is not {number}{_hint(columns, row)}")
        self._count_rest(bad, code)
        self.add(columns.line[notes & CONTROL != 0], "control_character", "a control character inside a column")
        self.add(columns.line[notes & LONG_LINE != 0], "line_too_long", self._long_line())
        long_id = f"a topic_id or doc_id has more than {self.limits.id_length} bytes"
        self.add(columns.line[notes & LONG_ID != 0], "id_too_long", long_id)
        good: Flags = ~few & ~bad & (notes & (CONTROL | LONG_LINE | LONG_ID) == 0)
        return good

    def warn_extra_columns(self, columns: Columns) -> None:
        extra = columns.line[columns.notes & EXTRA != 0]
        say = f"columns after the first {self.layout.columns} are ignored"
        self.add(extra, "extra_columns", say, warn=True)

    def add(self, lines: Ints, code: str, message: str, warn: bool = False) -> None:
        """One problem or warning for each line; beyond the first 50 of a piece they are only counted."""
        put = self.report.warning if warn else self.report.problem
        for line in lines[:50].tolist():
            put(line, code, message)
        if len(lines) > 50:
            self.report.counts[code] += len(lines) - 50

    def _shown(self, rows: Ints) -> list[int]:
        return rows[:50].tolist()  # type: ignore[no-any-return]

    def _count_rest(self, flags: Flags, code: str) -> None:
        rest = int(np.count_nonzero(flags)) - 50
        if rest > 0:
            self.report.counts[code] += rest


def ensure_grouped(topic_ids: list[bytes], seen: set[bytes]) -> None:
    """Raise TopicsInterleaved where a topic of this piece came before; remembers its topics."""
    before = len(seen)
    seen.update(topic_ids)
    if len(seen) - before < len(topic_ids):
        raise TopicsInterleaved


def group_by_topic(columns: Columns) -> Columns:
    """Rows brought together by topic, topics in order of first appearance, the order within a topic kept."""
    starts = np.flatnonzero(columns.notes & NEW_TOPIC)
    first: dict[bytes, int] = {}
    index = [first.setdefault(columns.text(row, TOPIC), len(first)) for row in starts.tolist()]
    sizes = np.diff(np.append(starts, len(columns.line)))
    return _renote(columns.take(np.argsort(np.repeat(index, sizes), kind="stable")))


def keep_rows(columns: Columns, good: Flags) -> Columns:
    """The good rows alone, with the places where topics change marked anew."""
    return columns if good.all() else _renote(columns.take(np.flatnonzero(good)))


def topic_segments(columns: Columns) -> tuple[list[bytes], Ints]:
    """The topics of a piece, and the row at which each starts with the number of rows at the end."""
    starts = np.flatnonzero(columns.notes & NEW_TOPIC)
    return [columns.text(row, TOPIC) for row in starts.tolist()], np.append(starts, len(columns.line))


def _fill(stream: Reader, rest: bytes, wanted: int) -> tuple[bytes, bool]:
    parts, size = [rest], len(rest)
    while size < wanted:
        part = stream.read(min(PIECE, wanted - size))
        if not part:
            return b"".join(parts), True
        parts.append(part)
        size += len(part)
    return b"".join(parts), False


def _cut_after_newline(content: bytes, ended: bool) -> tuple[bytes, bytes]:
    cut = len(content) if ended else content.rfind(b"\n") + 1
    return content[:cut], content[cut:]


def _last_topic(columns: Columns) -> int:
    """The row at which the last topic begins: it may go on in the next piece."""
    starts = np.flatnonzero(columns.notes & NEW_TOPIC)
    return int(starts[-1]) if len(starts) else 0


def _line_at(columns: Columns, row: int) -> bytes:
    data, start = columns.data, int(columns.spans[row, 0])
    rest = data[start : start + 8192]
    ends = np.flatnonzero(rest == 10)
    return rest[: ends[0] if len(ends) else len(rest)].tobytes().rstrip(b"\r")


def _renote(columns: Columns) -> Columns:
    """Mark anew where topics and labels change, after rows were moved or taken out."""
    notes = columns.notes & ~(NEW_TOPIC | NEW_LABEL)
    for flag, column in ((NEW_TOPIC, TOPIC), (NEW_LABEL, LABEL)):
        starts, ends = columns.spans[:, 2 * column], columns.spans[:, 2 * column + 1]
        same = spans_equal(columns.data, starts[1:], ends[1:], columns.data, starts[:-1], ends[:-1])
        notes[1:][~same] |= flag
        notes[:1] |= flag
    return replace(columns, notes=notes)


def _read_slow_numbers(columns: Columns) -> None:
    """Numbers beyond the kernel's exact range (many digits, exponents), read correctly rounded."""
    slow = np.flatnonzero(columns.notes & SLOW_NUMBER)
    if not len(slow):
        return
    starts, ends = columns.spans[slow, 4], columns.spans[slow, 5]
    if int((ends - starts).max()) > _WIDE_NUMBER:
        columns.number[slow] = [float(columns.text(row, NUMBER)) for row in slow.tolist()]
    else:
        columns.number[slow] = _text_array(columns, starts, ends).astype(np.float64)


def _text_array(columns: Columns, starts: Ints, ends: Ints) -> Floats:
    width = int((ends - starts).max())
    at = starts[:, None] + np.arange(width)
    text = np.where(at < ends[:, None], columns.data[np.minimum(at, len(columns.data) - 1)], 0)
    return np.ascontiguousarray(text, np.uint8).view(f"S{width}")[:, 0]


def _hint(columns: Columns, row: int) -> str:
    text = columns.text(row, NUMBER).lower()
    if columns.line[row] == 1 and text in (b"score", b"sim", b"relevance", b"rel", b"label"):
        return "; this looks like a header line: remove it"
    return ""


Opener = Callable[[], Reader]
