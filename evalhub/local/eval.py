"""`evalhub eval`: trec_eval's command line with EvalHub's engine, on files, without a server."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from evalhub.local.files import LocalFile
from evalhub.local.options import parse, parser
from metrics.engine.errors import EvalHubError, MeasureError
from metrics.engine.judgement.judging import Judgements, ScoreType
from metrics.engine.judgement.known import KnownDocuments, mark_known
from metrics.engine.measures.grammar import Measure
from metrics.engine.measures.subtopics import OF_SUBTOPICS
from metrics.engine.measures.undefined import REASONS
from metrics.engine.trec_eval.columns import Answers, Column, Scale, Settings, columns
from metrics.engine.trec_eval.requests import Request, read_requests
from metrics.engine.trec_eval.table import Version
from metrics.exports import EXPORTS
from metrics.exports.sheet import Sheet
from runs.errors import FileReport, InvalidFile
from runs.formats.known_documents import read_known
from runs.formats.limits import Limits
from runs.formats.sampled_qrels import read_sampled_qrels
from runs.formats.scanning.ahead import THREADS, few_threads
from runs.formats.scanning.scan import plain_for
from runs.formats.trec_qrels import QrelsSummary, read_qrels
from runs.formats.trec_run import check_and_judge
from runs.formats.zscores import read_zscores

_FAILED, _WRONG_USE, _INTERRUPTED, _PIPE_CLOSED = 1, 2, 130, 141
_SCORES: dict[Version, ScoreType] = {"10": "float64", "9.0.8": "float32"}
# For smaller files a second thread takes more time and memory than it saves.
_MIN_SIZE_OF_THREADS = 8 * 1024**2
# The user chooses these files, so that only the limits of memory apply.
_LIMITS = Limits(
    bytes_in=8 * 1024**3, bytes_out=64 * 1024**3, lines=1_000_000_000, topics=10_000_000,
)  # fmt: skip


def main(argv: list[str]) -> None:
    """Run the command; always ends in SystemExit."""
    try:
        status = _parse_and_run(argv[2:])
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has closed the output: print no error, not even when Python closes it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = _PIPE_CLOSED
    except OSError as error:
        _say(f"evalhub eval: cannot write the output: {error.strerror}")
        status = _FAILED
    except KeyboardInterrupt:
        status = _INTERRUPTED

    raise SystemExit(status)


def _parse_and_run(arguments: list[str]) -> int:
    try:
        options = parse(arguments)
        names, documents = options.measures or ["official"], options.documents or None
        requests, measures = read_requests(names, options.compat, options.level, documents)
        if measures and options.scale:
            raise MeasureError(f"-Z is for trec_eval's measures; {measures[0]} is not one of them")
        if options.sampling:
            _check_sampling(options, requests, measures)
    except SystemExit as stop:
        return int(stop.code or 0)
    except MeasureError as error:
        message = f"{parser().format_usage()}evalhub eval: error: {error.message}"
        if error.code == MeasureError.code:
            message += "\nevalhub eval --help describes the names"
        _say(message)
        return _WRONG_USE

    return _Command(options, requests, measures).run()


def _check_sampling(
    options: argparse.Namespace, requests: list[Request], measures: list[Measure]
) -> None:
    """Raise MeasureError for options and measures that do not suit sampled judgements."""
    if options.iteration:
        message = f"leave out --iteration: --sampling {options.sampling} says what the columns are"
        raise MeasureError(message)
    for measure in measures:
        measure.check_design(options.sampling)
    if requests:
        raise MeasureError(
            f"the judgements are sampled, and trec_eval's {requests[0].entry.name} takes documents "
            "outside the sample for not relevant: name estimates, such as -m statAP",
            code="sampled_judgements",
        )


@dataclass
class _Command:
    """One call of the command; `failed` if a file could not be evaluated."""

    options: argparse.Namespace
    requests: list[Request]
    measures: list[Measure]
    seed: int = field(default_factory=lambda: int.from_bytes(os.urandom(8), "little") >> 1)
    failed: bool = False

    def run(self) -> int:
        """Evaluate every run and write the values. Return the exit status."""
        options = self.options
        names = [options.qrels, *options.runs, *filter(None, [options.scale, options.known])]

        files = {name: LocalFile(name, _LIMITS) for name in names}
        try:
            size = sum(self._size(file) for file in files.values())
            with plain_for(size), few_threads(1 if size < _MIN_SIZE_OF_THREADS else THREADS):
                self._write(files)
        finally:
            for file in files.values():
                file.close()

        return _FAILED if self.failed else 0

    def _size(self, file: LocalFile) -> int:
        try:
            return file.size()
        except (OSError, EvalHubError):
            # The error is reported when the file is read.
            return 0

    def _write(self, files: dict[str, LocalFile]) -> None:
        options = self.options
        judgements, scale, known = self._read_judgements(files[options.qrels]), None, None
        if options.scale:
            with self._report_errors(files[options.scale]):
                scale = read_zscores(files[options.scale].open)

        if options.known:
            known = self._read_known(files[options.known], judgements)

        if judgements is None or self.failed:
            return

        self._check_gains(files[options.qrels], judgements)
        sheets = (self._sheet(files[name], judgements, scale, known) for name in options.runs)
        valid_sheets = (sheet for sheet in sheets if sheet)
        for text in EXPORTS[options.format](
            valid_sheets, by_topic=options.by_topic, summary=options.summary
        ):
            # A write may take only a part of the text, as under PYTHONUNBUFFERED.
            rest = memoryview(text.encode())
            while rest:
                rest = rest[sys.stdout.buffer.write(rest) :]

    def _read_judgements(self, file: LocalFile) -> Judgements | None:
        with self._report_errors(file):
            iteration, sampling = self.options.iteration, self.options.sampling
            if sampling:
                summary = read_sampled_qrels(file.open, sampling, limits=_LIMITS, seed=self.seed)
            else:
                summary = read_qrels(file.open, iteration=iteration, limits=_LIMITS, seed=self.seed)
            self._check(file, summary.report)
            self._check_subtopics(file, summary)

            return summary.judgements

        return None

    def _read_known(self, file: LocalFile, judgements: Judgements | None) -> KnownDocuments | None:
        with self._report_errors(file):
            summary = read_known(file.open, limits=_LIMITS, seed=self.seed)
            self._check(file, summary.report)
            if judgements and not any(
                topic.encode() in judgements.topic_index for topic in summary.topics
            ):
                other = _other_case(summary.topics, judgements.topic_ids, "in the file")
                _say(f"{file.name}: warning: none of its topics has judgements{other}")

            return summary.known

        return None

    def _sheet(
        self,
        file: LocalFile,
        judgements: Judgements,
        scale: Scale | None,
        known: KnownDocuments | None,
    ) -> Sheet | None:
        with self._report_errors(file):
            summary, view = check_and_judge(
                file.open, judgements, _SCORES[self.options.compat], limits=_LIMITS, seed=self.seed
            )
            self._check(file, summary.report)
            if known:
                view = mark_known(view, judgements, known)

            answers = Answers(
                view, judgements.topic_ids, summary.tag or "", self._settings(), scale
            )
            self._check_topics(file, answers, summary.topics)
            topics = [judgements.topic_ids[topic].decode() for topic in answers.topics.tolist()]

            return Sheet(file.name, topics, self._columns(file, answers), scale is not None)

        return None

    def _columns(self, file: LocalFile, answers: Answers) -> list[Column]:
        """Return the columns of every measure; report and skip one that fails."""
        groups: list[tuple[str, list[Request], list[Measure]]] = []
        groups += [(request.entry.name, [request], []) for request in self.requests]
        groups += [(measure.name, [], [measure]) for measure in self.measures]

        all_columns: list[Column] = []
        for name, requests, measures in groups:
            try:
                all_columns += columns(answers, requests, measures)
            except Exception as error:  # a fault of one measure does not affect the others
                self.failed = True
                _say(f"{file.name}: {name} cannot be computed: {type(error).__name__}: {error}")

        for column in all_columns:
            if column.undefined:
                _say(f"{file.name}: warning: {_missing_values(column)}")

        return all_columns

    def _settings(self) -> Settings:
        options = self.options
        return Settings(
            options.compat,
            options.level,
            options.depth,
            options.judged_only,
            options.complete,
            options.documents,
        )

    def _check(self, file: LocalFile, report: FileReport) -> None:
        report.check()
        if self.options.verbose:
            for warning in report.warnings:
                message = f"warning: {warning.code}: {warning.message}"
                if warning.count > 1 and warning.lines:
                    message += f"; {warning.count:,} in total"
                _say(f"{_place(file.name, warning.line)}: {message}")

    def _check_gains(self, file: LocalFile, judgements: Judgements) -> None:
        """Warn if gains reverse the order of levels, even without --verbose."""
        levels = sorted(set(judgements.recall_base.level.tolist()))
        cautions = [caution for measure in self.measures for caution in measure.cautions(levels)]
        for request in self.requests:
            cautions += request.gains.cautions(levels, request.names[0]) if request.gains else []

        for caution in cautions:
            _say(f"{file.name}: warning: {caution.code}: {caution.message}")

    def _check_subtopics(self, file: LocalFile, qrels: QrelsSummary) -> None:
        """Warn if measures of subtopics get judgements without any, even without --verbose."""
        names = ", ".join(
            measure.name for measure in self.measures if measure.definition.name in OF_SUBTOPICS
        )
        if names and qrels.judgements.subtopics is None:
            _say(
                f"{file.name}: warning: no subtopics for {names}: each topic is its only one; see "
                "--iteration"
            )

    def _check_topics(self, file: LocalFile, answers: Answers, topics: Iterable[str]) -> None:
        """Refuse a run without judged topics, and warn about left out ones, even without --verbose."""
        if not answers.answered.any():
            problem = (
                f"none of the run's topics has judgements{_other_case(topics, answers.topic_ids)}"
            )
            if not len(answers.topics):
                raise EvalHubError(problem)

            _say(f"{file.name}: warning: {problem}")

        missing = len(answers.topic_ids) - int(answers.answered.sum())
        if missing and not self.options.complete:
            total = len(answers.topic_ids)
            _say(
                f"{file.name}: warning: {missing} of {total} judged topics have no results and "
                "are left out; see -c"
            )

    @contextmanager
    def _report_errors(self, file: LocalFile) -> Iterator[None]:
        """Print to standard error why a file cannot be evaluated, and continue."""
        try:
            yield
        except InvalidFile as error:
            self.failed = True
            _say_problems(file.name, error.report)
        except EvalHubError as error:
            self.failed = True
            _say(f"{file.name}: {error.code}: {error.message}")
        except OSError as error:
            self.failed = True
            _say(f"{file.name}: {error.strerror or error}")


def _missing_values(column: Column) -> str:
    """Return a sentence on the topics without a value, and the reasons."""
    topics = column.defined + sum(column.undefined.values())
    if column.defined:
        count = f"is over {column.defined} of {topics} topics"
    else:
        count = f"has no value for any of {topics} topics"

    reasons = "; ".join(
        f"{REASONS[reason]} ({count})" for reason, count in column.undefined.items()
    )
    return f"{column.name} {count}: {reasons}"


def _other_case(topics: Iterable[str], judged: list[bytes], where: str = "in the run") -> str:
    """Return a note on a pair of topics that differ in case only, or ""."""
    judged_topics = [topic_id.decode(errors="replace") for topic_id in judged]
    by_folded = {topic.casefold(): topic for topic in judged_topics}
    for topic in topics:
        if other := by_folded.get(topic.casefold()):
            return f"; the ids differ in case: {topic!r} {where}, {other!r} in the judgements"

    return ""


def _say_problems(name: str, report: FileReport) -> None:
    for problem in report.problems:
        _say(f"{_place(name, problem.line)}: {problem.code}: {problem.message}")

    listed = Counter(problem.code for problem in report.problems)
    for code, count in report.problem_counts.items():
        if count > listed[code]:
            _say(f"{name}: {code}: {count - listed[code]} more")


def _place(name: str, line: int) -> str:
    return f"{name}:{line}" if line else name


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
