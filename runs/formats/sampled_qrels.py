"""Qrels of sampled judgements, in one of these forms:

topic stratum document level          with level -1: in the stratum, not drawn
topic 0 document stratum level        the same, as NIST's sample_eval reads it
topic 0 document level probability    only documents that were drawn
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from metrics.engine.arrays import Floats, Ints
from metrics.engine.judgement.sampling import MIN_PROBABILITY, STRATA, Design, Sampling
from runs.errors import PROBLEMS_SHOWN
from runs.formats.limits import DEFAULT_LIMITS, Limits
from runs.formats.scanning.columns import DOCUMENT, LABEL, QRELS, Columns
from runs.formats.scanning.notes import BAD_NUMBER, EXTRA, EXTRA_NUMBER, FEW, FRACTION, SLOW_NUMBER
from runs.formats.scanning.pieces import (
    Opener,
    PieceReader,
    group_by_topic,
    keep_rows,
    topic_segments,
)
from runs.formats.scanning.scan import find_duplicates
from runs.formats.trec_qrels import IGNORE, QrelsSummary, check_levels, judgements_in, summarise

# Estimates take an array of documents times strata for each topic.
MAX_STRATA = 100
_STRATA_NAMED = 10
_LEVEL = re.compile(rb"[+-]?[0-9]{1,9}")
_NUMBER = re.compile(rb"([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")


def read_sampled_qrels(
    open_qrels: Opener, design: Design, *, limits: Limits = DEFAULT_LIMITS, seed: int = 0
) -> QrelsSummary:
    """Return the judgements of a file with their sampling.

    The report is like that of `read_qrels`. A document has one line for each topic.
    """
    reader = PieceReader(QRELS, limits, seed)
    (columns,) = reader.read(open_qrels(), whole=True)
    columns, probabilities = _by_design(reader, columns, design)
    valid = check_levels(reader, columns) & ~np.isnan(probabilities)

    # `rank`, which qrels lack, keeps the number of the stratum or probability with its row.
    names = list[bytes]()
    if design == STRATA:
        names, numbers = _numbered(columns.texts(np.arange(len(columns.line)), LABEL))
    else:
        probabilities, numbers = np.unique(probabilities, return_inverse=True)

    columns = replace(columns, rank=numbers)
    columns = group_by_topic(keep_rows(columns, valid))
    topic_ids, starts = topic_segments(columns)
    reader.check_topics(len(topic_ids))
    _report_repeated(reader, columns, *find_duplicates(columns, starts))
    if not len(columns.line) and not reader.report.problems:
        reader.report.problem(0, "empty_qrels", "the file contains no judgements")

    judgements = judgements_in(columns, None, seed)
    topics, levels = judgements.topics, judgements.levels
    if design == STRATA:
        sampling = Sampling.of_strata(topics, columns.rank, levels)
        _report_strata(reader, names, columns.rank, levels, sampling)
    else:
        drawn = probabilities[columns.rank]
        sampling = Sampling.of_probabilities(topics, drawn, levels)
        _report_probabilities(reader, drawn, levels)

    return summarise(reader, replace(judgements, sampling=sampling), IGNORE)


def _by_design(reader: PieceReader, columns: Columns, design: Design) -> tuple[Columns, Floats]:
    """Return rows with the stratum as label and the level as number, and their probabilities.

    In strata a probability is 1; that of a row that is reported here is NaN.
    """
    probabilities = np.ones(len(columns.line))
    is_whole = columns.notes & FEW == 0
    has_fifth = is_whole & (columns.notes & EXTRA != 0)
    if design == STRATA and not has_fifth.any():
        return columns, probabilities

    lacking = is_whole & ~has_fifth
    probabilities[lacking] = np.nan
    expected = "document stratum level" if design == STRATA else "document level probability"
    message = f"five columns are needed: topic 0 {expected}"
    if design == STRATA:
        message += ", as in other lines"
    reader.add(columns.line[lacking], "too_few_columns", message)

    rows = np.flatnonzero(has_fifth)
    spans, number = columns.spans.copy(), columns.number.copy()
    notes = columns.notes & ~EXTRA_NUMBER & ~EXTRA
    if design == STRATA:
        # Their fourth column is a stratum, not a bad level.
        number[lacking] = 0
        notes[rows] &= ~(BAD_NUMBER | SLOW_NUMBER | FRACTION)

    content, longer = columns.data.tobytes(), list[int]()
    for row in rows.tolist():
        start = int(spans[row, 5])
        text, *more = content[start : content.index(b"\n", start)].split()
        if more:
            longer.append(row)
        if design == STRATA:
            spans[row, 6:8], spans[row, 4:6] = spans[row, 4:6].copy(), _span(content, text, start)
            number[row] = float(text) if _LEVEL.fullmatch(text) else np.nan
        elif _NUMBER.fullmatch(text) and MIN_PROBABILITY <= float(text) <= 1:
            probabilities[row] = float(text)
        else:
            probabilities[row] = np.nan

    if design != STRATA:
        bad = rows[np.isnan(probabilities[rows])]
        message = "the fifth column is a probability: a number from 0.000001 to 1"
        reader.add(columns.line[bad], "bad_probability", message)
    reader.add(
        columns.line[longer], "extra_columns", "columns after the first 5 are ignored", warn=True
    )

    return replace(columns, spans=spans, number=number, notes=notes), probabilities


def _span(content: bytes, text: bytes, start: int) -> tuple[int, int]:
    first = content.index(text, start)
    return first, first + len(text)


def _numbered(texts: list[bytes]) -> tuple[list[bytes], Ints]:
    """Return the different texts in the order of their first appearance, and the number of each."""
    numbers: dict[bytes, int] = {}
    rows = [numbers.setdefault(text, len(numbers)) for text in texts]
    return list(numbers), np.array(rows, np.int64)


def _report_repeated(reader: PieceReader, columns: Columns, first: Ints, second: Ints) -> None:
    for earlier, row in zip(first.tolist(), second[:PROBLEMS_SHOWN].tolist(), strict=False):
        document = columns.text(row, DOCUMENT)[:100].decode(errors="replace")
        message = f"document {document!r} is in line {columns.line[earlier]}, too; list it once"
        reader.report.problem(int(columns.line[row]), "repeated_document", message)
    reader.count_rest("repeated_document", len(second))


def _report_strata(
    reader: PieceReader, names: list[bytes], strata: Ints, levels: Ints, sampling: Sampling
) -> None:
    """Report the size of each stratum over all topics, and those of which nothing is judged."""
    size = np.bincount(strata, minlength=len(names))
    judged = np.bincount(strata, levels >= 0, len(names)).astype(np.int64)
    listing = ", ".join(
        f"{name[:40].decode(errors='replace')!r} {judged[number]:,} of {size[number]:,}"
        for number, name in enumerate(names[:_STRATA_NAMED])
    )
    more = ", ..." if len(names) > _STRATA_NAMED else ""
    number = f"{len(names):,} strata" if len(names) > 1 else "1 stratum"
    message = f"judged documents of {number}: {listing}{more}"
    reader.report.warning(0, "strata", message, len(names))

    most = int(np.bincount(sampling.topic).max(initial=0))
    if most > MAX_STRATA:
        message = f"a topic has {most:,} strata; the limit is {MAX_STRATA}"
        reader.report.problem(0, "too_many_strata", message)

    if unjudged := int(np.count_nonzero(sampling.probability == 0)):
        lacking = "strata of topics have" if unjudged > 1 else "stratum of a topic has"
        message = (
            f"{unjudged:,} {lacking} no judged document: estimates take all of it for not relevant"
        )
        reader.report.warning(0, "stratum_not_judged", message, unjudged)


def _report_probabilities(reader: PieceReader, probabilities: Floats, levels: Ints) -> None:
    if len(probabilities):
        low, high = probabilities.min(), probabilities.max()
        message = f"inclusion probabilities from {low:.6g} to {high:.6g}"
        reader.report.warning(0, "probabilities", message, len(np.unique(probabilities)))

    if not_judged := int(np.count_nonzero(levels < 0)):
        lacking = "documents were" if not_judged > 1 else "document was"
        message = f"{not_judged:,} {lacking} drawn and not judged, and left out of estimates"
        reader.report.warning(0, "drawn_not_judged", message, not_judged)
