"""Read a file of judgements line by line, check it against the pool, and store it.

The file is read twice: all of it is checked before the first judgement is stored. In memory are the
documents of the pool and one small number for each of them and each assessor, not the lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np
from django.core.exceptions import ValidationError
from django.db import transaction

from evalhub.pools.models import Assessor, Pool
from evalhub.pools.services.assigning import assessor_of, check_frozen, documents_to_judge
from evalhub.pools.services.judging import (
    NOT_JUDGED,
    NewJudgement,
    StoredCounts,
    labels_of,
    store_judgements,
)
from evalhub.pools.services.pool_file import read_topics
from metrics.engine.arrays import Ints
from metrics.engine.measures.definition import MAX_LEVEL
from runs.attention import keep_going
from runs.errors import FileReport, InvalidInput
from runs.formats.lines import read_lines
from runs.models import AuditEvent, Qrels, User
from runs.models.text import check_line, check_text
from runs.services.audit.trail import SYSTEM, Origin, record
from runs.services.storage.files import FileSource, upload_limits

QRELS, TSV, JSONL = FORMATS = ("qrels", "tsv", "jsonl")
MAX_ASSESSORS = 100
_COLUMNS = ("topic_id", "doc_id", "level", "assessor", "aspect", "round", "seconds", "note")
_REQUIRED = _COLUMNS[:3]
_OTHER_NAMES = {"topic": "topic_id", "doc": "doc_id"}
_MAX_LINE = 64 * 1024
_LEVEL = re.compile(r"[+-]?[0-9]{1,7}")
_BLANK = re.compile(r"[\x00-\x20\x7f]")
# What `check_line` and `check_text` check of a column, and how long it may be.
_TEXTS = {"assessor": 150, "aspect": 64, "round": 20, "note": 2000}
# Rows that are read before they are stored together.
_BATCH = 5000
_NEVER = -MAX_LEVEL - 1


@dataclass(frozen=True)
class ImportOptions:
    """How to read a file of judgements.

    `assessor` judged the lines that name none. `scale` has the values of the file, the first being
    level 0; without it they are levels. With `allow_outside` documents that are not in the pool are
    stored, with a warning. `iteration` says what the second column of qrels is; None is subtopics
    where the judgements of the collection have some, and nothing otherwise.
    """

    format: str = QRELS
    assessor: str = ""
    aspect: str = ""
    iteration: str | None = None
    scale: tuple[float, ...] = ()
    allow_outside: bool = False


@dataclass
class ImportSummary:
    """What a file has: its judgements by assessor, and what storing them changed."""

    report: FileReport
    lines: int = 0
    unjudged: int = 0
    assessors: dict[str, int] = field(default_factory=dict)
    counts: StoredCounts = field(default_factory=StoredCounts)


class _BadLine(Exception):
    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def import_judgements(
    *,
    pool: Pool,
    upload: Path,
    options: ImportOptions,
    user: User,
    manager: bool,
    dry_run: bool = False,
    origin: Origin = SYSTEM,
    accept: Callable[[ImportSummary], object] | None = None,
) -> ImportSummary:
    """Check a file of judgements and store them, all or none. Return what it has.

    An assessor who does not manage the pool judges only the documents of own topics. Raise
    InvalidFile with every problem. `accept` is called in the transaction.
    """
    check_frozen(pool)
    if not manager and options.assessor not in ("", user.username):
        message = "you can only store your own judgements; leave assessor out"
        raise InvalidInput(message, code="not_assigned", pointer="/assessor")

    reader = _Reader(pool, options, user, manager)
    source = FileSource(upload, upload_limits())
    try:
        for _ in reader.read(source):
            pass
        reader.summary.report.check()
        if dry_run:
            return reader.summary

        with transaction.atomic():
            reader.store(source)
            after = {"lines": reader.summary.lines, **asdict(reader.summary.counts)}
            record(
                origin,
                AuditEvent.Action.POOL_JUDGED,
                pool,
                collection=pool.collection,
                after={**after, "sha256": source.sha256},
            )
            if accept:
                accept(reader.summary)
    finally:
        source.close()
    return reader.summary


class _Reader:
    """Reads a file, with what it is checked against."""

    def __init__(self, pool: Pool, options: ImportOptions, user: User, manager: bool) -> None:
        self.pool, self.options, self.user, self.manager = pool, options, user, manager
        self.labels = labels_of(pool.collection) if pool.collection.level_labels else None
        self.summary = ImportSummary(FileReport())
        self.places = _documents(pool, user, manager)
        self.documents = sum(map(len, self.places.values()))
        # By assessor and aspect: the level of each document of the pool in this file, and of others.
        self.levels: dict[tuple[str, str], Ints] = {}
        self.outside: dict[tuple[str, str, str, str], int] = {}
        self.iteration = self._iteration()

    def _iteration(self) -> str:
        if self.options.iteration:
            return self.options.iteration
        latest = self.pool.collection.qrels.filter(
            keyed_by=Qrels.KeyedBy.TOPIC, sampling=Qrels.Sampling.NONE
        ).first()
        subtopics = Qrels.Iteration.SUBTOPIC
        return subtopics if latest and latest.iteration == subtopics else Qrels.Iteration.IGNORE

    def read(self, source: FileSource) -> Iterator[tuple[str, NewJudgement]]:
        """Yield assessor and judgement of each line; problems go to the report."""
        report: FileReport = self.summary.report
        columns: tuple[str, ...] = _REQUIRED
        for line, content in read_lines(source.open(), report, upload_limits().lines, _MAX_LINE):
            if line % _BATCH == 0:
                keep_going()
            try:
                text = content.decode().rstrip("\r")
                if not text.strip() or (self.options.format != JSONL and text.startswith("#")):
                    continue

                if self.options.format == TSV and not self.summary.lines and "topic_id" in text:
                    columns = _header(text)
                    continue

                self.summary.lines += 1
                fields = self._fields(line, text, columns)
                if fields["level"] == "":
                    self.summary.unjudged += 1
                    continue
                yield self._judgement(line, fields)
            except UnicodeDecodeError:
                report.problem(line, "undecodable_bytes", "the line is not UTF-8")
                report.stop_when_full(line)
            except _BadLine as problem:
                report.problem(line, problem.code, problem.message)
                report.stop_when_full(line)

        if not self.summary.lines and not report.problems:
            report.problem(0, "empty_qrels", "the file contains no judgements")

    def _fields(self, line: int, text: str, columns: Sequence[str]) -> dict[str, str]:
        """Return the columns of a line by name; those that it lacks are empty."""
        fields = dict.fromkeys(_COLUMNS, "")
        if self.options.format == JSONL:
            return fields | _object(text)

        if self.options.format == TSV:
            parts = text.split("\t")
            if len(parts) < len(columns) - 1 or len(parts) > len(columns):
                message = (
                    f"{len(parts)} columns; a line has {', '.join(columns)}, with tabs between"
                )
                raise _BadLine("wrong_columns", message)
            return fields | {name: part.strip() for name, part in zip(columns, parts, strict=False)}

        words = text.split()
        if not 4 <= len(words) <= 5:
            message = "a line is: topic, iteration, document, level"
            code = "too_few_columns" if len(words) < 4 else "too_many_columns"
            raise _BadLine(code, message)
        if len(words) == 5:
            message = "the fifth column is ignored: the pool knows strata and probabilities"
            self.summary.report.warning(line, "extra_column", message)

        fields |= {"topic_id": words[0], "doc_id": words[2], "level": words[3]}
        if self.iteration == Qrels.Iteration.SUBTOPIC:
            fields["aspect"] = words[1] if words[1] != "0" else ""
        elif self.iteration == Qrels.Iteration.ROUND:
            fields["round"] = words[1]
        elif words[1] not in ("0", "Q0"):
            message = f"iteration {words[1][:20]!r} is ignored; to keep iterations, send " \
                "iteration=subtopic or iteration=round"  # fmt: skip
            self.summary.report.warning(line, "iteration_ignored", message)
        return fields

    def _judgement(self, line: int, fields: dict[str, str]) -> tuple[str, NewJudgement]:
        topic_id, doc_id = fields["topic_id"], fields["doc_id"]
        for name, text in (("topic_id", topic_id), ("doc_id", doc_id)):
            if not text or _BLANK.search(text) or len(text) > 1024:
                raise _BadLine("bad_value", f"{name} {text[:40]!r} is not an id")
        for name, most in _TEXTS.items():
            _check(name, fields[name], most)

        judgement = NewJudgement(
            topic_id=topic_id,
            doc_id=doc_id,
            level=self._level(fields["level"]),
            aspect=fields["aspect"] or self.options.aspect,
            round=fields["round"],
            seconds=_seconds(fields["seconds"]),
            note=fields["note"],
            outside=doc_id not in self.places.get(topic_id, ()),
        )
        assessor = self._assessor(fields["assessor"])
        if judgement.outside:
            self._check_outside(line, judgement)
        self._check_level(assessor, judgement)
        self.summary.assessors[assessor] = self.summary.assessors.get(assessor, 0) + 1
        return assessor, judgement

    def _level(self, text: str) -> int:
        if self.options.scale:
            try:
                value = float(text)
            except ValueError:
                value = float("nan")
            near = [place for place, step in enumerate(self.options.scale)
                    if abs(step - value) < 1e-9]  # fmt: skip
            if not near:
                steps = ", ".join(f"{step:g}" for step in self.options.scale)
                raise _BadLine("bad_level", f"{text[:20]!r} is not on the scale {steps}")
            return near[0]

        if not _LEVEL.fullmatch(text):
            message = f"level {text[:20]!r} is not a whole number"
            if "." in text:
                message += "; for fractions send their values, as in scale=0,0.5,1"
            raise _BadLine("bad_level", message)

        level = int(text)
        if level < 0 and level >= NOT_JUDGED:
            return level
        if self.labels is not None and level not in self.labels:
            levels = ", ".join(map(str, self.labels))
            raise _BadLine("bad_level", f"level {level} is not one of the collection: {levels}")
        if not 0 <= level <= MAX_LEVEL:
            raise _BadLine("bad_level", f"level {level} is not from -2 to {MAX_LEVEL:,}")
        return level

    def _assessor(self, name: str) -> str:
        if not self.manager:
            if name not in ("", self.user.username):
                raise _BadLine("not_assigned", "you can only store your own judgements")
            return self.user.username

        name = name or self.options.assessor
        if not name:
            message = "the line names no assessor; send assessor=NAME, or a column assessor"
            raise _BadLine("missing_assessor", message)
        if name not in self.summary.assessors and len(self.summary.assessors) >= MAX_ASSESSORS:
            message = f"more than {MAX_ASSESSORS} assessors; send their judgements in several files"
            raise _BadLine("too_many_assessors", message)
        return name

    def _check_outside(self, line: int, judgement: NewJudgement) -> None:
        where = f"document {judgement.doc_id[:100]!r} of topic {judgement.topic_id[:40]!r}"
        if not self.manager:
            raise _BadLine("not_assigned", f"{where} is not yours to judge")
        if not self.options.allow_outside:
            message = (
                f"{where} is not in the pool; send allow_outside=true to store it all the same"
            )
            raise _BadLine("not_in_pool", message)
        message = "documents that are not in the pool are stored"
        self.summary.report.warning(line, "not_in_pool", message)

    def _check_level(self, assessor: str, judgement: NewJudgement) -> None:
        """Raise _BadLine for a second level of a document by an assessor in this file."""
        if judgement.outside:
            key = (assessor, *judgement.key)
            level = self.outside.setdefault(key, judgement.level)
        else:
            levels = self.levels.get((assessor, judgement.aspect))
            if levels is None:
                levels = np.full(self.documents, _NEVER, np.int32)
                self.levels[assessor, judgement.aspect] = levels
            place = self.places[judgement.topic_id][judgement.doc_id]
            level = int(levels[place])
            if level == _NEVER:
                level = levels[place] = judgement.level

        if level != judgement.level:
            message = (
                f"document {judgement.doc_id[:100]!r} of topic {judgement.topic_id[:40]!r} has "
                f"level {judgement.level} here and {level} in an earlier line"
            )
            raise _BadLine("conflicting_judgement", message)

    def store(self, source: FileSource) -> None:
        """Store the judgements of a file that was checked, in a transaction."""
        names, counts = sorted(self.summary.assessors), self.summary.counts
        assessors = {name: self._stored_assessor(name) for name in names}
        # In one order, so that two files never wait for each other.
        keys = sorted(assessor.pk for assessor in assessors.values())
        list(Assessor.objects.select_for_update().filter(pk__in=keys).order_by("pk"))

        checked, self.summary = self.summary, ImportSummary(FileReport())
        rows = self.read(source)
        while batch := list(islice(rows, _BATCH)):
            keep_going()
            for name, assessor in assessors.items():
                # A line that is sent twice counts once.
                own = {row.key: row for assessor_name, row in batch if assessor_name == name}
                stored = store_judgements(
                    pool=self.pool, assessor=assessor, judgements=[*own.values()], user=self.user
                )
                counts.new += stored.new
                counts.changed += stored.changed
                counts.same += stored.same
        self.summary = checked

    def _stored_assessor(self, name: str) -> Assessor:
        if not self.manager:
            return assessor_of(self.pool.collection, self.user)
        assessor, _ = Assessor.objects.get_or_create(collection=self.pool.collection, name=name)
        return assessor


def _documents(pool: Pool, user: User, manager: bool) -> dict[str, dict[str, int]]:
    """Return the place of each document that may be judged, by topic and document."""
    if manager:
        topics = [
            (topic_id, [document.doc_id for document in documents])
            for topic_id, documents in read_topics(pool)
        ]
    else:
        own = pool.assignments.filter(assessor__user=user).select_related("pool", "assessor")
        topics = [(assignment.topic_id, documents_to_judge(assignment)) for assignment in own]

    places: dict[str, dict[str, int]] = {}
    first = 0
    for topic_id, doc_ids in topics:
        places[topic_id] = {doc_id: place for place, doc_id in enumerate(doc_ids, first)}
        first += len(doc_ids)
    return places


def _header(text: str) -> tuple[str, ...]:
    columns = tuple(name.strip() for name in text.split("\t"))
    unknown = [name for name in columns if name not in _COLUMNS]
    missing = [name for name in _REQUIRED if name not in columns]
    if unknown or missing:
        wrong = f"unknown column {unknown[0][:40]!r}" if unknown else f"no column {missing[0]}"
        raise _BadLine("bad_column", f"{wrong}; columns are {', '.join(_COLUMNS)}")
    return columns


def _object(text: str) -> dict[str, str]:
    try:
        row = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _BadLine("bad_json", "each line must be a JSON object") from error
    if not isinstance(row, dict):
        raise _BadLine("bad_json", "each line must be a JSON object")

    # `topic` and `doc` are the names of `evh judge`.
    row = {_OTHER_NAMES.get(name, name): value for name, value in row.items()}
    fields = {}
    for name in _COLUMNS:
        value = row.get(name)
        if isinstance(value, bool) or not isinstance(value, str | int | float | None):
            raise _BadLine("bad_value", f"{name} is a text or a number")
        fields[name] = "" if value is None else str(value)
    for name in ("topic_id", "doc_id"):
        if name not in row:
            raise _BadLine("bad_value", f"the object has no {name}")
    return fields


def _check(name: str, text: str, most: int) -> None:
    if len(text) > most:
        raise _BadLine("text_too_long", f"{name} has more than {most:,} characters")
    try:
        (check_text if name == "note" else check_line)(text)
    except ValidationError as error:
        raise _BadLine("control_character", f"{name}: {error.messages[0]}") from error


def _seconds(text: str) -> float | None:
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 1e9:
        raise _BadLine("bad_value", f"seconds {text[:20]!r} are not a number from 0")
    return seconds
