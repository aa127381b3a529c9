"""Attach files to runs and delete them, within the limits of a run and of a team."""

from __future__ import annotations

import gzip
import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q, Sum
from django.utils import timezone

from runs.errors import Conflict, FileTooLarge
from runs.formats.artifacts import START, check_type
from runs.formats.compression import encoding_of
from runs.models import Artifact, AuditEvent, Run, Team, User
from runs.services.audit.trail import SYSTEM, Origin, record
from runs.services.storage.files import keep_file, storing, upload_folder

# How long the file of a deleted artifact stays, so that an operator can give it back.
KEPT = timedelta(days=30)
_MB = 1024 * 1024


def check_artifact_size(size: int) -> None:
    """Raise FileTooLarge (`artifact_quota`) for more bytes than an artifact may have."""
    if size > settings.EVALHUB_MAX_ARTIFACT_BYTES:
        most = settings.EVALHUB_MAX_ARTIFACT_BYTES // _MB
        message = f"the file has {size:,} bytes; an artifact has at most {most} MiB"
        raise FileTooLarge(message, code="artifact_quota", pointer="/file")


def attach(
    *, run: Run, name: str, file: Path, user: User | None, origin: Origin = SYSTEM
) -> tuple[Artifact, bool]:
    """Attach a file to a run. Return its artifact and whether it is new.

    The same file under the same name is the existing artifact.

    Raise UnsupportedFile (`artifact_type`) for a file of another type than its name says,
    FileTooLarge (`artifact_quota`) beyond a limit, Conflict if the run has another file of this
    name; then nothing is stored.
    """
    size = file.stat().st_size
    check_artifact_size(size)

    with file.open("rb") as stream:
        start = stream.read(START)
        check_type(name, start)
        stream.seek(0)
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()

    with storing(), _as_stored(file, start) as stored:
        keep_file(stored, sha256)
        try:
            with transaction.atomic():
                # Whoever withdraws the run waits, or has withdrawn it.
                if not Run.objects.select_for_update().filter(pk=run.pk, deleted_at=None).exists():
                    raise Conflict(
                        f"run {run.tag} was withdrawn; restore it first", code="conflict"
                    )

                if existing := Artifact.objects.filter(run=run, name=name, deleted_at=None).first():
                    return _check_same(existing, sha256), False

                _check_quota(run, size)
                artifact = Artifact.objects.create(
                    run=run, name=name, sha256=sha256, size=size, created_by=user
                )
                action = AuditEvent.Action.ARTIFACT_ATTACHED
                record(origin, action, run, collection=run.collection, after=_identity(artifact))
        except IntegrityError:
            # Another request has stored an artifact with this name meanwhile.
            existing = Artifact.objects.filter(run=run, name=name, deleted_at=None).first()
            if existing is None:
                raise
            return _check_same(existing, sha256), False

    return artifact, True


def delete_artifact(*, artifact: Artifact, origin: Origin = SYSTEM) -> None:
    """Delete an artifact: its name is free at once, and its file is swept after thirty days."""
    with transaction.atomic():
        if Artifact.objects.filter(pk=artifact.pk, deleted_at=None).update(
            deleted_at=timezone.now()
        ):
            action, run = AuditEvent.Action.ARTIFACT_DELETED, artifact.run
            record(origin, action, run, collection=run.collection, before=_identity(artifact))


def still_needed() -> Q:
    """Return the condition of artifacts that keep their files.

    Neither the artifact was deleted nor its run withdrawn more than thirty days ago.
    """
    since = timezone.now() - KEPT
    return (Q(deleted_at=None) | Q(deleted_at__gt=since)) & (
        Q(run__deleted_at=None) | Q(run__deleted_at__gt=since)
    )


def _check_same(existing: Artifact, sha256: str) -> Artifact:
    """Return the artifact with this name. Raise Conflict if it has another file."""
    if existing.sha256 != sha256:
        raise Conflict(
            f"the run has another file {existing.name}; "
            "delete that one first, or choose another name",
            code="conflict",
            pointer="/name",
        )

    return existing


def _check_quota(run: Run, size: int) -> None:
    """Raise FileTooLarge (`artifact_quota`) beyond the limits of the run or its team.

    Deleted files count as long as they are stored, against twice the limit: deleting makes room,
    but nobody fills a disk by deleting.
    """
    if Artifact.objects.filter(run=run, deleted_at=None).count() >= settings.EVALHUB_RUN_ARTIFACTS:
        raise FileTooLarge(
            f"the run has {settings.EVALHUB_RUN_ARTIFACTS} artifacts, the limit; delete one first",
            code="artifact_quota",
            pointer="/file",
        )

    # One at a time for a team, or two requests would take the last room.
    Team.objects.select_for_update().filter(pk=run.team_id).values_list("pk").first()
    most, own = settings.EVALHUB_TEAM_ARTIFACT_BYTES, Artifact.objects.filter(run__team=run.team_id)
    live = own.live().aggregate(bytes=Sum("size"))["bytes"] or 0
    stored = own.filter(still_needed()).aggregate(bytes=Sum("size"))["bytes"] or 0
    if live + size > most or stored + size > 2 * most:
        deleted = (
            f" and {(stored - live) / _MB:,.0f} MiB deleted in the last 30 days"
            if stored > live
            else ""
        )

        message = (
            f"team {run.team} has {live / _MB:,.0f} MiB of artifacts{deleted}; "
            f"the limit is {most / _MB:,.0f} MiB. Delete some, or link to the file instead"
        )
        raise FileTooLarge(message, code="artifact_quota", pointer="/file")


def _identity(artifact: Artifact) -> dict[str, str | int]:
    return {"name": artifact.name, "sha256": artifact.sha256, "size": artifact.size}


@contextmanager
def _as_stored(file: Path, start: bytes) -> Iterator[Path]:
    """Yield the file as the store takes it.

    The store names files by their decompressed bytes, so a compressed file is compressed again.
    """
    if encoding_of(start) == "plain":
        yield file
        return

    with tempfile.NamedTemporaryFile(dir=upload_folder(), suffix=".upload") as wrapped:
        with (
            file.open("rb") as original,
            gzip.GzipFile(fileobj=wrapped, mode="wb", compresslevel=1, mtime=0) as compressed,
        ):
            shutil.copyfileobj(original, compressed, _MB)

        wrapped.flush()
        yield Path(wrapped.name)
