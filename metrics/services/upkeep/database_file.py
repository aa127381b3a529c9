"""Check SQLite's file page by page. PostgreSQL checks its own files."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from django.apps import apps
from django.db import DatabaseError, connection
from django.db.models import BinaryField, Model

from metrics.services.upkeep.findings import Finding
from runs.errors import says_damaged
from runs.models.checked import StoredJSON

_SHOWN = 20
_WHAT_TO_DO = "; restore a backup"


def find_in_database(*, fast: bool) -> Iterator[Finding]:
    """Yield contradictions of tables and indexes, and rows that refer to missing rows.

    `fast` leaves the pages unread.
    """
    if connection.vendor != "sqlite":
        return

    with connection.cursor() as cursor:
        cursor.execute("PRAGMA foreign_key_check")
        for table, row, parent, _ in cursor.fetchmany(_SHOWN):
            text = f"row {row} of {table} names one of {parent} that is not there; restore a backup"
            yield Finding("dangling_row", text)

        if fast:
            return

        # Neither a query that does not read it, nor SQLite's quick check notices a zeroed page.
        cursor.execute(f"PRAGMA integrity_check({_SHOWN})")
        for (result,) in cursor.fetchall():
            for line in () if result == "ok" else result.splitlines():
                yield Finding(
                    "database_damaged", f"{connection.settings_dict['NAME']}: {line}{_WHAT_TO_DO}"
                )


def find_in_types() -> Iterator[Finding]:
    """Yield stored values that are not bytes.

    One flipped bit before a row makes SQLite read them as text, which fails.

    The bytes themselves are usually unchanged; if not, their digest differs.
    """
    if connection.vendor != "sqlite":
        return

    columns = ((model, field) for model in apps.get_models() for field in model._meta.fields)
    for model, field in (
        (model, field) for model, field in columns if isinstance(field, BinaryField)
    ):
        table, key, column = _quoted_names(model, field)
        with connection.cursor() as cursor:
            broken = f"typeof({column}) NOT IN ('blob', 'null')"
            cursor.execute(f"SELECT {key} FROM {table} WHERE {broken}")  # noqa: S608
            keys = [row[0] for row in cursor.fetchall()]

        for pk in keys:
            cast = f"{column} = CAST({column} AS BLOB)"
            statement = f"UPDATE {table} SET {cast} WHERE {key} = %s"  # noqa: S608
            text = (
                f"{field.name} of {model._meta.verbose_name} {pk} is no longer bytes; --repair "
                "makes it bytes again"
            )
            yield Finding("value_type", text, partial(_execute, statement, pk))


def find_in_json() -> Iterator[Finding]:
    """Yield stored texts that are not JSON, except columns with a digest.

    PostgreSQL stores JSON in binary form.
    """
    if connection.vendor != "sqlite":
        return

    for model in apps.get_models():
        for field in (field for field in model._meta.fields if type(field) is StoredJSON):
            table, key, column = _quoted_names(model, field)
            with connection.cursor() as cursor:
                broken = f"{column} IS NOT NULL AND NOT json_valid({column})"
                cursor.execute(f"SELECT {key} FROM {table} WHERE {broken}")  # noqa: S608
                for (pk,) in cursor.fetchall():
                    text = f"{field.name} of {model._meta.verbose_name} {pk} is no longer JSON"
                    yield Finding("value_unreadable", text + _WHAT_TO_DO)


def _quoted_names(model: type[Model], field: Any) -> tuple[str, str, str]:
    """Return the names of a table, its key and a column, quoted: they come from the models."""
    names = (model._meta.db_table, model._meta.pk.column, field.column)
    table, key, column = (connection.ops.quote_name(str(name)) for name in names)
    return table, key, column


def _execute(statement: str, *values: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


def finding_of_damage(error: DatabaseError) -> Finding | None:
    """Return the error of a query that met a damaged part of the database, else None."""
    if says_damaged(error) or "disk I/O error" in str(error):
        return Finding("database_damaged", f"the rows cannot be read: {error}{_WHAT_TO_DO}")
    if "Could not decode to UTF-8" in str(error):
        return Finding(
            "text_unreadable",
            f"a stored text is damaged, and what depends on it was not looked at ({error}); "
            "restore a backup",
        )
    return None
