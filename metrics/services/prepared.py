"""Queries whose SQL is generated once: Django takes longer to generate some of them than the database to run them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import connection
from django.db.models import QuerySet


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
