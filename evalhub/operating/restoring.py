"""Reading backups: check one, install one."""

from __future__ import annotations

import base64
import json
import os
import tarfile
import tempfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, cast

from django.contrib.contenttypes.models import ContentType
from django.core.management.color import no_style
from django.db import connection, models, transaction
from django.utils import timezone

from evalhub.operating.backup import FORMAT, MANIFEST, HashedReader, Model, columns, rows_member, saved_models, schema
from metrics.services.queue.lifecycle import queue_interrupted
from runs.formats.limits import Limits
from runs.models import Collection, Run, Team, User
from runs.services.files import FileSource, keep_file, storing, upload_folder

_STEP = 1024 * 1024
# Rows are written in portions of so many, or of so many bytes of JSON where they are large.
_ROWS, _BYTES = 500, 16 * 1024 * 1024


class BadBackup(Exception):
    """A backup that cannot be believed or does not fit this install; the message says why and what to do."""


class Backup:
    """An opened backup file; BadBackup where it is none or has no manifest."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        try:
            self._tar = tarfile.open(fileobj=self._file)  # noqa: SIM115
            self.manifest: dict[str, Any] = json.loads(self.open(MANIFEST).read())
        except (tarfile.TarError, KeyError, ValueError, EOFError) as error:
            self._file.close()
            raise BadBackup(f"{path} is not a backup, or is truncated: {error}") from error
        if self.manifest["format"] != FORMAT:
            self.close()
            raise BadBackup(f"{path} has format {self.manifest['format']}; this version reads format {FORMAT}")

    def open(self, name: str) -> BinaryIO:
        return cast(BinaryIO, self._tar.extractfile(name))

    def close(self) -> None:
        self._tar.close()
        self._file.close()

    @property
    def files(self) -> list[str]:
        """The SHA-256 of every stored file."""
        return [name.partition("/")[2] for name in self.manifest["members"] if name.startswith("files/")]

    def problems(self) -> Iterator[str]:
        """Yield what is wrong with it: every member is compared with the manifest, every file with its name."""
        there = {member.name for member in self._tar.getmembers()} - {MANIFEST}
        for name in sorted(there ^ set(self.manifest["members"])):
            yield f"{name}: {'not in the manifest' if name in there else 'missing'}"
        for name, known in self.manifest["members"].items():
            if name in there and not self._is_whole(name, known):
                yield f"{name}: content differs from the manifest"
        for label, count in self.manifest["rows"].items():
            name = f"rows/{label}.jsonl"
            lines = sum(1 for _ in self.open(name)) if name in there else 0
            if lines != count:
                yield f"{label}: {lines} rows, {count} in the manifest"
        for sha256 in self.files:
            if f"files/{sha256}" in there and not self._is_named(sha256):
                yield f"files/{sha256}: its decompressed content has a different SHA-256"

    def _is_whole(self, name: str, known: dict[str, Any]) -> bool:
        with self.open(name) as stream:
            reader, size = HashedReader(stream), 0
            while content := reader.read(_STEP):
                size += len(content)
        return {"size": size, "sha256": reader.sha256} == known

    def _is_named(self, sha256: str) -> bool:
        with tempfile.NamedTemporaryFile() as file:
            self.copy(sha256, file)
            source = FileSource(Path(file.name), Limits())
            try:
                reader = source.open()
                while reader.read(_STEP):
                    pass
            except Exception:
                return False
            finally:
                source.close()
            return source.sha256 == sha256

    def copy(self, sha256: str, file: Any) -> None:
        """Write a stored file's bytes to an open file."""
        with self.open(f"files/{sha256}") as stream:
            while content := stream.read(_STEP):
                file.write(content)
        file.flush()


def install(backup: Backup) -> None:
    """Put a backup into a migrated install without a row of its own: files first, then all rows in one transaction.

    BadBackup where the install is not empty or has another schema; then nothing is changed.
    """
    _check_fit(backup)
    with storing():
        for sha256 in backup.files:
            with tempfile.NamedTemporaryFile(dir=upload_folder(), suffix=".upload") as file:
                backup.copy(sha256, file)
                os.utime(file.name)
                keep_file(Path(file.name), sha256)
        with transaction.atomic():
            for model in saved_models():
                # What migrate made by itself: content types and permissions.
                model._base_manager.all().delete()
            for model in saved_models():
                _install_rows(backup, model)
            ContentType.objects.clear_cache()
            queue_interrupted()
            with connection.cursor() as cursor:
                for statement in connection.ops.sequence_reset_sql(no_style(), saved_models()):
                    cursor.execute(statement)


def _check_fit(backup: Backup) -> None:
    if any(model.objects.exists() for model in (User, Team, Collection, Run)):
        raise BadBackup("this installation is not empty; restore into a new database and a new data folder")
    theirs, ours = set(backup.manifest["schema"]), set(schema())
    if theirs != ours:
        other = ", ".join(sorted(theirs ^ ours))
        raise BadBackup(
            f"the backup was made by another version of EvalHub (migrations {other}); restore it with that version, "
            "then upgrade"
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
        if len(rows) >= _ROWS or size > _BYTES:
            model._base_manager.bulk_create(rows)
            rows, size = [], 0
    model._base_manager.bulk_create(rows)
    count = model._base_manager.count()
    if count != backup.manifest["rows"][label]:
        raise BadBackup(f"{label}: {count} rows were restored, {backup.manifest['rows'][label]} are in the manifest")


def decode_row(model: Model, values: dict[str, Any]) -> models.Model:
    """Return a row, not yet saved, of what `encode_row` made of it."""
    return model(**{field.attname: _decode(field, values[field.attname]) for field in columns(model)})


def _decode(field: Any, value: Any) -> Any:
    if value is None or isinstance(field, models.JSONField):
        return value
    if isinstance(field, models.BinaryField):
        return base64.b64decode(value)
    return field.target_field.to_python(value) if field.is_relation else field.to_python(value)


def describe(backup: Backup) -> str:
    """Return a line about a backup."""
    manifest = backup.manifest
    rows = sum(manifest["rows"].values())
    age = (timezone.now() - datetime.fromisoformat(manifest["made_at"])).total_seconds() / 3600
    return f"{rows:,} rows and {len(backup.files):,} files of {manifest['database']}, {age:.1f} hours old"
