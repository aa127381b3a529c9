"""What every store of files promises: the folder, and an object store.

The object store is that of EVALHUB_TEST_FILES_URL, or a SeaweedFS where one is installed, or else
one in this process, which is no proof that a real one behaves the same.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.db import OperationalError, connection, connections
from rest_framework.test import APIClient

from metrics.services.upkeep.integrity import find_faults
from runs.errors import (
    ClientLeft,
    Conflict,
    StorageUnavailable,
    StoredFileCorrupt,
    StoredFileMissing,
)
from runs.models import Collection, Qrels, Run, User
from runs.services.collections.qrels import import_qrels
from runs.services.storage.files import (
    StoredFile,
    examine_stored,
    keep_file,
    read_stored,
    storing,
    try_store,
    upload_folder,
)
from runs.services.storage.files import sweeping as lock_for_sweeping
from runs.services.storage.install_marker import read_marker
from runs.services.storage.installs import judge, settle
from runs.services.storage.stores.chosen import the_store
from runs.services.storage.stores.folder import stored_path
from runs.services.storage.stores.location import parse_location
from runs.services.storage.stores.locks import database_lock
from runs.services.submissions import sweeping
from runs.services.submissions.sweeping import sweep
from tests.conftest import GOOD, POOR, SESSIONS, client_of, evaluate_all, upload
from tests.objects import objects
from tests.reliability.backups import restore, start_anew
from tests.reliability.rigs import WEED, own_objects


@pytest.fixture(scope="module")
def object_store() -> Iterator[Callable[[str], str]]:
    """The URL of a prefix of the object store."""
    pytest.importorskip("botocore")
    if url := os.environ.get("EVALHUB_TEST_FILES_URL"):
        yield lambda prefix: url.replace("PREFIX", prefix)
    elif WEED:
        with own_objects() as server:
            yield server.url
    else:
        with objects() as store:
            yield store.url


@pytest.fixture(params=["folder", "objects"])
def store(request: pytest.FixtureRequest, settings: Any) -> Any:
    """The store under test, which is empty."""
    if request.param == "objects":
        url = request.getfixturevalue("object_store")(f"t{secrets.token_hex(6)}")
        settings.EVALHUB_FILES = parse_location(url, "", "")
    return the_store()


def name_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def uploaded(content: bytes) -> Path:
    path = upload_folder() / f"{secrets.token_hex(8)}.upload"
    path.write_bytes(content)
    return path


def keep(content: bytes) -> str:
    """Store a file, compressed as it may come; returns its name."""
    with storing():
        keep_file(uploaded(gzip.compress(content)), name_of(content))
    return name_of(content)


def downloaded(sha256: str) -> bytes:
    with closing(StoredFile(sha256)) as file:
        return file.read()


def damage(store: Any, sha256: str, content: bytes) -> None:
    """Put other bytes in the place of a stored file, as nothing of EvalHub does."""
    if store.noun == "data folder":
        stored_path(sha256).write_bytes(content)
    else:
        store._bucket.put(f"files/{sha256[:2]}/{sha256}", content)


def lose(store: Any, sha256: str) -> None:
    store.delete(sha256)


def test_a_file_is_stored_once_and_read_by_its_name(db: None, store: Any) -> None:
    first, second = keep(b"first"), keep(b"second" * 1_000_000)
    assert keep(b"first") == first
    assert sorted(entry.sha256 for entry in store.entries()) == sorted([first, second])
    assert all(-5 < entry.age < 60 for entry in store.entries())
    assert (store.has(first), store.has(name_of(b"other"))) == (True, False)
    assert read_stored(first, lambda opener: opener().read(-1)) == b"first"
    assert downloaded(second) == b"second" * 1_000_000
    assert [examine_stored(name).state for name in (first, name_of(b"other"))] == [
        "sound",
        "missing",
    ]
    with pytest.raises(StoredFileMissing):
        read_stored(name_of(b"other"), lambda opener: opener().read(-1))


def test_of_two_that_store_the_same_file_one_makes_it(db: None, store: Any) -> None:
    results, content = [], gzip.compress(b"same" * 10_000)
    paths = [uploaded(content) for _ in range(8)]
    threads = [
        threading.Thread(
            target=lambda path=path: results.append(store.add(path, name_of(b"same" * 10_000)))
        )
        for path in paths
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [False] * 7 + [True]


def test_a_damaged_file_is_detected_and_replaced(db: None, store: Any) -> None:
    sha256 = keep(b"whole")
    damage(store, sha256, b"other")
    store.forget_copy(sha256)
    for read in (
        lambda: read_stored(sha256, lambda opener: opener().read(-1)),
        lambda: downloaded(sha256),
    ):
        with pytest.raises(StoredFileCorrupt):
            read()
    assert examine_stored(sha256).state == "altered"
    keep(b"whole")
    assert (examine_stored(sha256).state, downloaded(sha256)) == ("sound", b"whole")


def test_a_marker_stays_unless_it_is_replaced(db: None, store: Any) -> None:
    assert (judge(), store.read_marker()) == ("new", None)
    install = settle()
    store.write_marker("another", replace=False)
    assert (settle(), read_marker(), judge()) == (install, install, "ours")
    store.write_marker("another", replace=True)
    assert store.read_marker() == "another"


def test_probes_leave_no_file(db: None, store: Any) -> None:
    settle()
    try_store()
    try_store()
    assert list(store.entries()) == []


def test_the_sweeper_deletes_old_files_that_no_row_names(
    store: Any, submit: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, orphan = submit(GOOD), keep(b"nobody's")
    assert sweep().files == 0
    monkeypatch.setattr(sweeping, "AGE", timedelta(seconds=-60))
    assert (sweep().files, store.has(orphan), store.has(run.sha256)) == (1, False, True)
    assert sweep().files == 0


@pytest.mark.django_db(transaction=True)
def test_the_sweeper_waits_for_nobody_and_submissions_wait_for_it(store: Any) -> None:
    entered = threading.Event()

    def submit_meanwhile() -> None:
        with storing():
            entered.set()
        connection.close()

    with storing(), storing():

        def sweep_meanwhile() -> None:
            with pytest.raises(BlockingIOError), lock_for_sweeping():
                pass
            entered.set()
            connection.close()

        thread = threading.Thread(target=sweep_meanwhile)
        thread.start()
        thread.join()
        assert entered.is_set()
    entered.clear()
    with lock_for_sweeping():
        thread = threading.Thread(target=submit_meanwhile)
        thread.start()
        assert not entered.wait(0.2)
    thread.join()
    assert entered.is_set()


def stored_names(store: Any) -> set[str]:
    return {entry.sha256 for entry in store.entries()}


def test_a_refused_file_is_not_kept(
    store: Any, api: APIClient, collection: str, settings: Any
) -> None:
    api.patch(f"/api/v1/collections/{collection}/", {"daily_submissions": 1}, format="json")
    first = upload(api, f"collections/{collection}/runs/", GOOD)
    assert first.status_code == 202
    stored = stored_names(store)
    for number in range(10):
        run = GOOD.replace("good", f"run-{number}")
        assert upload(api, f"collections/{collection}/runs/", run).status_code == 429
    sessions = upload(api, f"collections/{collection}/sessions/", SESSIONS, tag="s")
    assert sessions.json()["code"] == "quota_exceeded"
    form = {"file": ("run", POOR), "known": ("known", "1 a\n")}
    both = {name: SimpleUploadedFile(file, text.encode()) for name, (file, text) in form.items()}
    refused = api.post(f"/api/v1/collections/{collection}/runs/", both, format="multipart")
    assert refused.status_code == 429

    settings.EVALHUB_RUN_ARTIFACTS = 0
    artifact = {"file": SimpleUploadedFile("a.txt", b"text")}
    attached = api.post(
        f"/api/v1/runs/{first.json()['id']}/artifacts/", artifact, format="multipart"
    )
    assert attached.json()["code"] == "artifact_quota"

    def refuse(qrels: Qrels, new: bool) -> None:
        raise Conflict("the key of the request is taken")

    with pytest.raises(Conflict):
        import_qrels(
            collection=Collection.objects.get(slug=collection),
            user=None,
            upload=uploaded(b"1 0 a 1\n"),
            activate=False,
            enqueue=bool,
            accept=refuse,
        )
    assert stored_names(store) == stored
    assert not list(upload_folder().glob("*.lock"))


def store_in_vain(
    content: bytes, error: Exception | None = None, meanwhile: Callable[[], object] = bool
) -> None:
    """Store a file in a request that then fails, by default because it is refused."""
    with storing():
        keep_file(uploaded(content), name_of(content))
        meanwhile()
        raise error or Conflict("refused")


@pytest.mark.parametrize("error", [ClientLeft(), OSError(28, "No space left on device")])
def test_a_file_goes_with_a_request_that_ends_early(db: None, store: Any, error: Exception) -> None:
    with pytest.raises(type(error)):
        store_in_vain(b"unfinished", error)
    assert stored_names(store) == set()


def test_a_file_stays_where_the_database_may_have_committed_its_row(db: None, store: Any) -> None:
    with pytest.raises(OperationalError):
        store_in_vain(b"unsure", OperationalError("the connection was lost"))
    assert stored_names(store) == {name_of(b"unsure")}


def refuse_in_another_request(content: bytes) -> None:
    def refuse() -> None:
        with pytest.raises(Conflict):
            store_in_vain(content)
        connections.close_all()

    thread = threading.Thread(target=refuse)
    thread.start()
    thread.join()


def test_a_refusal_leaves_the_files_of_rows(
    store: Any, api: APIClient, collection: str, submit: Callable[..., Run]
) -> None:
    run = submit(GOOD)
    api.patch(f"/api/v1/collections/{collection}/", {"daily_submissions": 1}, format="json")
    query = {"tag": "another"}
    assert upload(api, f"collections/{collection}/runs/", GOOD, **query).status_code == 429
    assert store.has(run.sha256)
    api.delete(f"/api/v1/runs/{run.pk}/")
    assert upload(api, f"collections/{collection}/runs/", GOOD, **query).status_code == 429
    assert store.has(run.sha256)


@pytest.mark.django_db(transaction=True)
def test_a_refusal_leaves_a_file_that_another_request_is_storing(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other request is accepted, or refused as the last one; each thread has a connection of its own."""
    monkeypatch.setattr("runs.services.storage.files.has_row", lambda sha256: False)
    content, other = b"same bytes", b"other bytes"
    with storing():
        keep_file(uploaded(content), name_of(content))
        refuse_in_another_request(content)
        refuse_in_another_request(other)
        assert stored_names(store) == {name_of(content)}
    assert stored_names(store) == {name_of(content)}
    with pytest.raises(Conflict):
        store_in_vain(content, meanwhile=lambda: refuse_in_another_request(content))
    assert stored_names(store) == set()


