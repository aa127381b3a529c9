"""TREC qrels: `topic iteration document level`, checked line by line and read into Judgements."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from metrics.engine.errors import FileReport
from metrics.engine.judging import Judgements
from metrics.engine.measures.definition import MAX_LEVEL
from metrics.engine.ranking import Flags, spans_equal
from runs.formats.limits import DEFAULT_LIMITS, Limits
from runs.formats.pieces import (
    DOCUMENT,
    LABEL,
    NUMBER,
    Opener,
    PieceReader,
    group_by_topic,
    keep_rows,
    topic_segments,
)
from runs.formats.scan import FRACTION, QRELS, Columns, duplicate_candidates

_LEVEL = f"a whole number from -{MAX_LEVEL} to {MAX_LEVEL}"


@dataclass
class QrelsSummary:
    """What a qrels file holds. `levels` maps each level to its number of judgements."""

    report: FileReport
    judgements: Judgements
    lines: int = 0
    levels: dict[int, int] = field(default_factory=dict)


def read_qrels(open_qrels: Opener, *, limits: Limits = DEFAULT_LIMITS, seed: int = 0) -> QrelsSummary:
    """The judgements of a file with a report of what is wrong or odd; `summary.report.check()` raises InvalidFile.

    A document judged in several iterations has the highest of its levels; twice in one iteration with two levels is
    a problem.
    """
    reader = PieceReader(QRELS, limits, seed)
    (columns,) = reader.read(open_qrels(), whole=True)
    good = _check(reader, columns)
    columns = group_by_topic(keep_rows(columns, good))
    keep = _merge_repeated(reader, columns)
    if not len(columns.line) and not reader.report.problems:
        reader.report.problem(0, "empty_qrels", "the file has no judgement")
    judgements = _judgements(keep_rows(columns, keep), seed)
    values, counts = np.unique(judgements.levels, return_counts=True)
    occurring = dict(zip(values.tolist(), counts.tolist(), strict=True))
    return QrelsSummary(reader.report, judgements, reader.lines, occurring)


def _check(reader: PieceReader, columns: Columns) -> Flags:
    number = columns.number
    number[columns.notes & FRACTION != 0] = np.nan
    with np.errstate(invalid="ignore"):
        number[np.abs(number) > MAX_LEVEL] = np.nan
    good = reader.check_rows(columns, _LEVEL, "bad_level")
    reader.warn_extra_columns(columns)
    return good


def _merge_repeated(reader: PieceReader, columns: Columns) -> Flags:
    """Which rows to keep: the first of each document, raised to the highest level any iteration gives it."""
    _, starts = topic_segments(columns)
    first, second = duplicate_candidates(columns.hashes, starts)
    spans, data = columns.spans, columns.data
    same = spans_equal(data, spans[first, 2], spans[first, 3], data, spans[second, 2], spans[second, 3])
    keep = np.ones(len(columns.line), np.bool_)
    keep[second[same]] = False
    given: dict[tuple[int, bytes], int] = {}
    for earlier, row in zip(first[same].tolist(), second[same].tolist(), strict=True):
        given.setdefault((earlier, columns.text(earlier, LABEL)), earlier)
        other = given.setdefault((earlier, columns.text(row, LABEL)), row)
        _report_repeated(reader, columns, other, row)
        columns.number[earlier] = max(columns.number[earlier], columns.number[row])
    return keep


def _report_repeated(reader: PieceReader, columns: Columns, other: int, row: int) -> None:
    line = int(columns.line[row])
    document = repr(columns.text(row, DOCUMENT)[:100].decode(errors="replace"))
    level, earlier = columns.text(row, NUMBER), columns.text(other, NUMBER)
    if other == row:
        say = f"document {document} is judged in several iterations; its highest level counts"
        reader.report.warning(line, "several_iterations", say)
    elif int(level) == int(earlier):
        say = f"the judgement of {document} in line {columns.line[other]} is repeated"
        reader.report.warning(line, "duplicate_judgement", say)
    else:
        say = (
            f"document {document} has level {level.decode()} here and {earlier.decode()} in line {columns.line[other]}"
        )
        reader.report.problem(line, "conflicting_judgement", say)


def _judgements(columns: Columns, seed: int) -> Judgements:
    topic_ids, starts = topic_segments(columns)
    return Judgements(
        topic_ids=topic_ids,
        topics=np.repeat(np.arange(len(topic_ids)), np.diff(starts)),
        levels=columns.number.astype(np.int64),
        data=columns.data,
        doc_starts=columns.spans[:, 2].copy(),
        doc_ends=columns.spans[:, 3].copy(),
        doc_hashes=columns.hashes,
        seed=seed,
    )
