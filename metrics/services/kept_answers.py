"""Answers kept in files of the data folder: all processes of a server share them, and a worker can make them ahead.

A file is named by a digest of its key, which contains everything on which the answer depends, so that none has to be
invalidated. It begins with an authentication code of key and content under the secret key of the server: a file that
was damaged, cut short or written by somebody else counts as missing. Nothing needs these files: they may be deleted at
any time.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import zstandard
from django.conf import settings
from django.utils.crypto import constant_time_compare, salted_hmac

# A larger answer is not kept.
MOST_BYTES = 8 * 1024 * 1024
KEPT_SECONDS = 24 * 3600.0
_FOLDER = "answers"
_CODE_BYTES = 32
# A process that keeps answers deletes the surplus after so many, and after so many bytes as a share of the limit.
_SWEEP_EACH, _SWEEP_SHARE = 50, 1 / 8


@dataclass
class _Written:
    """What this process has kept since it last deleted the surplus. Threads may lose a count, which delays the next
    time."""

    files: int = 0
    size: int = 0

    def is_much(self, size: int) -> bool:
        """Count a file of this size. Return whether it is time to delete the surplus, and begin anew if so."""
        self.files, self.size = self.files + 1, self.size + size
        much = (
            self.files >= _SWEEP_EACH
            or self.size > _SWEEP_SHARE * settings.EVALHUB_KEPT_ANSWERS_BYTES
        )
        if much:
            self.files = self.size = 0
        return much


_written = _Written()


def is_on() -> bool:
    """Return whether answers are kept at all."""
    return bool(settings.EVALHUB_KEPT_ANSWERS_BYTES)


def recall(key: str) -> bytes | None:
    """Return the content that a process kept under this key, or None."""
    if not is_on():
        return None
    path = _path(key)
    try:
        found = path.read_bytes()
    except OSError:
        return None
    code, packed = found[:_CODE_BYTES], found[_CODE_BYTES:]
    if not constant_time_compare(code, _code_of(key, packed)):
        with suppress(OSError):
            path.unlink()
        return None
    with suppress(OSError):
        # Those asked for last are deleted last.
        os.utime(path)
    return zstandard.decompress(packed)


def keep(key: str, content: bytes) -> None:
    """Keep a content for all processes. On a full or read-only disk nothing is kept."""
    if not is_on() or len(content) > MOST_BYTES:
        return
    packed = zstandard.compress(content, 1)
    path = _path(key)
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, exist_ok=True)
        # Under another name until it is complete: a process that is killed leaves nothing that would be read.
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix="new-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(_code_of(key, packed) + packed)
            os.replace(name, path)
        except OSError:
            os.unlink(name)
            raise
    if _written.is_much(len(packed)):
        sweep_kept()


def forget_kept() -> None:
    """Delete all answers: those about rows that a database no longer has may fit other rows with their keys."""
    for path in (settings.EVALHUB_DATA / _FOLDER).glob("*"):
        with suppress(OSError):
            path.unlink()


def sweep_kept() -> int:
    """Delete answers that nobody asked for during a day, then those asked for least recently beyond the limit of the
    settings. Return how many."""
    found = []
    with suppress(OSError):
        for entry in os.scandir(settings.EVALHUB_DATA / _FOLDER):
            with suppress(OSError):
                about = entry.stat()
                found.append((about.st_mtime, about.st_size, entry.path))
    total, deleted, since = 0, 0, time.time() - KEPT_SECONDS
    for asked, size, name in sorted(found, reverse=True):
        total += size
        if asked < since or total > settings.EVALHUB_KEPT_ANSWERS_BYTES:
            with suppress(OSError):
                os.unlink(name)
                deleted += 1
    return deleted


def _path(key: str) -> Path:
    folder: Path = settings.EVALHUB_DATA / _FOLDER
    return folder / hashlib.sha256(key.encode()).hexdigest()


def _code_of(key: str, packed: bytes) -> bytes:
    return salted_hmac(f"{__name__} {key}", packed, algorithm="sha256").digest()
