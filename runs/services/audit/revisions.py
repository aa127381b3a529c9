"""Revisions of collections: every change raises the revision of the collection that it is about.

A change also leaves a mark, an empty file with the time of the last change, by which a worker knows
when a collection has settled. Marks may get lost: then the first reader waits for an answer that a
worker would have computed ahead.
"""

from __future__ import annotations

import secrets
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from django.conf import settings
from django.db import transaction
from django.db.models import F, Sum

from runs.models import RevisionPart

# Without a change for so long, a collection has settled.
SETTLED_SECONDS = 4.0
# A change adds at most 2 to the power of this: four thousand million changes are less than a column
# can hold.
_BITS = 32
_FOLDER = "changed"


class Revision(NamedTuple):
    """The revision of a collection.

    Every change raises `changes`; arriving runs and moves of their evaluations do not raise
    `others`.
    """

    changes: int
    others: int


def raise_revision(*collections: int, arriving: bool = False) -> None:
    """Raise the revisions of collections by their keys, in the transaction of the change.

    Use `arriving` if runs only arrive or are evaluated. A random number is added: a database that
    was restored and then changed never has an earlier revision again.
    """
    for collection in set(collections):
        added = 1 + secrets.randbits(_BITS)
        raised = {"changes": F("changes") + added}

        if not arriving:
            raised["others"] = F("others") + added

        parts = RevisionPart.objects.filter(collection=collection)
        free = parts.select_for_update(skip_locked=True).order_by("pk").values("pk")[:1]
        if not parts.filter(pk__in=free).update(**raised):
            RevisionPart.objects.create(
                collection_id=collection, changes=added, others=0 if arriving else added
            )

        transaction.on_commit(partial(mark_changed, collection))


def read_revision(collection: int) -> Revision:
    """Return the revision of a collection by its key."""
    parts = RevisionPart.objects.filter(collection=collection)
    total = parts.aggregate(changes=Sum("changes", default=0), others=Sum("others", default=0))
    return Revision(int(total["changes"]), int(total["others"]))


def mark_changed(collection: int) -> None:
    """Record that a collection has changed; on a full or read-only disk, do nothing."""
    if settings.EVALHUB_KEPT_ANSWERS_BYTES:
        folder = _folder()
        with suppress(OSError):
            folder.mkdir(mode=0o700, exist_ok=True)
            (folder / str(collection)).touch(mode=0o600)


def take_settled() -> list[int]:
    """Return the collections that have settled, each to only one caller."""
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
