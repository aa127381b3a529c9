"""Reading everything that an answer is made from as of one moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from typing import Any, TypeVar

from django.db import transaction

from runs.errors import StoredValueCorrupt

# What is to be written once the snapshot has ended that is open here; None where none is.
_WRITES: ContextVar[list[tuple[Callable[[], object], bool]] | None] = ContextVar("writes", default=None)
# How often a reading that meets damaged values is made before that is its answer.
_TRIES = 3

T = TypeVar("T")


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
    writes: list[tuple[Callable[[], object], bool]] = []
    token, ended = _WRITES.set(writes), False
    try:
        with _reading():
            yield
        ended = True
    finally:
        _WRITES.reset(token)
        for write, always in writes:
            if ended or always:
                write()


def read_in_snapshot(read: Callable[[], T]) -> T:
    """Return what `read` reads, as of one moment; of a later one where it met damaged values, which are out of the way
    by then. StoredValueCorrupt where it meets others again and again."""
    if _WRITES.get() is not None:
        return read()
    for _ in range(_TRIES - 1):
        with suppress(StoredValueCorrupt), one_snapshot():
            return read()
    with one_snapshot():
        return read()


def after_snapshot(write: Callable[[], object], *, always: bool = False) -> None:
    """Call `write` once the snapshot has ended that is open here, and at once where none is; with `always` also where
    an error ends it."""
    waiting = _WRITES.get()
    if waiting is None:
        write()
    else:
        waiting.append((write, always))


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
