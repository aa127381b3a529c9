"""The secret key of an installation that is given none: made by the first web server, and kept beside its data."""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from pathlib import Path

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

_NAME = "secret.key"
LEAST_KEY = 32


def new_key() -> str:
    """Return a key that nobody has seen."""
    return secrets.token_urlsafe(50)


def read_key(folder: Path) -> str:
    """Return the key that a data folder keeps; empty where it keeps none, or is not there."""
    try:
        return (folder / _NAME).read_text().strip()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except UnicodeDecodeError:
        # Refused by `keep_key`, where it would be used.
        return ""


def keep_key() -> None:
    """Keep this process's key in the data folder, or take the one kept there; what the environment names stays.

    The web server calls it before it answers: nothing else signs what another process must believe.
    """
    if settings.EVALHUB_SECRET_KEY:
        return
    folder: Path = settings.EVALHUB_DATA
    if not (folder / _NAME).exists():
        folder.mkdir(parents=True, exist_ok=True)
        # Written aside and linked: of several processes that start at once, all take the key of the first.
        with tempfile.NamedTemporaryFile("w", dir=folder) as file, contextlib.suppress(FileExistsError):
            file.write(settings.SECRET_KEY)
            file.flush()
            # A machine that loses its power must not be left with an empty key.
            os.fsync(file.fileno())
            os.link(file.name, folder / _NAME)
    key = read_key(folder)
    if len(key) < LEAST_KEY:
        raise ImproperlyConfigured(
            f"the secret key in {folder / _NAME} is damaged: it needs {LEAST_KEY} characters of text. "
            "Copy it back from where it is kept, or delete the file: a new one is made, and everybody logs in again"
        )
    settings.SECRET_KEY = key
