"""Stored files in the folder `files` of `EVALHUB_DATA`."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO

from django.conf import settings

from runs.services.storage.stores.interface import Entry
from runs.services.storage.stores.locks import file_lock, name_lock

MARKER = "install.id"


def stored_path(sha256: str) -> Path:
    return _folder() / sha256[:2] / sha256


def _folder() -> Path:
    folder: Path = settings.EVALHUB_DATA / "files"
    return folder


class FolderStore:
    """The store of one machine, or of several on a shared file system."""

    noun = "data folder"
    setting = "EVALHUB_DATA"

    @property
    def name(self) -> str:
        return f"the data folder {settings.EVALHUB_DATA}"

    def exists(self) -> bool:
        return bool(settings.EVALHUB_DATA.is_dir())

    def open(self, sha256: str, *, anew: bool = False) -> BinaryIO:
        return stored_path(sha256).open("rb")

    def forget_copy(self, sha256: str) -> bool:
        return False

    def look_at(self, sha256: str) -> None:
        if not stat.S_ISREG(stored_path(sha256).stat().st_mode):
            raise OSError("it is not a file")

    def has(self, sha256: str) -> bool:
        return stored_path(sha256).exists()

    def add(self, upload: Path, sha256: str) -> bool:
        target, new = stored_path(sha256), False
        if not target.parent.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            _sync(target.parent.parent)

        if not target.exists():
            _sync(upload)
            with contextlib.suppress(FileExistsError):
                os.link(upload, target)
                new = True

        # Also for an existing file: the process that linked it may not have synced the folder yet.
        _sync(target.parent)
        return new

    def replace(self, upload: Path, sha256: str) -> None:
        target = stored_path(sha256)
        _sync(upload)
        aside = upload.parent / f"{secrets.token_hex(16)}.upload"
        os.link(upload, aside)
        os.replace(aside, target)
        _sync(target.parent)

    def entries(self) -> Iterator[Entry]:
        for path in _folder().glob("[0-9a-f][0-9a-f]/*"):
            with contextlib.suppress(FileNotFoundError):
                yield Entry(path.name, time.time() - path.stat().st_mtime)

    def delete(self, sha256: str) -> None:
        stored_path(sha256).unlink(missing_ok=True)

    def lock(self, *, shared: bool, sha256: str = "") -> AbstractContextManager[None]:
        return name_lock(sha256, shared=shared) if sha256 else file_lock(shared=shared)

    def read_marker(self, *, remembered: bool = False) -> str | None:
        try:
            return (_folder() / MARKER).read_text()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write_marker(self, text: str, *, replace: bool) -> None:
        folder = _folder()
        folder.mkdir(parents=True, exist_ok=True)
        aside = folder / f".{secrets.token_hex(8)}.id"
        try:
            with aside.open("x") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())

            if replace:
                os.replace(aside, folder / MARKER)
            else:
                with contextlib.suppress(FileExistsError):
                    os.link(aside, folder / MARKER)
        finally:
            aside.unlink(missing_ok=True)

        _sync(folder)

    def tidy(self) -> None:
        """Do nothing: the folder has only files."""

    def try_storing(self, file: Path) -> None:
        folder = _folder()
        folder.mkdir(exist_ok=True)
        linked = folder / f".{secrets.token_hex(8)}.ready"
        os.link(file, linked)
        linked.unlink()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
