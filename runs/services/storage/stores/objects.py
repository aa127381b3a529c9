"""Stored files as objects of an S3-compatible store, for several machines.

files/ab/ab...      a stored file, with the keys of the folder `files` of a data folder
files/install.id    the marker of the install
deleting/ab...      announces the deletion of a file; deleted when it has ended
ready               written by probes
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO

from django.db import connection

from runs.errors import StorageUnavailable
from runs.services.storage.stores.cache import Cache
from runs.services.storage.stores.folder import MARKER
from runs.services.storage.stores.interface import Entry
from runs.services.storage.stores.location import Location
from runs.services.storage.stores.locks import database_lock, file_lock, name_lock
from runs.services.storage.stores.s3 import SIGNED_SECONDS, Bucket

_STORED_KEY = re.compile(r"files/[0-9a-f]{2}/([0-9a-f]{64})")
_MARKER = f"files/{MARKER}"
# How long a process relies on a marker that it has read, and on a write that succeeded.
_REMEMBERED_SECONDS, _PROVEN_SECONDS = 5.0, 30.0


class ObjectStore:
    """The store of several machines that share nothing but services."""

    noun = "file store"
    setting = "EVALHUB_FILES_URL"

    def __init__(self, location: Location) -> None:
        self._location = location
        self._bucket = Bucket(location)
        self._cache = Cache()
        self._marker: tuple[float, str] | None = None
        self._last_write = -_PROVEN_SECONDS

    @property
    def name(self) -> str:
        return f"the file store {self._location}"

    def exists(self) -> bool:
        return True

    def open(self, sha256: str, *, anew: bool = False) -> BinaryIO:
        if not anew and (copy := self._cache.open(sha256)):
            return copy
        return self._cache.fetch(
            sha256, lambda file: self._bucket.get(_key(sha256), file), keep=not anew
        )

    def forget_copy(self, sha256: str) -> bool:
        self._cache.forget(sha256)
        return True

    def look_at(self, sha256: str) -> None:
        self._bucket.age(_key(sha256))

    def has(self, sha256: str) -> bool:
        try:
            self._bucket.age(_key(sha256))
        except FileNotFoundError:
            return False
        return not self._is_being_deleted(sha256)

    def add(self, upload: Path, sha256: str) -> bool:
        if self._is_being_deleted(sha256):
            raise StorageUnavailable(
                "an old copy of this file is being deleted; retry in 30 minutes"
            )

        try:
            self._bucket.put(_key(sha256), upload, only_new=True)
        except FileExistsError:
            return False

        self._cache.link(sha256, upload)
        return True

    def replace(self, upload: Path, sha256: str) -> None:
        self._bucket.put(_key(sha256), upload)
        self._cache.forget(sha256)

    def entries(self) -> Iterator[Entry]:
        for key, age in self._bucket.list("files/"):
            if match := _STORED_KEY.fullmatch(key):
                yield Entry(match[1], age)

    def delete(self, sha256: str) -> None:
        """Announce the deletion of a file, and delete it.

        The request can reach the store after its sender lost the lock or died. It is therefore
        signed and announced before it is sent, and nobody relies on an object of this name as long
        as the request may take effect.
        """
        delete = self._bucket.signed_deletion(_key(sha256))
        self._bucket.put(_deletion_key(sha256), b"")
        delete()
        self._bucket.delete(_deletion_key(sha256))
        self._cache.forget(sha256)

    def _is_being_deleted(self, sha256: str) -> bool:
        """Return whether an earlier deletion may still take effect.

        Call this while the store is locked for submissions: then no living process deletes a file
        that a row may name.
        """
        try:
            age = self._bucket.age(_deletion_key(sha256))
        except FileNotFoundError:
            return False

        return age <= SIGNED_SECONDS

    def lock(self, *, shared: bool, sha256: str = "") -> AbstractContextManager[None]:
        if connection.vendor == "postgresql":
            return database_lock(shared=shared, sha256=sha256)
        # All processes that use SQLite are on one machine.
        return name_lock(sha256, shared=shared) if sha256 else file_lock(shared=shared)

    def read_marker(self, *, remembered: bool = False) -> str | None:
        if remembered and self._marker and time.monotonic() < self._marker[0] + _REMEMBERED_SECONDS:
            return self._marker[1]

        self._marker, now = None, time.monotonic()
        try:
            text = self._bucket.read(_MARKER).decode("ascii", "replace")
        except FileNotFoundError:
            return None

        self._marker = now, text
        return text

    def write_marker(self, text: str, *, replace: bool) -> None:
        with contextlib.suppress(FileExistsError):
            self._bucket.put(_MARKER, text.encode(), only_new=not replace)
        self._marker = None

    def try_storing(self, file: Path) -> None:
        """Write an object, at most every half a minute; otherwise only read the marker."""
        if time.monotonic() < self._last_write + _PROVEN_SECONDS:
            self.read_marker()
            return

        self._bucket.put("ready", file)
        self._last_write = time.monotonic()

    def tidy(self) -> None:
        self._cache.shrink()
        for key, age in list(self._bucket.list("deleting/")):
            if age > SIGNED_SECONDS:
                self._bucket.delete(key)


def _key(sha256: str) -> str:
    return f"files/{sha256[:2]}/{sha256}"


def _deletion_key(sha256: str) -> str:
    return f"deleting/{sha256}"
