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
_NAMED = 10
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
    """Read the judgements of a file with a report of its problems and warnings; `summary.report.check()` raises
    InvalidFile.

    A document judged in several iterations has the highest of its levels, whatever the iterations
    are; two levels in one iteration are a problem. If the iterations are subtopics, the level of
    each is kept too. Without an `iteration` they are subtopics if a topic judges a document in two
    of them, or if `had_subtopics` says that the collection's previous judgements had some;
    otherwise they are ignored.
    """
    reader = PieceReader(QRELS, limits, seed)
    (read,) = reader.read_usual(open_qrels(), judgements_beside(seed), whole=True)
    if isinstance(read, Judgements):
        # Of usual lines nothing is to report, and they have one iteration.
        reader.check_topics(len(read.topic_ids))
        return _summary(reader, read, iteration or (SUBTOPIC if had_subtopics else IGNORE))

    return _summary(reader, *_of_columns(reader, read, iteration, had_subtopics))


def _summary(reader: PieceReader, judgements: Judgements, iteration: str) -> QrelsSummary:
    base = judgements.recall_base
    values, kind = np.unique(base.level, return_inverse=True)
    occurring = dict(
        zip(values.tolist(), np.bincount(kind, base.counts).astype(int).tolist(), strict=True)
    )
    return QrelsSummary(reader.report, judgements, reader.lines, occurring, iteration)


def _of_columns(
    reader: PieceReader, columns: Columns, iteration: str | None, had_subtopics: bool
) -> tuple[Judgements, str]:
    """Return the judgements of some lines, and the use of their second column; report problems and warnings."""
    good = _check(reader, columns)
    columns = group_by_topic(keep_rows(columns, good))
    topic_ids, starts = topic_segments(columns)
    reader.check_topics(len(topic_ids))
    first, second = find_duplicates(columns, starts)
    same = _same_iteration(columns, first, second)
    taken = iteration or (SUBTOPIC if had_subtopics or (same == second).any() else IGNORE)
    subtopics = _subtopics(columns, starts, first, second) if taken == SUBTOPIC else None
    _report_iterations(reader, columns, starts, subtopics, taken, given=iteration is not None)
    keep = _merge_repeated(reader, columns, first, second, same)

    if not len(columns.line) and not reader.report.problems:
        reader.report.problem(0, "empty_qrels", "the file contains no judgements")

    return _judgements(keep_rows(columns, keep), subtopics, reader.seed), taken


def _check(reader: PieceReader, columns: Columns) -> Flags:
    number = columns.number
    if columns.noted(FRACTION):
        number[columns.notes & FRACTION != 0] = np.nan

    with np.errstate(invalid="ignore"):
        beyond = np.abs(number) > MAX_LEVEL

    if beyond.any():
        number[beyond] = np.nan

    good: Flags = reader.check_rows(columns, _LEVEL, "bad_level")
    five = good & (columns.notes & EXTRA_NUMBER != 0)
    say = "a number follows the level: which of the two is the level? Four columns are needed: topic 0 document level"
    reader.add(columns.line[five], "ambiguous_level", say)
    reader.warn_extra_columns(columns)
    good &= ~five

    return good


def _several(columns: Columns) -> bool:
    """Return whether a topic has several iterations."""
    return bool(_inside(columns).any())


def _subtopics(columns: Columns, topic_starts: Ints, first: Ints, second: Ints) -> Subtopics | None:
    """Return the level of each document in each iteration, or None if every topic has only one iteration."""
    if not _several(columns):
        return None

    document, kept = np.arange(len(columns.line)), np.ones(len(columns.line), np.bool_)
    document[second], kept[second] = first, False
    label = numbered(columns, LABEL)
    _, rows = np.unique(document * (label.max() + 1) + label, return_index=True)
    rows = rows[_by_topic_and_id(columns, topic_starts, rows)]
    topic = _topics(topic_starts)[rows]
    judgement = (np.cumsum(kept) - 1)[document[rows]]

    return Subtopics(
        topic, judgement, _within_topic(topic, label[rows]), columns.number[rows].astype(np.int64)
    )