@pytest.mark.django_db(transaction=True)
def test_a_submission_waits_for_the_deletion_of_its_file(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise it would find a file that a refused request is about to delete."""
    sha256, stored = name_of(b"same bytes"), threading.Event()

    def store_meanwhile() -> None:
        with storing():
            keep_file(uploaded(b"same bytes"), sha256)
            stored.set()
        connections.close_all()

    thread = threading.Thread(target=store_meanwhile)

    def delete_slowly(name: str) -> bool:
        thread.start()
        assert not stored.wait(0.3)
        return False

    monkeypatch.setattr("runs.services.storage.files.has_row", delete_slowly)
    with pytest.raises(Conflict):
        store_in_vain(b"same bytes")
    thread.join()
    assert (stored.is_set(), examine_stored(sha256).state) == (True, "sound")


@pytest.mark.django_db(transaction=True)
def test_requests_at_once_store_and_refuse_the_same_bytes(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the order, a file is there while it is stored, and gone after the last refusal."""
    monkeypatch.setattr("runs.services.storage.files.has_row", lambda sha256: False)
    monkeypatch.setattr("runs.services.storage.files.check_store", bool)
    contents = [f"file {number}".encode() for number in range(3)]
    missing = []

    def refuse(first: int) -> None:
        for number in range(first, first + 30):
            content = contents[number % 3]

            def look(name: str = name_of(content)) -> None:
                if not store.has(name):
                    missing.append(name)

            with pytest.raises(Conflict):
                store_in_vain(content, meanwhile=look)
        connections.close_all()

    threads = [threading.Thread(target=refuse, args=(first,)) for first in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (missing, stored_names(store)) == ([], set())


@pytest.mark.django_db(transaction=True)
def test_runs_are_evaluated_checked_backed_up_and_restored(
    api: APIClient,
    store: Any,
    collection: str,
    tmp_path: Path,
    settings: Any,
    object_store: Callable[[str], str],
) -> None:
    assert upload(api, "collections/small/runs/", GOOD).status_code == 202
    assert evaluate_all() == 1
    run = Run.objects.get()
    assert b"".join(api.get(f"/api/v1/runs/{run.pk}/file/")) == GOOD.encode()
    settle()
    assert [finding for finding in find_faults() if not finding.note] == []
    call_command("backup", str(tmp_path / "backup.tar"))
    lose(store, run.sha256)
    assert [finding.code for fast in (True, False) for finding in find_faults(fast=fast)].count(
        "file_missing"
    ) == 2
    assert upload(api, "collections/small/runs/", GOOD).status_code == 200
    start_anew(settings, tmp_path / "other")
    if settings.EVALHUB_FILES:
        settings.EVALHUB_FILES = parse_location(object_store(f"t{secrets.token_hex(6)}"), "", "")
    assert "restored" in restore(tmp_path / "backup.tar")
    assert [finding for finding in find_faults() if not finding.note] == []
    assert {entry.sha256 for entry in the_store().entries()} >= {run.sha256}


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor == "sqlite", reason="of PostgreSQL's locks")
def test_a_submission_waits_for_a_deletion_no_longer_than_for_any_lock() -> None:
    with database_lock(shared=False):

        def submit_meanwhile() -> None:
            with connection.cursor() as cursor:
                cursor.execute("SET lock_timeout = 50")
            with (
                pytest.raises(StorageUnavailable, match="deleting a file"),
                database_lock(shared=True),
            ):
                pass
            connection.close()
            refused.append(True)

        refused: list[bool] = []
        thread = threading.Thread(target=submit_meanwhile)
        thread.start()
        thread.join()
    assert refused


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor == "sqlite", reason="in memory it has one connection")
def test_what_is_accepted_is_stored_whatever_is_swept_meanwhile(
    alice: User, api: APIClient, store: Any, collection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same files are submitted and withdrawn all the time, and swept as soon as no row names them."""
    settle()
    monkeypatch.setattr(sweeping, "AGE", timedelta(seconds=-60))
    monkeypatch.setattr(sweeping, "delete_old_uploads", int)
    # Until one was swept: two threads may leave no moment without a row for long.
    enough, ends, stored, swept = 1, time.monotonic() + 300, [], []

    def goes_on() -> bool:
        return sum(swept) < enough and time.monotonic() < ends and not stored

    def submit_and_withdraw(number: int) -> None:
        client = client_of(alice)
        while goes_on():
            answer = upload(client, "collections/small/runs/", GOOD, tag=f"run{number}")
            if answer.status_code != 202:
                stored.append(f"{answer.status_code} {answer.content!r}")
            elif examine_stored(Run.objects.get(pk=answer.json()["id"]).sha256).state != "sound":
                stored.append("accepted, and not stored")
            client.delete(answer.json()["url"])
        connection.close()

    def sweep_all() -> None:
        while goes_on():
            swept.append(sweep(1000).files)
        connection.close()

    threads = [threading.Thread(target=submit_and_withdraw, args=(number,)) for number in (2, 3)]
    threads += [threading.Thread(target=sweep_all) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stored == []
    assert sum(swept) >= enough
