"""Backups: one tar file with every row and every stored file, for either database.

    rows/<app>.<model>.jsonl    a JSON object of columns for each row, binary ones in base64
    files/<SHA-256>             a stored file as it was uploaded
    altered/<SHA-256>           a file that no longer has its SHA-256; it is never restored
    manifest.json               last: versions, number of rows of each model, size and SHA-256 of
                                every member, its own SHA-256

A file without its manifest is incomplete. Login sessions and the secret key are left out: users log
in again.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import hashlib
import io
import json
import os
import tarfile
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any, BinaryIO, cast
from uuid import UUID

from django.apps import apps
from django.core.serializers.json import DjangoJSONEncoder
from django.db import connection, models
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from metrics.engine import ENGINE_VERSION
from metrics.services.snapshots import one_snapshot
from runs.models import Artifact, Qrels, Run, SessionSet
from runs.services.storage.files import examine_opened, files_of_apps, storing
from runs.services.storage.stores.chosen import the_store

# Since format 2 the manifest has a SHA-256 of its own.
FORMAT = 2
MANIFEST = "manifest.json"
# Models without meaning in another install: login sessions, the id of the install, rate counters,
# dispatcher rounds. The rows of parameters are written again from the metadata of runs.
LEFT_OUT = frozenset(
    {
        "sessions.session",
        "runs.install",
        "runs.ratecounter",
        "runs.parameter",
        "runs.parameterset",
        "metrics.dispatcherround",
    }
)
# The faults of stored files: the names of lists in the manifest, and their texts.
FAULTS = {
    "missing": "is missing",
    "unreadable": "cannot be read",
    "altered": "no longer has its SHA-256",
}
_BATCH = 100
# The prefix and suffix of an unfinished backup's name, and the age in seconds from which an unlocked
# one belongs to a killed process.
_PART = (".evalhub-backup-", ".part")
_PART_SECONDS = 10

Model = type[models.Model]


def saved_models() -> list[Model]:
    """Return all models of all apps, each after the models to which it points.

    These include the models of many-to-many relations.
    """
    graph: dict[Model, set[Model]] = {}
    for model in apps.get_models(include_auto_created=True):
        if model._meta.label_lower not in LEFT_OUT:
            related = {field.related_model for field in columns(model)}
            graph[model] = related - {None, model}

    return list(TopologicalSorter(graph).static_order())


def columns(model: Model) -> list[Any]:
    return list(model._meta.concrete_fields)


def rows_member(model: Model) -> str:
    return f"rows/{model._meta.label_lower}.jsonl"


def schema() -> list[str]:
    """Return the applied migrations, which rows of a backup fit."""
    applied = MigrationRecorder(connection).applied_migrations()
    return sorted(f"{app}.{name}" for app, name in applied)


def write_backup(target: Path) -> dict[str, Any]:
    """Write a backup of one moment, while the service runs, and return its manifest.

    A temporary file is renamed when it is complete. `missing`, `unreadable` and `altered` of
    the manifest name the stored files that a restored install will lack.
    """
    for part in _abandoned_parts(target.parent):
        part.unlink(missing_ok=True)

    with tempfile.NamedTemporaryFile(
        dir=target.parent, prefix=_PART[0], suffix=_PART[1], delete=False
    ) as file:
        try:
            # The lock is held while this process lives.
            fcntl.flock(file, fcntl.LOCK_EX)
            # The sweeper waits, so that no file is deleted that a row of the snapshot names.
            with (
                storing(),
                one_snapshot(),
                tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar,
            ):
                manifest = _Writer(tar, target.parent).write()

            file.flush()
            os.fsync(file.fileno())
            os.replace(file.name, target)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise

    return manifest


def _abandoned_parts(folder: Path) -> Iterator[Path]:
    """Yield unfinished backups in a folder whose process was killed."""
    for part in folder.glob(f"{_PART[0]}*{_PART[1]}"):
        # Skip files of other users, and those that are being written. A new one may not be locked yet.
        with contextlib.suppress(OSError), part.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(file.fileno()).st_mtime < time.time() - _PART_SECONDS:
                yield part


class _Writer:
    """Write a tar file and record its contents."""

    def __init__(self, tar: tarfile.TarFile, folder: Path) -> None:
        self._tar = tar
        self._folder = folder
        self._members: dict[str, dict[str, Any]] = {}
        self._faults: dict[str, list[str]] = {state: [] for state in FAULTS}

    def write(self) -> dict[str, Any]:
        counts = {model._meta.label_lower: self._add_rows(model) for model in saved_models()}
        for sha256 in sorted(_stored_files()):
            self._add_file(sha256)

        manifest = {
            "format": FORMAT,
            "made_at": timezone.now().isoformat(),
            "engine_version": ENGINE_VERSION,
            "database": connection.vendor,
            "schema": schema(),
            "rows": counts,
            **self._faults,
            "members": self._members,
        }

        manifest["sha256"] = manifest_digest(manifest)
        content = json.dumps(manifest, indent=1).encode()
        self._add(MANIFEST, io.BytesIO(content), len(content))

        return manifest

    def _add_rows(self, model: Model) -> int:
        count = 0
        with tempfile.TemporaryFile(dir=self._folder) as file:
            for row in model._base_manager.order_by("pk").iterator(_BATCH):
                file.write(encode_row(row) + b"\n")
                count += 1

            size = file.tell()
            file.seek(0)
            self._add(rows_member(model), file, size)

        return count

    def _add_file(self, sha256: str) -> None:
        """Add a stored file, or record its fault and go on."""
        try:
            file = the_store().open(sha256, anew=True)
        except FileNotFoundError:
            state: str = "missing"
        except OSError:
            state = "unreadable"
        else:
            with file:
                state = self._add_opened(sha256, file)

        if state != "sound":
            self._faults[state].append(sha256)

    def _add_opened(self, sha256: str, file: BinaryIO) -> str:
        """Add an opened file if it can be read, and return its state."""
        state, end = examine_opened(file, sha256).state, self._tar.offset
        if state in ("sound", "altered"):
            size = file.seek(0, os.SEEK_END)
            file.seek(0)

            try:
                self._add(f"{'files' if state == 'sound' else 'altered'}/{sha256}", file, size)
            except Unreadable:
                # Remove the part that was written.
                state = "unreadable"
                self._tar.offset = end
                cast(Any, self._tar.fileobj).seek(end)
                cast(Any, self._tar.fileobj).truncate()

        return state

    def _add(self, name: str, content: Any, size: int) -> None:
        member = tarfile.TarInfo(name)
        member.size = size
        member.mtime = int(timezone.now().timestamp())
        reader = HashedReader(content)
        self._tar.addfile(member, cast(Any, reader))
        self._members[name] = {"size": size, "sha256": reader.sha256}


def manifest_digest(manifest: dict[str, Any]) -> str:
    """Return the SHA-256 of a manifest's JSON without its key `sha256`, in order and indented."""
    rest = {key: value for key, value in manifest.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(rest, indent=1).encode()).hexdigest()


