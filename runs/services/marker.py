"""The store's marker: the id of its install in a file among the stored ones, checked before anything is written."""

from __future__ import annotations

import contextlib
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from django.conf import settings

from runs.errors import StorageUnavailable, WrongStore
from runs.models import Install

MARKER = "install.id"


@dataclass
class Known:
    """What this process knows of its install: its id, or that its store needs no marker (yet)."""

    install: UUID | None = None
    unmarked: bool = False


KNOWN = Known()


def check_store() -> None:
    """Raise StorageUnavailable if the data folder does not exist, WrongStore if it belongs to another install."""
    if KNOWN.install is None and not KNOWN.unmarked:
        KNOWN.install = Install.objects.values_list("uuid", flat=True).first()
    found = read_marker()
    if found is None and KNOWN.unmarked and settings.EVALHUB_DATA.is_dir():
        return
    if found is None:
        raise StorageUnavailable("the server's data folder is not there; nothing was stored, try again later")
    if KNOWN.unmarked:
        # Another process has marked it meanwhile.
        KNOWN.install, KNOWN.unmarked = Install.objects.values_list("uuid", flat=True).first(), False
    if found != KNOWN.install:
        raise WrongStore("the server's data folder belongs to another database; nothing was stored, try again later")


def remember(*, unmarked: bool) -> None:
    """Forget the known id, and set whether a store without a marker is accepted."""
    KNOWN.install, KNOWN.unmarked = None, unmarked


def read_marker() -> UUID | None:
    """Return the id of the install to which the store belongs, or None if it has none or does not exist."""
    try:
        return UUID((settings.EVALHUB_DATA / "files" / MARKER).read_text().strip())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError as error:
        raise WrongStore(f"files/{MARKER} in the data folder is damaged; evalhub adopt writes it anew") from error


def write_marker(install: UUID, *, replace: bool = False) -> None:
    """Write the id into the store atomically; an existing id stays unless `replace` is given."""
    folder: Path = settings.EVALHUB_DATA / "files"
    folder.mkdir(parents=True, exist_ok=True)
    aside = folder / f".{secrets.token_hex(8)}.id"
    try:
        with aside.open("x") as file:
            file.write(f"{install}\n")
            file.flush()
            os.fsync(file.fileno())
        if replace:
            os.replace(aside, folder / MARKER)
        else:
            with contextlib.suppress(FileExistsError):
                os.link(aside, folder / MARKER)
    finally:
        aside.unlink(missing_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
