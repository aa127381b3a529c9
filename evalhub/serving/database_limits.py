"""Limit how long a web process waits for the database.

Commands and workers may have long statements and have no limit.
"""

from __future__ import annotations

import select
import time
from typing import Any

import psycopg2
from django.conf import settings
from django.db import connections
from django.db.backends.signals import connection_created
from psycopg2 import extensions

# Steps of SQLite's virtual machine between two checks of the limit: a millisecond or less.
_STEPS = 100_000


def limit_statements() -> None:
    """Let every statement of this process fail after EVALHUB_STATEMENT_SECONDS.

    Call this before the first connection.
    """
    seconds = settings.EVALHUB_STATEMENT_SECONDS
    if not seconds:
        return

    connection_created.connect(limit_sqlite, dispatch_uid="limit statements")
    database = connections.settings["default"]
    if database["ENGINE"].endswith("postgresql"):
        limits = (
            f"-c statement_timeout={seconds * 1000} -c "
            f"lock_timeout={settings.EVALHUB_LOCK_SECONDS * 1000}"
        )
        options = database["OPTIONS"].get("options", "")
        database["OPTIONS"]["options"] = f"{limits} {options}".strip()
        extensions.set_wait_callback(wait_for_postgres)


def wait_for_postgres(connection: Any) -> None:
    """Wait for PostgreSQL as psycopg2 requests, but not much beyond the statement's own limit.

    A server that hangs keeps its connections alive, so no network timeout ends the wait.
    """
    connecting = connection.status not in (extensions.STATUS_READY, extensions.STATUS_BEGIN)
    silence = settings.EVALHUB_DATABASE_SILENCE_SECONDS

    limit = silence if connecting else settings.EVALHUB_STATEMENT_SECONDS + silence
    deadline = time.monotonic() + limit
    while (state := connection.poll()) != extensions.POLL_OK:
        events = select.POLLIN if state == extensions.POLL_READ else select.POLLOUT
        poll = select.poll()
        poll.register(connection.fileno(), events)
        if not poll.poll(1000 * max(0.0, deadline - time.monotonic())):
            raise psycopg2.OperationalError("the database server is silent")


def limit_sqlite(connection: Any, **signal: Any) -> None:
    """Let statements of a connection to SQLite fail beyond the limit."""
    if connection.vendor != "sqlite":
        return

    start = time.monotonic()

    def note_start(execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        nonlocal start
        start = time.monotonic()
        return execute(sql, params, many, context)

    # A connection that is opened again has the wrapper already.
    connection.execute_wrappers[:] = [
        wrapper
        for wrapper in connection.execute_wrappers
        if wrapper.__name__ != note_start.__name__
    ]
    connection.execute_wrappers.append(note_start)
    connection.connection.set_progress_handler(
        lambda: time.monotonic() - start > settings.EVALHUB_STATEMENT_SECONDS, _STEPS
    )
