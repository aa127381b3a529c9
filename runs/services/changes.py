"""Marks of collections with new evaluations or other changes, by which a worker knows when they have settled.

A mark is an empty file whose time is that of the last change. Marks are no queue: where one is lost, the first
reader waits for an answer that a worker would have made ahead.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from django.conf import settings

# Without a change for so long, a collection has settled.
SETTLED_SECONDS = 4.0
_FOLDER = "changed"


def mark_changed(collection: int) -> None:
    """Record that a collection has changed; on a full or read-only disk, do nothing."""
    if settings.EVALHUB_KEPT_ANSWERS_BYTES:
        folder = _folder()
        with suppress(OSError):
            folder.mkdir(mode=0o700, exist_ok=True)
            (folder / str(collection)).touch(mode=0o600)


def take_settled() -> list[int]:
    """Return the collections that have settled, each to one caller alone."""
    settled, before = [], time.time() - SETTLED_SECONDS
    for path in _folder().glob("[0-9]*"):
        # Another dispatcher may take it at this moment.
        with suppress(OSError):
            if path.stat().st_mtime < before:
                path.unlink()
                settled.append(int(path.name))
    return settled


def _folder() -> Path:
    folder: Path = settings.EVALHUB_DATA / _FOLDER
    return folder
