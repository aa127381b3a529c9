"""A disk that is full, a database that is locked: the client is told to come back, and nothing is left behind."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import (
    DatabaseError,
    InterfaceError,
    InternalError,
    OperationalError,
    ProgrammingError,
)
from django.test import Client
from rest_framework.test import APIClient

from evalhub.cli import main
from runs.api.submissions import submissions
from runs.models import Collection, Run
from runs.services.storage import files
from runs.web import uploads
from tests.conftest import GOOD, upload

pytestmark = pytest.mark.words

RUNS = "collections/small/runs/"


def full(*arguments: Any, **named: Any) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


class FullFile:
    """A temporary file on a disk with no room for its content."""

    def __init__(self, file: Any) -> None:
        self._file = file

    write = full

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@pytest.mark.parametrize("form", [True, False])
def test_no_room_for_an_upload(
    api: APIClient, collection: str, monkeypatch: pytest.MonkeyPatch, settings: Any, form: bool
) -> None:
    make = uploads.tempfile.NamedTemporaryFile
    with monkeypatch.context() as patch:
        patch.setattr(
            uploads.tempfile, "NamedTemporaryFile", lambda **options: FullFile(make(**options))
        )
        if form:
            fields = {"file": SimpleUploadedFile("run", GOOD.encode())}
            answer = api.post(f"/api/v1/{RUNS}", fields, format="multipart")
        else:
            answer = upload(api, RUNS, GOOD)
    check_refused(answer, settings.EVALHUB_DATA)
    assert upload(api, RUNS, GOOD).status_code == 202


@pytest.mark.parametrize("function", ["link", "fsync"])
def test_no_room_in_the_store(
    api: APIClient, collection: str, monkeypatch: pytest.MonkeyPatch, settings: Any, function: str
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(files.os, function, full)
        answer = upload(api, RUNS, GOOD)
    check_refused(answer, settings.EVALHUB_DATA)
    assert upload(api, RUNS, GOOD).status_code == 202


@pytest.mark.parametrize(
    "text",
    ["database or disk is full", 'could not extend file "base/5/1": No space left on device'],
)
def test_no_room_in_the_database(
    api: APIClient, collection: str, monkeypatch: pytest.MonkeyPatch, settings: Any, text: str
) -> None:
    def fail(run: Run) -> None:
        raise OperationalError(text)

    with monkeypatch.context() as patch:
        patch.setattr(submissions, "queue_submitted", fail)
        answer = upload(api, RUNS, GOOD)
    check_refused(answer, settings.EVALHUB_DATA)
    assert upload(api, RUNS, GOOD).status_code == 202


def check_refused(answer: Any, data: Path) -> None:
    assert (answer.status_code, answer.json()["code"]) == (507, "storage_full")
    assert answer["Retry-After"] == "60"
    assert not Run.objects.exists()
    assert os.listdir(data / "uploads") == []


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OperationalError("database is locked"), "database_unavailable"),
        (InterfaceError("connection already closed"), "database_unavailable"),
        (InternalError("cannot execute UPDATE in a read-only transaction"), "database_read_only"),
        (OperationalError("attempt to write a readonly database"), "database_read_only"),
        (OperationalError("no such table: runs_run"), "migrations_missing"),
        (ProgrammingError('relation "runs_run" does not exist'), "migrations_missing"),
        (OperationalError('FATAL:  database "evalhub" does not exist'), "database_unavailable"),
        (OSError(errno.EROFS, "Read-only file system"), "storage_unavailable"),
        (OSError(errno.EIO, "Input/output error"), "storage_unavailable"),
        (PermissionError(errno.EACCES, "Permission denied"), "storage_unavailable"),
        (RuntimeError("cannot schedule new futures after interpreter shutdown"), "shutting_down"),
    ],
)
def test_what_passes_by_itself_is_to_be_tried_again(
    api: APIClient, collection: str, monkeypatch: pytest.MonkeyPatch, error: Exception, code: str
) -> None:
    def fail(run: Run) -> None:
        raise error

    monkeypatch.setattr(submissions, "queue_submitted", fail)
    answer = upload(api, RUNS, GOOD)
    assert (answer.status_code, answer.json()["code"], int(answer["Retry-After"]) in (5, 60)) == (
        503,
        code,
        True,
    )
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.EDQUOT, "Disk quota exceeded"), "no space is left on the disk"),
        (OperationalError("no such table: runs_run"), "Run evalhub migrate first"),
        (ProgrammingError('relation "runs_run" does not exist'), "Run evalhub migrate first"),
        (OperationalError("failed: Connection refused"), "the database does not answer"),
        (
            OperationalError('FATAL:  role "evalhub" does not exist'),
            "the database refuses the connection",
        ),
        (OperationalError("FATAL:  no\nFATAL:  no\n"), r"connection \(FATAL: no\)"),
        (
            InternalError("cannot execute UPDATE in a read-only transaction"),
            "the database is read-only",
        ),
    ],
)
def test_a_command_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, error: Exception, message: str
) -> None:
    def fail(arguments: list[str]) -> None:
        raise error

    monkeypatch.setattr(sys, "argv", ["evalhub", "fsck"])
    monkeypatch.setattr("django.core.management.execute_from_command_line", fail)
    with pytest.raises(SystemExit, match=message):
        main()


@pytest.mark.parametrize(
    ("error", "status"),
    [(OperationalError("the server closed the connection"), 503), (InternalError("read-only transaction"), 503),
     (ZeroDivisionError(), 500)],
)  # fmt: skip
def test_what_no_view_catches_is_said_to_be_away_all_the_same(
    client: Client, db: None, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
) -> None:
    """The login asks Django's own view, and the administration all of its."""

    def fail(**credentials: str) -> None:
        raise error

    client.raise_request_exception = False
    monkeypatch.setattr("django.contrib.auth.forms.authenticate", lambda *args, **options: fail())
    answer = client.post("/login/", {"username": "alice", "password": "x"})
    assert (answer.status_code, answer.has_header("Retry-After")) == (status, status == 503)
    assert b"Something went wrong" in answer.content


def test_other_errors_stay_errors(
    api: APIClient, collection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(run: Run) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    api.raise_request_exception = False
    monkeypatch.setattr(submissions, "queue_submitted", fail)
    assert upload(api, RUNS, GOOD).status_code == 500


def test_a_damaged_database_is_named(
    api: APIClient, collection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise DatabaseError("database disk image is malformed")

    monkeypatch.setattr(Collection.objects, "visible_to", fail)
    answer = api.get("/api/v1/collections/")
    assert (answer.status_code, answer.json()["code"]) == (500, "database_damaged")
    page = api.get("/")
    assert page.status_code == 500
    assert "The database is damaged" in page.content.decode()
