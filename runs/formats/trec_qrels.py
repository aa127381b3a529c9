"""TREC qrels: `topic iteration document level`, checked line by line and read into Judgements."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from metrics.engine.arrays import Flags, Ints
from metrics.engine.judgement.judging import Judgements
from metrics.engine.judgement.subtopics import Subtopics
from metrics.engine.measures.definition import MAX_LEVEL
from runs.errors import PROBLEMS_SHOWN, FileReport
from runs.formats.limits import DEFAULT_LIMITS, Limits
from runs.formats.scanning.columns import DOCUMENT, LABEL, QRELS, Columns
from runs.formats.scanning.notes import EXTRA_NUMBER, FRACTION, NEW_LABEL, NEW_TOPIC
from runs.formats.scanning.pieces import (
    Opener,
    PieceReader,
    group_by_topic,
    keep_rows,
    numbered,
    topic_segments,
)
from runs.formats.scanning.scan import find_duplicates, judgements_beside

# The possible uses of the second column.
SUBTOPIC, ROUND, IGNORE = ITERATIONS = ("subtopic", "round", "ignore")
_ITERATIONS_NAMED = 10
_LEVEL = f"a whole number from -{MAX_LEVEL} to {MAX_LEVEL}"


@dataclass
class QrelsSummary:
    """The content of a qrels file. `levels` maps each level to its number of judgements.

    `iteration` is the use of its second column.
    """

    report: FileReport
    judgements: Judgements
    lines: int = 0
    levels: dict[int, int] = field(default_factory=dict)
    iteration: str = IGNORE


def read_qrels(
    open_qrels: Opener,
    *,
    iteration: str | None = None,
    had_subtopics: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    seed: int = 0,
) -> QrelsSummary:
    """Read the judgements of a file with a report of its problems and warnings.

    `summary.report.check()` raises InvalidFile. A document judged in several iterations has the
    highest of its levels, whatever the iterations mean; two levels in one iteration are a problem.
    If the iterations are subtopics, the level of each is kept too. Without an `iteration` they are
    subtopics if a topic judges a document in two of them, or if the collection `had_subtopics`
    before; otherwise they are ignored.
    """
    reader = PieceReader(QRELS, limits, seed)
    (content,) = reader.read_usual(open_qrels(), judgements_beside(seed), whole=True)
    if isinstance(content, Judgements):
        # Usual lines have only one iteration, and nothing to report.
        reader.check_topics(len(content.topic_ids))
        return summarise(reader, content, iteration or (SUBTOPIC if had_subtopics else IGNORE))

    return summarise(reader, *_read_columns(reader, content, iteration, had_subtopics))


def summarise(reader: PieceReader, judgements: Judgements, iteration: str) -> QrelsSummary:
    """Return what was read."""
    base = judgements.recall_base
    values, index = np.unique(base.level, return_inverse=True)
    counts = np.bincount(index, base.counts).astype(int)
    levels = dict(zip(values.tolist(), counts.tolist(), strict=True))
    return QrelsSummary(reader.report, judgements, reader.lines, levels, iteration)


def _read_columns(
    reader: PieceReader, columns: Columns, iteration: str | None, had_subtopics: bool
) -> tuple[Judgements, str]:
    """Return the judgements of some lines, and the use of their second column.

    Report problems and warnings.
    """
    valid = _valid_rows(reader, columns)
    columns = group_by_topic(keep_rows(columns, valid))
    topic_ids, starts = topic_segments(columns)
    reader.check_topics(len(topic_ids))
    first, second = find_duplicates(columns, starts)
    same_iteration = _same_iteration(columns, first, second)
    chosen = iteration or (
        SUBTOPIC if had_subtopics or (same_iteration == second).any() else IGNORE
    )
    subtopics = _subtopics(columns, starts, first, second) if chosen == SUBTOPIC else None
    _report_iterations(
        reader, columns, starts, subtopics, chosen, is_requested=iteration is not None
    )
    keep = _merge_repeated(reader, columns, first, second, same_iteration)

    if not len(columns.line) and not reader.report.problems:
        reader.report.problem(0, "empty_qrels", "the file contains no judgements")

    return judgements_in(keep_rows(columns, keep), subtopics, reader.seed), chosen


def check_levels(reader: PieceReader, columns: Columns) -> Flags:
    """Report bad lines, such as those without a level. Return which rows are valid."""
    number = columns.number
    if columns.noted(FRACTION):
        number[columns.notes & FRACTION != 0] = np.nan

    with np.errstate(invalid="ignore"):
        too_large = np.abs(number) > MAX_LEVEL

    if too_large.any():
        number[too_large] = np.nan

    return reader.check_rows(columns, _LEVEL, "bad_level")


def _valid_rows(reader: PieceReader, columns: Columns) -> Flags:
    valid = check_levels(reader, columns)
    has_fifth_number = valid & (columns.notes & EXTRA_NUMBER != 0)
    message = (
        "a number follows the level: which of the two is the level? "
        "Four columns are needed: topic 0 document level; "
        "for a stratum or probability, send sampling=strata or sampling=probabilities"
    )
    reader.add(columns.line[has_fifth_number], "ambiguous_level", message)
    reader.warn_extra_columns(columns)
    valid &= ~has_fifth_number

    return valid


def _has_several_iterations(columns: Columns) -> bool:
    """Return whether a topic has several iterations."""
    return bool(_changes_within_topic(columns).any())


def _subtopics(columns: Columns, topic_starts: Ints, first: Ints, second: Ints) -> Subtopics | None:
    """Return the level of each document in each iteration, or None if topics have only one."""
    if not _has_several_iterations(columns):
        return None

    document, is_first = np.arange(len(columns.line)), np.ones(len(columns.line), np.bool_)
    document[second], is_first[second] = first, False
    labels = numbered(columns, LABEL)
    _, rows = np.unique(document * (labels.max() + 1) + labels, return_index=True)
    rows = rows[_by_topic_and_id(columns, topic_starts, rows)]
    topic = _topics(topic_starts)[rows]
    judgement = (np.cumsum(is_first) - 1)[document[rows]]

    return Subtopics(
        topic, judgement, _within_topic(topic, labels[rows]), columns.number[rows].astype(np.int64)
    )


def _by_topic_and_id(columns: Columns, topic_starts: Ints, rows: Ints) -> Ints:
    """Return the order of some rows by topic, then by doc_id descending.

    Rows of one document keep their order.
    """
    content = columns.data.tobytes()
    ids = [content[start:end] for start, end in columns.spans[rows, 2:4].tolist()]
    by_id = np.array(sorted(range(len(ids)), key=ids.__getitem__, reverse=True), np.int64)
    order: Ints = by_id[np.argsort(_topics(topic_starts)[rows][by_id], kind="stable")]

    return order


def _within_topic(topic: Ints, label: Ints) -> Ints:
    """Return the number of each row's label among those of its topic, from 0."""
    width = label.max() + 1
    pairs, number = np.unique(topic * width + label, return_inverse=True)
    within: Ints = number - np.searchsorted(pairs, topic * width)
    return within


