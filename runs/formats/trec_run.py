"""TREC runs: `topic Q0 document rank score tag`, checked by line and read into RankedBlocks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import TypeVar

import numpy as np

from metrics.engine.arrays import Flags, Floats, Ints
from metrics.engine.judgement.judged import JudgedRun
from metrics.engine.judgement.judging import JudgedBlock, Judgements, ScoreType, judge
from metrics.engine.judgement.ranking import RankedBlock
from runs.errors import LINES_NAMED, PROBLEMS_SHOWN, FileReport
from runs.formats.limits import DEFAULT_LIMITS, Limits
from runs.formats.scanning.columns import (
    CHECKED_RUN,
    DOCUMENT,
    LABEL,
    RUN,
    TOPIC,
    Columns,
    JudgedLines,
    LineJudge,
)
from runs.formats.scanning.notes import NEW_LABEL
from runs.formats.scanning.pieces import (
    WHOLE_FILE,
    Opener,
    PieceReader,
    TopicsInterleaved,
    ensure_grouped,
    keep_rows,
    topic_segments,
    topics_together,
)
from runs.formats.scanning.scan import find_duplicates, judge_beside, search_beside

T = TypeVar("T")

TAG = re.compile(r"[A-Za-z0-9._-]{1,64}")
TAG_RULE = "a tag has 1 to 64 characters: letters, digits, '.', '_' and '-'"
# A run usually lists at most this many documents for a topic; more is accepted with a warning.
USUAL_DOCUMENTS = 1000


@dataclass
class RunSummary:
    """The properties of a run that need no judgements.

    `topics` maps each topic_id to its number of documents.
    """

    report: FileReport
    tag: str | None = None
    topics: dict[str, int] = field(default_factory=dict)
    lines: int = 0
    documents: int = 0
    tied_documents: int = 0
    grouped: bool = True
    metadata: dict[str, object] | None = None


def say_contradicted(lines: int, documents: int) -> str:
    """Return a note on a run with `lines` where rank and score contradict the line before."""
    return (
        f"{lines:,} of {documents:,} lines have a rank that contradicts their score; scores decide"
    )


def read_run(
    open_run: Opener, *, grouped: bool = True, limits: Limits = DEFAULT_LIMITS, seed: int = 0
) -> Iterator[RankedBlock]:
    """Yield the blocks of a run that was checked before.

    Raise TopicsInterleaved if `grouped` is wrong, InvalidFile if the file is damaged after all.
    """
    reader, topic_ids = PieceReader(CHECKED_RUN, limits, seed), set[bytes]()
    for columns in reader.read(open_run(), whole=not grouped):
        yield from _checked_blocks(reader, columns, grouped, topic_ids)


def judge_run(
    open_run: Opener,
    judgements: Judgements,
    scores: ScoreType = "float64",
    *,
    grouped: bool = True,
    limits: Limits = DEFAULT_LIMITS,
    seed: int = 0,
) -> JudgedRun:
    """Judge a run that was checked before, with the errors of `read_run`.

    `seed` must be that of the judgements.
    """
    blocks = read_run(open_run, grouped=grouped, limits=limits, seed=seed)
    line_judge = judge_beside(judgements, scores, checked=True) if grouped else None
    judged = _judged_blocks(open_run, line_judge, limits, seed) if line_judge else blocks

    return judge(judged, judgements, scores, search_beside())


def _judged_blocks(
    open_run: Opener, line_judge: LineJudge, limits: Limits, seed: int
) -> Iterator[RankedBlock | JudgedBlock]:
    reader, topic_ids = PieceReader(CHECKED_RUN, limits, seed), set[bytes]()
    for piece in reader.read_usual(open_run(), line_judge):
        if isinstance(piece, JudgedLines):
            ensure_grouped(piece.block.topic_ids, topic_ids)
            yield piece.block
        else:
            yield from _checked_blocks(reader, piece, True, topic_ids)


def _checked_blocks(
    reader: PieceReader, columns: Columns, grouped: bool, topic_ids: set[bytes]
) -> Iterator[RankedBlock]:
    reader.check_rows(columns, _SCORE, "bad_score")
    reader.report.check()
    for part in [columns] if grouped else topics_together(columns):
        block = _block(part)
        ensure_grouped(block.topic_ids, topic_ids)
        yield block


def check_run(
    open_run: Opener, *, tag: str | None = None, limits: Limits = DEFAULT_LIMITS, seed: int = 0
) -> RunSummary:
    """Read a run to its end and report all problems and warnings.

    `tag` is that of the submission, if it has one.
    """
    try:
        # Judging reads valid lines faster than scanning, also without judgements.
        return _RunCheck(limits, seed, tag, grouped=True).run(
            open_run, judge_beside(_no_judgements(seed), "float64")
        )
    except TopicsInterleaved:
        with WHOLE_FILE:
            return _RunCheck(limits, seed, tag, grouped=False).run(open_run)


@cache
def _no_judgements(seed: int) -> Judgements:
    empty = np.zeros(0, np.int64)
    return Judgements(
        [], empty, empty, np.zeros(0, np.uint8), empty, empty, np.zeros(0, np.uint64), seed
    )


def use_run(
    open_run: Opener,
    use: Callable[[Iterator[RankedBlock]], T],
    *,
    limits: Limits = DEFAULT_LIMITS,
    seed: int = 0,
) -> tuple[RunSummary, T]:
    """Return the report of a run and the result of `use` for its valid lines.

    The run is read once, or twice if topics are interleaved. `use` must read all blocks. The tag is
    that of the last line, as in trec_eval, and several tags are not a problem.
    """
    try:
        check = _RunCheck(limits, seed, None, grouped=True, any_tags=True)
        return check.summary, use(check.blocks(open_run))
    except TopicsInterleaved:
        check = _RunCheck(limits, seed, None, grouped=False, any_tags=True)
        return check.summary, use(check.blocks(open_run))


def check_and_judge(
    open_run: Opener,
    judgements: Judgements,
    scores: ScoreType = "float64",
    *,
    limits: Limits = DEFAULT_LIMITS,
    seed: int = 0,
) -> tuple[RunSummary, JudgedRun]:
    """Return the report of a run and its valid lines, judged. See `use_run`.

    `seed` must be that of the judgements.
    """

    def judged(blocks: Iterator[RankedBlock | JudgedBlock]) -> JudgedRun:
        return judge(blocks, judgements, scores, search_beside())

    line_judge = judge_beside(judgements, scores)
    if line_judge is None:
        return use_run(open_run, judged, limits=limits, seed=seed)

    try:
        check = _RunCheck(limits, seed, None, grouped=True, any_tags=True)
        return check.summary, judged(check.judged_blocks(open_run, line_judge))
    except TopicsInterleaved:
        check = _RunCheck(limits, seed, None, grouped=False, any_tags=True)
        return check.summary, judged(check.blocks(open_run))


_SCORE = "a finite decimal number"


def _block(columns: Columns) -> RankedBlock:
    topic_ids, starts = topic_segments(columns)
    spans = columns.spans
    return RankedBlock(
        columns.data, topic_ids, starts, columns.number, spans[:, 2], spans[:, 3], columns.hashes
    )  # fmt: skip


class _RunCheck:
    """One reading of a run, which fills the summary."""

    def __init__(
        self, limits: Limits, seed: int, tag: str | None, grouped: bool, any_tags: bool = False
    ) -> None:
        self.limits = limits
        self.tag = tag
        self.any_tags = any_tags
        self.reader = PieceReader(RUN, limits, seed)
        self.summary = RunSummary(self.reader.report, grouped=grouped)
        self.tags: dict[str, int] = {}
        self.last_tag: str | None = None
        self.contradicted = 0
        self.contradicted_lines: list[int] = []
        self.topic_ids: set[bytes] = set()

    def run(self, open_run: Opener, line_judge: LineJudge | None = None) -> RunSummary:
        for _ in self.judged_blocks(open_run, line_judge) if line_judge else self.blocks(open_run):
            pass
        return self.summary

    def blocks(self, open_run: Opener) -> Iterator[RankedBlock]:
        """Yield the valid lines of the run. Afterwards the summary is complete."""
        for columns in self.reader.read(open_run(), whole=not self.summary.grouped):
            yield from self._valid_blocks(columns)
        self._finish()

    def judged_blocks(
        self, open_run: Opener, line_judge: LineJudge
    ) -> Iterator[RankedBlock | JudgedBlock]:
        """Yield the valid lines of a run with grouped topics, judged if there is nothing to report.

        Afterwards the summary is complete.
        """
        for piece in self.reader.read_usual(open_run(), line_judge):
            if isinstance(piece, JudgedLines):
                block = piece.block
                self._note_tag(piece.tag, piece.first_line)
                self._note_topics(block.topic_ids, block.sizes)
                self.summary.tied_documents += piece.tied
                yield block
            else:
                yield from self._valid_blocks(piece)

        self._finish()

    def _valid_blocks(self, columns: Columns) -> Iterator[RankedBlock]:
        valid = self.reader.check_rows(columns, _SCORE, "bad_score")
        self.reader.warn_extra_columns(columns)
        columns = keep_rows(columns, valid)
        for row in np.flatnonzero(columns.notes & NEW_LABEL).tolist():
            if len(self.tags) > 1:
                break
            self._note_tag(columns.text(row, LABEL), int(columns.line[row]))

        if len(columns.line):
            self.last_tag = columns.text(-1, LABEL).decode(errors="replace")

        for part in [columns] if self.summary.grouped else topics_together(columns):
            block = _block(part)
            self._note_topics(block.topic_ids, np.diff(block.topic_starts))
            self._find_duplicates(part, block.topic_starts)
            self._note_order(part, block)
            yield block

    def _note_tag(self, text: bytes, line: int) -> None:
        self.last_tag = tag = text.decode(errors="replace")
        if tag and len(self.tags) < 2:
            self.tags.setdefault(tag, line)

    def _note_topics(self, topic_ids: list[bytes], sizes: Ints) -> None:
        ensure_grouped(topic_ids, self.topic_ids)
        self.reader.check_topics(len(self.topic_ids))
        self.reader.check_documents(int(sizes.max(initial=0)))
        names = (topic_id.decode(errors="replace") for topic_id in topic_ids)
        self.summary.topics.update(zip(names, sizes.tolist(), strict=True))
        self.summary.documents += int(sizes.sum())

    def _find_duplicates(self, columns: Columns, topic_starts: Ints) -> None:
        first, second = find_duplicates(columns, topic_starts)
        for earlier, row in zip(
            first[:PROBLEMS_SHOWN].tolist(), second[:PROBLEMS_SHOWN].tolist(), strict=True
        ):
            name, topic = columns.text(row, DOCUMENT), columns.text(row, TOPIC)
            message = (
                f"document {_quote(name)} is listed twice for topic {_quote(topic)}, "
                f"first in line {columns.line[earlier]}"
            )
            self.reader.report.problem(int(columns.line[row]), "duplicate_document", message)

        self.reader.count_rest("duplicate_document", len(second))

    def _note_order(self, columns: Columns, block: RankedBlock) -> None:
        within_topic = np.ones(len(block.scores), np.bool_)
        within_topic[block.topic_starts[:-1]] = False
        self.summary.tied_documents += int(np.count_nonzero(_tied_rows(block.scores, within_topic)))
        comparable = within_topic[1:] & (columns.rank[1:] >= 0) & (columns.rank[:-1] >= 0)
        later, earlier = _changes(columns.rank)
        higher, lower = _changes(block.scores)
        contradicting = comparable & (later & higher | earlier & lower)
        lines = columns.line[1:][contradicting]
        self.contradicted += len(lines)
        self.contradicted_lines += lines[: LINES_NAMED - len(self.contradicted_lines)].tolist()

    def _finish(self) -> None:
        report, summary = self.reader.report, self.summary
        summary.lines = self.reader.lines

        if not summary.documents and not report.problems:
            report.problem(0, "empty_run", "the file contains no run")

        summary.tag = self._choose_tag()
        if self.reader.comments:
            # Most runs have no comments, and a YAML reader takes long to load.
            from runs.formats.ir_metadata import read_ir_metadata

            summary.metadata, problem = read_ir_metadata(self.reader.comments)
            if problem:
                report.warning(0, "bad_ir_metadata", problem)

        if self.contradicted:
            message = say_contradicted(self.contradicted, summary.documents)
            for line in self.contradicted_lines:
                report.warning(line, "rank_contradicts_score", message)
            report.count_more(
                "rank_contradicts_score", self.contradicted - len(self.contradicted_lines)
            )

        if summary.tied_documents:
            message = (
                f"{summary.tied_documents:,} documents have tied scores; "
                "ties are broken by document id"
            )
            report.warning(0, "ties", message, summary.tied_documents)

        long_topics = [topic for topic, size in summary.topics.items() if size > USUAL_DOCUMENTS]
        if long_topics:
            first = f"topic {long_topics[0]} has {summary.topics[long_topics[0]]:,}"
            message = (
                f"{len(long_topics)} topics have more than the usual "
                f"{USUAL_DOCUMENTS:,} documents; {first}"
            )
            report.warning(0, "many_documents", message, len(long_topics))

    def _choose_tag(self) -> str | None:
        report = self.reader.report
        if self.tag is None and len(self.tags) > 1:
            (first, _), (second, line) = list(self.tags.items())[:2]
            message = f"tag {second[:64]!r} differs from {first[:64]!r} above"
            if self.any_tags:
                report.warning(line, "mixed_tags", f"{message}; the last one is used")
            else:
                report.problem(line, "mixed_tags", f"{message}; give one tag in the submission")

        if self.any_tags:
            return self.last_tag

        file_tag, line = next(iter(self.tags.items()), (None, 0))
        tag = self.tag or file_tag
        if tag is not None and not TAG.fullmatch(tag):
            instead = "" if self.tag else "; give another tag in the submission"
            report.problem(
                0 if self.tag else line, "bad_run_tag", f"{tag[:64]!r}: {TAG_RULE}{instead}"
            )

        if self.tag and file_tag and (file_tag != self.tag or len(self.tags) > 1):
            report.warning(
                line, "tag_differs", f"the file's tag {file_tag[:64]!r} is replaced by {self.tag!r}"
            )

        return tag


def _changes(values: Floats | Ints) -> tuple[Flags, Flags]:
    """Return where values rise from one row to the next, and where they fall; shape (rows - 1,)."""
    return values[1:] > values[:-1], values[1:] < values[:-1]


def _tied_rows(scores: Floats, within_topic: Flags) -> Flags:
    """Return rows that share their score with another row of the topic, in any order."""
    topic = np.cumsum(~within_topic)
    rises = (scores[1:] > scores[:-1]) & within_topic[1:]

    # Most runs list each topic in descending order: equal scores are then adjacent.
    order = np.lexsort((scores, topic)) if rises.any() else np.arange(len(scores))
    equal = (scores[order][1:] == scores[order][:-1]) & (topic[order][1:] == topic[order][:-1])
    tied = np.zeros(len(scores), np.bool_)
    tied[order[1:][equal]] = True
    tied[order[:-1][equal]] = True

    return tied


def _quote(text: bytes) -> str:
    return repr(text[:100].decode(errors="replace"))
