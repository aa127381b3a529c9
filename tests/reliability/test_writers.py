"""How writers of SQLite take turns."""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from celery import signals
from django.conf import settings
from django.db import DatabaseError, OperationalError, connections
from django.db.backends.signals import connection_created
from django.db.utils import ConnectionHandler

from evalhub.serving.sqlite import base
from evalhub.serving.sqlite.base import DatabaseWrapper
from evalhub.serving.worker import wait_for_no_disk
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


def test_submissions_wait_for_the_disk_and_evaluations_do_not(tmp_path: Path, db: None) -> None:
    normal, full = 1, 2
    (tmp_path / "x.sqlite3").touch()

    def synchronous() -> int:
        connection = ConnectionHandler({"default": _sqlite(tmp_path / "x.sqlite3", PATIENCE)})[
            "default"
        ]
        assert isinstance(connection, DatabaseWrapper)
        try:
            return pragma(connection, "synchronous")
        finally:
            connection.close()

    # A supervisor loads the module of workers, and its web server's commits wait.
    assert synchronous() == full
    signals.celeryd_init.send(sender="worker")
    try:
        assert synchronous() == normal
    finally:
        assert connection_created.disconnect(wait_for_no_disk)


@pytest.fixture
def full(writer: DatabaseWrapper) -> DatabaseWrapper:
    """A connection of the web server's, whose commits are to be on the disk, with a table to write to."""
    with writer.cursor() as cursor:
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.execute("CREATE TABLE t (x INTEGER)")
    return writer


def add_row(connection: DatabaseWrapper) -> None:
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO t VALUES (1)")


def test_a_transaction_waits_for_the_disk_after_it_has_let_the_next_one_in(
    full: DatabaseWrapper,
    other: sqlite3.Connection,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log, synced = tmp_path / "x.sqlite3-wal", []

    def fsync(descriptor: int) -> None:
        assert os.fstat(descriptor).st_ino == log.stat().st_ino
        # What is waited for is in the log already, and nobody else waits for it.
        other.execute("PRAGMA busy_timeout = 0").execute("BEGIN IMMEDIATE").execute("COMMIT")
        synced.append(other.execute("SELECT count(*) FROM t").fetchone()[0])

    monkeypatch.setattr(base.os, "fsync", fsync)
    for number in (1, 2):
        begin(full)
        add_row(full)
        assert len(synced) == number - 1
        full.commit()
        full.set_autocommit(True)
        assert (synced, pragma(full, "synchronous")) == ([*range(1, number + 1)], 2)


def test_what_writes_nothing_waits_for_no_disk(
    full: DatabaseWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fsync(descriptor: int) -> None:
        raise AssertionError

    monkeypatch.setattr(base.os, "fsync", fsync)
    begin(full)
    add_row(full)
    full.rollback()
    full.set_autocommit(True)
    full.transaction_mode = "DEFERRED"
    begin(full)
    full.commit()
    full.set_autocommit(True)
    assert pragma(full, "synchronous") == 2


def test_a_disk_that_fails_is_told_to_whoever_waits_for_it(
    full: DatabaseWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fsync(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(base.os, "fsync", fsync)
    begin(full)
    add_row(full)
    with pytest.raises(OSError, match="Input/output"):
        full.commit()
    full.set_autocommit(True)
    assert pragma(full, "synchronous") == 2


def test_the_waits_of_several_writers_overlap(
    full: DatabaseWrapper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base.os, "fsync", lambda descriptor: time.sleep(0.3))

    def write() -> None:
        connection = ConnectionHandler({"default": _sqlite(tmp_path / "x.sqlite3", PATIENCE)})[
            "default"
        ]
        assert isinstance(connection, DatabaseWrapper)
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA synchronous = FULL")
        begin(connection)
        add_row(connection)
        connection.commit()
        connection.close()

    start = time.monotonic()
    writers = [threading.Thread(target=write) for _ in range(6)]
    for thread in writers:
        thread.start()
    for thread in writers:
        thread.join()
    assert time.monotonic() - start < 6 * 0.3
    with full.cursor() as cursor:
        assert cursor.execute("SELECT count(*) FROM t").fetchone() == (6,)


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
