"""An object store that goes away, answers wrongly or knows nobody; the copies that machines keep of its files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.test import Client
from rest_framework.test import APIClient

from evalhub.environment import files_location
from metrics.models import Evaluation
from runs.errors import StorageUnavailable, StoredFileCorrupt
from runs.models import Run
from runs.services.storage.files import read_stored, storing
from runs.services.storage.install_marker import remember
from runs.services.storage.installs import settle
from runs.services.storage.stores import cache, objects, s3
from runs.services.storage.stores.chosen import the_store
from runs.services.storage.stores.location import Location, parse_location
from runs.services.storage.stores.locks import database_lock
from runs.services.submissions.sweeping import sweep
from tests.conftest import GOOD, POOR, evaluate_all, upload
from tests.objects import BUCKET, KEY, Objects
from tests.objects import objects as serve_objects
from tests.runs.test_stores import keep, name_of, uploaded

RUNS = "collections/small/runs/"


@pytest.fixture
def served(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Objects]:
    """The object store of the settings."""
    pytest.importorskip("botocore")
    monkeypatch.setattr(s3, "_TRIES", 1)
    with serve_objects() as store:
        settings.EVALHUB_FILES = parse_location(store.url("p"), "", "")
        yield store


def read(sha256: str) -> bytes:
    return read_stored(sha256, lambda opener: opener().read(-1))


def copies(settings: Any) -> list[Path]:
    return sorted((settings.EVALHUB_DATA / "cache").glob("*"))


@pytest.mark.parametrize(
    "refuses", [(0, ""), (500, "InternalError"), (503, "SlowDown"), (403, "AccessDenied")]
)
def test_a_store_that_is_away_refuses_submissions_and_delays_evaluations(
    api: APIClient, served: Objects, collection: str, settings: Any, refuses: tuple[int, str]
) -> None:
    settle()
    assert upload(api, RUNS, GOOD).status_code == 202
    served.refuses = refuses
    the_store()._marker = None  # type: ignore[attr-defined]
    answer = upload(api, RUNS, POOR)
    assert (answer.status_code, answer.json()["code"]) == (503, "storage_unavailable")
    assert "Retry-After" in answer.headers
    assert not list((settings.EVALHUB_DATA / "uploads").glob("*"))
    for path in copies(settings):
        path.unlink()
    assert evaluate_all() == 0
    waiting = Evaluation.objects.get()
    assert (waiting.state, waiting.error_code, waiting.attempts) == (
        "queued",
        "storage_unavailable",
        0,
    )
    reasons = [reason["code"] for reason in Client().get("/readyz").json()["reasons"]]
    assert "storage_unavailable" in reasons
    served.refuses = None
    Evaluation.objects.update(not_before=None)
    assert evaluate_all() == 1


def test_copies_are_read_while_the_store_is_away(
    api: APIClient, served: Objects, collection: str, settings: Any
) -> None:
    settle()
    assert upload(api, RUNS, GOOD).status_code == 202
    assert len(copies(settings)) == 2
    served.refuses = 0, ""
    assert evaluate_all() == 1
    assert b"".join(api.get(f"/api/v1/runs/{Run.objects.get().pk}/file/")) == GOOD.encode()


def test_a_damaged_copy_is_fetched_again(db: None, served: Objects, settings: Any) -> None:
    sha256 = keep(b"whole")
    (copy,) = copies(settings)
    copy.write_bytes(b"other")
    assert read(sha256) == b"whole"
    (copy,) = copies(settings)
    assert (copy.name, copy.stat().st_mode & 0o77) == (sha256, 0)
    copy.write_bytes(b"other")
    served.stored[f"p/files/{sha256[:2]}/{sha256}"] = b"another", 0.0
    with pytest.raises(StoredFileCorrupt):
        read(sha256)


def test_what_was_cut_off_is_asked_for_again_and_never_kept(
    db: None, served: Objects, settings: Any
) -> None:
    sha256 = keep(os.urandom(100_000))
    copies(settings)[0].unlink()
    served.cut = 50_000
    assert name_of(read(sha256)) == sha256
    assert len(copies(settings)) == 1


def test_copies_have_a_limit(
    db: None, served: Objects, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.EVALHUB_FILES_CACHE_BYTES = 100_000
    names = [keep(os.urandom(30_000)) for _ in range(10)]
    assert all(name_of(read(name)) == name for name in names)
    assert sum(path.stat().st_size for path in copies(settings)) <= 100_000
    # The one read last is among them, and one that is too large is none.
    assert copies(settings)[0].parent / names[-1] in copies(settings)
    large = keep(os.urandom(200_000))
    assert name_of(read(large)) == large
    assert not (settings.EVALHUB_DATA / "cache" / large).exists()
    monkeypatch.setattr(cache, "_UNREAD_SECONDS", -1.0)
    sweep()
    assert copies(settings) == []


def test_a_name_is_not_relied_on_while_a_deletion_may_take_effect(
    api: APIClient, served: Objects, submit: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sweeper that died had announced that it deletes a file, and perhaps sent the request."""
    settle()
    sha256 = name_of(POOR.encode())
    with storing():
        the_store().add(uploaded(POOR.encode()), sha256)

    def die() -> None:
        raise StorageUnavailable("no answer")

    with monkeypatch.context() as patch:
        patch.setattr(s3.Bucket, "signed_deletion", lambda bucket, key: die)
        with pytest.raises(StorageUnavailable):
            the_store().delete(sha256)
    assert not the_store().has(sha256)
    answer = upload(api, RUNS, POOR)
    assert (answer.status_code, answer.json()["code"]) == (503, "storage_unavailable")
    served.age(s3.SIGNED_SECONDS + 10)
    assert upload(api, RUNS, POOR).status_code == 202
    assert sweep().files == 0
    assert not any("deleting/" in key for key in served.stored)


