"""The locks of stored files: shared for storing a file, exclusive for deleting one.

The lock of the store keeps the sweeper away from all submissions. The lock of a single name keeps
a refused submission from deleting a file that another submission is storing.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, InterfaceError, OperationalError, connection

from runs.errors import StorageUnavailable

# The number of the store's advisory lock in PostgreSQL.
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
def name_lock(sha256: str, *, shared: bool) -> Iterator[None]:
    """Lock the name of a stored file by a file among the uploads.

    The last holder deletes this file.
    """
    path = settings.EVALHUB_DATA / "uploads" / f"{sha256}.lock"
    path.parent.mkdir(mode=0o700, exist_ok=True)

    with contextlib.ExitStack() as stack:
        while True:
            lock = stack.enter_context(path.open("w"))
            fcntl.flock(lock, fcntl.LOCK_SH if shared else fcntl.LOCK_EX | fcntl.LOCK_NB)

            # The previous holder may have deleted the file since it was opened: then the lock has
            # no effect.
            if _is_at(path, lock.fileno()):
                break
            stack.close()

        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_at(path, lock.fileno()):
                    path.unlink()


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def database_lock(*, shared: bool, sha256: str = "") -> Iterator[None]:
    """Lock the store, or the name of a file, by an advisory lock of PostgreSQL.

    This works for processes of several machines. The lock belongs to the connection that commits
    the row: if one is lost, so is the other. In a transaction it is held until the transaction
    ends.
    """
    number = int.from_bytes(bytes.fromhex(sha256[:16]), signed=True) if sha256 else _KEY
    within = connection.in_atomic_block
    kind = "_xact" if within else ""

    if shared:
        try:
            _ask(f"pg_advisory{kind}_lock_shared", number)
        except OperationalError as error:
            if "lock timeout" not in str(error):
                raise

            # A store that does not answer holds up the sweeper, too.
            raise StorageUnavailable(
                "the server's file store is deleting a file at present; "
                "nothing was stored, try again later"
            ) from error
    elif not _ask(f"pg_try_advisory{kind}_lock", number):
        raise BlockingIOError(errno.EWOULDBLOCK, "files are being stored")

    if within:
        yield
        return

    holder = connection.connection
    try:
        yield
    finally:
        # A lost connection does not hold the lock any more, and its successor never did.
        if connection.connection is holder:
            with contextlib.suppress(DatabaseError, InterfaceError):
                _ask("pg_advisory_unlock" + ("_shared" if shared else ""), number)

    if connection.connection is not holder:
        # The row may be committed, but not under the lock. The same request, sent again, checks the
        # file again.
        raise StorageUnavailable(
            "the database was away while a file was stored; send the request again"
        )


def _ask(function: str, number: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {function}(%s)", [number])
        (answer,) = cursor.fetchone()
    return answer is not False
