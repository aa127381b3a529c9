"""Seal and insert many rows with little work for the database and for the worker."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Sequence
from typing import Any

from django.db import connection, models

from metrics.models import MetricVector
from runs.digests import digest_of_vector, digests_of_means

_SIGNATURE, _END = b"PGCOPY\n\xff\r\n\0" + bytes(8), struct.pack("!h", -1)


def insert(
    model: type[models.Model], columns: Sequence[str], rows: Sequence[Sequence[Any]]
) -> None:
    """Insert rows of a table, given as the values of these columns.

    They are whole numbers, floats, texts, bytes or None.

    PostgreSQL takes longer to read a hundred kilobytes in a statement, where they are digits, than
    to store them: it gets them by COPY, as they are. Django takes longer to write a statement for
    many rows than SQLite to execute it.
    """
    fields = [model._meta.get_field(name) for name in columns]
    table = model._meta.db_table
    names = ", ".join(str(field.column) for field in fields)  # type: ignore[union-attr]
    with connection.wrap_database_errors, connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            types = [str(field.db_type(connection)) for field in fields]  # type: ignore[union-attr]
            packers = [_PACKERS[column_type.split("(")[0]] for column_type in types]
            start = struct.pack("!h", len(columns))
            parts = [_SIGNATURE]

            for row in rows:
                parts.append(start)
                parts += [
                    _NULL if value is None else pack(value)
                    for pack, value in zip(packers, row, strict=True)
                ]

            parts.append(_END)
            cursor.copy_expert(
                f"COPY {table} ({names}) FROM STDIN (FORMAT binary)", io.BytesIO(b"".join(parts))
            )
        else:
            places = ", ".join(["%s"] * len(columns))
            statement = f"INSERT INTO {table} ({names}) VALUES ({places})"  # noqa: S608
            cursor.executemany(statement, rows)


def seal_vectors(vectors: list[MetricVector], qrels: int) -> None:
    """Give several vectors the digests that `MetricVector.seal` gives one."""
    measures = [vector.measure for vector in vectors]
    means, topics = [vector.mean for vector in vectors], [vector.topics for vector in vectors]

    digests = digests_of_means(
        [vector.evaluation_id for vector in vectors], qrels, measures, means, topics
    )
    for vector, digest in zip(vectors, digests.tolist(), strict=True):
        vector.digest = digest_of_vector(
            vector.evaluation_id, qrels, vector.measure, vector.content
        )
        vector.mean_digest = digest


def _number(form: str) -> Callable[[Any], bytes]:
    packer = struct.Struct(f"!i{form}")
    size = struct.calcsize(f"!{form}")
    return lambda value: packer.pack(size, value)


def _bytes(value: bytes) -> bytes:
    return struct.pack("!i", len(value)) + value


_NULL = struct.pack("!i", -1)
# By the type of the column.
_PACKERS: dict[str, Callable[[Any], bytes]] = {
    "bigint": _number("q"),
    "integer": _number("i"),
    "double precision": _number("d"),
    "varchar": lambda value: _bytes(value.encode()),
    "bytea": _bytes,
}
