"""The file store: uploaded files, immutable, named by the SHA-256 of their decompressed bytes."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeVar

from django.conf import settings
from django.db import DatabaseError, InterfaceError, OperationalError
from django.db.models import Q

from metrics.engine.errors import EvalHubError
from runs import hooks
from runs.attention import check_client
from runs.errors import LeftOff, StorageUnavailable, StoredFileCorrupt, StoredFileMissing
from runs.formats.compression import BoundedReader, Reader, open_stream
from runs.formats.limits import Limits
from runs.formats.scanning.pieces import Opener
from runs.models import Artifact, Qrels, Run, SessionSet
from runs.services.storage.install_marker import check_store
from runs.services.storage.stores.chosen import the_store

T = TypeVar("T")

# One seed per process: an attacker who wants ids to collide would have to guess it.
HASH_SEED = secrets.randbits(63)
_STEP = 1024 * 1024
# The limits of stored files, which were checked before they were stored.
STORED = Limits(archives=True)


@dataclass(frozen=True)
class _LockedNames:
    """The names of the files that a request stores, and their locks."""

    names: set[str] = field(default_factory=set)
    locks: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)


_LOCKED_NAMES: ContextVar[_LockedNames | None] = ContextVar("locked_names", default=None)


def upload_limits() -> Limits:
    """Return the limits of the settings."""
    return Limits(bytes_in=settings.EVALHUB_MAX_UPLOAD_BYTES)


def upload_folder() -> Path:
    """Return the folder where uploads wait until they are checked.

    It is on the file system of the data folder, so that storing a file there only needs a link.
    Raise StorageUnavailable if the store does not exist or belongs to another install.
    """
    check_store()
    folder: Path = settings.EVALHUB_DATA / "uploads"

    # With the files elsewhere, the data folder may be empty at any start.
    folder.mkdir(parents=settings.EVALHUB_FILES is not None, exist_ok=True)
    return folder


class HashingReader:
    """A reader that computes the SHA-256 and size of the bytes read."""

    def __init__(self, stream: BoundedReader) -> None:
        self._stream = stream
        self._hash = hashlib.sha256()
        self.size = 0

    def read(self, size: int = -1, /) -> bytes:
        check_client()
        content = self._stream.read(size)
        self._hash.update(content)
        self.size += len(content)
        return content

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def close(self) -> None:
        self._stream.close()


class FileSource:
    """A file that can be opened repeatedly and has the hash of its last reading."""

    def __init__(self, path: Path, limits: Limits) -> None:
        self._path = path
        self._limits = limits
        self.reader: HashingReader | None = None

    def open(self) -> Reader:
        self.close()
        self.reader = HashingReader(open_stream(self._open_raw(), self._limits))
        return self.reader

    def _open_raw(self) -> BinaryIO:
        return self._path.open("rb")

    def close(self) -> None:
        if self.reader:
            self.reader.close()

    @property
    def sha256(self) -> str:
        """Return the SHA-256 of the decompressed bytes of the last complete reading."""
        return self.reader.sha256 if self.reader else ""

    @property
    def size(self) -> int:
        return self.reader.size if self.reader else 0


class StoredSource(FileSource):
    """A stored file that can be opened repeatedly; with `anew` without copies made earlier."""

    def __init__(self, sha256: str, limits: Limits, *, anew: bool = False) -> None:
        super().__init__(Path(), limits)
        self._name = sha256
        self._anew = anew

    def _open_raw(self) -> BinaryIO:
        return the_store().open(self._name, anew=self._anew)


class _OpenedSource(FileSource):
    """An opened file, which its owner closes."""

    def __init__(self, file: BinaryIO, limits: Limits) -> None:
        super().__init__(Path(), limits)
        self._file = file

    def _open_raw(self) -> BinaryIO:
        return self._file

    def close(self) -> None:
        """Do nothing: the file stays open."""


@contextlib.contextmanager
def storing() -> Iterator[None]:
    """Keep the sweeper away from files between `keep_file` and the commit of their rows.

    The files of a refused request are deleted again, unless a row names them or another request
    stores the same ones. If the database failed, it may have committed the row: then the files are
    left to the sweeper.
    """
    if _LOCKED_NAMES.get() is not None:
        # These files belong to a transaction that began earlier.
        yield
        return

    check_store()
    locked = _LockedNames()
    token = _LOCKED_NAMES.set(locked)
    try:
        with the_store().lock(shared=True):
            try:
                with locked.locks:
                    yield
            except (OperationalError, InterfaceError):
                raise
            except Exception:
                for sha256 in locked.names:
                    _delete_unnamed(sha256)
                raise
    finally:
        _LOCKED_NAMES.reset(token)


def _delete_unnamed(sha256: str) -> None:
    """Delete a stored file that no row names; if that fails, leave it to the sweeper."""
    with (
        contextlib.suppress(OSError, DatabaseError, InterfaceError, StorageUnavailable),
        the_store().lock(shared=False, sha256=sha256),
    ):
        if not has_row(sha256):
            the_store().delete(sha256)


def has_row(sha256: str) -> bool:
    """Return whether a row names a stored file; rows of withdrawn submissions count."""
    return (
        Run.objects.filter(Q(sha256=sha256) | Q(known_sha256=sha256)).exists()
        or SessionSet.objects.filter(sha256=sha256).exists()
        or Artifact.objects.filter(sha256=sha256).exists()
        or Qrels.objects.filter(sha256=sha256).exists()
        or any(files_of_apps(sha256))
    )


def files_of_apps(sha256: str = "") -> Iterator[tuple[str, int, str]]:
    """Yield stored files that the tables of other apps need: all, or the one with this SHA-256.

    Each has its SHA-256, its decompressed bytes and a description of its row.
    """
    answers: list[tuple[Any, Any]] = hooks.stored_files.send(None, sha256=sha256)
    for _, rows in answers:
        yield from rows


@contextlib.contextmanager
def sweeping() -> Iterator[None]:
    """Lock the store for deletions. Raise BlockingIOError while a file is being stored."""
    check_store()
    with the_store().lock(shared=False):
        yield


def keep_file(upload: Path, sha256: str) -> None:
    """Put a checked upload into the store, durably, before any row names it.

    A sound existing file stays; one that differs from its name or cannot be read is replaced. Call
    this inside `storing`, which lasts until the row is committed.
    """
    store, locked = the_store(), _LOCKED_NAMES.get()
    if locked is None:
        raise RuntimeError("keep_file is called outside storing")

    if sha256 not in locked.names:
        locked.locks.enter_context(store.lock(shared=True, sha256=sha256))
        locked.names.add(sha256)

    if not store.add(upload, sha256) and examine_stored(sha256).state != "sound":
        store.replace(upload, sha256)


def missing_file(sha256: str) -> StoredFileMissing:
    """Return the error for a missing stored file.

    Raise StorageUnavailable if the whole store is missing.
    """
    check_store()
    return StoredFileMissing(f"the stored file {sha256[:12]} is missing")


def read_stored(sha256: str, read: Callable[[Opener], T]) -> T:
    """Return the result of `read` for a stored file.

    Raise StoredFileMissing if it does not exist, StoredFileCorrupt if it differs from its name,
    StorageUnavailable if the store cannot be reached, does not exist or belongs to another install.
    `read` is called once more if only this machine's copy of the file may be damaged.
    """
    try:
        return _read_once(sha256, read)
    except StoredFileCorrupt as error:
        if isinstance(error, StoredFileMissing) or not the_store().forget_copy(sha256):
            raise

    return _read_once(sha256, read)


def _read_once(sha256: str, read: Callable[[Opener], T]) -> T:
    source = StoredSource(sha256, STORED)
    try:
        result = read(source.open)
    except FileNotFoundError as error:
        raise missing_file(sha256) from error
    except (LeftOff, StorageUnavailable):
        raise
    except (IsADirectoryError, PermissionError) as error:
        raise StoredFileCorrupt(
            f"the stored file {sha256[:12]} cannot be read: {error.strerror}"
        ) from error
    except EvalHubError as error:
        # The file was read to its end without a problem before it was stored.
        raise StoredFileCorrupt(
            f"the stored file {sha256[:12]} cannot be read: {error.message}"
        ) from error
    except Exception as error:
        # The properties in its row, such as grouped topics, may no longer be true.
        if _examine(StoredSource(sha256, STORED), sha256).state == "sound":
            raise
        raise StoredFileCorrupt(
            f"the stored file {sha256[:12]} no longer has its SHA-256"
        ) from error
    finally:
        source.close()

    if source.sha256 != sha256:
        raise StoredFileCorrupt(f"the stored file {sha256[:12]} no longer has its SHA-256")

    return result


@dataclass(frozen=True)
class Examined:
    """The result of checking a stored file.

    `size` counts decompressed bytes, `reason` says why the file cannot be read.
    """

    state: Literal["sound", "missing", "altered", "unreadable"]
    size: int = 0
    reason: str = ""


def examine_stored(sha256: str) -> Examined:
    """Read a stored file to its end, not a copy of it, and compare it with its name."""
    return _examine(StoredSource(sha256, STORED, anew=True), sha256)


def examine_opened(file: BinaryIO, sha256: str) -> Examined:
    """Read an opened file to its end and compare it with its name. The file stays open."""
    return _examine(_OpenedSource(file, STORED), sha256)


def _examine(source: FileSource, sha256: str) -> Examined:
    try:
        reader = source.open()
        while reader.read(_STEP):
            pass
    except FileNotFoundError:
        return Examined("missing")
    except OSError as error:
        return Examined("unreadable", reason=error.strerror or str(error))
    except (LeftOff, StorageUnavailable):
        raise
    except EvalHubError:
        # The file was read to its end without a problem before it was stored.
        return Examined("altered")
    finally:
        source.close()

    return Examined("sound", source.size) if source.sha256 == sha256 else Examined("altered")


def stored_bytes(sha256: str) -> int:
    """Return the size of a file in the store, compressed as it was uploaded; 0 if it is missing."""
    try:
        with the_store().open(sha256) as file:
            return file.seek(0, os.SEEK_END)
    except FileNotFoundError:
        return 0


class StoredFile:
    """A stored file's decompressed content for a download.

    Raise StoredFileCorrupt if it differs from its name. The last megabyte is returned only if the
    whole file has the SHA-256. A damaged small file therefore returns nothing, and the answer of a
    large one ends in the middle: clients notice that it is incomplete.
    """

    def __init__(self, sha256: str) -> None:
        self._sha256 = sha256
        try:
            self._start()
        except StoredFileCorrupt as error:
            if isinstance(error, StoredFileMissing) or not the_store().forget_copy(sha256):
                raise
            self._start()

    def _start(self) -> None:
        try:
            self._reader = HashingReader(open_stream(the_store().open(self._sha256), STORED))
        except FileNotFoundError as error:
            raise missing_file(self._sha256) from error
        except StorageUnavailable:
            raise
        except (EvalHubError, OSError) as error:
            raise StoredFileCorrupt(
                f"the stored file {self._sha256[:12]} cannot be read"
            ) from error

        try:
            self._current = io.BytesIO(self._read_ahead())
            self._next = self._read_ahead()
        except StoredFileCorrupt:
            self.close()
            raise

    def read(self, size: int = -1, /) -> bytes:
        """Return at most `size` bytes, or all if it is negative."""
        if size < 0:
            return b"".join(iter(lambda: self.read(_STEP), b""))

        content = self._current.read(size)
        if not content and self._next:
            self._current = io.BytesIO(self._next)
            self._next = self._read_ahead()
            content = self._current.read(size)

        return content

    def _read_ahead(self) -> bytes:
        """Return the next megabyte; less is the end, where the whole file must have the SHA-256."""
        chunks, size = [], 0
        try:
            while size < _STEP and (chunk := self._reader.read(_STEP - size)):
                chunks.append(chunk)
                size += len(chunk)
        except LeftOff:
            raise
        except (EvalHubError, OSError) as error:
            raise StoredFileCorrupt(
                f"the stored file {self._sha256[:12]} cannot be read"
            ) from error

        if size < _STEP and self._reader.sha256 != self._sha256:
            raise StoredFileCorrupt(
                f"the stored file {self._sha256[:12]} no longer has its SHA-256"
            )

        return b"".join(chunks)

    def close(self) -> None:
        self._reader.close()


def try_store() -> None:
    """Do the steps of storing a file, and remove it.

    Raise OSError or StorageUnavailable if a step fails.
    """
    with tempfile.NamedTemporaryFile(dir=upload_folder(), suffix=".upload", buffering=0) as file:
        file.write(b"ready?")
        os.fsync(file.fileno())
        the_store().try_storing(Path(file.name))
