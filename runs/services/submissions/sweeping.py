"""Delete files without a row, abandoned uploads, and old answers with idempotency keys."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from runs.models import Artifact, Qrels, RememberedAnswer, Run, SessionSet
from runs.services.storage.files import files_of_apps, has_row, sweeping
from runs.services.storage.install_marker import check_store
from runs.services.storage.stores.chosen import the_store
from runs.services.storage.stores.interface import Entry
from runs.services.tracking.artifacts import still_needed

AGE = timedelta(hours=24)
# Any sweep may delete this many stored files.
LEAST_MOST = 20


@dataclass(frozen=True)
class Swept:
    """The numbers of deleted objects; `spared` counts unused stored files, too many to delete."""

    files: int
    uploads: int
    answers: int
    spared: int = 0


def sweep(most: int | None = None) -> Swept:
    """Delete unused files and keys older than 24 hours.

    This is safe at any moment, in several processes at once.

    If more than `most` stored files are unused, delete none of them, because their rows are more
    likely to be missing. The default is 20, or a tenth of the store if that is more. Raise
    StorageUnavailable if the store belongs to another install.
    """
    check_store()

    unused = list(orphans())
    too_many = takes_too_many(len(unused)) if most is None else len(unused) > most
    spared = len(unused) if too_many else 0
    files = 0 if spared else sum(delete_orphan(sha256) for sha256 in unused)

    uploads = delete_old_uploads()
    the_store().tidy()
    answers, _ = RememberedAnswer.objects.filter(created_at__lt=timezone.now() - AGE).delete()

    return Swept(files, uploads, answers, spared)


def takes_too_many(files: int) -> bool:
    """Return whether a sweep would not delete this many stored files by default."""
    return files > LEAST_MOST and files > sum(1 for _ in the_store().entries()) // 10


def is_named(sha256: str) -> bool:
    """Return whether a row still needs the stored file.

    Judgements, artifacts and rows of other apps need theirs. A run or session set does unless it was withdrawn more
    than 24 hours ago: until then its team can restore it. A run that was entered in a phase of a
    campaign, or that organisers took out of their collection, needs its files for ever.
    """
    restorable = Q(deleted_at=None) | Q(deleted_at__gt=timezone.now() - AGE)
    runs = Run.objects.filter(
        restorable | Q(entries__isnull=False) | ~Q(removal_reason=""),
        Q(sha256=sha256) | Q(known_sha256=sha256),
    )

    session_sets = SessionSet.objects.filter(restorable, sha256=sha256)
    artifacts = Artifact.objects.filter(still_needed(), sha256=sha256)
    qrels = Qrels.objects.filter(sha256=sha256)

    rows_of_runs = any(rows.exists() for rows in (runs, session_sets, artifacts, qrels))
    return rows_of_runs or any(files_of_apps(sha256))


def orphans() -> Iterator[str]:
    """Yield the SHA-256 of stored files older than 24 hours that no row needs."""
    return (
        entry.sha256
        for entry in the_store().entries()
        if _is_old(entry) and not is_named(entry.sha256)
    )


def young_strangers() -> Iterator[str]:
    """Yield the SHA-256 of stored files of the last 24 hours that no row names at all.

    Their submissions were interrupted, or their rows were lost.
    """
    return (
        entry.sha256
        for entry in the_store().entries()
        if not _is_old(entry) and not has_row(entry.sha256)
    )


def left_behind() -> Iterator[Path]:
    """Yield uploads older than 24 hours: their requests have died."""
    return (path for path in (settings.EVALHUB_DATA / "uploads").glob("*") if _is_old_upload(path))


def delete_old_uploads() -> int:
    """Delete the uploads of dead requests in the data folder of this machine."""
    return sum(_delete(path) for path in left_behind())


def delete_uploads_left_behind() -> int:
    """Delete every upload immediately.

    Call this only if no other process serves this data folder: each upload then belongs to a dead
    request. With PostgreSQL several web servers may share a folder, and uploads wait for `sweep`.
    """
    if settings.EVALHUB_DATABASE_URL:
        return 0

    return sum(_delete(path) for path in (settings.EVALHUB_DATA / "uploads").glob("*"))


def delete_orphan(sha256: str) -> bool:
    """Delete a stored file unless a row needs it, and return whether it was deleted.

    This is checked again under the lock, because the same bytes may be submitted at this moment.
    """
    try:
        with sweeping():
            if is_named(sha256):
                return False
            the_store().delete(sha256)
            return True
    except BlockingIOError:
        # A file is being stored at this moment; the next sweep will find this one again.
        return False


def _is_old(entry: Entry) -> bool:
    return entry.age > AGE.total_seconds()


def _is_old_upload(path: Path) -> bool:
    try:
        return path.stat().st_mtime < time.time() - AGE.total_seconds()
    except FileNotFoundError:
        return False


def _delete(path: Path) -> bool:
    path.unlink(missing_ok=True)
    return True
