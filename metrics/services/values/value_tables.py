"""Declare measures of value tables, and take the values that other programs computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Max

from metrics.engine.measures.external import PREFIX
from metrics.engine.measures.spelling import suggest
from metrics.models import Comparison, Evaluation, MetricVector
from metrics.services.values.table_vectors import lock_measures, store_table_vectors
from runs import hooks
from runs.errors import Conflict, FileReport, InvalidInput, NotFound, StoredValueCorrupt
from runs.formats.judged_answers import MEASURES
from runs.formats.value_tables import TableRow, read_table
from runs.models import (
    AuditEvent,
    Collection,
    ExternalMeasure,
    Phase,
    TableValues,
    Team,
    User,
    ValueTable,
)
from runs.services.audit.trail import SYSTEM, Origin, changed, record
from runs.services.collections.collections import locked_collection
from runs.services.storage.files import FileSource, upload_limits
from runs.services.storage.reports import report_as_json

MAX_MEASURES = 100
# The topics of a run with values under a measure, those that no judgements have among them.
MAX_TOPICS = 200_000
# What stays changeable when a measure has values.
_TEXTS = ("unit", "description")
# What says what values mean, and who may give them.
_MEANING = ("name", "direction", "low", "high", "aggregate", "missing", "source")
# What is declared of a measure of judged answers.
_DECLARED = ("name", "direction", "low", "high", "unit", "description")

_Cells = dict[tuple[int, UUID], dict[str, float | None]]


@dataclass(frozen=True)
class Sender:
    """Who sends a table: a user, and whether that user organises the collection."""

    user: User
    organises: bool


@dataclass(frozen=True)
class Table:
    """The content of a file: values by the keys of measure and run, and by topic.

    `declared` are the measures as they were when the values were checked. Measures of judged
    answers that the collection has yet to declare have negative keys.
    """

    cells: _Cells
    declared: dict[int, ExternalMeasure]
    measures: dict[str, int]
    sha256: str
    report: FileReport

    @property
    def runs(self) -> int:
        return len({run for _, run in self.cells})

    @property
    def values(self) -> int:
        return sum(self.measures.values())


def find_measure(collection: Collection, name: str) -> ExternalMeasure:
    """Return a declared measure, named with or without the prefix. Raise NotFound without one."""
    measure = collection.external_measures.filter(name=name.removeprefix(PREFIX)).first()
    if measure is None:
        raise _no_measure(collection, name)
    return measure


def _no_measure(collection: Collection, name: str) -> NotFound:
    name = PREFIX + name.removeprefix(PREFIX)[:60]
    return NotFound(f"collection {collection.slug} declares no measure {name}")


def _lock(measure: ExternalMeasure) -> tuple[Collection, ExternalMeasure]:
    """Return a measure as it is now and its collection, locked like those that a table changes.

    Raise NotFound if it was deleted meanwhile.
    """
    collection = locked_collection(measure.collection)
    for locked in lock_measures([collection.pk]):
        if locked.pk == measure.pk:
            return collection, locked
    raise _no_measure(collection, measure.name)


def declare_measure(
    *,
    collection: Collection,
    fields: Mapping[str, Any],
    origin: Origin = SYSTEM,
    accept: Callable[[ExternalMeasure], object] | None = None,
) -> ExternalMeasure:
    """Declare a measure. Raise Conflict if its name is taken, InvalidInput for contradictions."""
    with transaction.atomic():
        locked = locked_collection(collection)
        measure = ExternalMeasure(collection=locked, **fields)
        if locked.external_measures.filter(name=measure.name).exists():
            raise Conflict(f"{measure} is declared already", code="measure_taken")
        if locked.external_measures.count() >= MAX_MEASURES:
            message = f"a collection declares at most {MAX_MEASURES} measures"
            raise Conflict(message, code="too_many_measures")

        _check(measure)
        measure.save()
        after = {name: getattr(measure, name) for name in fields}
        record(origin, AuditEvent.Action.MEASURE_DECLARED, measure, collection=locked, after=after)
        if accept:
            accept(measure)

    return measure


def change_measure(
    *, measure: ExternalMeasure, fields: Mapping[str, Any], origin: Origin = SYSTEM
) -> ExternalMeasure:
    """Change a declaration. Raise Conflict for a change of what its values mean, NotFound if it was
    deleted meanwhile."""
    with transaction.atomic():
        collection, measure = _lock(measure)
        before, after = changed(measure, fields)
        fixed = [name for name in after if name not in _TEXTS]
        if fixed and measure.version:
            raise Conflict(
                f"{measure} has values, and {', '.join(fixed)} says what they mean: declare another "
                "measure, or delete this one with its values",
                code="has_values",
            )

        for name, value in after.items():
            setattr(measure, name, value)
        if after:
            _check(measure)
            measure.save()
            record(
                origin,
                AuditEvent.Action.MEASURE_CHANGED,
                measure,
                collection=collection,
                before=before,
                after=after,
            )

    return measure


def delete_measure(*, measure: ExternalMeasure, origin: Origin = SYSTEM) -> None:
    """Delete a measure with its values.

    Raise Conflict while the collection, a phase or a suite of the actor uses it, NotFound if it
    was deleted meanwhile.
    """
    name = str(measure)
    with transaction.atomic():
        collection, measure = _lock(measure)
        users = [f"collection {collection.slug}"] if name in collection.measures else []
        phases = Phase.objects.filter(collection=collection).select_related("campaign")
        users += [f"phase {phase}" for phase in phases if name in (phase.measures or ())]
        if users:
            message = f"{name} is a measure of {', '.join(users)}: remove it there first"
            raise Conflict(message, code="measure_in_use")
        hooks.before_measure_deletion.send(ExternalMeasure, measure=measure, user=origin.actor)

        compared = Comparison.objects.filter(qrels__collection=collection).only("pk", "query")
        Comparison.objects.filter(
            pk__in=[row.pk for row in compared if name in (row.query or {}).get("measures", ())]
        ).delete()
        MetricVector.objects.filter(evaluation__qrels__collection=collection, measure=name).delete()
        before = {"direction": measure.direction, "version": measure.version}
        record(
            origin, AuditEvent.Action.MEASURE_DELETED, measure, collection=collection, before=before
        )
        measure.delete()


def _check(measure: ExternalMeasure) -> None:
    low, high = measure.low, measure.high
    if low is not None and high is not None and low >= high:
        raise InvalidInput("low must be below high", pointer="/low")

    excludes_zero = (low is not None and low > 0) or (high is not None and high < 0)
    if measure.missing == ExternalMeasure.Missing.ZERO and excludes_zero:
        message = "missing=zero contradicts the bounds, which leave 0 out"
        raise InvalidInput(message, pointer="/missing")
    if measure.aggregate == ExternalMeasure.Aggregation.GEOMETRIC and (low is None or low <= 0):
        message = "a geometric mean needs positive values: declare a low above 0, such as 0.001"
        raise InvalidInput(message, pointer="/low")

    try:
        measure.full_clean(exclude=("collection",), validate_unique=False)
    except ValidationError as error:
        ((name, messages), *_) = error.message_dict.items()
        raise InvalidInput("; ".join(messages), pointer=f"/{name}") from error


def check_table(*, collection: Collection, upload: Path, sender: Sender) -> Table:
    """Read a table to its end. Raise InvalidFile with every problem."""
    report, source = FileReport(), FileSource(upload, upload_limits())
    try:
        reader = _TableReader(collection, sender, report)
        for row in read_table(source.open, report):
            reader.add(row)
        report.check()
    finally:
        source.close()

    return Table(reader.cells, reader.declared, reader.counts, source.sha256, report)


def import_table(
    *,
    collection: Collection,
    upload: Path,
    sender: Sender,
    fields: Mapping[str, Any],
    origin: Origin = SYSTEM,
    accept: Callable[[ValueTable], object] | None = None,
) -> ValueTable:
    """Store the values of a table, in place of earlier ones of the same runs and topics.

    Raise InvalidFile with every problem, and Conflict if a declaration changed meanwhile; then
    nothing is changed.
    """
    table = check_table(collection=collection, upload=upload, sender=sender)
    with transaction.atomic():
        locked = locked_collection(collection)
        _check_unchanged(table, lock_measures([locked.pk]))
        cells = _with_declared(table, locked, origin)
        used = {measure for measure, _ in cells}

        last = locked.value_tables.aggregate(last=Max("number"))["last"] or 0
        stored = ValueTable.objects.create(
            collection=locked,
            number=last + 1,
            sha256=table.sha256,
            measures=table.measures,
            runs=table.runs,
            values=table.values,
            warnings=report_as_json(table.report),
            created_by=sender.user,
            **fields,
        )
        ExternalMeasure.objects.filter(pk__in=used).update(version=stored.number)
        _merge(cells)

        evaluations = Evaluation.objects.evaluated().filter(qrels__collection=locked)
        measures = list(locked.external_measures.filter(pk__in=used).order_by("pk"))
        store_table_vectors(evaluations, measures, {run for _, run in cells})

        after = {"number": stored.number, "sha256": stored.sha256, "measures": stored.measures}
        record(origin, AuditEvent.Action.TABLE_UPLOADED, stored, collection=locked, after=after)
        if accept:
            accept(stored)

    return stored


def _check_unchanged(table: Table, declared: list[ExternalMeasure]) -> None:
    """Raise Conflict if measures are not declared as they were when the table was checked."""
    now = {measure.pk: measure for measure in declared}
    names = {measure.name for measure in declared}

    for key, measure in table.declared.items():
        if key < 0:
            unchanged = measure.name not in names
        else:
            unchanged = key in now and all(
                getattr(measure, name) == getattr(now[key], name) for name in _MEANING
            )
        if not unchanged:
            raise Conflict(f"the declaration of {measure} changed meanwhile; send the table again")


def _with_declared(table: Table, collection: Collection, origin: Origin) -> _Cells:
    """Declare the measures of judged answers that the collection lacks, and return the cells."""
    keys: dict[int, int] = {}
    for key, measure in table.declared.items():
        if key > 0:
            continue
        fields = {name: getattr(measure, name) for name in _DECLARED}
        keys[key] = declare_measure(collection=collection, fields=fields, origin=origin).pk
    return {(keys.get(key, key), run): values for (key, run), values in table.cells.items()}


def table_lines(measure: ExternalMeasure, teams: Any = None) -> Iterator[str]:
    """Yield the present values of a measure as lines of a table, of all runs or of those of teams.

    Runs are named with their teams.
    """
    rows = measure.values_of_runs.filter(run__deleted_at=None).select_related("run__team")
    if teams is not None:
        rows = rows.filter(run__team__in=teams)

    yield "run\ttopic\tmeasure\tvalue\n"
    for row in rows.order_by("run__team__slug", "run__tag", "run").iterator(50):
        run = f"{row.run.team.slug}/{row.run.tag}"
        for topic, value in row.read().items():
            yield f"{run}\t{topic}\t{measure}\t{value!r}\n"


def _merge(cells: _Cells) -> None:
    """Set the values of cells in the rows of their measures and runs; None takes a value away."""
    rows = TableValues.objects.filter(
        measure__in={measure for measure, _ in cells}, run__in={run for _, run in cells}
    )
    existing = {(row.measure_id, row.run_id): row for row in rows.select_for_update()}
    for (measure, run), changes in cells.items():
        row = existing.get((measure, run)) or TableValues(measure_id=measure, run_id=run)
        values = dict[str, float]()
        if row.pk:
            try:
                values = row.read()
            except StoredValueCorrupt:
                # What the table lacks of a damaged row is lost; what it has is right.
                values = {}

        for topic, value in changes.items():
            if value is None:
                values.pop(topic, None)
            else:
                values[topic] = value

        if len(values) > MAX_TOPICS:
            message = f"a run would have values for more than {MAX_TOPICS:,} topics"
            raise Conflict(message, code="too_many_topics")

        if values:
            row.write(values)
            row.save()
        elif row.pk:
            row.delete()


@dataclass
class _TableReader:
    """Find the measures, runs and topics that lines of a table name."""

    collection: Collection
    sender: Sender
    report: FileReport
    cells: _Cells = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    declared: dict[int, ExternalMeasure] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rows = self.collection.external_measures.all()
        self._measures = {measure.name: measure for measure in rows}
        self._of_answers: dict[str, ExternalMeasure] = {}
        self._own = {team.pk for team in Team.objects.of(self.sender.user)}

        runs = self.collection.runs.filter(deleted_at=None)
        self._means = set(runs.filter(sha256="").values_list("pk", flat=True))
        if not self.sender.organises:
            # The runs of others do not exist for a participant.
            runs = runs.filter(team__in=self._own)
        self._teams: dict[UUID, int] = {}
        self._runs: dict[str, list[UUID]] = {}
        for key, tag, team, slug in runs.values_list("pk", "tag", "team_id", "team__slug"):
            self._teams[key] = team
            for name in (str(key), f"{slug}/{tag}", tag):
                self._runs.setdefault(name, []).append(key)

        self._topics = self._known_topics()
        # Hashes are smaller than names; Python's have a secret seed. A topic is kept once.
        self._lines: dict[int, int] = {}
        self._names: dict[str, str] = {}

    def _known_topics(self) -> set[str]:
        """Return the topics of the collection, none where the sender must not know them."""
        topics = set(self.collection.topics.values_list("topic_id", flat=True))
        if topics or not self.sender.organises:
            return topics
        qrels = self.collection.active_qrels
        return set(qrels.topic_ids) if qrels else set()

    def add(self, row: TableRow) -> None:
        measure, run = self._measure(row), self._run(row)
        if measure is None or run is None or not self._may_give(row, measure, run):
            self.report.stop_when_full(row.line)
            return

        low, high = measure.low, measure.high
        if row.value is not None and (
            (low is not None and row.value < low) or (high is not None and row.value > high)
        ):
            bounds = " and ".join(
                f"{word} {end:g}"
                for word, end in (("at least", low), ("at most", high))
                if end is not None
            )
            message = f"{row.value!r}: values of {measure} are {bounds}"
            self._problem(row, "out_of_bounds", message)
            return

        first = self._lines.setdefault(hash((measure.pk, run, row.topic)), row.line)
        if first != row.line:
            message = f"run {row.run} has a value of {measure} for topic {row.topic} in line {first} already"
            self._problem(row, "duplicate_value", message)
            return

        if self._topics and row.topic not in self._topics:
            message = (
                "topics that the collection does not have: their values are kept, and not used; "
                f"the first one is {row.topic[:60]!r}"
            )
            self.report.warning(row.line, "unknown_topic", message)

        topic = self._names.setdefault(row.topic, row.topic)
        self.declared[measure.pk] = measure
        self.cells.setdefault((measure.pk, run), {})[topic] = row.value
        self.counts[str(measure)] = self.counts.get(str(measure), 0) + 1

    def _measure(self, row: TableRow) -> ExternalMeasure | None:
        measure = self._measures.get(row.measure)
        if measure is None and row.of_answer and self.sender.organises:
            # Other lines do not declare it, whether they come before or behind an answer.
            measure = self._of_answers.get(row.measure) or self._measure_of_answers(row.measure)
        if measure is None:
            advice = suggest(row.measure, self._measures, "declared are")
            message = f"measure {row.measure[:60]!r} is not declared; {advice}"
            self.report.problem(row.line, "undeclared_measure", message)
        return measure

    def _measure_of_answers(self, name: str) -> ExternalMeasure:
        high, description = MEASURES[name]
        measure = ExternalMeasure(
            pk=-1 - len(self._of_answers),
            name=name,
            direction=ExternalMeasure.Direction.HIGHER,
            low=0.0,
            high=high,
            unit="words" if name == "answer_words" else "",
            description=description,
        )
        self._of_answers[name] = measure
        return measure

    def _run(self, row: TableRow) -> UUID | None:
        keys = self._runs.get(row.run, [])
        if len(keys) == 1 and keys[0] in self._means:
            message = (
                f"{row.run[:80]} has the means over its replicates; give values of each of these"
            )
            self.report.problem(row.line, "has_replicates", message)
            return None
        if len(keys) == 1:
            return keys[0]

        if keys:
            message = f"several teams have a run {row.run[:80]!r}; write team/{row.run[:60]}"
            self.report.problem(row.line, "ambiguous_run", message)
        else:
            whose = "" if self.sender.organises else " of your teams"
            message = (
                f"there is no run {row.run[:80]!r}{whose} in the collection; name one by its tag, "
                "team/tag or id"
            )
            self.report.problem(row.line, "unknown_run", message)
        return None

    def _may_give(self, row: TableRow, measure: ExternalMeasure, run: UUID) -> bool:
        if measure.source == ExternalMeasure.Source.REPORTED:
            allowed = self._teams[run] in self._own
            message = f"{measure} is reported by teams for their own runs; {row.run} is of another"
        else:
            allowed = self.sender.organises
            message = f"values of {measure} come from the organisers alone"

        if not allowed:
            self.report.problem(row.line, "not_your_values", message)
        return allowed

    def _problem(self, row: TableRow, code: str, message: str) -> None:
        self.report.problem(row.line, code, message)
        self.report.stop_when_full(row.line)
