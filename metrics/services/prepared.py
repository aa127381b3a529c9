"""Statements whose SQL is generated once: Django takes longer to generate some than the database to run them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet
from django.db.models.sql.subqueries import UpdateQuery


class Prepared:
    """A query of whole numbers, such as the keys of rows. `make` gets them, and must use them as parameters only.

    Its rows have the database's own values: on SQLite, times are texts.
    """

    def __init__(self, make: Callable[..., QuerySet[Any, Any]]) -> None:
        self._make = make
        self._sql: dict[tuple[str, int], tuple[str, tuple[Any, ...]]] = {}

    def rows(self, *keys: int) -> list[tuple[Any, ...]]:
        asked = connection.vendor, len(keys)
        if asked not in self._sql:
            # Numbers that no key has stand for them.
            self._sql[asked] = self._make(*range(-len(keys), 0)).query.sql_with_params()
        sql, parameters = self._sql[asked]
        given = dict(zip(range(-len(keys), 0), keys, strict=True))
        with connection.cursor() as cursor:
            cursor.execute(sql, [given.get(value, value) if type(value) is int else value for value in parameters])
            found: list[tuple[Any, ...]] = cursor.fetchall()
        return found


Given = int | float | str | UUID


class PreparedUpdate:
    """An update of rows whose SQL is generated once: `make` gets values and returns the rows and their changes. It must
    use the values as parameters only, and each of them must be of the same type at every call."""

    def __init__(self, make: Callable[..., tuple[QuerySet[Any], dict[str, Any]]]) -> None:
        self._make = make
        self._sql: dict[str, tuple[str, tuple[Any, ...], list[Any]]] = {}

    def run(self, *values: Given) -> int:
        """Update the rows, and return how many."""
        if connection.vendor not in self._sql:
            standing = [_standing_for(value, place) for place, value in enumerate(values, 1)]
            rows, changes = self._make(*standing)
            query: Any = rows.query.chain(UpdateQuery)
            query.add_update_values(changes)
            sql, parameters = query.get_compiler(connection=connection).as_sql()
            self._sql[connection.vendor] = sql, tuple(parameters), [_adapted(value) for value in standing]
        sql, parameters, places = self._sql[connection.vendor]
        given = {(type(place), place): _adapted(value) for place, value in zip(places, values, strict=True)}
        with connection.cursor() as cursor:
            cursor.execute(sql, [given.get((type(value), value), value) for value in parameters])
            found: int = cursor.rowcount
        return found


def _standing_for(value: Given, place: int) -> Given:
    """Return a value of the same type that no row has."""
    if isinstance(value, UUID):
        return UUID(int=place)
    if isinstance(value, str):
        return f"value {place} of a statement"
    return -place if isinstance(value, int) else -place - 0.123456789


def _adapted(value: Given) -> Any:
    """Return a value as the database takes it."""
    return value.hex if isinstance(value, UUID) and not connection.features.has_native_uuid_field else value