def _by_topic_and_id(columns: Columns, topic_starts: Ints, rows: Ints) -> Ints:
    """Return the order of some rows by topic, then by doc_id descending; rows of one document stay as they are."""
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
    taken: str,
    given: bool,
) -> None:
    """Report the use of the iterations of the file, if a topic has several."""
    if not _several(columns):
        return

    if subtopics:
        count, topics = subtopics.count, int(subtopics.topic[-1]) + 1
        say = f"{count:,} subtopics of {topics:,} topics, by the iteration column; only measures of subtopics use them"
        say += "" if given else "; with iteration=round or iteration=ignore they are none"
        reader.report.warning(0, "subtopics", say, count)
    elif taken == ROUND:
        named, count = _iterations(columns)
        reader.report.warning(
            0, "rounds", f"{count:,} rounds of judging, by the iteration column: {named}", count
        )
    elif not given:
        named, count = _iterations(columns)
        several = len(np.unique(_topics(starts)[_inside(columns)]))
        say = (
            f"the iteration column has {count:,} values ({named}) and {several:,} topics have several, but none judges "
            "a document under two of them: it is ignored; iteration=subtopic or iteration=round says what it is"
        )
        reader.report.warning(0, "iteration_ignored", say, several)


def _inside(columns: Columns) -> Flags:
    """Return rows at which the iteration changes within a topic."""
    inside: Flags = columns.notes & (NEW_TOPIC | NEW_LABEL) == NEW_LABEL
    return inside


def _iterations(columns: Columns) -> tuple[str, int]:
    """Return the first iterations with their numbers of judgements as part of a sentence, and how many there are."""
    numbers = numbered(columns, LABEL)
    values, rows, sizes = np.unique(numbers, return_index=True, return_counts=True)
    names = [
        columns.text(row, LABEL)[:100].decode(errors="replace") for row in rows[:_NAMED].tolist()
    ]
    named = ", ".join(
        f"{name!r} {size:,} times" for name, size in zip(names, sizes.tolist(), strict=False)
    )

    return named + (", ..." if len(values) > _NAMED else ""), len(values)


def _merge_repeated(
    reader: PieceReader, columns: Columns, first: Ints, second: Ints, same: Ints
) -> Flags:
    """Return which rows to keep: the first of each document, raised to the highest level that any iteration gives
    it."""
    keep = np.ones(len(columns.line), np.bool_)
    keep[second] = False
    if len(second):
        _report_repeated(reader, columns, same, second)
        np.maximum.at(columns.number, first, columns.number[second])

    return keep


def _same_iteration(columns: Columns, first: Ints, second: Ints) -> Ints:
    """Return for each repeated row the first row that judges its document in its iteration, which may be itself."""
    if not len(second):
        return second

    documents, labels = np.unique(first), numbered(columns, LABEL)
    rows = np.concatenate([documents, second])
    keys = np.concatenate([documents, first]) * (labels.max() + 1) + labels[rows]
    _, at, inverse = np.unique(keys, return_index=True, return_inverse=True)
    same: Ints = rows[at][inverse][len(documents) :]

    return same


def _report_repeated(reader: PieceReader, columns: Columns, other: Ints, row: Ints) -> None:
    several, equal = other == row, columns.number[other] == columns.number[row]
    for code, chosen in (
        ("several_iterations", several),
        ("duplicate_judgement", ~several & equal),
        ("conflicting_judgement", ~several & ~equal),
    ):
        put = reader.report.problem if code == "conflicting_judgement" else reader.report.warning
        for index in np.flatnonzero(chosen)[:PROBLEMS_SHOWN].tolist():
            put(
                int(columns.line[row[index]]),
                code,
                _say_repeated(code, columns, int(other[index]), int(row[index])),
            )

        reader.count_rest(code, int(np.count_nonzero(chosen)))


def _say_repeated(code: str, columns: Columns, other: int, row: int) -> str:
    document = repr(columns.text(row, DOCUMENT)[:100].decode(errors="replace"))
    line, level, above = columns.line[other], int(columns.number[row]), int(columns.number[other])
    if code == "several_iterations":
        return f"document {document} is judged in several iterations; its highest level counts"
    if code == "duplicate_judgement":
        return f"the judgement of {document} in line {line} is repeated"
    return f"document {document} has level {level} here and {above} in line {line}"


def _judgements(columns: Columns, subtopics: Subtopics | None, seed: int) -> Judgements:
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
