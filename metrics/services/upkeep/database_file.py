"""Whether SQLite's file is whole: what it says of itself, page by page. PostgreSQL looks after its own files."""

from __future__ import annotations

from collections.abc import Iterator

from django.db import DatabaseError, connection

from metrics.services.upkeep.findings import Finding

_SHOWN = 20
_WHAT_TO_DO = "; restore a backup"


def find_in_database(*, fast: bool) -> Iterator[Finding]:
    """Every table and index agrees with the others, and no row names one that is not there; `fast` leaves the pages
    unread."""
    if connection.vendor != "sqlite":
        return
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA foreign_key_check")
        for table, row, parent, _ in cursor.fetchmany(_SHOWN):
            text = f"row {row} of {table} names one of {parent} that is not there; restore a backup"
            yield Finding("dangling_row", text)
        if fast:
            return
        # A zeroed page shows itself neither to a query that does not touch it, nor to a short look at the file.
        cursor.execute(f"PRAGMA integrity_check({_SHOWN})")
        for (told,) in cursor.fetchall():
            for line in () if told == "ok" else told.splitlines():
                yield Finding("database_damaged", f"{connection.settings_dict['NAME']}: {line}{_WHAT_TO_DO}")


def damaged(error: DatabaseError) -> Finding | None:
    """Return what a query met where a part of the database is damaged, None where its error has another cause."""
    texts = ("malformed", "disk I/O error", "invalid page in block", "could not read block")
    if any(text in str(error) for text in texts):
        return Finding("database_damaged", f"the rows cannot be read: {error}{_WHAT_TO_DO}")
    return None
