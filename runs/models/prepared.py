"""Statements whose SQL is generated once: Django takes longer to generate some than the database to run them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Generic, NamedTuple, TypeVar
from uuid import UUID

from django.core.exceptions import EmptyResultSet
from django.db import connection, connections
from django.db.models import Model, QuerySet
from django.db.models.sql.subqueries import UpdateQuery

from runs.models.readers import Reader

Row = TypeVar("Row", bound=Model)


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
            cursor.execute(
                sql,
                [given.get(value, value) if type(value) is int else value for value in parameters],
            )
            found: list[tuple[Any, ...]] = cursor.fetchall()
        return found


Given = int | float | str | UUID
# A condition on rows that a user may see has the user's key as its parameter; it is another one for staff and nobody.
Asked = Given | datetime | Reader


class _Written(NamedTuple):
    """A queryset, what generated its SQL, this SQL with its parameters, and what stands among these for each value."""

    rows: QuerySet[Any]
    compiler: Any
    sql: str
    parameters: tuple[Any, ...]
    places: list[Any]


class PreparedRows(Generic[Row]):
    """Rows of a model by a query whose SQL is generated once: `make` gets values and returns the queryset.

    It must use the values as parameters only, and each of them must be of the same type at every call; of a reader it
    may use all, but the key as a parameter only. Whatever else it used, such as a clock, would stay as it was.
    """

    def __init__(self, make: Callable[..., QuerySet[Row, Row]]) -> None:
        self._make = make

    def first(self, *values: Asked) -> Row | None:
        """Return the first row, if there is one."""
        # What generates SQL is of one connection, as the connection is of one thread: it keeps it.
        kept = connections["default"].__dict__.setdefault("prepared", {})
        asked = (
            self,
            *((one.is_authenticated, one.is_staff) for one in values if isinstance(one, Reader)),
        )
        if asked not in kept:
            kept[asked] = self._write(values)
        if kept[asked] is None:
            return None
        rows, compiler, sql, parameters, places = kept[asked]
        given = {
            (type(place), place): _adapted(value)
            for place, value in zip(places, values, strict=True)
        }
        bound = tuple(given.get((type(value), value), value) for value in parameters)
        compiler.as_sql = lambda: (sql, bound)
        return next(iter(rows._iterable_class(rows)), None)

    def _write(self, values: tuple[Asked, ...]) -> _Written | None:
        """Return what `first` keeps, or None if such readers see no rows. Raise TypeError for a value that the query
        does not depend on: for staff alone, who see all, the reader and the time may be such values."""
        standing = [_standing_for(value, place) for place, value in enumerate(values, 1)]
        rows = self._make(*standing)
        query: Any = rows.query
        compiler = query.get_compiler(connection=connections["default"])
        try:
            sql, parameters = compiler.as_sql()
        except EmptyResultSet:
            return None
        places = [_adapted(value) for value in standing]
        staff = any(isinstance(one, Reader) and one.is_staff for one in values)
        if not staff and not set(places) <= {None, *parameters}:
            raise TypeError(f"the statement does not depend on one of its values: {sql}")
        # From now on it is the only one of this queryset.
        query.get_compiler = lambda **_: compiler
        return _Written(rows, compiler, sql, tuple(parameters), places)


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
            self._sql[connection.vendor] = (
                sql,
                tuple(parameters),
                [_adapted(value) for value in standing],
            )
        sql, parameters, places = self._sql[connection.vendor]
        given = {
            (type(place), place): _adapted(value)
            for place, value in zip(places, values, strict=True)
        }
        with connection.cursor() as cursor:
            cursor.execute(sql, [given.get((type(value), value), value) for value in parameters])
            found: int = cursor.rowcount
        return found


def _standing_for(value: Asked, place: int) -> Asked:
    """Return a value of the same type that no row has."""
    if isinstance(value, Reader):
        return Reader(
            -place if value.is_authenticated else None, value.is_authenticated, value.is_staff
        )
    if isinstance(value, datetime):
        return datetime(1, 1, place, tzinfo=UTC)
    if isinstance(value, UUID):
        return UUID(int=place)
    if isinstance(value, str):
        return f"value {place} of a statement"
    return -place if isinstance(value, int) else -place - 0.123456789


def _adapted(value: Asked) -> Any:
    """Return a value as the database takes it."""
    if isinstance(value, Reader):
        return value.pk
    if isinstance(value, datetime):
        return connection.ops.adapt_datetimefield_value(value)
    return (
        value.hex
        if isinstance(value, UUID) and not connection.features.has_native_uuid_field
        else value
    )
