"""Columns: the lines of a piece of a run or qrels file, as arrays with notes on each line."""

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
    """The 0-based numbers of a format's columns, ABSENT for a column that it lacks.

    A line needs `columns` columns. With `ambiguous_comments`, comments that could be data are
    refused.
    """

    columns: int
    topic: int
    document: int
    number: int
    label: int
    rank: int
    ambiguous_comments: bool = True


RUN = Layout(columns=6, topic=0, document=2, number=4, label=5, rank=3)
# The columns that judging reads of a checked run: it needs neither ranks nor tags.
CHECKED_RUN = replace(RUN, label=ABSENT, rank=ABSENT)
QRELS = Layout(columns=4, topic=0, document=2, number=3, label=1, rank=ABSENT)
# The longest kind of line; the reader recognises the shorter one by its note FEW. Judged topics
# never begin with #, so comments do not hide any.
KNOWN = Layout(
    columns=3, topic=0, document=1, number=2, label=1, rank=ABSENT, ambiguous_comments=False
)


@dataclass(frozen=True)
class Columns:
    """The rows of a piece of a file: spans into `data`, one entry per line that is not blank.

    `label` is a run's tag or the iteration of qrels; `number` is the score or level (NaN if it is
    noted as slow or bad); `rank` is -1 if it is not a whole number; `notes` are the bits of
    `runs.formats.scanning.notes`.
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
            self.data,
            self.line[rows],
            self.notes[rows],
            self.spans[rows],
            self.hashes[rows],
            self.number[rows],
            self.rank[rows],
        )

    def text(self, row: int, column: int) -> bytes:
        """Return the bytes of TOPIC, DOCUMENT, NUMBER or LABEL of a row."""
        start, end = self.spans[row, 2 * column : 2 * column + 2].tolist()
        return self.data[start:end].tobytes()

    def texts(self, rows: Ints, column: int) -> list[bytes]:
        """Return the bytes of one of these columns in each of some rows."""
        data, spans = self.data.data, self.spans[rows, 2 * column : 2 * column + 2].tolist()
        return [data[start:end].tobytes() for start, end in spans]

    def noted(self, kinds: int) -> bool:
        """Return whether any row has a note of one of these kinds."""
        return bool(self._all_notes & kinds)

    @cached_property
    def _all_notes(self) -> int:
        return int(np.bitwise_or.reduce(self.notes))


@dataclass(frozen=True)
class JudgedLines:
    """Whole lines of a run without anything to report, judged while they were scanned.

    `tied` counts documents that share their score with another document of their topic.
    """

    block: JudgedBlock
    first_line: int
    lines: int
    tag: bytes
    tied: int


# judge(content, size of whole topics in it, first line, limits); None if the lines must be read
# into columns, because one is wrong or unusual.
LineJudge = Callable[[bytes, int, int, Limits], JudgedLines | None]
# The same for lines of judgements.
JudgementReader = Callable[[bytes, int, int, Limits], Judgements | None]


def read_floats(data: Bytes, starts: Positions | Ints, ends: Positions | Ints) -> Floats:
    """Return decimal numbers of any kind, correctly rounded."""
    width = int((ends - starts).max())
    if width > _WIDE_NUMBER:
        spans = zip(starts.tolist(), ends.tolist(), strict=True)
        return np.array([float(data[start:end].tobytes()) for start, end in spans])

    positions = starts[:, None] + np.arange(width)
    text = np.where(positions < ends[:, None], data[np.minimum(positions, len(data) - 1)], 0)
    return np.ascontiguousarray(text, np.uint8).view(f"S{width}")[:, 0].astype(np.float64)


def find_duplicates_exactly(columns: Columns, topic_starts: Ints) -> tuple[Ints, Ints]:
    """Return the first row of each repeated document of a topic, and the row that repeats it.

    This uses Python's own keyed hash, for ids that share a hash of the scan: they were chosen to
    collide, and could hide a duplicate.
    """
    content, pairs = columns.data.tobytes(), list[tuple[int, int]]()

    for topic_start, end in pairwise(topic_starts.tolist()):
        first_rows: dict[bytes, int] = {}
        for row, (start, stop) in enumerate(
            columns.spans[topic_start:end, 2:4].tolist(), topic_start
        ):
            earlier = first_rows.setdefault(content[start:stop], row)
            if earlier != row:
                pairs.append((earlier, row))

    rows = np.array(pairs, np.int64).reshape(-1, 2)
    return rows[:, 0], rows[:, 1]