def test_a_marker_of_another_install_is_noticed_by_a_running_service(
    api: APIClient, served: Objects, collection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle()
    monkeypatch.setattr(objects, "_REMEMBERED_SECONDS", 0.0)
    served.stored["p/files/install.id"] = b"12345678-1234-1234-1234-123456789012\n", 0.0
    assert upload(api, RUNS, GOOD).json()["code"] == "wrong_store"
    del served.stored["p/files/install.id"]
    assert upload(api, RUNS, GOOD).json()["code"] == "storage_unavailable"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"key": "other"}, "does not know the access key.*EVALHUB_FILES_KEY"),
        ({"bucket": "no-bucket"}, "no such bucket"),
    ],
)
def test_commands_say_what_is_wrong_with_the_store(
    db: None, served: Objects, settings: Any, change: dict[str, str], message: str
) -> None:
    settings.EVALHUB_FILES = parse_location(served.url(**change), "", "")
    for command in (["check", "--services"], ["sweep"], ["fsck"], ["adopt"]):
        with pytest.raises(CommandError, match=message):
            call_command(*command)
    settings.EVALHUB_FILES = parse_location(served.url(), "", "")
    served.refuses = 0, ""
    with pytest.raises(CommandError, match=r"^the file store s3://.* does not answer$"):
        call_command("sweep")
    remember(unmarked=True)


def test_nothing_of_the_environment_is_read_for_it(
    db: None, served: Objects, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in (
        "AWS_PROFILE",
        "AWS_ACCESS_KEY_ID",
        "AWS_DEFAULT_REGION",
        "AWS_CONFIG_FILE",
        "AWS_CA_BUNDLE",
    ):
        monkeypatch.setenv(name, str(tmp_path / "nothing"))
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert read(keep(b"content")) == b"content"


def test_no_request_is_made_where_files_are_in_the_folder(
    db: None, served: Objects, settings: Any
) -> None:
    settings.EVALHUB_FILES = None
    assert read(keep(b"content")) == b"content"
    assert served.requests == []


def test_a_row_is_not_acknowledged_where_its_lock_was_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = SimpleNamespace(in_atomic_block=False, connection=object())
    monkeypatch.setattr("runs.services.storage.stores.locks.connection", lost)
    monkeypatch.setattr("runs.services.storage.stores.locks._ask", lambda function, number: True)
    with database_lock(shared=True):
        pass
    with (
        pytest.raises(StorageUnavailable, match="send the request again"),
        database_lock(shared=True),
    ):
        lost.connection = None


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("s3://runs", Location("runs", "", None, "us-east-1", "virtual", "k", "s")),
        (
            "s3://a:b%2Fc@runs/x/y/?region=eu-1",
            Location("runs", "x/y/", None, "eu-1", "virtual", "a", "b/c"),
        ),
        (
            "s3://runs?endpoint=http://127.0.0.1:9000",
            Location("runs", "", "http://127.0.0.1:9000", "us-east-1", "path", "k", "s"),
        ),
        ("", None),
    ],
)
def test_addresses_of_stores(url: str, expected: Location | None) -> None:
    assert files_location(url, "k", "s") == expected


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("https://s3.example.org/runs", "names no bucket"),
        ("s3://", "names no bucket"),
        ("s3://Runs", "names no bucket"),
        ("s3://runs/../x", "a prefix has"),
        ("s3://runs?endpoint=s3.example.org", "its endpoint is such as"),
        ("s3://runs?regoin=eu-1", "and not regoin"),
        ("s3://runs?style=odd", "path or virtual"),
        ("s3://runs?x", "it is such as"),
    ],
)
def test_what_is_no_address_of_a_store(url: str, message: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"EVALHUB_FILES_URL: .*{message}"):
        files_location(url, "a-key", "a-secret")


def test_an_address_without_credentials_and_one_that_hides_them() -> None:
    with pytest.raises(ImproperlyConfigured, match="EVALHUB_FILES_SECRET"):
        files_location("s3://runs", "a-key", "")
    location = files_location(f"s3://{KEY}:hidden@{BUCKET}", "", "")
    assert "hidden" not in f"{location} {location!r}"
