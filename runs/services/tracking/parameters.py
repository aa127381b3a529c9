"""Keep the rows of parameters beside the metadata and costs of runs, in the same transaction."""

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

# Names in an open collection. In a blind one it would tell teams of the keys of others.
MAX_KEYS = 2_000
_RUNS = 500
PARAM, COST = ParameterKey.Space.PARAM.value, ParameterKey.Space.COST.value

# Space and name of a key.
Named = tuple[str, str]
# The columns number, folded and boolean of a row, one of which is set.
Columns = tuple[float | None, str | None, bool | None]


@dataclass(frozen=True)
class Rows:
    """What is searched of a run: its values by space and name, and how many are kept without being searched."""

    values: dict[Named, Columns]
    left_out: int
    digest: str


def rows_of(run: Run) -> Rows:
    """Return the rows that belong to the metadata and costs of a run."""
    flat = flatten(run.metadata)
    leaves = [
        *((PARAM, leaf) for leaf in flat.leaves),
        *((COST, leaf) for leaf in cost_leaves(run.costs)),
    ]
    values = {(space, leaf.name): columns_of(leaf) for space, leaf in leaves}
    return Rows(values, len(flat.left_out), digest_of(flat.leaves))


def columns_of(leaf: Leaf) -> Columns:
    value = leaf.value
    if isinstance(value, bool):
        return None, None, value
    if isinstance(value, str):
        return None, fold(value), None
    return float(value), None, None


def digest_of(leaves: Iterable[Leaf]) -> str:
    """Return the SHA-256 of parameters without those of the platform: runs that were made alike have the same."""
    settings = sorted(
        (
            leaf.name,
            compact(leaf.value if isinstance(leaf.value, bool | str) else float(leaf.value)),
        )
        for leaf in leaves
        if not is_of_platform(leaf.name)
    )
    return hashlib.sha256(compact(settings).encode()).hexdigest()


def is_of_platform(name: str) -> bool:
    return name.startswith(f"{PLATFORM}.")


def store_parameters(collection: Collection, runs: Iterable[Run]) -> None:
    """Replace the rows of runs of a collection by those of their metadata and costs; call it in the transaction that
    changes these."""
    found = {run.pk: rows_of(run) for run in runs}
    keys = _keys(collection, {named for rows in found.values() for named in rows.values})
    with transaction.atomic():
        ParameterSet.objects.filter(run__in=list(found)).delete()
        sets = [
            ParameterSet(
                run_id=pk,
                digest=rows.digest,
                left_out=rows.left_out + sum(named not in keys for named in rows.values),
            )
            for pk, rows in found.items()
        ]
        ParameterSet.objects.bulk_create(sets)
        Parameter.objects.bulk_create(
            Parameter(
                owner=owner,
                key_id=keys[named],
                number=columns[0],
                folded=columns[1],
                boolean=columns[2],
            )
            for owner in sets
            for named, columns in found[owner.run_id].values.items()
            if named in keys
        )


def _keys(collection: Collection, wanted: Names[Named]) -> dict[Named, int]:
    """Return the keys of these names; new ones are made while there is room."""
    known = _known_keys(collection, wanted)
    missing = [named for named in wanted if named not in known]
    if not missing:
        return known
    made = [
        ParameterKey(collection=collection, space=space, name=name, role=_first_role(space, name))
        for space, name in sorted(missing)[: room_for_keys(collection)]
    ]
    # Another request may make the same ones now.
    ParameterKey.objects.bulk_create(made, ignore_conflicts=True)
    return {**known, **_known_keys(collection, missing)}


def _known_keys(collection: Collection, wanted: Names[Named]) -> dict[Named, int]:
    keys = ParameterKey.objects.filter(collection=collection, name__in={name for _, name in wanted})
    found = {
        (space, name): pk for space, name, pk in keys.order_by().values_list("space", "name", "pk")
    }
    return {named: found[named] for named in wanted if named in found}


def room_for_keys(collection: Collection) -> int | None:
    """Return how many more names a collection may have, or None where there is no limit."""
    if collection.blind:
        return None
    return max(0, MAX_KEYS - ParameterKey.objects.filter(collection=collection).count())


def _first_role(space: str, name: str) -> str:
    ignored = space == PARAM and is_of_platform(name)
    return ParameterKey.Role.IGNORED if ignored else ParameterKey.Role.SETTING


def left_out_of(
    collection: Collection, metadata: Mapping[str, Any], costs: Mapping[str, Any]
) -> list[str]:
    """Return the names of the values of a run that would be kept without being searched."""
    flat = flatten(metadata)
    named = [
        *((PARAM, leaf.name) for leaf in flat.leaves),
        *((COST, leaf.name) for leaf in cost_leaves(costs)),
    ]
    known = _known_keys(collection, named)
    missing = sorted(one for one in named if one not in known)
    room = room_for_keys(collection) if missing else None
    return [*flat.left_out, *(name for _, name in (missing[room:] if room is not None else []))]


def change_key(*, key: ParameterKey, changes: dict[str, Any], origin: Origin = SYSTEM) -> None:
    """Change what organisers say of a key, which the caller has locked."""
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
    """Yield the runs whose rows are not those of their metadata and costs, in batches of a collection."""
    for collection, runs in _batches():
        stored: dict[Any, dict[Named, Columns]] = {run.pk: {} for run in runs}
        rows = Parameter.objects.filter(owner__run__in=runs).values_list(
            "owner__run_id", "key__space", "key__name", "number", "folded", "boolean"
        )
        for pk, space, name, number, folded, boolean in rows:
            stored[pk][space, name] = number, folded, boolean
        expected = {run.pk: rows_of(run).values for run in runs}
        room = room_for_keys(collection)
        if room == 0:
            named = {one for values in expected.values() for one in values}
            known = _known_keys(collection, named)
            expected = {
                pk: {one: values[one] for one in values if one in known}
                for pk, values in expected.items()
            }
        if differing := [run for run in runs if stored[run.pk] != expected[run.pk]]:
            yield collection, differing


def _batches() -> Iterator[tuple[Collection, list[Run]]]:
    """Yield all runs, withdrawn ones too, by collection, some hundred at a time, with what their rows depend on."""
    keys = list(Run.objects.order_by("collection_id", "pk").values_list("collection_id", "pk"))
    collections = Collection.objects.in_bulk({pk for pk, _ in keys})
    for pk, of_one in groupby(keys, key=lambda pair: pair[0]):
        runs = [run for _, run in of_one]
        for start in range(0, len(runs), _RUNS):
            batch = Run.objects.filter(pk__in=runs[start : start + _RUNS]).only(
                "collection", "metadata", "costs"
            )
            yield collections[pk], list(batch)
