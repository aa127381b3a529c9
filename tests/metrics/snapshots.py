"""A database that others write to while an answer is made."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from django.db import connections

Write = Callable[[str], None]
# As services raise revisions, in the transaction of the change.
_RAISE = """
INSERT INTO runs_revisionpart (collection_id, changes, others) SELECT id, 1, 1 FROM runs_collection
"""


@contextmanager
def in_a_file(path: Path) -> Iterator[Write]:
    """Everything asks a copy of the test's database, in a file as the product has it; yields what writes beside it.

    In memory all connections lock each other's tables, and a test's own transaction would see
    everything it writes.
    """
    memory = connections["default"]
    with closing(sqlite3.connect(path)) as copy:
        memory.connection.backup(copy)
        copy.execute("PRAGMA journal_mode = WAL")
    settings = {**memory.settings_dict, "NAME": str(path)}
    file: Any = memory.__class__(settings, "default")
    with closing(sqlite3.connect(path, isolation_level=None)) as beside:
        connections["default"] = file

        def write(sql: str) -> None:
            beside.execute("BEGIN IMMEDIATE")
            beside.execute(sql)
            beside.execute(_RAISE)
            beside.execute("COMMIT")

        try:
            yield write
        finally:
            file.close()
            connections["default"] = memory


def through_another_connection(write: Callable[[], object]) -> None:
    """Call `write` in a thread whose connection to the same database is its own."""
    here: Any = connections["default"]

    def work() -> None:
        connections["default"] = connection = here.__class__({**here.settings_dict}, "default")
        try:
            write()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as thread:
        thread.submit(work).result()
