"""The secret key of an installation that is given none: made by the first web server, and kept beside its data."""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from pathlib import Path

from django.conf import settings

_NAME = "secret.key"


def new_key() -> str:
    """Return a key that nobody has seen."""
    return secrets.token_urlsafe(50)


def read_key(folder: Path) -> str:
    """Return the key that a data folder keeps; empty where it keeps none, or is not there."""
    try:
        return (folder / _NAME).read_text().strip()
    except (FileNotFoundError, NotADirectoryError):
        return ""


def keep_key() -> None:
    """Keep this process's key in the data folder, or take the one kept there; what the environment names stays.

    The web server calls it before it answers: nothing else signs what another process must believe.
    """
    if settings.EVALHUB_SECRET_KEY:
        return
    folder: Path = settings.EVALHUB_DATA
    if not read_key(folder):
        folder.mkdir(parents=True, exist_ok=True)
        # Written aside and linked: of several processes that start at once, all take the key of the first.
        with tempfile.NamedTemporaryFile("w", dir=folder) as file, contextlib.suppress(FileExistsError):
            file.write(settings.SECRET_KEY)
            file.flush()
            os.link(file.name, folder / _NAME)
    settings.SECRET_KEY = read_key(folder)
