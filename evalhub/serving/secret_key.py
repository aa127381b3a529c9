"""The secret key of an install without EVALHUB_SECRET_KEY: the first web server makes it and keeps it beside its
data."""

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
    """Return a new random key."""
    return secrets.token_urlsafe(50)


def read_key(folder: Path) -> str:
    """Return the key in a data folder; empty if it has none, or does not exist."""
    try:
        return (folder / _NAME).read_text().strip()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except UnicodeDecodeError:
        # `keep_key` refuses it where it would be used.
        return ""


def damaged_key() -> str:
    """Return what is wrong with the key in the data folder, and what to do; empty if nothing is, or nothing reads it."""
    path = settings.EVALHUB_DATA / _NAME
    if settings.EVALHUB_SECRET_KEY or not path.exists():
        return ""
    if len(read_key(settings.EVALHUB_DATA)) >= LEAST_KEY:
        return ""

    return (
        f"the secret key in {path} is damaged: it needs {LEAST_KEY} characters of text. "
        "Copy it back from where it is kept, or delete the file: a new one is made, and everybody logs in again"
    )


def keep_key() -> None:
    """Keep this process's key in the data folder, or use the one kept there; a key in the environment takes precedence.

    The web server calls this before it serves: only its processes sign data that others must
    verify.
    """
    if settings.EVALHUB_SECRET_KEY:
        return

    folder: Path = settings.EVALHUB_DATA
    if not (folder / _NAME).exists():
        folder.mkdir(parents=True, exist_ok=True)
        # Written aside and linked: if several processes start at once, all use the key of the first
        # one.
        with (
            tempfile.NamedTemporaryFile("w", dir=folder) as file,
            contextlib.suppress(FileExistsError),
        ):
            file.write(settings.SECRET_KEY)
            file.flush()
            # A power cut must not leave an empty key.
            os.fsync(file.fileno())
            os.link(file.name, folder / _NAME)

    if message := damaged_key():
        raise ImproperlyConfigured(message)

    settings.SECRET_KEY = read_key(folder)
