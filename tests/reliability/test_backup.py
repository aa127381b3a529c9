"""A backup holds everything, is checked by its hashes, and comes back on either database as it was."""

from __future__ import annotations

import errno
import fcntl
import gzip
import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
import uuid
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.utils import timezone
from rest_framework.test import APIClient

from evalhub.operating.backup import LACKING, LEFT_OUT, HashedReader, Unreadable, saved_models, write_backup
from evalhub.operating.restoring import Backup, BadBackup, install
from evalhub.operating.simulation import simulate_collection
from metrics.models import Comparison, Evaluation, MetricVector
from metrics.services.comparisons.stored import compare
from metrics.services.upkeep.integrity import find_faults
from runs.models import Qrels, RememberedAnswer, Run, SessionSet
from runs.services.files import stored_path
from tests.conftest import GOOD, POOR, SESSIONS, evaluate_all, upload
from tests.reliability.conftest import administer
from tests.reliability.servers import ROOT, Server, clean_environment, wait_until_evaluated

BOARD = "/api/v1/collections/small/leaderboard/"
SYSTEMS = "/api/v1/collections/small/session-leaderboard/?measures=nsDCG,sDCG@3"
RUNS = "collections/small/runs/"
GZIP = {"Content-Type": "application/gzip"}


@pytest.fixture
def filled(transactional_db: None, api: APIClient, submit: Callable[..., Run], tmp_path: Path) -> APIClient:
    """An install with two evaluated runs, one deleted, one being evaluated, one queued, known documents, a
    comparison that is being made, and two session sets, one evaluated, one deleted."""
    for tag in ("log", "gone"):
        assert upload(api, "collections/small/sessions/", SESSIONS, tag=tag).status_code == 202
    submit(GOOD)
    submit(POOR)
    deleted = submit(GOOD, tag="deleted")
    api.delete(f"/api/v1/runs/{deleted.pk}/")
    api.delete(f"/api/v1/session-sets/{SessionSet.objects.get(tag='gone').pk}/")
    for tag in ("held", "waiting"):
        upload(api, RUNS, GOOD + "3 Q0 y 2 0.5 good\n", tag=tag)
    held = {"state": "evaluating", "lease_token": uuid.uuid4(), "lease_until": timezone.now() + timedelta(hours=1)}
    Evaluation.objects.filter(run__tag="held").update(**held)
    assert api.post("/api/v1/collections/small/comparison/", {}).status_code == 202
    Comparison.objects.update(**{**held, "state": "comparing"})
    (tmp_path / "run").write_text(GOOD)
    (tmp_path / "known").write_text("1 a\n")
    with (tmp_path / "run").open("rb") as run, (tmp_path / "known").open("rb") as known:
        fields = {"file": run, "known": known, "tag": "known"}
        answer = api.post(f"/api/v1/{RUNS}", fields, format="multipart", headers={"Idempotency-Key": "k"})
        assert answer.status_code == 202
    return api


def start_anew(settings: Any, folder: Path) -> None:
    """An empty database and an empty data folder."""
    call_command("flush", interactive=False, verbosity=0)
    settings.EVALHUB_DATA = folder


def counts() -> dict[str, int]:
    return {model._meta.label_lower: model._base_manager.count() for model in saved_models()}


def restore(path: Path, *options: str) -> str:
    out = io.StringIO()
    call_command("restore", str(path), *options, stdout=out)
    return out.getvalue()


def test_every_model_of_the_project_is_in_a_backup(filled: APIClient, tmp_path: Path) -> None:
    """A new model is in it by itself, or is named in LEFT_OUT."""
    manifest = write_backup(tmp_path / "b.tar")
    every = {model._meta.label_lower for model in apps.get_models(include_auto_created=True)}
    assert set(manifest["rows"]) | LEFT_OUT == every
    assert set(manifest["rows"]) & LEFT_OUT == set()
    assert manifest["rows"] == counts()
    assert {"runs.run", "runs.rememberedanswer", "metrics.metricvector", "auth.permission"} <= set(manifest["rows"])
    ours = {label for label in LEFT_OUT if label.startswith(("runs.", "metrics.", "evalhub."))}
    assert ours == {"runs.ratecounter", "metrics.dispatcherround"}


