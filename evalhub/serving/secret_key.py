"""The secret key of an install without EVALHUB_SECRET_KEY, which the first web server stores."""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from pathlib import Path

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

_FILE = "secret.key"
MIN_KEY_LENGTH = 32


def new_key() -> str:
    """Return a new random key."""
    return secrets.token_urlsafe(50)


def read_key(folder: Path) -> str:
    """Return the key in a data folder, or "" if there is none."""
    try:
        return (folder / _FILE).read_text().strip()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except UnicodeDecodeError:
        # `keep_key` refuses it when it is needed.
        return ""


def damaged_key() -> str:
    """Return why the key in the data folder is damaged and what to do, or "" if it is not."""
    path = settings.EVALHUB_DATA / _FILE
    if settings.EVALHUB_SECRET_KEY or not path.exists():
        return ""
    if len(read_key(settings.EVALHUB_DATA)) >= MIN_KEY_LENGTH:
        return ""

    return (
        f"the secret key in {path} is damaged: it needs {MIN_KEY_LENGTH} characters of text. "
        "Copy it back from where it is kept, or delete the file: a new one is made, and everybody "
        "logs in again"
    )


def keep_key() -> None:
    """Store this process's key in the data folder, or use the one stored there.

    A key in the environment takes precedence. The web server calls this before it serves: only its
    processes sign data that others must verify.
    """
    if settings.EVALHUB_SECRET_KEY:
        return

    folder: Path = settings.EVALHUB_DATA
    if not (folder / _FILE).exists():
        folder.mkdir(parents=True, exist_ok=True)
        # A temporary file is linked: if several processes start at once, all use the first key.
        with (
            tempfile.NamedTemporaryFile("w", dir=folder) as file,
            contextlib.suppress(FileExistsError),
        ):
            file.write(settings.SECRET_KEY)
            file.flush()
            # A power cut must not leave an empty key.
            os.fsync(file.fileno())
            os.link(file.name, folder / _FILE)

    if message := damaged_key():
        raise ImproperlyConfigured(message)

    settings.SECRET_KEY = read_key(folder)
