"""The interface of stores for uploaded files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol


@dataclass(frozen=True)
class Entry:
    """A stored file: its name, and its age in seconds by the clock that dated it."""

    sha256: str
    age: float


class Store(Protocol):
    """Immutable files named by the SHA-256 of their decompressed bytes, and the install's marker.

    A file is stored as it was uploaded, compressed or not. Methods raise FileNotFoundError for a
    file that does not exist, another OSError if a disk fails, StorageUnavailable if the store
    cannot be reached.
    """

    noun: str
    """'data folder', for sentences about the server."""
    setting: str
    """The name of the setting that says where the store is."""

    @property
    def name(self) -> str:
        """Return the name of the store for operators, without secrets."""

    def exists(self) -> bool:
        """Return whether the store exists, marked or not."""

    def open(self, sha256: str, *, anew: bool = False) -> BinaryIO:
        """Open a stored file, which is seekable; with `anew` not a copy that was made earlier."""

    def forget_copy(self, sha256: str) -> bool:
        """Delete the copy of a file that `open` uses, and return whether there may have been one.

        Then reading the file again may return other bytes.
        """

    def look_at(self, sha256: str) -> None:
        """Raise OSError if a file cannot be read, as far as can be seen without reading it."""

    def has(self, sha256: str) -> bool:
        """Return whether a row may name this file: it exists, and nothing is about to delete it."""

    def add(self, upload: Path, sha256: str) -> bool:
        """Store a file durably unless there is one of this name. Return whether it was new."""

    def replace(self, upload: Path, sha256: str) -> None:
        """Replace a damaged file durably, in one step; current readers can read it to its end."""

    def entries(self) -> Iterator[Entry]:
        """Yield every stored file."""

    def delete(self, sha256: str) -> None:
        """Delete a stored file.

        Call this while the store is locked for the sweeper, or the file's name for the caller.
        """

    def lock(self, *, shared: bool, sha256: str = "") -> AbstractContextManager[None]:
        """Hold the lock of submissions (shared) or of the sweeper, or of one name (`sha256`).

        The sweeper does not wait: it gets BlockingIOError. Locks end with their process.
        """

    def read_marker(self, *, remembered: bool = False) -> str | None:
        """Return the text of the marker, or None.

        With `remembered`, a text that was read a moment ago will do.
        """

    def write_marker(self, text: str, *, replace: bool) -> None:
        """Write the marker atomically; an existing one stays unless `replace` is given."""

    def tidy(self) -> None:
        """Delete everything but stored files that the store does not need any more."""

    def try_storing(self, file: Path) -> None:
        """Do the steps of storing a file, and remove it."""
