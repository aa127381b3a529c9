"""The database wrapper that Django loads for ENGINE = "evalhub.serving.sqlite"."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import Any

from django.db import DatabaseError, OperationalError
from django.db.backends.sqlite3 import base

# Seconds between two attempts: a writer holds the lock for a few milliseconds.
_PAUSE = (0.001, 0.003)


class DatabaseWrapper(base.DatabaseWrapper):
    """Try to get the write lock every two milliseconds.

    SQLite itself pauses longer and longer, up to a tenth of a second, while others get the lock. Of
    eight simultaneous writers, one in twenty waited four times as long as the median.
    """

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Open an existing database; on a read-only disk, for reading.

        Only `evalhub migrate` creates one: a folder that is missing for a while must not come back
        empty.
        """
        path = self.settings_dict["NAME"]
        if isinstance(path, Path):
            mode = "immutable=1" if _is_read_only(path) else "mode=rw"
            conn_params = {**conn_params, "database": f"{path.as_uri()}?{mode}", "uri": True}

        try:
            return super().get_new_connection(conn_params)
        except UnicodeDecodeError as error:
            # The message of SQLite contains a part of the damaged schema.
            raise DatabaseError("malformed database schema") from error

    def _start_transaction_under_autocommit(self) -> None:
        deadline = time.monotonic() + self.settings_dict["OPTIONS"].get("timeout", 5.0)
        connection: Any = self.connection
        (timeout,) = connection.execute("PRAGMA busy_timeout").fetchone()
        connection.execute("PRAGMA busy_timeout = 0")

        try:
            while not self._begin(time.monotonic() > deadline):
                time.sleep(random.uniform(*_PAUSE))  # noqa: S311 nothing secret
        finally:
            connection.execute(f"PRAGMA busy_timeout = {timeout}")

    def _begin(self, last: bool) -> bool:
        try:
            super()._start_transaction_under_autocommit()  # type: ignore[misc]
        except OperationalError as error:
            if last or "locked" not in str(error):
                raise
            return False

        return True


def _is_read_only(path: Path) -> bool:
    """Return whether a database is on a read-only disk, and complete without its log.

    SQLite would create the index of the log. If the log still exists, so does its index, and SQLite
    reads both.
    """
    log = path.with_name(f"{path.name}-wal")
    try:
        return bool(os.statvfs(path).f_flag & os.ST_RDONLY) and not (
            log.exists() and log.stat().st_size
        )
    except OSError:
        return False
