"""Write the parameters of every run of an earlier release, 500 runs at a time."""

from __future__ import annotations

import hashlib
from typing import Any

from django.db import migrations, transaction

from runs.formats.parameters import compact, flatten, fold

_RUNS, _KEYS, _TOGETHER = 500, 2_000, 500
_INSERT = "INSERT INTO runs_parameter (owner_id, key_id, number, folded, boolean) VALUES "


def fill(apps: Any, schema_editor: Any) -> None:
    runs = apps.get_model("runs", "Run").objects.filter(parameter_set=None).order_by("pk")
    blind = set(apps.get_model("runs", "Collection").objects.filter(blind=True).values_list("pk", flat=True))
    keys: dict[int, dict[str, int]] = {}
    last = None
    while True:
        after = runs if last is None else runs.filter(pk__gt=last)
        batch = list(after.values_list("pk", "collection_id", "metadata")[:_RUNS])
        if not batch:
            return
        last = batch[-1][0]
        with transaction.atomic(using=schema_editor.connection.alias):
            _write(apps, schema_editor.connection, batch, keys, blind)


def _write(
    apps: Any, connection: Any, batch: list[Any], keys: dict[int, dict[str, int]], blind: set[int]
) -> None:
    key_model, set_model, row_model = (
        apps.get_model("runs", name) for name in ("ParameterKey", "ParameterSet", "Parameter")
    )
    # A value that is no longer JSON is left alone, and fsck says so.
    found = {pk: flatten(metadata if isinstance(metadata, dict) else {}) for pk, _, metadata in batch}
    for collection in {collection for _, collection, _ in batch}:
        if collection not in keys:
            known = key_model.objects.filter(collection=collection, space="param")
            keys[collection] = dict(known.values_list("name", "pk"))
        names = {leaf.name for pk, of, _ in batch if of == collection for leaf in found[pk].leaves}
        room = None if collection in blind else max(0, _KEYS - len(keys[collection]))
        missing = sorted(names - keys[collection].keys())[:room]
        key_model.objects.bulk_create(
            key_model(
                collection_id=collection, space="param", name=name,
                role="ignored" if name.startswith("platform.") else "setting",
            )
            for name in missing
        )  # fmt: skip
        made = key_model.objects.filter(collection=collection, space="param", name__in=missing)
        keys[collection] |= dict(made.values_list("name", "pk"))
    set_model.objects.bulk_create(
        set_model(
            run_id=pk,
            digest=_digest(found[pk].leaves),
            left_out=len(found[pk].left_out) + sum(leaf.name not in keys[of] for leaf in found[pk].leaves),
        )
        for pk, of, _ in batch
    )
    owners = dict(set_model.objects.filter(run__in=list(found)).values_list("run_id", "pk"))
    rows = [
        (owners[pk], keys[of][leaf.name], *_columns(leaf.value))
        for pk, of, _ in batch
        for leaf in found[pk].leaves
        if leaf.name in keys[of]
    ]
    # Millions of rows: as objects of a model each takes several times as long.
    with connection.cursor() as cursor:
        for start in range(0, len(rows), _TOGETHER):
            some = rows[start : start + _TOGETHER]
            values = ", ".join(["(%s, %s, %s, %s, %s)"] * len(some))
            cursor.execute(_INSERT + values, [value for row in some for value in row])


def _columns(value: Any) -> tuple[float | None, str | None, bool | None]:
    if isinstance(value, bool):
        return None, None, value
    return (None, fold(value), None) if isinstance(value, str) else (float(value), None, None)


def _digest(leaves: Any) -> str:
    settings = sorted(
        (leaf.name, compact(leaf.value if isinstance(leaf.value, bool | str) else float(leaf.value)))
        for leaf in leaves
        if not leaf.name.startswith("platform.")
    )
    return hashlib.sha256(compact(settings).encode()).hexdigest()


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("runs", "0017_parameters")]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
