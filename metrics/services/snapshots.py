"""Reading everything that an answer is made from as of one moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any

from django.db import transaction

# What is to be written once the snapshot has ended that is open here; None where none is.
_WRITES: ContextVar[list[Callable[[], object]] | None] = ContextVar("writes", default=None)


@contextmanager
def one_snapshot() -> Iterator[None]:
    """Read everything inside as of one moment, without making anybody who writes wait.

    Only reads belong inside: PostgreSQL refuses a write, and SQLite refuses it where somebody else wrote meanwhile.
    Leave what has to be stored to `after_snapshot`. Inside another snapshot, or a transaction that is open already, it
    is that one which decides what is seen.
    """
    if _WRITES.get() is not None:
        yield
        return
    writes: list[Callable[[], object]] = []
    token = _WRITES.set(writes)
    try:
        with _reading():
            yield
    finally:
        _WRITES.reset(token)
    for write in writes:
        write()


def after_snapshot(write: Callable[[], object]) -> None:
    """Call `write` once the snapshot has ended that is open here, and at once where none is."""
    waiting = _WRITES.get()
    if waiting is None:
        write()
    else:
        waiting.append(write)


@contextmanager
def _reading() -> Iterator[None]:
    # Which of both databases it is decides what it has.
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
            # Transactions take SQLite's write lock at once; a deferred one reads what its first query saw.
            connection.ensure_connection()
            usual, connection.transaction_mode = connection.transaction_mode, "DEFERRED"
            try:
                stack.enter_context(transaction.atomic())
            finally:
                connection.transaction_mode = usual
        yield
