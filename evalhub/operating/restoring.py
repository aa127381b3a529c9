"""Check and restore backups."""

from __future__ import annotations

import base64
import json
import os
import tarfile
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, cast

from django.contrib.contenttypes.models import ContentType
from django.core.management.color import no_style
from django.db import connection, models, transaction
from django.utils import timezone

from evalhub.operating.backup import (
    FAULTS,
    FORMAT,
    MANIFEST,
    HashedReader,
    Model,
    Unreadable,
    columns,
    manifest_digest,
    rows_member,
    saved_models,
    schema,
)
from metrics.engine.errors import EvalHubError
from metrics.services.queue.lifecycle import queue_interrupted
from runs import models as stored
from runs.formats.compression import open_stream
from runs.services.storage.files import STORED, HashingReader, keep_file, storing, upload_folder
from runs.services.storage.stores.chosen import the_store
from runs.services.tracking.parameters import rebuild_parameters
from runs.services.webhooks.managing import settle_restored

_CHUNK = 1024 * 1024
# Rows are written in batches: at most so many rows, or so many bytes of JSON.
_MAX_ROWS = 500
_MAX_BYTES = 16 * 1024 * 1024


class BadBackup(Exception):
    """A backup is damaged or does not fit this install; the message says why and what to do."""


@dataclass(frozen=True)
class Fault:
    """One damaged member of a backup."""

    member: str
    problem: str

    def __str__(self) -> str:
        return f"{self.member}: {self.problem}"

    @property
    def sha256(self) -> str:
        """The SHA-256 of the stored file that is lost, or "" for rows, which affect everything."""
        folder, _, name = self.member.partition("/")
        return name if folder in ("files", "altered") else ""


class Backup:
    """An opened backup file. Raise BadBackup if it is not one or has no manifest."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        try:
            self._tar = tarfile.open(fileobj=self._file, mode="r:")  # noqa: SIM115
            if MANIFEST not in self._tar.getnames():
                # A damaged header hides everything after it: look for the next valid one.
                self._file.seek(0)
                self._tar = tarfile.open(fileobj=self._file, mode="r:", ignore_zeros=True)  # noqa: SIM115

            self.manifest: dict[str, Any] = json.loads(self.open(MANIFEST).read())
            self._check_manifest()
        except BadBackup as error:
            self._file.close()
            raise BadBackup(f"{path} {error}") from error
        except (tarfile.TarError, KeyError, ValueError, EOFError, RecursionError) as error:
            self._file.close()
            raise BadBackup(f"{path} is not a backup, or is truncated: {error}") from error

    def _check_manifest(self) -> None:
        if not isinstance(self.manifest, dict) or "format" not in self.manifest:
            raise BadBackup("is not a backup: its manifest names no format")
        if self.manifest["format"] not in (1, FORMAT):
            raise BadBackup(
                f"has format {self.manifest['format']}; this version reads formats 1 and {FORMAT}"
            )

        # Backups of format 1 have no SHA-256: only the types are checked.
        kinds = {"made_at": str, "database": str, "schema": list, "rows": dict, "members": dict}
        is_complete = all(isinstance(self.manifest.get(key), kind) for key, kind in kinds.items())
        has_digest = self.manifest["format"] != 1
        if is_complete and has_digest:
            is_complete = self.manifest.get("sha256") == manifest_digest(self.manifest)

        if not is_complete:
            raise BadBackup(
                "is damaged: its manifest is not the one that was written; take another backup"
            )

        datetime.fromisoformat(self.manifest["made_at"])

    def open(self, name: str) -> BinaryIO:
        stream = self._tar.extractfile(name)
        if stream is None:
            raise KeyError(f"{name} is not a file")
        return cast(BinaryIO, stream)

    def close(self) -> None:
        self._tar.close()
        self._file.close()

    @property
    def files(self) -> list[str]:
        """The SHA-256 of every stored file."""
        return [
            name.partition("/")[2] for name in self.manifest["members"] if name.startswith("files/")
        ]

    @property
    def lacking(self) -> dict[str, str]:
        """The faults of stored files, by SHA-256, that were lost before the backup was made."""
        return {
            sha256: fault
            for state, fault in FAULTS.items()
            for sha256 in self.manifest.get(state, [])
        }

    def faults(self) -> Iterator[Fault]:
        """Yield the faults of members against the manifest, and of files against their names."""
        names = {member.name for member in self._tar.getmembers()} - {MANIFEST}
        for name in sorted(names - set(self.manifest["members"])):
            yield Fault(name, "not in the manifest")

        for name, entry in self.manifest["members"].items():
            if name not in names:
                yield Fault(name, "missing")
            elif not self._is_intact(name, entry):
                yield Fault(name, "content differs from the manifest")
            elif name.startswith("files/") and not self._has_named_content(name):
                yield Fault(name, "its decompressed content has a different SHA-256")

        for label, count in self.manifest["rows"].items():
            name = f"rows/{label}.jsonl"
            lines = sum(1 for _ in self.open(name)) if name in names else 0
            if lines != count:
                yield Fault(name, f"{lines} rows, {count} in the manifest")

    def _is_intact(self, name: str, entry: dict[str, Any]) -> bool:
        try:
            with self.open(name) as stream:
                reader, size = HashedReader(stream), 0
                while content := reader.read(_CHUNK):
                    size += len(content)
        except (Unreadable, tarfile.TarError):
            return False

        return {"size": size, "sha256": reader.sha256} == entry

    def _has_named_content(self, name: str) -> bool:
        try:
            with self.open(name) as stream:
                reader = HashingReader(open_stream(stream, STORED))
                while reader.read(_CHUNK):
                    pass
        except EvalHubError:
            return False

        return name == f"files/{reader.sha256}"

    def copy(self, sha256: str, file: Any) -> None:
        """Write a stored file's bytes to an open file."""
        with self.open(f"files/{sha256}") as stream:
            while content := stream.read(_CHUNK):
                file.write(content)
        file.flush()


