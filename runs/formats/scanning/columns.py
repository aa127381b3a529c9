"""Columns: the lines of a piece of a run or qrels file as arrays, with notes on each line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from metrics.engine.arrays import Bytes, Floats, Hashes, Ints, Positions
from metrics.engine.judgement.judging import JudgedBlock, Judgements
from runs.formats.limits import Limits
from runs.formats.scanning.notes import ABSENT

# The columns of a row that have a span.
TOPIC, DOCUMENT, NUMBER, LABEL = range(4)
# Longer numbers than this are read one by one instead of in an array as wide as the longest.
_WIDE_NUMBER = 64


@dataclass(frozen=True)
class Layout:
    """Which column is which, 0-based; ABSENT for a column the format lacks. `columns` is how many a line needs.

    `ambiguous_comments` says whether a comment that reads as data is refused.
    """

    columns: int
    topic: int
    document: int
    number: int
    label: int
    rank: int
    ambiguous_comments: bool = True


RUN = Layout(columns=6, topic=0, document=2, number=4, label=5, rank=3)
# The columns that judging reads of a run that was checked before: neither its ranks nor its tags.
CHECKED_RUN = replace(RUN, label=ABSENT, rank=ABSENT)
QRELS = Layout(columns=4, topic=0, document=2, number=3, label=1, rank=ABSENT)
# The longest kind of line; the reader tells the shorter one by its note FEW. No judged topic begins
# with #, so that nothing is lost with a comment.
KNOWN = Layout(
    columns=3, topic=0, document=1, number=2, label=1, rank=ABSENT, ambiguous_comments=False
)


@dataclass(frozen=True)
class Columns:
    """The rows of a piece of a file: spans into `data`, one entry per line that is not blank.

    `label` is a run's tag or a qrels' iteration; `number` is the score or level (NaN where it is
    noted as slow or bad); `rank` is -1 where the column holds no whole number; `notes` holds those
    of `runs.formats.scanning.notes`.
    """

    data: Bytes
    line: Positions
    notes: npt.NDArray[np.int32]
    spans: Positions  # shape (rows, 8): start and end of topic, document, number, label
    hashes: Hashes
    number: Floats
    rank: Ints

    def take(self, rows: Any) -> Columns:
        return Columns(
            self.data, self.line[rows], self.notes[rows], self.spans[rows], self.hashes[rows], self.number[rows],
            self.rank[rows],
        )  # fmt: skip

    def text(self, row: int, column: int) -> bytes:
        """Return the bytes of TOPIC, DOCUMENT, NUMBER or LABEL of a row."""
        start, end = self.spans[row, 2 * column : 2 * column + 2].tolist()
        return self.data[start:end].tobytes()

    def texts(self, rows: Ints, column: int) -> list[bytes]:
        """Return the bytes of one of these columns, of each of some rows."""
        data, spans = self.data.data, self.spans[rows, 2 * column : 2 * column + 2].tolist()
        return [data[start:end].tobytes() for start, end in spans]

    def noted(self, kinds: int) -> bool:
        """Return whether any row has a note of one of these kinds."""
        return bool(self._every_note & kinds)

    @cached_property
    def _every_note(self) -> int:
        return int(np.bitwise_or.reduce(self.notes))


@dataclass(frozen=True)
class JudgedLines:
    """Whole lines of a run of which there is nothing to report, judged while they were scanned.

    `tied` counts the documents whose score another document of their topic has.
    """

    block: JudgedBlock
    first_line: int
    lines: int
    tag: bytes
    tied: int


# Takes bytes, how many of them are whole topics, their first line and the limits; None where the
# lines must be read into columns, because one is wrong or unusual.
LineJudge = Callable[[bytes, int, int, Limits], JudgedLines | None]
# The same of judgements.
JudgementReader = Callable[[bytes, int, int, Limits], Judgements | None]


def read_floats(data: Bytes, starts: Positions | Ints, ends: Positions | Ints) -> Floats:
    """Return decimal numbers of any kind, correctly rounded."""
    width = int((ends - starts).max())
    if width > _WIDE_NUMBER:
        spans = zip(starts.tolist(), ends.tolist(), strict=True)
        return np.array([float(data[start:end].tobytes()) for start, end in spans])
    at = starts[:, None] + np.arange(width)
    text = np.where(at < ends[:, None], data[np.minimum(at, len(data) - 1)], 0)
    return np.ascontiguousarray(text, np.uint8).view(f"S{width}")[:, 0].astype(np.float64)


def find_duplicates_exactly(columns: Columns, topic_starts: Ints) -> tuple[Ints, Ints]:
    """Return rows that repeat a document of their topic, and the first row of each, by Python's own keyed hash.

    This is for ids that share a hash of the scan: they were made to collide, and could hide a
    duplicate.
    """
    content, pairs = columns.data.tobytes(), list[tuple[int, int]]()
    for begin, end in pairwise(topic_starts.tolist()):
        seen: dict[bytes, int] = {}
        for row, (start, stop) in enumerate(columns.spans[begin:end, 2:4].tolist(), begin):
            earlier = seen.setdefault(content[start:stop], row)
            if earlier != row:
                pairs.append((earlier, row))
    found = np.array(pairs, np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]
