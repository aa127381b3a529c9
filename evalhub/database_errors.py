"""Outages of the database, the storage or the process, as answers: trying again may help.

A filter that is too complex for the database is one, too, which trying again does not help.
"""

from __future__ import annotations

import errno
import logging
from dataclasses import dataclass

from django.db import DatabaseError, InterfaceError, OperationalError, ProgrammingError
from django.http import UnreadablePostError

from runs.errors import StorageUnavailable

_log = logging.getLogger(__name__)
_SOON, _LATER = 5, 60
_FULL = (errno.ENOSPC, errno.EDQUOT)
_BROKEN = (
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.EIO,
    errno.ESTALE,
    errno.ENODEV,
    errno.ENXIO,
    errno.ENOTCONN,
)
# Messages of SQLite and PostgreSQL.
_FULL_DATABASE = ("disk is full", "No space left on device")
_READ_ONLY = ("read-only transaction", "readonly database")
_NOT_MIGRATED = ("no such table", "no such column", "has no column named")
# A statement took longer than EVALHUB_STATEMENT_SECONDS.
_TOO_LONG = ("statement timeout", "interrupted")
# The conditions of a statement are nested too deeply.
_TOO_COMPLEX = (
    "parser stack overflow",
    "Expression tree is too large",
    "stack depth limit exceeded",
)
# The message of Python to a request that is still being answered when its process ends.
_ENDING = "interpreter shutdown"


@dataclass(frozen=True)
class Outage:
    """An answer with the seconds to wait before trying again, 0 if that does not help."""

    status: int
    code: str
    detail: str
    wait: int = _SOON


_STORAGE_FULL = Outage(
    507, "storage_full", "the server's storage is full; nothing was stored, try again later", _LATER
)
STORAGE_BROKEN = Outage(
    503,
    "storage_unavailable",
    "the server's storage cannot be used; nothing was stored, try again later",
    _LATER,
)
_DATABASE_READ_ONLY = Outage(
    503,
    "database_read_only",
    "the database takes no changes at present; nothing was stored, try again later",
    _LATER,
)
_MIGRATIONS_MISSING = Outage(
    503,
    "migrations_missing",
    "the database was not migrated to this version; the operator runs evalhub migrate",
    _LATER,
)
_DATABASE_SILENT = Outage(
    503, "database_unavailable", "the database does not answer; try again in a moment"
)
_QUERY_TOO_LONG = Outage(
    503, "query_too_long", "this answer takes the database too long; try a smaller one, or later"
)
_FILTER_TOO_COMPLEX = Outage(
    400,
    "filter_too_complex",
    "the filter is too complex for the database; write it with fewer conditions or brackets",
    0,
)
_SHUTTING_DOWN = Outage(
    503, "shutting_down", "the server is being restarted; try again in a moment"
)


def outage_of(error: BaseException | None) -> Outage | None:
    """Return the outage that an error comes from, or None for another error; log its cause."""
    if isinstance(error, StorageUnavailable):
        return Outage(503, error.code, error.message, _LATER)

    if error is not None and is_full(error):
        _log.error("the storage is full", exc_info=error)
        return _STORAGE_FULL

    if isinstance(error, RuntimeError) and _ENDING in str(error):
        return _SHUTTING_DOWN
    if isinstance(error, DatabaseError | InterfaceError):
        return _of_database(error)

    # If reading a request fails, it is the client that left.
    if (
        isinstance(error, OSError)
        and error.errno in _BROKEN
        and not isinstance(error, UnreadablePostError)
    ):
        _log.error("the storage cannot be used", exc_info=error)
        return STORAGE_BROKEN

    return None


def is_full(error: BaseException) -> bool:
    """Return whether a disk, a quota or the database has no room left."""
    if getattr(error, "errno", None) in _FULL:
        return True
    return any(text in str(error) for text in _FULL_DATABASE)


def is_read_only(error: BaseException) -> bool:
    """Return whether the database takes no changes."""
    return any(text in str(error) for text in _READ_ONLY)


def is_not_migrated(error: BaseException) -> bool:
    """Return whether a table or a column of this version is missing."""
    # A missing database or role of PostgreSQL is another error.
    missing_in_postgresql = isinstance(error, ProgrammingError) and "does not exist" in str(error)
    return missing_in_postgresql or any(text in str(error) for text in _NOT_MIGRATED)


def _of_database(error: Exception) -> Outage | None:
    if is_read_only(error):
        _log.error("the database is read-only", exc_info=error)
        return _DATABASE_READ_ONLY

    if is_not_migrated(error):
        _log.error("the database is not that of this version", exc_info=error)
        return _MIGRATIONS_MISSING

    if not isinstance(error, OperationalError | InterfaceError):
        return None

    if isinstance(error, OperationalError):
        if any(text in str(error) for text in _TOO_LONG):
            _log.error("a statement took too long", exc_info=error)
            return _QUERY_TOO_LONG
        if any(text in str(error) for text in _TOO_COMPLEX):
            _log.error("a statement is too complex for the database", exc_info=error)
            return _FILTER_TOO_COMPLEX

    return _DATABASE_SILENT
