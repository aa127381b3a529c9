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

# How often a reading is repeated that meets damaged values.
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
    token, read, ended = WRITES.set(writes), _READ.set({}), False
    try:
        with _reading():
            yield
        ended = True
    finally:
        WRITES.reset(token)
        _READ.reset(read)
        for write, always in writes:
            if ended or always:
                write()


def read_in_snapshot(read: Callable[[], T]) -> T:
    """Return the result of `read`, as of one moment. If it meets damaged values, read again at a later moment, after
    they were removed. Raise StoredValueCorrupt if it repeatedly meets others, or has no result
    without them."""
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
    """Return the result of `read`, called once in a snapshot for each key, and each time outside one."""
    known = _READ.get()
    if known is None:
        return read()

    if key not in known:
        known[key] = read()

    found: T = known[key]
    return found


def revision_in_snapshot(collection: int) -> Revision:
    """Return the revision of a collection by its key, as of the open snapshot."""
    return once_in_snapshot(("revision", collection), lambda: read_revision(collection))


def state_of_database() -> tuple[Any, ...] | None:
    """Return what is another one once anything has been committed, or None in an open transaction."""
    connection: Any = transaction.get_connection()
    connection.ensure_connection()
    return None if connection.in_atomic_block else _STATES[connection.vendor](connection)


def is_isolated() -> bool:
    """Return whether a snapshot is open whose readings are as of one committed moment: those of a transaction that
    was open before may be of several, or of what is never committed."""
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
            usual, connection.transaction_mode = connection.transaction_mode, "DEFERRED"
            try:
                stack.enter_context(transaction.atomic())
            finally:
                connection.transaction_mode = usual

        known = _READ.get()
        if known is not None:
            known[_ISOLATED] = True

        yield


def _state_of_postgresql(connection: Any) -> tuple[Any, ...]:
    # Two snapshots of the same name see the same rows. A server that was restored counts anew.
    asked = "SELECT pg_current_snapshot()::text, pg_postmaster_start_time()::text"
    with connection.cursor() as cursor:
        cursor.execute(asked)
        found: tuple[Any, ...] = cursor.fetchone()
    return found


def _state_of_sqlite(connection: Any) -> tuple[Any, ...]:
    # The version changes with the commits of others, and the other number with what this connection
    # writes. Without a cursor of Django's, whose making takes longer than the question.
    own = connection.connection
    with connection.wrap_database_errors:
        (version,) = own.execute("PRAGMA data_version").fetchone()
    return own, version, own.total_changes


_STATES = {"postgresql": _state_of_postgresql, "sqlite": _state_of_sqlite}
