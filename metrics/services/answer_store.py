"""Store answers for all processes of a server in Django's cache `answers`.

Its files are in the data folder.

A key has everything on which an answer depends, so that none is ever invalidated, and the release
of what computes it. What is stored has a digest: a file that was damaged or cut short, or has
another answer, counts as missing. Nothing needs these files: they may be deleted at any time.
"""

from __future__ import annotations

import functools
import hashlib
import pickle
import sys
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import zstandard
from django.apps import apps
from django.conf import settings
from django.core.cache import caches

from metrics.engine import ENGINE_VERSION

# What is computed faster is not stored: to write a file takes two milliseconds.
LEAST_SECONDS = 0.01
_DAY = 24 * 3600.0
_PACKAGES = ("evalhub", "runs", "metrics")
# What computes, draws and writes answers: an older or newer one may do it otherwise, or not read
# what is stored.
_LIBRARIES = (
    "django",
    "djangorestframework",
    "numpy",
    "scipy",
    "numba",
    "altair",
    "vl-convert-python",
    "markdown-it-py",
)
# Style sheets and scripts too: their names on a page contain a digest of their content.
_CODE = ("*.py", "*.html", "*.css", "*.js", "*.svg")


def is_on() -> bool:
    """Return whether answers are stored at all."""
    return bool(settings.EVALHUB_KEPT_ANSWERS_BYTES)


def recall(key: str) -> Any:
    """Return what a process stored under this key, or None."""
    name = _name(key)
    # A damaged file raises whatever its first wrong byte means.
    with suppress(Exception):
        digest, content = caches["answers"].get(name) or ("", b"")
        if digest == _digest(name, content):
            # It is what this release stored under this key: its digest says so.
            return pickle.loads(zstandard.decompress(content))  # noqa: S301

    return None


def keep(key: str, value: object, *, took: float, seconds: float | None = None) -> None:
    """Store what took so many seconds to compute, for a day or for `seconds`.

    What was computed quickly, what is too large, and anything on a full or read-only disk is
    not stored.
    """
    if took < LEAST_SECONDS:
        return

    name, content = _name(key), zstandard.compress(pickle.dumps(value), 1)
    if len(content) <= settings.EVALHUB_LARGEST_ANSWER_BYTES:
        with suppress(OSError):
            caches["answers"].set(name, (_digest(name, content), content), seconds or _DAY)


def forget_all() -> None:
    """Delete all answers.

    Rows that replace rows of a database may have their keys.
    """
    with suppress(OSError):
        caches["answers"].clear()


@functools.cache
def release_digest() -> str:
    """Return a digest of everything but the request that an answer depends on.

    These are code, templates, static files and the releases of libraries.
    """
    digest = hashlib.sha256(
        f"{ENGINE_VERSION} {sys.version} {[version(name) for name in _LIBRARIES]}".encode()
    )

    for package in _PACKAGES:
        folder = Path(apps.get_app_config(package).path)
        for path in sorted(path for pattern in _CODE for path in folder.rglob(pattern)):
            digest.update(path.read_bytes())

    return digest.hexdigest()


def _name(key: str) -> str:
    return hashlib.sha256(f"{release_digest()} {key}".encode()).hexdigest()


def _digest(name: str, content: bytes) -> str:
    return hashlib.sha256(name.encode() + content).hexdigest()
