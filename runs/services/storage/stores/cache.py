"""Copies of stored files on this machine, where the store is elsewhere: a folder of bounded size.

All processes that share a data folder share the copies. A copy has the name of its file, so that
whoever reads it compares it with its name, as every stored file; one that differs is deleted and
fetched again. Nothing is lost with the folder.
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
# The beginning of a copy whose process died is deleted after so long, and a copy that nobody has
# read for so long.
_PART_SECONDS, _UNREAD_SECONDS = 3600.0, 7 * 24 * 3600.0
# The folder is looked through after this share of the limit was added by a process, and shrunk to
# this share of it.
_LOOK_SHARE, _KEEP_SHARE = 0.05, 0.9


class Cache:
    """The copies of this machine."""

    def __init__(self) -> None:
        # Bytes that this process has added since it last looked through the folder; it looks at its
        # first one.
        self._added = float("inf")

    def open(self, sha256: str) -> BinaryIO | None:
        """Open the copy of a file, if there is one."""
        path = self._path(sha256)
        try:
            file = path.open("rb")
        except OSError:
            return None
        with contextlib.suppress(OSError):
            # Those read last are deleted last.
            os.utime(path)
        return file

    def link(self, sha256: str, upload: Path) -> None:
        """Keep an upload that was just stored as its copy, if it is on the same disk."""
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
        """Return an open file with what `write` writes, and keep it as a copy if it is small enough."""
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
        """Delete a copy. Whoever has opened it reads it to its end."""
        self._path(sha256).unlink(missing_ok=True)

    def _count(self, size: int) -> None:
        self._added += size
        if self._added > _LOOK_SHARE * settings.EVALHUB_FILES_CACHE_BYTES:
            self._added = 0
            self.shrink()

    def shrink(self) -> None:
        """Delete the copies that were read least recently beyond the limit, and those not read for a week."""
        found, total, now = [], 0, time.time()
        with contextlib.suppress(OSError):
            for entry in os.scandir(self._folder()):
                with contextlib.suppress(OSError):
                    about = entry.stat()
                    found.append((about.st_mtime, about.st_size, entry.path))
                    total += about.st_size
        most = settings.EVALHUB_FILES_CACHE_BYTES
        # All at once down to a share of the limit: otherwise each new copy would look for one to
        # delete.
        most = most if total <= most else int(_KEEP_SHARE * most)
        for read, size, name in sorted(found):
            is_part = name.endswith(_PART)
            if now - read > (_PART_SECONDS if is_part else _UNREAD_SECONDS) or (
                total > most and not is_part
            ):
                with contextlib.suppress(OSError):
                    os.unlink(name)
                    total -= size

    @staticmethod
    def _folder() -> Path:
        folder: Path = settings.EVALHUB_DATA / _FOLDER
        return folder

    def _path(self, sha256: str) -> Path:
        return self._folder() / sha256