def install(backup: Backup, lost: Collection[str] = ()) -> int:
    """Restore a backup into a migrated, empty install: files first, then rows in one transaction.

    `lost` are the SHA-256 of stored files with faults: they are left out. Return how many webhooks
    were disabled because their secrets were sealed with another key. Raise BadBackup if the install
    is not empty or has another schema; then nothing is changed.
    """
    _check_fit(backup)
    with the_store().lock(shared=True):
        for sha256 in backup.files:
            if sha256 in lost:
                continue

            # One by one: each name is locked by an open file, and there are many.
            with (
                storing(),
                tempfile.NamedTemporaryFile(dir=upload_folder(), suffix=".upload") as file,
            ):
                backup.copy(sha256, file)
                os.utime(file.name)
                keep_file(Path(file.name), sha256)

        with transaction.atomic():
            for model in saved_models():
                # evalhub migrate creates content types and permissions.
                model._base_manager.all().delete()

            for model in saved_models():
                _install_rows(backup, model)

            ContentType.objects.clear_cache()
            queue_interrupted()

            with connection.cursor() as cursor:
                for statement in connection.ops.sequence_reset_sql(no_style(), saved_models()):
                    cursor.execute(statement)

            rebuild_parameters()
            return settle_restored()


def _check_fit(backup: Backup) -> None:
    kinds = (stored.User, stored.Team, stored.Collection, stored.Run)
    if any(model.objects.exists() for model in kinds):
        raise BadBackup(
            "this installation is not empty; restore into a new database and a new data folder"
        )

    theirs, ours = set(backup.manifest["schema"]), set(schema())
    if theirs != ours:
        different = ", ".join(sorted(theirs ^ ours))
        raise BadBackup(
            f"the backup was made by another version of EvalHub (migrations {different}); restore it with "
            "that version, then upgrade"
        )


def _install_rows(backup: Backup, model: Model) -> None:
    label = model._meta.label_lower
    if label not in backup.manifest["rows"]:
        return

    rows: list[models.Model] = []
    size = 0
    for line in backup.open(rows_member(model)):
        rows.append(decode_row(model, json.loads(line)))
        size += len(line)
        if len(rows) >= _MAX_ROWS or size > _MAX_BYTES:
            model._base_manager.bulk_create(rows)
            rows, size = [], 0

    model._base_manager.bulk_create(rows)
    count = model._base_manager.count()
    if count != backup.manifest["rows"][label]:
        raise BadBackup(
            f"{label}: {count} rows were restored, {backup.manifest['rows'][label]} are in the "
            "manifest"
        )


def decode_row(model: Model, values: dict[str, Any]) -> models.Model:
    """Return the unsaved row that `encode_row` wrote as these values."""
    decoded: dict[str, Any] = {}
    for field in columns(model):
        value = values[field.attname]
        if isinstance(field, models.BinaryField) and value is not None:
            value = base64.b64decode(value)
        elif value is not None and not isinstance(field, models.JSONField):
            value = (field.target_field if field.is_relation else field).to_python(value)

        decoded[field.attname] = value

    return model(**decoded)


def describe(backup: Backup) -> str:
    """Return a line about a backup."""
    manifest = backup.manifest
    rows = sum(manifest["rows"].values())
    minutes = (timezone.now() - datetime.fromisoformat(manifest["made_at"])).total_seconds() / 60
    if minutes < 1:
        age = "made just now"
    elif minutes < 120:
        age = f"{minutes:.0f} minutes old"
    else:
        age = f"{minutes / 60:.0f} hours old"
        if minutes >= 48 * 60:
            age = f"{minutes / 60 / 24:.0f} days old"

    return f"{rows:,} rows and {len(backup.files):,} files of {manifest['database']}, {age}"