def test_a_backup_comes_back_as_it_was(filled: APIClient, settings: Any, tmp_path: Path) -> None:
    board, systems = filled.get(BOARD).json(), filled.get(SYSTEMS).json()
    vectors = {(v.evaluation_id, v.measure): bytes(v.content) for v in MetricVector.objects.all()}
    before, moments = counts(), list(Run.objects.order_by("pk").values_list("pk", "created_at"))
    write_backup(tmp_path / "b.tar")
    start_anew(settings, tmp_path / "other")
    assert "0 faults" in restore(tmp_path / "b.tar")
    assert counts() == before
    assert list(Run.objects.order_by("pk").values_list("pk", "created_at")) == moments
    assert {(v.evaluation_id, v.measure): bytes(v.content) for v in MetricVector.objects.all()} == vectors
    again = filled.get(BOARD).json()
    assert filled.get(SYSTEMS).json() == systems
    # What was being evaluated waits again: no worker of the old install holds it.
    assert board["states"] == {"evaluated": 2, "queued": 2, "evaluating": 1}
    assert again["states"] == {"evaluated": 2, "queued": 3}
    states = [[row.pop("state") for row in one["results"]] for one in (board, again)]
    assert states == [["ranked"] * 2 + state for state in (["evaluating", "queued", "queued"], ["queued"] * 3)]
    assert {**again, "states": 0} == {**board, "states": 0}
    assert list(find_faults()) == []
    # The token, the sequences, the files and the idempotency key work.
    assert evaluate_all() == 3
    assert compare(comparison_id=str(Comparison.objects.get().pk))
    assert upload(filled, RUNS, POOR, tag="after").status_code == 202
    assert RememberedAnswer.objects.get(key="k").status == 202


def test_a_backup_is_refused_by_an_install_that_is_not_empty(filled: APIClient, tmp_path: Path) -> None:
    write_backup(tmp_path / "b.tar")
    before = counts()
    with pytest.raises(CommandError, match="not empty"):
        restore(tmp_path / "b.tar")
    assert counts() == before


def rewrite(path: Path, change: Callable[[str, bytes], bytes | None]) -> None:
    """Every member of a tar file through a function; None leaves it out."""
    with tarfile.open(path) as tar:
        members = {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]
    with tarfile.open(path, "w") as tar:
        for name, content in members.items():
            changed = change(name, content)
            if changed is not None:
                member = tarfile.TarInfo(name)
                member.size = len(changed)
                tar.addfile(member, io.BytesIO(changed))


def attempt(command: str, *arguments: str) -> tuple[int, str]:
    """The exit status of a command, and what it printed."""
    out = io.StringIO()
    try:
        call_command(command, *arguments, stdout=out, stderr=out)
    except SystemExit as end:
        return int(str(end.code)), out.getvalue()
    return 0, out.getvalue()


def test_a_backup_whose_rows_were_altered_is_refused_before_anything_is_installed(
    filled: APIClient, settings: Any, tmp_path: Path
) -> None:
    path = tmp_path / "b.tar"
    write_backup(path)
    rewrite(path, lambda name, b: b.replace(b'"good"', b'"fine"') if name == "rows/runs.run.jsonl" else b)
    start_anew(settings, tmp_path / "other")
    for options in ((), ("--verify",)):
        out = io.StringIO()
        with pytest.raises(CommandError, match="nothing was installed"):
            call_command("restore", str(path), *options, stdout=out)
        assert "wrong rows/runs.run.jsonl: content differs" in out.getvalue()
    assert not Run.objects.exists()


