"""Copies of stored files on this machine, for a store elsewhere: a folder of bounded size.

All processes that share a data folder share the copies. A copy has the name of its file, so that
its reader compares it with its name, as every stored file; a damaged copy is deleted and fetched
again. The folder can be deleted at any time.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, cast

from django.conf import settings

_FOLDER = "cache"
_PART = ".part"
# An unfinished copy of a dead process is deleted after the first time, an unread copy after the
# second.
_PART_SECONDS, _UNREAD_SECONDS = 3600.0, 7 * 24 * 3600.0
# When a process has added the first share of the limit, it checks the size of the folder, and
# shrinks it to the second one.
_LOOK_SHARE, _KEEP_SHARE = 0.05, 0.9


class Cache:
    """The copies of this machine."""

    def __init__(self) -> None:
        # Bytes that this process has added since it last checked the folder. The first copy causes
        # a check.
        self._added = float("inf")

    def open(self, sha256: str) -> BinaryIO | None:
        """Open the copy of a file, if there is one."""
        path = self._path(sha256)
        try:
            file = path.open("rb")
        except OSError:
            return None

        with contextlib.suppress(OSError):
            # The copies that were read last are deleted last.
            os.utime(path)

        return file

    def link(self, sha256: str, upload: Path) -> None:
        """Keep an upload that was just stored as a copy, if it is on the same disk."""
        size = upload.stat().st_size
        if size > settings.EVALHUB_FILES_CACHE_BYTES:
            return

        with contextlib.suppress(OSError):
            self._folder().mkdir(mode=0o700, exist_ok=True)
            os.link(upload, self._path(sha256))
            self._count(size)

    def fetch(
        self, sha256: str, write: Callable[[BinaryIO], None], *, keep: bool = True
    ) -> BinaryIO:
        """Return an open file that `write` has filled; with `keep`, store it as a copy.

        Files larger than the cache are not kept.
        """
        folder = self._folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=folder, suffix=_PART)
        file = cast(BinaryIO, os.fdopen(descriptor, "w+b"))
        try:
            write(file)
            file.flush()
            size = file.tell()
            if keep and size <= settings.EVALHUB_FILES_CACHE_BYTES:
                os.replace(name, self._path(sha256))
                self._count(size)
            else:
                os.unlink(name)
        except BaseException:
            file.close()
            Path(name).unlink(missing_ok=True)
            raise

        file.seek(0)
        return file

    def forget(self, sha256: str) -> None:
        """Delete a copy. Its current readers can read it to its end."""
        self._path(sha256).unlink(missing_ok=True)

    def _count(self, size: int) -> None:
        self._added += size
        if self._added > _LOOK_SHARE * settings.EVALHUB_FILES_CACHE_BYTES:
            self._added = 0
            self.shrink()

    def shrink(self) -> None:
        """Delete copies that were not read for a week, and the least recent ones over the limit."""
        copies, total, now = [], 0, time.time()

        with contextlib.suppress(OSError):
            for entry in os.scandir(self._folder()):
                with contextlib.suppress(OSError):
                    status = entry.stat()
                    copies.append((status.st_mtime, status.st_size, entry.path))
                    total += status.st_size

        limit = settings.EVALHUB_FILES_CACHE_BYTES

        # Delete down to a share of the limit: otherwise every new copy would cause a deletion.
        if total > limit:
            limit = int(_KEEP_SHARE * limit)

        for read_at, size, name in sorted(copies):
            is_part = name.endswith(_PART)
            expired = now - read_at > (_PART_SECONDS if is_part else _UNREAD_SECONDS)
            if expired or (total > limit and not is_part):
                with contextlib.suppress(OSError):
                    os.unlink(name)
                    total -= size

    @staticmethod
    def _folder() -> Path:
        folder: Path = settings.EVALHUB_DATA / _FOLDER
        return folder

    def _path(self, sha256: str) -> Path:
        return self._folder() / sha256
