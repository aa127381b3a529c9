"""Many rows at once: synthetic installations are filled without an object for each row."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.apps import apps
from django.db import connection, transaction

_ESCAPED = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})
_BATCH = 20_000


def insert(model: str, rows: Iterable[Sequence[Any]], *names: str) -> None:
    """Insert rows of the named fields, as COPY on PostgreSQL; all other fields have their defaults.

    JSON is given as a dict or a list, and keys are given.
    """
    kind = apps.get_model(model)
    rest = [
        field
        for field in kind._meta.concrete_fields
        if field.attname not in names and not field.has_db_default()
    ]
    missing = {
        field.attname: field.get_default()
        for field in rest
        if not field.primary_key or field.has_default()
    }
    fixed = [_plain(value) for value in missing.values()]
    columns = [kind._meta.get_field(name).column for name in (*names, *missing)]
    batch: list[list[Any]] = []
    with transaction.atomic():
        for row in rows:
            batch.append([*map(_plain, row), *fixed])
            if len(batch) == _BATCH:
                _write(kind._meta.db_table, columns, batch)
                batch = []
        _write(kind._meta.db_table, columns, batch)


def finish() -> None:
    """Let the sequences go on behind the given keys, and the database look at what it holds."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            for model in apps.get_models():
                key = model._meta.pk
                if key.get_internal_type() in ("AutoField", "BigAutoField"):
                    table, column = model._meta.db_table, key.column
                    cursor.execute(
                        f"SELECT setval(pg_get_serial_sequence('{table}', '{column}'), "
                        f"(SELECT COALESCE(MAX({column}), 1) FROM {table}))"
                    )
        cursor.execute("VACUUM ANALYZE" if connection.vendor == "postgresql" else "ANALYZE")


def _write(table: str, columns: list[str], rows: list[list[Any]]) -> None:
    named = ", ".join(f'"{column}"' for column in columns)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            text = "".join("\t".join(map(_copied, row)) + "\n" for row in rows)
            cursor.copy_expert(f"COPY {table} ({named}) FROM STDIN", io.StringIO(text))
        else:
            marks = ", ".join(["%s"] * len(columns))
            cursor.executemany(f"INSERT INTO {table} ({named}) VALUES ({marks})", rows)


def _plain(value: Any) -> Any:
    if isinstance(value, dict | list):
        return json.dumps(value)
    if isinstance(value, UUID):
        return value.hex
    return connection.ops.adapt_datetimefield_value(value) if isinstance(value, datetime) else value


def _copied(value: Any) -> str:
    if value is None:
        return r"\N"
    if isinstance(value, bytes):
        return rf"\\x{value.hex()}"
    return str(value).translate(_ESCAPED) if isinstance(value, str) else str(value)