@pytest.mark.parametrize("damage", ["content differs", "missing"])
def test_a_backup_with_a_damaged_file_installs_everything_else(
    filled: APIClient, settings: Any, tmp_path: Path, damage: str
) -> None:
    good, others = Run.objects.get(tag="good").sha256, set(Run.objects.values_list("sha256", flat=True))
    board, before, path = filled.get(BOARD).json()["results"], counts(), tmp_path / "b.tar"
    write_backup(path)
    altered = (lambda b: b.replace(b"3.0", b"9.0")) if damage == "content differs" else (lambda b: None)
    rewrite(path, lambda name, b: altered(b) if good in name else b)
    status, text = attempt("restore", str(path), "--verify")
    assert (status, f"wrong files/{good}: {damage}" in text) == (1, True), text
    start_anew(settings, tmp_path / "other")
    status, text = attempt("restore", str(path))
    assert (status, "1 stored files are not among them" in text, counts()) == (1, True, before), text
    assert filled.get(BOARD).json()["results"][:2] == board[:2]
    assert not stored_path(good).exists()
    assert all(stored_path(sha256).exists() for sha256 in others - {good})
    assert {finding.code for finding in find_faults()} == {"file_missing"}


def test_a_damaged_header_in_a_backup_costs_its_file_alone(filled: APIClient, settings: Any, tmp_path: Path) -> None:
    """Not everything behind it, the manifest included."""
    path, before = tmp_path / "b.tar", counts()
    write_backup(path)
    with tarfile.open(path) as tar:
        names = tar.getnames()
        hidden = next(name for name in names if name.startswith("files/"))
        place = tar.getmember(hidden).offset
    content = bytearray(path.read_bytes())
    content[place + 3] ^= 1
    path.write_bytes(bytes(content))
    with tarfile.open(path) as tar:
        assert len(tar.getnames()) < len(names) - 1
    start_anew(settings, tmp_path / "other")
    status, text = attempt("restore", str(path))
    assert (status, text.count("wrong "), f"wrong {hidden}: missing" in text, counts()) == (1, 1, True, before), text
    there = {f"files/{stored.name}" for stored in (tmp_path / "other" / "files").glob("*/*")}
    assert there == {name for name in names if name.startswith("files/")} - {hidden}


def alter(path: Path) -> None:
    path.write_text(GOOD.replace("3.0", "9.0"))


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("state", "damage"), [("altered", alter), ("unreadable", replace_by_folder), ("missing", Path.unlink)]
)
def test_a_damaged_stored_file_is_told_and_the_rest_comes_back(
    filled: APIClient, settings: Any, tmp_path: Path, state: str, damage: Callable[[Path], None]
) -> None:
    sha256, path, before = Run.objects.get(tag="good").sha256, tmp_path / "b.tar", counts()
    damage(stored_path(sha256))
    status, text = attempt("backup", str(path))
    assert (status, f"the stored file {sha256} {LACKING[state]}" in text) == (1, True), text
    backup = Backup(path)
    assert (backup.manifest[state], list(backup.faults())) == ([sha256], [])
    assert (f"altered/{sha256}" in backup.manifest["members"]) == (state == "altered")
    assert sha256 not in backup.files
    backup.close()
    start_anew(settings, tmp_path / "other")
    status, text = attempt("restore", str(path))
    assert (status, f"lacks files/{sha256}: it {LACKING[state]}" in text, counts()) == (1, True, before), text
    assert {finding.code for finding in find_faults()} == {"file_missing"}