def _report_iterations(
    reader: PieceReader,
    columns: Columns,
    starts: Ints,
    subtopics: Subtopics | None,
    chosen: str,
    is_requested: bool,
) -> None:
    """Report the use of the iterations of the file, if a topic has several."""
    if not _has_several_iterations(columns):
        return

    if subtopics:
        count, topics = subtopics.count, int(subtopics.topic[-1]) + 1
        message = (
            f"{count:,} subtopics of {topics:,} topics, by the iteration column; "
            "only measures of subtopics use them"
        )
        if not is_requested:
            message += "; with iteration=round or iteration=ignore they are none"
        reader.report.warning(0, "subtopics", message, count)
    elif chosen == ROUND:
        names, count = _iterations(columns)
        reader.report.warning(
            0, "rounds", f"{count:,} rounds of judging, by the iteration column: {names}", count
        )
    elif not is_requested:
        names, count = _iterations(columns)
        topics_with_several = len(np.unique(_topics(starts)[_changes_within_topic(columns)]))
        message = (
            f"the iteration column has {count:,} values ({names}) "
            f"and {topics_with_several:,} topics have several, "
            "but none judges a document under two of them: it is ignored; "
            "iteration=subtopic or iteration=round says what it is"
        )
        reader.report.warning(0, "iteration_ignored", message, topics_with_several)


