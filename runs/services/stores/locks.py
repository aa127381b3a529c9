"""The lock that keeps the sweeper away from what is being stored: shared for submissions, exclusive for the sweeper."""

from __future__ import annotations

import contextlib
import errno
import fcntl
from collections.abc import Iterator

from django.conf import settings


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
