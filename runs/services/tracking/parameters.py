"""Store the values of metadata and costs of runs as rows that can be searched."""

from __future__ import annotations

import hashlib
from collections.abc import Collection as Names
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django.db import transaction

from runs.formats.header_parameters import PLATFORM
from runs.formats.parameters import Leaf, compact, cost_leaves, flatten, fold
from runs.models import AuditEvent, Collection, Parameter, ParameterKey, ParameterSet, Run
from runs.services.audit.trail import SYSTEM, Origin, changed, record

# Names in an open collection. In a blind one this limit would tell teams about others' keys.
MAX_KEYS = 2_000
_RUNS = 500
PARAM, COST = ParameterKey.Space.PARAM.value, ParameterKey.Space.COST.value

# Space and name of a key.
Key = tuple[str, str]
# The columns number, folded and boolean of a row: one is set, the others are None.
Columns = tuple[float | None, str | None, bool | None]


@dataclass(frozen=True)
class SearchRows:
    """The searchable values of a run by key, and the number of values that are not searchable."""

    values: dict[Key, Columns]
    left_out: int
    digest: str


def rows_of(run: Run) -> SearchRows:
    """Return the rows that belong to the metadata and costs of a run."""
    flat = flatten(run.metadata)
    leaves = [
        *((PARAM, leaf) for leaf in flat.leaves),
        *((COST, leaf) for leaf in cost_leaves(run.costs)),
    ]
    values = {(space, leaf.name): columns_of(leaf) for space, leaf in leaves}

    return SearchRows(values, len(flat.left_out), digest_of(flat.leaves))


def columns_of(leaf: Leaf) -> Columns:
    value = leaf.value
    if isinstance(value, bool):
        return None, None, value
    if isinstance(value, str):
        return None, fold(value), None
    return float(value), None, None


def digest_of(leaves: Iterable[Leaf]) -> str:
    """Return the SHA-256 of a configuration: the parameters without those of the platform."""
    settings = []
    for leaf in leaves:
        if not is_of_platform(leaf.name):
            value = leaf.value if isinstance(leaf.value, bool | str) else float(leaf.value)
            settings.append((leaf.name, compact(value)))

    settings.sort()
    return hashlib.sha256(compact(settings).encode()).hexdigest()


def is_of_platform(name: str) -> bool:
    return name.startswith(f"{PLATFORM}.")


def store_parameters(collection: Collection, runs: Iterable[Run]) -> None:
    """Replace the rows of a collection's runs by those of their metadata and costs.

    Call this in the transaction that changes these.
    """
    rows_by_run = {run.pk: rows_of(run) for run in runs}
    keys = _keys(collection, {key for rows in rows_by_run.values() for key in rows.values})

    with transaction.atomic():
        ParameterSet.objects.filter(run__in=list(rows_by_run)).delete()
        sets = [
            ParameterSet(
                run_id=pk,
                digest=rows.digest,
                left_out=rows.left_out + sum(key not in keys for key in rows.values),
            )
            for pk, rows in rows_by_run.items()
        ]

        ParameterSet.objects.bulk_create(sets)
        Parameter.objects.bulk_create(
            Parameter(
                owner=parameter_set,
                key_id=keys[key],
                number=columns[0],
                folded=columns[1],
                boolean=columns[2],
            )
            for parameter_set in sets
            for key, columns in rows_by_run[parameter_set.run_id].values.items()
            if key in keys
        )


def _keys(collection: Collection, keys: Names[Key]) -> dict[Key, int]:
    """Return the primary keys of these keys; new ones are created while there is room."""
    known = _known_keys(collection, keys)
    missing = [key for key in keys if key not in known]
    if not missing:
        return known

    new = [
        ParameterKey(collection=collection, space=space, name=name, role=_first_role(space, name))
        for space, name in sorted(missing)[: room_for_keys(collection)]
    ]

    # Another request may create the same ones now.
    ParameterKey.objects.bulk_create(new, ignore_conflicts=True)
    return {**known, **_known_keys(collection, missing)}


