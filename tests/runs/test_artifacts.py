"""Artifacts: files beside a run, stored like run files, within limits, and sent as nothing that a browser opens."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import zstandard
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from evalhub.operating.backup import write_backup
from evalhub.operating.restoring import Backup
from metrics.services.upkeep.integrity import find_faults
from runs.errors import UnsupportedFile
from runs.formats.artifacts import TYPES, check_type
from runs.models import Artifact, Run, User
from runs.services.storage.stores.folder import stored_path
from runs.services.submissions.sweeping import is_named, young_strangers
from runs.services.tracking.artifacts import KEPT
from tests.conftest import GOOD, POOR, client_of
from tests.metrics.scored import make_scored, simulated
from tests.web.worlds import body_of

pytestmark = pytest.mark.words

Submit = Callable[..., Run]
SVG = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


def zipped() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a", "b")
    return packed.getvalue()


@pytest.fixture
def run(submit: Submit) -> Run:
    return submit(GOOD)


def send(
    client: APIClient,
    run: Run,
    content: bytes = b"k1: 0.9\n",
    name: str = "config.yaml",
    **fields: str,
) -> Any:
    form = {"file": SimpleUploadedFile(name, content), **fields}
    return client.post(f"/api/v1/runs/{run.pk}/artifacts/", form, format="multipart")


def refusal(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


SENT = {
    "config.yaml": b"k1: 0.9\n", "empty.log": b"", "train.log": b"\x1b[32mepoch 1\x1b[0m\r", "model.png": PNG,
    "log.gz": gzip.compress(b"a" * 200_000), "a b (1).zip": zipped(), "log.zst": zstandard.compress(b"b" * 200_000),
    "pzstd.zst": b"\x50\x2a\x4d\x18\x04\0\0\0skip" + zstandard.compress(b"b" * 200_000),
    "as=sent+@.json": b'{"a": 1}', "UPPER.TXT": "ü".encode(),
}  # fmt: skip


@pytest.mark.queries
def test_what_is_attached_comes_back_as_it_was(
    api: APIClient, anonymous: APIClient, run: Run, tmp_path: Path
) -> None:
    for name, content in SENT.items():
        response = send(api, run, content, name)
        assert (response.status_code, response.json()["name"], response.json()["size"]) == (
            201,
            name,
            len(content),
        )
        assert response["Location"] == response.json()["url"]
        assert send(api, run, content, name).status_code == 200
        answer = anonymous.get(response.json()["url"])
        assert body_of(answer) == content
        assert answer["Content-Type"] == "application/octet-stream"
        assert answer["Content-Disposition"].startswith("attachment; filename")
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert answer["Content-Security-Policy"].startswith("sandbox")
    listed = anonymous.get(f"/api/v1/runs/{run.pk}/artifacts/").json()["results"]
    assert sorted(artifact["name"] for artifact in listed) == sorted(SENT)
    assert list(find_faults()) == []
    write_backup(tmp_path / "b.tar")
    backup = Backup(tmp_path / "b.tar")
    assert {artifact["sha256"] for artifact in listed} <= set(backup.files)
    assert list(backup.faults()) == []
    backup.close()


@pytest.mark.queries
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("picture.png", SVG), ("picture.svg", SVG), ("notes.txt", b"\n <!DOCTYPE html><script>alert(1)</script>"),
        ("notes.md", b"\xef\xbb\xbf<html>"), ("run.exe", b"MZ"), ("README", b"text"), ("a.gz", b"plain"),
        ("a.txt", b"a\x00b"), ("a.csv", b"\xff\xfe1"), ("a.pdf", b"%PD"), (".txt", b"x"), ("a.jpg", PNG),
    ],
)  # fmt: skip
def test_what_is_not_what_its_name_says_is_refused(
    api: APIClient, run: Run, name: str, content: bytes
) -> None:
    assert refusal(send(api, run, content, name)) == (415, "artifact_type")
    assert not Artifact.objects.exists()


def test_text_may_be_cut_in_the_middle_of_a_letter() -> None:
    """What is looked at is the beginning of a file."""
    check_type("a.txt", "ü".encode()[:1])
    with pytest.raises(UnsupportedFile, match="byte 2 is not UTF-8"):
        check_type("a.txt", b"a\xffb")
    for kind, begins in TYPES.items():
        check_type(f"a.{kind}", (begins or (b"text",))[0])


@pytest.mark.parametrize(
    "name", ["../a.txt", "a/b.txt", "a\u202etxt.exe.txt", "a\n.txt", ".a.txt", "x" * 197 + ".txt"]
)
def test_a_name_is_one_that_a_file_may_have_anywhere(api: APIClient, run: Run, name: str) -> None:
    path, raw = f"/api/v1/runs/{run.pk}/artifacts/", {"content_type": "application/octet-stream"}
    named = api.post(path, b"x", query_params={"name": name}, **raw)
    assert (refusal(named), named.json()["errors"][0]["pointer"]) == ((400, "invalid"), "/name")


def test_limits_of_a_file_a_run_and_a_team(api: APIClient, submit: Submit, settings: Any) -> None:
    settings.EVALHUB_MAX_ARTIFACT_BYTES, settings.EVALHUB_RUN_ARTIFACTS = 100, 3
    settings.EVALHUB_TEAM_ARTIFACT_BYTES = 250
    first, second = submit(GOOD), submit(POOR)
    assert refusal(send(api, first, b"x" * 101, "large.txt")) == (413, "artifact_quota")
    huge = api.post(
        f"/api/v1/runs/{first.pk}/artifacts/",
        b"x",
        content_type="application/octet-stream",
        CONTENT_LENGTH="2000000",
    )
    assert refusal(huge) == (413, "artifact_quota")
    for number in range(2):
        assert send(api, first, b"%d" % number * 100, f"{number}.txt").status_code == 201
    over = send(api, second, b"x" * 51, "a.txt")
    assert refusal(over) == (413, "artifact_quota")
    assert send(api, second, b"x" * 50, "a.txt").status_code == 201
    # Deleting makes room, though not for ever: what is deleted is still stored.
    codes = []
    for number in range(4):
        assert api.delete(f"/api/v1/runs/{first.pk}/artifacts/1.txt/").status_code == 204
        codes.append(send(api, first, b"%d" % (number + 2) * 100, "1.txt").status_code)
        if codes[-1] == 413:
            break
    assert codes == [201, 201, 413]
    settings.EVALHUB_TEAM_ARTIFACT_BYTES = 10_000
    for number in range(2, 4):
        assert send(api, first, b"%d" % number, f"{number}.txt").status_code == 201
    assert refusal(send(api, first, b"5", "5.txt")) == (413, "artifact_quota")


def test_who_may_attach_and_delete(
    api: APIClient, bob: User, anonymous: APIClient, run: Run
) -> None:
    for client, status in (
        (anonymous, 401),
        (client_of(bob), 403),
        (client_of(run.submitted_by, ["read"]), 403),
    ):
        assert send(client, run).status_code == status
    assert send(api, run).status_code == 201
    path = f"/api/v1/runs/{run.pk}/artifacts/config.yaml/"
    assert client_of(bob).delete(path).status_code == 403
    assert refusal(send(api, run, b"k1: 1\n")) == (409, "conflict")
    having = api.get("/api/v1/collections/small/leaderboard/", {"filter": "has:artifacts"}).json()[
        "results"
    ]
    assert [row["run"]["tag"] for row in having] == ["good"]
    assert api.delete(path).status_code == 204
    assert (api.delete(path).status_code, api.get(path).status_code) == (404, 404)
    assert send(api, run, b"k1: 1\n").status_code == 201
    assert Artifact.objects.count() == 2
    api.delete(f"/api/v1/runs/{run.pk}/")
    assert api.get(path).status_code == 404


@pytest.mark.queries
def test_a_deleted_file_is_swept_after_thirty_days(api: APIClient, run: Run) -> None:
    sha256 = send(api, run).json()["sha256"]
    assert stored_path(sha256).exists()
    api.delete(f"/api/v1/runs/{run.pk}/artifacts/config.yaml/")
    assert is_named(sha256)
    assert list(young_strangers()) == []
    Artifact.objects.update(deleted_at=timezone.now() - KEPT - timedelta(hours=1))
    assert not is_named(sha256)
    Artifact.objects.update(deleted_at=None)
    Run.objects.filter(pk=run.pk).update(deleted_at=timezone.now() - KEPT + timedelta(hours=1))
    assert is_named(sha256)
    Run.objects.filter(pk=run.pk).update(deleted_at=timezone.now() - KEPT - timedelta(hours=1))
    assert not is_named(sha256)


def test_fsck_finds_a_file_that_is_gone(api: APIClient, run: Run) -> None:
    stored_path(send(api, run).json()["sha256"]).unlink()
    (fault,) = find_faults()
    assert (fault.code, "the file config.yaml of run" in fault.message) == ("file_missing", True)


def test_files_are_attached_and_deleted_in_the_browser(alice: User, bob: User, run: Run) -> None:
    owner, other = Client(), Client()
    owner.force_login(alice)
    other.force_login(bob)
    page, files = f"/runs/{run.pk}/files/", f"/runs/{run.pk}/files/edit/"
    assert "No files are attached" in other.get(page).content.decode()
    assert "Attach a file" not in other.get(page).content.decode()
    assert f'action="{files}"' in owner.get(page).content.decode()
    sent = owner.post(
        files, {"file": SimpleUploadedFile("my config!.yaml", b"k1: 0.9"), "action": "attach"}
    )
    assert (sent.status_code, sent["Location"]) == (303, files)
    html = owner.get(files).content.decode()
    assert "my config-.yaml attached." in html
    assert f"/api/v1/runs/{run.pk}/artifacts/my%20config-.yaml/" in html
    assert "my config-.yaml" in other.get(page).content.decode()
    refused = owner.post(files, {"file": SimpleUploadedFile("a.exe", b"MZ"), "action": "attach"})
    assert (refused.status_code, "name ends with one of txt, md" in refused.content.decode()) == (
        415,
        True,
    )
    nothing = owner.post(files, {"action": "attach"})
    assert (nothing.status_code, "Choose a file first" in nothing.content.decode()) == (400, True)
    assert other.post(files, {"name": "my config-.yaml", "action": "delete"}).status_code == 403
    assert owner.post(files, {"name": "my config-.yaml", "action": "delete"}).status_code == 303
    assert owner.post(files, {"name": "my config-.yaml", "action": "delete"}).status_code == 400
    assert "No files are attached" in other.get(page).content.decode()


def test_of_many_at_once_only_as_many_are_stored_as_have_room(
    transactional_db: None, settings: Any
) -> None:
    alice = User.objects.create_user("alice")
    (pk,) = make_scored("board", alice.personal_team, simulated(1, 5))
    settings.EVALHUB_TEAM_ARTIFACT_BYTES = 250
    client, run = client_of(alice), Run.objects.get(pk=pk)

    def attach(number: int) -> int:
        """The answer of a client that tries again while the database is busy with the others."""
        status = 503
        while status == 503:
            try:
                status = int(send(client, run, b"%d" % number * 100, f"{number}.txt").status_code)
            finally:
                # Its own method leaves a connection to a database in memory open.
                BaseDatabaseWrapper.close(connections["default"])
        return status

    with ThreadPoolExecutor(6) as threads:
        assert sorted(threads.map(attach, range(6))) == [201] * 2 + [413] * 4
    assert Artifact.objects.count() == 2