def test_a_stored_file_that_fails_while_it_is_copied_leaves_a_whole_backup(
    filled: APIClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As a disk does: the bytes that were read before are taken out of the archive again."""
    sha256, usual = Run.objects.get(tag="good").sha256, HashedReader.read

    def read(reader: HashedReader, size: int = -1) -> bytes:
        content = usual(reader, size)
        if content.startswith(GOOD.encode()[:10]):
            raise Unreadable("Input/output error")
        return content

    monkeypatch.setattr(HashedReader, "read", read)
    manifest = write_backup(tmp_path / "b.tar")
    monkeypatch.undo()
    assert sha256 in manifest["unreadable"]
    backup = Backup(tmp_path / "b.tar")
    assert list(backup.faults()) == []
    backup.close()


def test_a_stored_file_that_was_altered_before_an_older_backup_is_found(filled: APIClient, tmp_path: Path) -> None:
    """Older ones hold it under its name, with a manifest that agrees."""
    sha256, path = Run.objects.get(tag="good").sha256, tmp_path / "b.tar"
    write_backup(path)
    wrong = GOOD.replace("3.0", "9.0").encode()

    def change(name: str, content: bytes) -> bytes:
        if name == "manifest.json":
            manifest = json.loads(content)
            member = manifest["members"][f"files/{sha256}"]
            member.update(size=len(wrong), sha256=hashlib.sha256(wrong).hexdigest())
            manifest.update(format=1)
            return json.dumps(manifest).encode()
        return wrong if name == f"files/{sha256}" else content

    rewrite(path, change)
    backup = Backup(path)
    assert [str(fault) for fault in backup.faults()] == [
        f"files/{sha256}: its decompressed content has a different SHA-256"
    ]
    backup.close()


def test_a_file_cut_short_is_no_backup(filled: APIClient, tmp_path: Path) -> None:
    path = tmp_path / "b.tar"
    write_backup(path)
    content = path.read_bytes()
    for size in (0, 100, len(content) // 2):
        path.write_bytes(content[:size])
        with pytest.raises(BadBackup, match="truncated"):
            Backup(path)


def test_a_backup_of_another_version_says_so(filled: APIClient, settings: Any, tmp_path: Path) -> None:
    write_backup(tmp_path / "b.tar")
    start_anew(settings, tmp_path / "other")
    backup = Backup(tmp_path / "b.tar")
    backup.manifest["schema"].append("runs.0099_of_the_future")
    with pytest.raises(BadBackup, match=r"runs\.0099_of_the_future"):
        install(backup)
    backup.close()
    assert not Run.objects.exists()


def test_a_missing_file_is_named_and_the_rest_is_saved(filled: APIClient, tmp_path: Path) -> None:
    sha256 = Qrels.objects.get().sha256
    stored_path(sha256).unlink()
    manifest = write_backup(tmp_path / "b.tar")
    assert manifest["missing"] == [sha256]
    backup = Backup(tmp_path / "b.tar")
    assert list(backup.faults()) == []
    backup.close()


def test_a_manifest_that_was_altered_is_refused_in_words(filled: APIClient, tmp_path: Path) -> None:
    path = tmp_path / "b.tar"
    write_backup(path)
    whole = path.read_bytes()
    changes: dict[str, Callable[[bytes], bytes]] = {
        "is damaged": lambda b: b.replace(b'"made_at": "20', b'"made_at": "21'),
        "manifest is not the one that": lambda b: b.replace(b'"engine_version"', b'"engine_versjon"'),
        "names no format": lambda b: b.replace(b'"format"', b'"fprmat"'),
        "has format 3": lambda b: b.replace(b'"format": 2', b'"format": 3'),
        "is not a backup: ": lambda b: b"[]",
        "or is truncated": lambda b: b[:-5],
        "its manifest is not the one": lambda b: json.dumps({"format": 1, "rows": {}}).encode(),
    }
    for message, change in changes.items():
        path.write_bytes(whole)
        rewrite(path, lambda name, b, change=change: change(b) if name == "manifest.json" else b)
        with pytest.raises(CommandError, match=message):
            restore(path, "--verify")


def test_an_interrupted_backup_leaves_nothing_behind(
    filled: APIClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Told to end it removes its own part; the next one removes that of a killed one, and of none that lives."""

    def told_to_end(*arguments: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr("evalhub.operating.backup._named_files", told_to_end)
        assert attempt("backup", str(tmp_path / "b.tar"))[0] == 128 + signal.SIGTERM
    assert list(tmp_path.glob("*backup*")) == []
    killed, alive, young = (tmp_path / f".evalhub-backup-{name}.part" for name in ("killed", "alive", "young"))
    for part in (killed, alive, young):
        part.touch()
        os.utime(part, (time.time() - (0 if part == young else 60),) * 2)
    with alive.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert attempt("backup", str(tmp_path / "b.tar"))[0] == 0
    assert set(tmp_path.glob(".evalhub-backup-*")) == {alive, young}


def test_a_place_where_no_backup_can_be_is_said_in_words(
    filled: APIClient, settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(CommandError, match="is a folder; name a file in it"):
        call_command("backup", str(tmp_path))
    with pytest.raises(CommandError, match=r"the folder .*nowhere does not exist"):
        call_command("backup", str(tmp_path / "nowhere" / "b.tar"))
    with monkeypatch.context() as patch:
        patch.setattr(tarfile.TarFile, "addfile", full)
        with pytest.raises(CommandError, match=r"cannot write .*: No space left on device; nothing is left of it"):
            call_command("backup", str(tmp_path / "b.tar"))
    assert list(tmp_path.glob("*b*.tar")) + list(tmp_path.glob(".evalhub*")) == []
    for path, what in ((tmp_path, "Is a directory"), (tmp_path / "b.tar", "No such file or directory")):
        with pytest.raises(CommandError, match=f"cannot restore {path}: {what}"):
            restore(path)
    write_backup(tmp_path / "b.tar")
    before = counts()
    start_anew(settings, tmp_path / "other")
    with monkeypatch.context() as patch:
        patch.setattr("evalhub.operating.restoring.keep_file", full)
        with pytest.raises(CommandError, match=r"no space is left on the disk of .*other; free some"):
            restore(tmp_path / "b.tar")
    assert not Run.objects.exists()
    restore(tmp_path / "b.tar")
    assert counts() == before


def meaning_of(path: Path) -> dict[str, str]:
    """The SHA-256 of every file, and of every model's rows; PostgreSQL has an order of its own in JSON objects."""
    found = {}
    with tarfile.open(path) as tar:
        for member in tar:
            content = tar.extractfile(member).read()  # type: ignore[union-attr]
            if member.name.startswith("rows/"):
                rows = [json.dumps(json.loads(line), sort_keys=True) for line in content.splitlines()]
                content = "\n".join(rows).encode()
            if member.name != "manifest.json":
                found[member.name] = hashlib.sha256(content).hexdigest()
    return found


def move(environment: dict[str, str], source: Path, target: Path) -> str:
    """Restore a backup, check everything, use the sequences, and make another backup; returns what was printed."""
    script = (
        "from django.core.management import call_command as c; from runs.models import Team; "
        f"c('restore', {str(source)!r}); c('fsck'); "
        "Team.objects.create(slug='behind-those', name='x').delete(); "
        f"c('backup', {str(target)!r})"
    )
    command = [sys.executable, "manage.py", "shell", "-c", script]
    done = subprocess.run(command, env=environment, cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout


def fill(server: Server) -> None:
    simulated = simulate_collection(topics=5)
    with server.client() as client:
        client.post("collections/", json={"slug": "moved", "name": "Moved"}).raise_for_status()
        client.post("collections/moved/qrels/", files={"file": ("q", simulated.qrels)}).raise_for_status()
        for run in simulated.runs.values():
            answer = client.post("collections/moved/runs/", content=gzip.compress(run.encode()), headers=GZIP)
            wait_until_evaluated(client, answer.raise_for_status().json()["url"])


@pytest.mark.services
def test_a_backup_moves_between_the_databases_and_back(
    embedded: Server, database_url: str, data_folder: Path, tmp_path: Path
) -> None:
    """Of a service at work, from SQLite to PostgreSQL to SQLite: every value, every moment, every byte the same."""
    fill(embedded)
    one, two, three = (tmp_path / f"{number}.tar" for number in (1, 2, 3))
    embedded.manage("backup", str(one))
    other = {**clean_environment(data_folder), "EVALHUB_DATABASE_URL": f"{database_url}_moved"}
    administer(f"CREATE DATABASE {other['EVALHUB_DATABASE_URL'].rpartition('/')[2]}")
    try:
        assert "fsck: 0 faults" in move(other, one, two)
        assert "fsck: 0 faults" in move(clean_environment(tmp_path / "third"), two, three)
    finally:
        administer(f"DROP DATABASE {other['EVALHUB_DATABASE_URL'].rpartition('/')[2]} WITH (FORCE)")
    assert meaning_of(one) == meaning_of(two) == meaning_of(three)
    assert len([name for name in meaning_of(one) if name.startswith("files/")]) > 10