def _known_keys(collection: Collection, keys: Names[Key]) -> dict[Key, int]:
    rows = ParameterKey.objects.filter(collection=collection, name__in={name for _, name in keys})
    pks = {
        (space, name): pk for space, name, pk in rows.order_by().values_list("space", "name", "pk")
    }
    return {key: pks[key] for key in keys if key in pks}


def room_for_keys(collection: Collection) -> int | None:
    """Return how many more names a collection may have, or None if there is no limit."""
    if collection.blind:
        return None
    return max(0, MAX_KEYS - ParameterKey.objects.filter(collection=collection).count())


def _first_role(space: str, name: str) -> str:
    ignored = space == PARAM and is_of_platform(name)
    return ParameterKey.Role.IGNORED if ignored else ParameterKey.Role.SETTING


def left_out_of(
    collection: Collection, metadata: Mapping[str, Any], costs: Mapping[str, Any]
) -> list[str]:
    """Return the names of a run's values that would be stored but not searchable."""
    flat = flatten(metadata)
    keys = [
        *((PARAM, leaf.name) for leaf in flat.leaves),
        *((COST, leaf.name) for leaf in cost_leaves(costs)),
    ]

    known = _known_keys(collection, keys)
    missing = sorted(key for key in keys if key not in known)
    room = room_for_keys(collection) if missing else None

    return [*flat.left_out, *(name for _, name in (missing[room:] if room is not None else []))]


def change_key(*, key: ParameterKey, changes: dict[str, Any], origin: Origin = SYSTEM) -> None:
    """Change the description of a key by organisers; the caller has locked it."""
    with transaction.atomic():
        before, after = changed(key, changes)
        for name, value in after.items():
            setattr(key, name, value)

        if after:
            key.save(update_fields=list(after))
            action = AuditEvent.Action.PARAMETER_CHANGED
            record(origin, action, key, collection=key.collection, before=before, after=after)


def rebuild_parameters() -> None:
    """Write the rows of every run again."""
    for collection, runs in _batches():
        store_parameters(collection, runs)


def find_differing() -> Iterator[tuple[Collection, list[Run]]]:
    """Yield runs with rows that differ from their metadata and costs, in batches by collection."""
    for collection, runs in _batches():
        stored: dict[Any, dict[Key, Columns]] = {run.pk: {} for run in runs}
        rows = Parameter.objects.filter(owner__run__in=runs).values_list(
            "owner__run_id", "key__space", "key__name", "number", "folded", "boolean"
        )
        for pk, space, name, number, folded, boolean in rows:
            stored[pk][space, name] = number, folded, boolean

        expected = {run.pk: rows_of(run).values for run in runs}
        room = room_for_keys(collection)
        if room == 0:
            keys = {key for values in expected.values() for key in values}
            known = _known_keys(collection, keys)
            expected = {
                pk: {key: values[key] for key in values if key in known}
                for pk, values in expected.items()
            }

        if differing := [run for run in runs if stored[run.pk] != expected[run.pk]]:
            yield collection, differing


def _batches() -> Iterator[tuple[Collection, list[Run]]]:
    """Yield all runs by collection, some hundred at a time, withdrawn ones too.

    Only the columns that their rows depend on are loaded.
    """
    keys = list(Run.objects.order_by("collection_id", "pk").values_list("collection_id", "pk"))
    collections = Collection.objects.in_bulk({pk for pk, _ in keys})

    for pk, pairs in groupby(keys, key=lambda pair: pair[0]):
        runs = [run for _, run in pairs]
        for start in range(0, len(runs), _RUNS):
            batch = Run.objects.filter(pk__in=runs[start : start + _RUNS]).only(
                "collection", "metadata", "costs"
            )
            yield collections[pk], list(batch)
