"""Read everything that an answer needs as of one moment."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from django.db import transaction

from metrics.engine.errors import EvalHubError
from runs.errors import StoredValueCorrupt
from runs.services.audit.reading import WRITES
from runs.services.audit.revisions import Revision, read_revision

# How often to read at most when values are damaged.
_TRIES = 3

T = TypeVar("T")
# What was read in the open snapshot, by what it is.
_READ: ContextVar[dict[Hashable, Any] | None] = ContextVar("read", default=None)
# The key that says whether the snapshot is as of one committed moment.
_ISOLATED = "isolated"


@contextmanager
def one_snapshot() -> Iterator[None]:
    """Read everything inside as of one moment, without blocking writers.

    Only read inside: PostgreSQL refuses a write, and SQLite refuses it if another connection wrote
    meanwhile. Leave writes to `runs.services.audit.reading.after_snapshot`. Inside another snapshot
    or an open transaction, that one decides what is visible.
    """
    if WRITES.get() is not None:
        yield
        return

    writes: list[tuple[Callable[[], object], bool]] = []
    token, read, completed = WRITES.set(writes), _READ.set({}), False
    try:
        with _reading():
            yield
        completed = True
    finally:
        WRITES.reset(token)
        _READ.reset(read)
        for write, always in writes:
            if completed or always:
                write()


def read_in_snapshot(read: Callable[[], T]) -> T:
    """Return the result of `read`, as of one moment.

    After damaged values, which are removed, read again. Raise StoredValueCorrupt if it
    repeatedly meets others, or has no result without them.
    """
    if WRITES.get() is not None:
        return read()

    tries, damage = 0, None
    while True:
        try:
            with one_snapshot():
                return read()
        except StoredValueCorrupt as error:
            tries, damage = tries + 1, error
            if tries == _TRIES:
                raise
        except EvalHubError as error:
            if damage is None:
                raise
            raise damage from error


def once_in_snapshot(key: Hashable, read: Callable[[], T]) -> T:
    """Return the result of `read`, which one snapshot calls once for each key."""
    results = _READ.get()
    if results is None:
        return read()

    if key not in results:
        results[key] = read()

    result: T = results[key]
    return result


def revision_in_snapshot(collection: int) -> Revision:
    """Return the revision of a collection by its key, as of the open snapshot."""
    return once_in_snapshot(("revision", collection), lambda: read_revision(collection))


def state_of_database() -> tuple[Any, ...] | None:
    """Return a value that every commit changes, or None in an open transaction."""
    connection: Any = transaction.get_connection()
    connection.ensure_connection()
    return None if connection.in_atomic_block else _STATES[connection.vendor](connection)


def is_isolated() -> bool:
    """Return whether a snapshot is open that shows one committed moment.

    A transaction that was open before it may show several, or changes that are never committed.
    """
    return _ISOLATED in (_READ.get() or {})


@contextmanager
def _reading() -> Iterator[None]:
    # The two databases have different statements.
    connection: Any = transaction.get_connection()
    if connection.in_atomic_block:
        yield
        return

    with ExitStack() as stack:
        if connection.vendor == "postgresql":
            stack.enter_context(transaction.atomic())
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        else:
            # EvalHub's transactions take SQLite's write lock immediately; a deferred one reads what
            # its first query saw.
            connection.ensure_connection()
            previous_mode, connection.transaction_mode = connection.transaction_mode, "DEFERRED"
            try:
                stack.enter_context(transaction.atomic())
            finally:
                connection.transaction_mode = previous_mode

        results = _READ.get()
        if results is not None:
            results[_ISOLATED] = True

        yield


def _state_of_postgresql(connection: Any) -> tuple[Any, ...]:
    # Two snapshots of the same name see the same rows. A server that was restored counts anew.
    statement = "SELECT pg_current_snapshot()::text, pg_postmaster_start_time()::text"
    with connection.cursor() as cursor:
        cursor.execute(statement)
        state: tuple[Any, ...] = cursor.fetchone()
    return state


def _state_of_sqlite(connection: Any) -> tuple[Any, ...]:
    # The version changes with the commits of others, and the other number with what this connection
    # writes. Making a cursor of Django takes longer than the query.
    sqlite = connection.connection
    with connection.wrap_database_errors:
        (version,) = sqlite.execute("PRAGMA data_version").fetchone()
    return sqlite, version, sqlite.total_changes


_STATES = {"postgresql": _state_of_postgresql, "sqlite": _state_of_sqlite}
