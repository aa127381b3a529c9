"""The database wrapper that Django loads for ENGINE = "evalhub.serving.sqlite"."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import Any

from django.db import DatabaseError, OperationalError
from django.db.backends.sqlite3 import base

# Seconds between two attempts; a writer holds the database for a few milliseconds.
_PAUSE = (0.001, 0.003)
# What SQLite calls the level.
_FULL = 2


class DatabaseWrapper(base.DatabaseWrapper):
    """Try to get the write lock every two milliseconds, and wait for the disk after it is released.

    SQLite's own wait pauses longer and longer, up to a tenth of a second: a connection that has waited for long sleeps
    while others come and go. Of eight simultaneous writers, one in twenty waited four times as long as the median.

    With `synchronous` FULL, SQLite waits for the disk while it holds the lock: if that takes a second, eight writers
    wait eight seconds. Here a transaction commits as under NORMAL, which only writes to the log, and then waits until
    the log is on the disk: these waits overlap.
    """

    transaction_mode: str | None
    # Whether the transaction that is open was begun under FULL.
    _to_be_synced = False

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Open an existing database; on a read-only disk, for reading.

        Only `evalhub migrate` creates one: a folder that is missing for a while must not come back empty.
        """
        path = self.settings_dict["NAME"]
        if isinstance(path, Path):
            how = "immutable=1" if _is_read_only(path) else "mode=rw"
            conn_params = {**conn_params, "database": f"{path.as_uri()}?{how}", "uri": True}
        try:
            return super().get_new_connection(conn_params)
        except UnicodeDecodeError as error:
            # SQLite tells what it could not read of a damaged schema, and that was text once.
            raise DatabaseError("malformed database schema") from error

    def _start_transaction_under_autocommit(self) -> None:
        deadline = time.monotonic() + self.settings_dict["OPTIONS"].get("timeout", 5.0)
        connection: Any = self.connection
        (usual,) = connection.execute("PRAGMA busy_timeout").fetchone()
        connection.execute("PRAGMA busy_timeout = 0")
        try:
            # It cannot be changed inside the transaction.
            self._to_be_synced = self._is_full() and self.transaction_mode != "DEFERRED"
            if self._to_be_synced:
                connection.execute("PRAGMA synchronous = NORMAL")
            while not self._begin(time.monotonic() > deadline):
                time.sleep(random.uniform(*_PAUSE))  # noqa: S311 nothing secret
        except BaseException:
            self._be_full_again()
            raise
        finally:
            connection.execute(f"PRAGMA busy_timeout = {usual}")

    def _commit(self) -> None:
        super()._commit()  # type: ignore[misc]
        if self._be_full_again():
            # Under NORMAL nothing leaves the log for the database, nor is written over in it, that is not on the disk.
            with Path(f"{self.settings_dict['NAME']}-wal").open("rb") as log:
                os.fsync(log.fileno())

    def _rollback(self) -> None:
        super()._rollback()  # type: ignore[misc]
        self._be_full_again()

    def _is_full(self) -> bool:
        """Return whether every commit is to be on the disk, of a database that is a file with a log."""
        connection: Any = self.connection
        if not isinstance(self.settings_dict["NAME"], Path):
            return False
        ((level,), (mode,)) = (
            connection.execute(f"PRAGMA {name}").fetchone()
            for name in ("synchronous", "journal_mode")
        )
        return bool(level == _FULL and mode == "wal")

    def _be_full_again(self) -> bool:
        """Return whether a transaction was begun under FULL, which holds again from here on."""
        begun, self._to_be_synced = self._to_be_synced, False
        if begun and self.connection is not None:
            self.connection.execute("PRAGMA synchronous = FULL")
        return begun

    def _begin(self, last: bool) -> bool:
        try:
            super()._start_transaction_under_autocommit()  # type: ignore[misc]
        except OperationalError as error:
            if last or "locked" not in str(error):
                raise
            return False
        return True


def _is_read_only(path: Path) -> bool:
    """Return whether a database is on a read-only disk and was closed in order, so that it is complete without its log.

    SQLite would create the log's index. If the log still exists, so does its index, and SQLite reads both.
    """
    log = path.with_name(f"{path.name}-wal")
    try:
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY) and not (
            log.exists() and log.stat().st_size
        )
    except OSError:
        return False
