"""The lock that keeps the sweeper away from what is being stored: shared for submissions, exclusive for the sweeper."""

from __future__ import annotations

import contextlib
import errno
import fcntl
from collections.abc import Iterator

from django.conf import settings
from django.db import DatabaseError, InterfaceError, OperationalError, connection

from runs.errors import StorageUnavailable

# Of PostgreSQL's advisory locks, which are numbers: those of this text.
_KEY = int.from_bytes(b"EH store", "big")


@contextlib.contextmanager
def file_lock(*, shared: bool) -> Iterator[None]:
    """Lock a file of the data folder. The kernel frees the lock if a process dies."""
    with contextlib.ExitStack() as stack:
        try:
            lock = stack.enter_context((settings.EVALHUB_DATA / "store.lock").open("w"))
            fcntl.flock(lock, fcntl.LOCK_SH if shared else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            # A disk that became read-only allows no deletion, and can be backed up without a lock.
            if error.errno != errno.EROFS:
                raise
        yield


@contextlib.contextmanager
def database_lock(*, shared: bool) -> Iterator[None]:
    """Lock a number of the PostgreSQL database, for processes of several machines.

    The lock belongs to the connection that commits the row: if one is lost, so is the other. In a transaction it is
    held until that one ends.
    """
    within = connection.in_atomic_block
    kind = "_xact" if within else ""
    if shared:
        try:
            _ask(f"pg_advisory{kind}_lock_shared")
        except OperationalError as error:
            if "lock timeout" not in str(error):
                raise
            # A store that does not answer holds up the sweeper, too.
            message = "the server's file store is deleting a file at present; nothing was stored, try again later"
            raise StorageUnavailable(message) from error
    elif not _ask(f"pg_try_advisory{kind}_lock"):
        raise BlockingIOError(errno.EWOULDBLOCK, "files are being stored")
    if within:
        yield
        return
    holder = connection.connection
    try:
        yield
    finally:
        # Another connection does not hold it, and the one that was lost does not any more.
        if connection.connection is holder:
            with contextlib.suppress(DatabaseError, InterfaceError):
                _ask("pg_advisory_unlock" + ("_shared" if shared else ""))
    if connection.connection is not holder:
        # The row may be committed, but not under the lock. The same request, sent again, looks at the file again.
        message = "the database was away while a file was stored; send the request again"
        raise StorageUnavailable(message)


def _ask(function: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {function}(%s)", [_KEY])
        (answer,) = cursor.fetchone()
    return answer is not False
