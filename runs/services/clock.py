"""The clock of the database, which all servers share."""

from __future__ import annotations

from datetime import UTC, datetime

from django.db import connection
from django.utils import timezone


def database_now() -> datetime:
    """Return the time in UTC by the database's clock, on which servers with different clocks agree.

    SQLite is a file of one machine, and has that machine's clock.
    """
    if connection.vendor != "postgresql":
        return timezone.now()

    with connection.cursor() as cursor:
        # Unlike now(), it goes on in a transaction.
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchone()[0]

    return now.astimezone(UTC)