class Unreadable(Exception):
    """A file on the disk cannot be read. This is not an OSError, which writing the backup raises."""


class HashedReader:
    """A stream that computes the SHA-256 of the bytes read."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._hash = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        try:
            content = self._stream.read(size)
        except OSError as error:
            raise Unreadable(error.strerror or str(error)) from error

        self._hash.update(content)
        return content

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()


def _stored_files() -> set[str]:
    """Return the digests of all files that a row needs."""
    runs = Run.objects.filter(deleted_at=None).values_list("sha256", "known_sha256")
    digests = {sha256 for pair in runs for sha256 in pair if sha256}
    digests.update(SessionSet.objects.filter(deleted_at=None).values_list("sha256", flat=True))
    digests.update(Artifact.objects.live().values_list("sha256", flat=True))
    digests.update(Qrels.objects.values_list("sha256", flat=True))
    digests.update(sha256 for sha256, _, _ in files_of_apps())
    return digests


def encode_row(row: models.Model) -> bytes:
    """Return a row as a line of JSON."""
    values: dict[str, Any] = {}
    for field in columns(type(row)):
        value = field.value_from_object(row)
        if isinstance(value, datetime):
            # Django's encoder would drop the microseconds, and with them the order of submissions.
            value = value.isoformat()
        elif isinstance(value, UUID):
            value = str(value)
        elif isinstance(value, bytes | memoryview):
            value = base64.b64encode(value).decode()

        values[field.attname] = value

    return json.dumps(values, cls=DjangoJSONEncoder).encode()
