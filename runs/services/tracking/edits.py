"""Edit the description, metadata and costs of runs, and read earlier edits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from runs.errors import FileReport, Unprocessable
from runs.formats.parameter_lines import edited, shown_values
from runs.formats.parameter_table import COST, PARAM, Key, TableRow
from runs.formats.parameters import (
    compact,
    merge_patch,
    merged_metadata,
    nested,
    read_costs,
    split_name,
)
from runs.models import AuditEvent, Collection, Run
from runs.services.audit.trail import SYSTEM, Origin, record
from runs.services.tracking.parameters import store_parameters

# The spaces of an edit by the columns of a run.
SPACES = {"metadata": "param", "costs": "cost"}
_RUNS = 500


@dataclass(frozen=True)
class Edit:
    """A change of a run: its columns afterwards, and the values that differ.

    `differing` has pairs of values before and after by column and dotted name, None for a value
    that is not set.
    """

    run: Run
    after: dict[str, Any]
    differing: dict[str, dict[str, tuple[Any, Any]]]


def save_edits(collection: Collection, edits: list[Edit], origin: Origin = SYSTEM) -> None:
    """Store edits of a collection's runs with their parameters and events: all or none."""
    with transaction.atomic():
        searched = []
        for edit in edits:
            if not edit.differing:
                continue

            Run.objects.filter(pk=edit.run.pk).update(**edit.after)
            for name, value in edit.after.items():
                setattr(edit.run, name, value)

            if SPACES.keys() & edit.differing.keys():
                searched.append(edit.run)

            record(
                origin,
                AuditEvent.Action.RUN_CHANGED,
                edit.run,
                collection=collection,
                before={name: _side(pairs, 0) for name, pairs in edit.differing.items()},
                after={name: _side(pairs, 1) for name, pairs in edit.differing.items()},
            )

        for start in range(0, len(searched), _RUNS):
            store_parameters(collection, searched[start : start + _RUNS])


def _side(pairs: dict[str, tuple[Any, Any]], side: int) -> Any:
    """Return the values of one side; a description is one text."""
    return pairs[""][side] if "" in pairs else {name: pair[side] for name, pair in pairs.items()}


def edit_of(run: Run, **after: Any) -> Edit:
    """Return the change of a run to these values of description, metadata and costs."""
    differing: dict[str, dict[str, tuple[Any, Any]]] = {}
    for column in SPACES.keys() & after.keys():
        if changed_values := differences(getattr(run, column), after[column]):
            differing[column] = changed_values

    if after.get("description", run.description) != run.description:
        differing["description"] = {"": (run.description, after["description"])}
    return Edit(run, {name: value for name, value in after.items() if name in differing}, differing)


def change_run(
    *,
    submission: Run,
    changes: Mapping[str, Any],
    enqueue: Callable[[Run], object],
    origin: Origin = SYSTEM,
) -> None:
    """Change the description, metadata and costs of a run, which the caller has locked.

    `metadata` and `costs` are merged into its own; null removes a key. Raise Unprocessable if the
    result is not permitted.
    """
    after = dict(changes)
    if "metadata" in after:
        after["metadata"] = merged_metadata(submission.metadata, after["metadata"])

    if "costs" in after:
        after["costs"] = read_costs(merge_patch(submission.costs, after["costs"]))

    save_edits(submission.collection, [edit_of(submission, **after)], origin)


def replace_metadata(*, run: Run, metadata: dict[str, Any], origin: Origin = SYSTEM) -> None:
    """Replace the metadata of a run, as `read_metadata` returns it."""
    save_edits(run.collection, [edit_of(run, metadata=metadata)], origin)


