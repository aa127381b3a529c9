"""Known documents: what a user knew before the search, `topic_id doc_id` in each line.

    # the documents I had read
    51 AP880212-0047
    51 AP880214-0049
    51 expected 10
    52 WSJ900514-0002

A line of three columns, `topic_id expected N`, says how many relevant documents the user expected
for the topic.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from metrics.engine.arrays import Flags
from metrics.engine.judgement.known import KnownDocuments
from metrics.engine.judgement.ranking import RankedBlock, spans_equal
from metrics.engine.measures.definition import MAX_CUTOFF
from runs.errors import PROBLEMS_SHOWN, FileReport
from runs.formats.limits import DEFAULT_LIMITS, Limits
from runs.formats.scanning.columns import DOCUMENT, KNOWN, TOPIC, Columns
from runs.formats.scanning.notes import EXTRA, FEW, FRACTION
from runs.formats.scanning.pieces import (
    Opener,
    PieceReader,
    group_by_topic,
    keep_rows,
    topic_segments,
)
from runs.formats.scanning.scan import find_duplicates

KNOWN_BYTES = 64 * 1024 * 1024
KNOWN_LINES = 1_000_000
_WORD = np.frombuffer(b"expected", np.uint8)
_LINE = (
    "a line is 'topic_id doc_id', or 'topic_id expected N' "
    "for how many relevant documents the user expected"
)


@dataclass
class KnownSummary:
    """The content of a file of known documents."""

    report: FileReport
    known: KnownDocuments
    lines: int = 0

    @property
    def count(self) -> int:
        """Return the number of known documents, each counted once for a topic."""
        return len(self.known.documents.scores)

    @property
    def topics(self) -> list[str]:
        """Return every topic that the file names, in order."""
        topic_ids = dict.fromkeys([*self.known.documents.topic_ids, *self.known.expected])
        return [topic_id.decode(errors="replace") for topic_id in topic_ids]


def known_limits(limits: Limits) -> Limits:
    """Return the limits of a file that is read at once.

    A person knows fewer documents than a run lists.
    """
    lines, size = min(limits.lines, KNOWN_LINES), min(limits.bytes_out, KNOWN_BYTES)
    return replace(limits, lines=lines, lines_at_once=lines, bytes_out=size, bytes_at_once=size)


def read_known(
    open_known: Opener, *, limits: Limits = DEFAULT_LIMITS, seed: int = 0
) -> KnownSummary:
    """Return the known documents of a file with a report of its problems and warnings.

    `summary.report.check()` raises InvalidFile. Hashes use `seed`, which must be that of the
    judgements with which the documents are compared.
    """
    reader = PieceReader(KNOWN, known_limits(limits), seed)
    (columns,) = reader.read(open_known(), whole=True)
    sound = reader.check_text(columns)
    document, number = _kinds(reader, columns)
    expected = _expected(reader, keep_rows(columns, sound & number))
    columns = group_by_topic(keep_rows(columns, sound & document))
    documents = _documents(reader, columns)
    if not len(documents.scores) and not expected and not reader.report.problems:
        reader.report.problem(0, "empty_known", "the file contains no known documents")

    summary = KnownSummary(reader.report, KnownDocuments(documents, expected), reader.lines)
    reader.check_topics(len(summary.topics))
    return summary


def _kinds(reader: PieceReader, columns: Columns) -> tuple[Flags, Flags]:
    """Return which rows name a document and which a number, and report the other rows."""
    starts, ends = columns.spans[:, 2 * DOCUMENT], columns.spans[:, 2 * DOCUMENT + 1]
    three = columns.notes & FEW == 0
    document = ~three & (ends > starts)
    nothing = np.zeros_like(starts)
    number = three & (columns.notes & EXTRA == 0) & spans_equal(
        columns.data, starts, ends, _WORD, nothing, nothing + len(_WORD)
    )  # fmt: skip
    reader.add(columns.line[~three & ~document], "too_few_columns", _LINE)
    reader.add(columns.line[three & ~number], "too_many_columns", _LINE)
    value = columns.number

    with np.errstate(invalid="ignore"):
        whole = (columns.notes & FRACTION == 0) & (value >= 1) & (value <= MAX_CUTOFF)

    reader.add_numbers(
        columns,
        np.flatnonzero(number & ~whole),
        f"a whole number from 1 to {MAX_CUTOFF}",
        "bad_expected",
    )
    return document, number & whole


def _expected(reader: PieceReader, columns: Columns) -> dict[bytes, int]:
    """Return the number of each topic. Two different numbers of a topic are a problem."""
    expected: dict[bytes, int] = {}
    first_rows: dict[bytes, int] = {}

    for row in range(len(columns.line)):
        topic = columns.text(row, TOPIC)
        number, line = int(columns.number[row]), int(columns.line[row])
        earlier = columns.line[first_rows.setdefault(topic, row)]

        if expected.setdefault(topic, number) != number:
            message = (
                f"topic {_quote(topic)} expects {number} relevant documents, "
                f"but {expected[topic]} in line {earlier}"
            )
            reader.report.problem(line, "conflicting_expected", message)
        elif earlier != line:
            message = f"the expected number of topic {_quote(topic)} in line {earlier} is repeated"
            reader.report.warning(line, "duplicate_known", message)

    return expected


def _documents(reader: PieceReader, columns: Columns) -> RankedBlock:
    """Return the documents by topic, each once, with a warning for repeated ones."""
    _, starts = topic_segments(columns)
    first, second = find_duplicates(columns, starts)
    for earlier, row in zip(
        first[:PROBLEMS_SHOWN].tolist(), second[:PROBLEMS_SHOWN].tolist(), strict=True
    ):
        document = _quote(columns.text(row, DOCUMENT))
        message = f"document {document} of line {columns.line[earlier]} is repeated"
        reader.report.warning(int(columns.line[row]), "duplicate_known", message)

    reader.count_rest("duplicate_known", len(second))
    keep = np.ones(len(columns.line), np.bool_)
    keep[second] = False
    columns = keep_rows(columns, keep)
    topic_ids, starts = topic_segments(columns)
    spans, scores = columns.spans, np.zeros(len(columns.line))

    return RankedBlock(
        columns.data, topic_ids, starts, scores, spans[:, 2], spans[:, 3], columns.hashes
    )


def _quote(text: bytes) -> str:
    return repr(text[:100].decode(errors="replace"))
