"""Edit the description, metadata and costs of runs, and read earlier edits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from runs.errors import Unprocessable
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