def renamed(metadata: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return metadata with renamed keys, each with all that lies below it.

    Raise Unprocessable if a new name exists already.
    """
    result = nested(metadata)

    # Remove all old names before the first new one is set: two keys may exchange their names.
    moved = []
    for old, new in names.items():
        *above, last = _parts(old)
        parent: Any = result
        for part in above:
            parent = parent.get(part) if isinstance(parent, dict) else None

        if isinstance(parent, dict) and last in parent:
            moved.append((new, parent.pop(last)))

    for new, value in moved:
        *above, last = _parts(new)
        parent = result

        for part in above:
            parent = parent.setdefault(part, {})
            if not isinstance(parent, dict):
                raise _name_conflict(new)

        if last in parent:
            raise _name_conflict(new)
        parent[last] = value

    return nested(_without_empty(result)) if moved else dict(metadata)


def _parts(name: str) -> list[str]:
    """Return the keys that lead to a dotted name in nested metadata.

    Raise Unprocessable for an empty key.
    """
    keys, target = [], nested({name: None})
    for _ in split_name(name):
        ((key, target),) = target.items()
        keys.append(key)

    return keys


def _name_conflict(name: str) -> Unprocessable:
    return Unprocessable(
        f"there is a value at {name[:60]} already; remove it first",
        code="key_conflict",
        pointer="/rename",
    )


def _without_empty(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return metadata without mappings that have become empty."""
    inner = {
        key: _without_empty(value) if isinstance(value, dict) else value
        for key, value in metadata.items()
    }
    return {key: value for key, value in inner.items() if value != {}}


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the values that differ, before and after, by dotted name.

    A value that is not set is None. A list is one value.
    """
    old, new = dict(_flat_values(before)), dict(_flat_values(after))
    return {
        name: (old.get(name), new.get(name))
        for name in {**old, **new}
        if compact(old.get(name)) != compact(new.get(name))
    }


def changes_between(before: Run, after: Run) -> list[Changed]:
    """Return the parameters and costs in which two runs differ."""
    return [
        Changed(space, name, *pair)
        for column, space in SPACES.items()
        for name, pair in differences(getattr(before, column), getattr(after, column)).items()
    ]


def _flat_values(metadata: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in metadata.items():
        name = f"{prefix}.{key}" if prefix else key
        if isinstance(value, dict):
            yield from _flat_values(value, name)
        else:
            yield name, value


@dataclass(frozen=True)
class Changed:
    """A value that an edit changed, None if it was or is not set."""

    space: str
    name: str
    before: Any
    after: Any


@dataclass(frozen=True)
class PastEdit:
    """An edit of a run's metadata or costs; `actor` is a user name, empty for the command line."""

    time: datetime
    actor: str
    changes: list[Changed]


def history_of(run: Run) -> list[PastEdit]:
    """Return the edits of a run's metadata and costs, oldest first."""
    events = AuditEvent.objects.filter(
        object_id=str(run.pk), object_type="run", action=AuditEvent.Action.RUN_CHANGED
    ).order_by("id")

    edits = []
    for event in events:
        changes = []
        for column, space in SPACES.items():
            before, after = _logged(event.before, column), _logged(event.after, column)
            for name, pair in differences(before, after).items():
                changes.append(Changed(space, name, *pair))

        if changes:
            edits.append(PastEdit(event.time, event.actor, changes))

    return edits


def _logged(side: Any, column: str) -> Mapping[str, Any]:
    """Return an event's values of a column; those of earlier releases have the whole metadata."""
    values = side.get(column)
    return values if isinstance(values, dict) else {}


def edit_runs(
    *,
    collection: Collection,
    runs: list[Run],
    patch: Mapping[str, Any] | None,
    names: Mapping[str, str] | None,
) -> list[Edit]:
    """Return an edit of each run of a collection: patch its metadata, then rename keys.

    Raise Unprocessable, naming the run, if one cannot be changed so.
    """
    edits = []

    for run in runs:
        run.collection = collection
        try:
            metadata = merged_metadata(run.metadata, patch) if patch else run.metadata
            edits.append(edit_of(run, metadata=renamed(metadata, names) if names else metadata))
        except Unprocessable as error:
            raise Unprocessable(
                f"run {run.tag}: {error.message}", code=error.code, pointer=error.pointer
            ) from error

    return edits


def values_of(run: Run) -> dict[Key, Any]:
    """Return the searchable parameters of a run as stored, and its costs, by space and name."""
    return {
        **{(PARAM, name): value for name, value in shown_values(run.metadata).items()},
        **{(COST, name): value for name, value in run.costs.items()},
    }


def edits_of_table(
    *, collection: Collection, visible: QuerySet[Run], own: QuerySet[Run], rows: Sequence[TableRow]
) -> list[Edit]:
    """Return an edit of each run that a table names; `own` are those that its user may change.

    Lock these runs. Columns that the table does not have stay as they are. Raise InvalidFile with
    the line of each row that names no such run or cannot be stored.
    """
    report = FileReport()
    pks = _find_runs(collection, visible, own, rows, report)
    report.check()

    # In the order of their keys, so that two requests never wait for each other.
    locked = Run.objects.select_for_update().filter(pk__in=pks.values(), deleted_at=None)
    runs = {run.pk: run for run in locked.order_by("pk")}

    edits = []
    for row in rows:
        run = runs.get(pks[row.line])
        if run is None:
            report.problem(row.line, "unknown_run", "this run was withdrawn just now")
            continue

        run.collection = collection
        try:
            edits.append(_edit_values(run, row.values))
        except Unprocessable as error:
            report.problem(row.line, error.code, error.message)

    report.check()
    return edits


def _find_runs(
    collection: Collection,
    visible: QuerySet[Run],
    own: QuerySet[Run],
    rows: Sequence[TableRow],
    report: FileReport,
) -> dict[int, UUID]:
    """Return the run of each row by its line; add a problem for each row without one."""
    own_runs: dict[UUID, tuple[str, str]] = {
        pk: (team, tag) for pk, team, tag in own.values_list("pk", "team__slug", "tag")
    }
    pks_of: defaultdict[tuple[str, str], list[UUID]] = defaultdict(list)
    for pk, (team, tag) in own_runs.items():
        pks_of[team, tag].append(pk)
        pks_of["", tag].append(pk)

    lines: dict[UUID, int] = {}
    pks: dict[int, UUID] = {}
    for row in rows:
        if row.run:
            matching = [pk for pk in (_uuid_of(row.run),) if pk in own_runs]
        else:
            matching = pks_of.get((row.team, row.tag), [])

        if len(matching) == 1:
            (pk,) = matching
            if pk in lines:
                message = f"{own_runs[pk][1]} is in line {lines[pk]}, too; keep one of the rows"
                report.problem(row.line, "repeated_run", message)
            lines[pk], pks[row.line] = row.line, pk
        elif matching:
            teams = " and ".join(sorted(own_runs[pk][0] for pk in matching))
            message = f"{row.tag} is a run of {teams}; add a column team"
            report.problem(row.line, "ambiguous_run", message)
        else:
            report.problem(row.line, *_unknown_run(collection, visible, row))

    return pks


def _uuid_of(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _unknown_run(collection: Collection, visible: QuerySet[Run], row: TableRow) -> tuple[str, str]:
    """Return the code and the message for a row that names no run that its user may change."""
    name = (row.run or row.tag)[:64]
    pk = _uuid_of(row.run)
    others = visible.filter(pk__in=[pk] if pk else []) if row.run else visible.filter(tag=row.tag)
    if row.team:
        others = others.filter(team__slug=row.team)

    if run := others.select_related("team").first():
        message = f"{name} belongs to team {run.team}; only its members may change it"
        return "not_allowed", message

    return "unknown_run", f"your teams have no run {name} in collection {collection.slug}"


def _edit_values(run: Run, values: Mapping[Key, Any]) -> Edit:
    """Return the edit of a run that sets parameters and costs, or with None removes them."""
    before = values_of(run)
    after = {**before, **{key: _same_number(before.get(key), new) for key, new in values.items()}}
    sides: dict[str, dict[str, Any]] = {PARAM: {}, COST: {}}
    for (space, name), value in after.items():
        if value is not None:
            sides[space][name] = value

    if any(key not in before for key in values):
        # A value at k1 would replace all below it, such as k1.low.
        nested(sides[PARAM])

    return edit_of(run, metadata=edited(run.metadata, sides[PARAM]), costs=read_costs(sides[COST]))


def _same_number(before: Any, after: Any) -> Any:
    """Return the value before if it is the same number in another spelling, such as 1.0 for 1."""
    numbers = all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in (before, after)
    )
    return before if numbers and before == after else after