def _changes_within_topic(columns: Columns) -> Flags:
    """Return rows at which the iteration changes within a topic."""
    changes: Flags = columns.notes & (NEW_TOPIC | NEW_LABEL) == NEW_LABEL
    return changes


def _iterations(columns: Columns) -> tuple[str, int]:
    """Return the first iterations with their sizes as part of a sentence, and their number."""
    numbers = numbered(columns, LABEL)
    iterations, rows, sizes = np.unique(numbers, return_index=True, return_counts=True)
    names = [
        columns.text(row, LABEL)[:100].decode(errors="replace")
        for row in rows[:_ITERATIONS_NAMED].tolist()
    ]

    listing = ", ".join(
        f"{name!r} {size:,} times" for name, size in zip(names, sizes.tolist(), strict=False)
    )

    return listing + (", ..." if len(iterations) > _ITERATIONS_NAMED else ""), len(iterations)


def _merge_repeated(
    reader: PieceReader, columns: Columns, first: Ints, second: Ints, same_iteration: Ints
) -> Flags:
    """Return which rows to keep: the first of each document.

    Their levels are raised to the highest of any iteration.
    """
    keep = np.ones(len(columns.line), np.bool_)
    keep[second] = False

    if len(second):
        _report_repeated(reader, columns, same_iteration, second)
        np.maximum.at(columns.number, first, columns.number[second])

    return keep


def _same_iteration(columns: Columns, first: Ints, second: Ints) -> Ints:
    """Return for each repeated row the first one with its document and iteration, maybe itself."""
    if not len(second):
        return second

    documents, labels = np.unique(first), numbered(columns, LABEL)
    rows = np.concatenate([documents, second])
    keys = np.concatenate([documents, first]) * (labels.max() + 1) + labels[rows]
    _, first_places, inverse = np.unique(keys, return_index=True, return_inverse=True)
    earlier: Ints = rows[first_places][inverse][len(documents) :]

    return earlier


def _report_repeated(reader: PieceReader, columns: Columns, earlier: Ints, repeated: Ints) -> None:
    in_several, equal = earlier == repeated, columns.number[earlier] == columns.number[repeated]
    for code, selected in (
        ("several_iterations", in_several),
        ("duplicate_judgement", ~in_several & equal),
        ("conflicting_judgement", ~in_several & ~equal),
    ):
        add = reader.report.problem if code == "conflicting_judgement" else reader.report.warning
        for index in np.flatnonzero(selected)[:PROBLEMS_SHOWN].tolist():
            add(
                int(columns.line[repeated[index]]),
                code,
                _repetition_message(code, columns, int(earlier[index]), int(repeated[index])),
            )

        reader.count_rest(code, int(np.count_nonzero(selected)))


def _repetition_message(code: str, columns: Columns, earlier: int, row: int) -> str:
    document = repr(columns.text(row, DOCUMENT)[:100].decode(errors="replace"))
    line, level, earlier_level = (
        columns.line[earlier],
        int(columns.number[row]),
        int(columns.number[earlier]),
    )

    if code == "several_iterations":
        return f"document {document} is judged in several iterations; its highest level counts"
    if code == "duplicate_judgement":
        return f"the judgement of {document} in line {line} is repeated"

    return f"document {document} has level {level} here and {earlier_level} in line {line}"


def judgements_in(columns: Columns, subtopics: Subtopics | None, seed: int) -> Judgements:
    """Return the judgements of rows that are grouped by topic."""
    topic_ids, starts = topic_segments(columns)
    return Judgements(
        topic_ids=topic_ids,
        topics=_topics(starts),
        levels=columns.number.astype(np.int64),
        data=columns.data,
        doc_starts=columns.spans[:, 2].copy(),
        doc_ends=columns.spans[:, 3].copy(),
        doc_hashes=columns.hashes,
        seed=seed,
        subtopics=subtopics,
    )


def _topics(starts: Ints) -> Ints:
    """Return the topic of each row."""
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts))
