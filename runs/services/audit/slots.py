"""Limit how many expensive requests run at once, across the processes of all web servers.

A place is a lock on a small file in the data folder. The system releases the locks of a process
however it ends, so nothing has to be cleaned up or to expire.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

from django.conf import settings

from runs.attention import keep_going

_FOLDER = "slots"
_WAIT_SECONDS, _LOOK_SECONDS = 2.0, 0.05


class Slots:
    """The places of one process, and its share of those of all processes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._used = 0

        # One request of the process may wait for a place; more would occupy the threads of requests
        # that need none.
        self._waiting = threading.Lock()

    def take(self, limits: Mapping[str, int], process_limit: int) -> tuple[ExitStack | None, str]:
        """Take a place of this process, which has `process_limit`, and a place under each key.

        Return the stack that frees them when it is closed. Return None and the key without a free
        place (empty for the process) if another request is already waiting or none became free in
        two seconds.
        """
        places, full_key = self._take_now(limits, process_limit)
        if places is None and self._waiting.acquire(blocking=False):
            try:
                deadline = time.monotonic() + _WAIT_SECONDS
                while places is None and time.monotonic() < deadline:
                    time.sleep(_LOOK_SECONDS)
                    keep_going()
                    places, full_key = self._take_now(limits, process_limit)
            finally:
                self._waiting.release()

        return places, full_key

    def take_one(self, key: str, places: int) -> ExitStack | None:
        """Take one of the places under a key, independently of other places of the process.

        Return None immediately if all are taken.
        """
        with ExitStack() as stack:
            return stack.pop_all() if _lock_any(stack, key, places) else None

    def _take_now(
        self, limits: Mapping[str, int], process_limit: int
    ) -> tuple[ExitStack | None, str]:
        with ExitStack() as stack:
            with self._lock:
                if self._used >= process_limit:
                    return None, ""
                self._used += 1

            stack.callback(self._release)
            for key, places in limits.items():
                if not _lock_any(stack, key, places):
                    return None, key

            return stack.pop_all(), ""

    def _release(self) -> None:
        with self._lock:
            self._used -= 1


SLOTS = Slots()


def _lock_any(stack: ExitStack, key: str, places: int) -> bool:
    return any(_lock(stack, key, number) for number in range(places))


def _lock(stack: ExitStack, key: str, number: int) -> bool:
    """Lock one place of a key until the stack is closed. Return False if another request holds it.

    The file is deleted together with its lock; otherwise there would be one for every address that
    ever sent a request. If none can be created, on a full or read-only disk, only the places of the
    process limit requests.
    """
    folder: Path = settings.EVALHUB_DATA / _FOLDER
    path = folder / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.{number}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return True

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The previous holder may have deleted the file since it was opened here: then the lock has
        # no effect.
        ours = os.stat(path).st_ino == os.fstat(descriptor).st_ino
    except OSError:
        ours = False

    if not ours:
        os.close(descriptor)
        return False

    stack.callback(os.close, descriptor)
    stack.callback(_delete, path)
    return True


def _delete(path: Path) -> None:
    with suppress(OSError):
        path.unlink()
