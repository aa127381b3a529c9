"""How writers of SQLite take turns."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from django.conf import settings
from django.db import DatabaseError, OperationalError, connections
from django.db.utils import ConnectionHandler

from evalhub.serving.sqlite.base import DatabaseWrapper
from evalhub.settings import _sqlite
from runs.errors import says_damaged

PATIENCE = 2


@pytest.fixture
def writer(tmp_path: Path, db: None) -> Iterator[DatabaseWrapper]:
    """A connection as the service has it, to a database of its own."""
    path = tmp_path / "x.sqlite3"
    # As migrate makes it: a connection opens what there is.
    path.touch()
    handler = ConnectionHandler({"default": _sqlite(path, PATIENCE)})
    connection = handler["default"]
    assert isinstance(connection, DatabaseWrapper)
    connection.ensure_connection()
    yield connection
    connection.close()


@pytest.fixture
def other(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(
        sqlite3.connect(tmp_path / "x.sqlite3", isolation_level=None, check_same_thread=False)
    ) as connection:
        yield connection


def begin(connection: DatabaseWrapper) -> float:
    """Begin a transaction; how long it waited."""
    start = time.monotonic()
    connection.set_autocommit(False, force_begin_transaction_with_broken_autocommit=True)
    return time.monotonic() - start


def pragma(connection: DatabaseWrapper, name: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA {name}")
        return int(cursor.fetchone()[0])


def test_the_service_uses_it() -> None:
    if connections["default"].vendor == "sqlite":
        assert settings.DATABASES["default"]["ENGINE"] == "evalhub.serving.sqlite"


def test_a_writer_takes_its_turn_soon_after_the_other_is_done(
    writer: DatabaseWrapper, other: sqlite3.Connection
) -> None:
    other.execute("BEGIN IMMEDIATE")
    done: list[float] = []

    def let_go() -> None:
        other.execute("ROLLBACK")
        done.append(time.monotonic())

    timer = threading.Timer(0.5, let_go)
    timer.start()
    begin(writer)
    assert done
    assert pragma(writer, "busy_timeout") == 1000 * PATIENCE
    timer.join()
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        other.execute("PRAGMA busy_timeout = 0").execute("BEGIN IMMEDIATE")


def test_a_writer_whose_turn_does_not_come_gives_up(
    writer: DatabaseWrapper, other: sqlite3.Connection
) -> None:
    other.execute("BEGIN IMMEDIATE")
    start = time.monotonic()
    with pytest.raises(OperationalError, match="locked"):
        begin(writer)
    assert time.monotonic() - start >= PATIENCE
    other.execute("ROLLBACK")
    assert pragma(writer, "busy_timeout") == 1000 * PATIENCE
    begin(writer)


def test_what_is_wrong_otherwise_is_not_waited_for(writer: DatabaseWrapper) -> None:
    begin(writer)
    with pytest.raises(OperationalError, match="within a transaction"):
        begin(writer)


def test_every_commit_waits_for_the_disk(writer: DatabaseWrapper) -> None:
    full = 2
    assert pragma(writer, "synchronous") == full


@pytest.mark.django_db
def test_a_name_in_the_schema_that_is_no_text_says_that_the_database_is_damaged(
    tmp_path: Path,
) -> None:
    """SQLite quotes the name in its message, which Python then cannot decode."""
    path = tmp_path / "x.sqlite3"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE known (id INTEGER)")
    content = path.read_bytes()
    assert content.count(b"TABLE known") == 1
    path.write_bytes(content.replace(b"tableknown", b"table\xebnown"))
    handler = ConnectionHandler({"default": _sqlite(path, PATIENCE)})
    with pytest.raises(DatabaseError, match="malformed") as raised:
        handler["default"].ensure_connection()
    assert says_damaged(raised.value)
