"""A backup holds everything, is checked by its hashes, and comes back on either database as it was."""

from __future__ import annotations

import errno
import fcntl
import gzip
import hashlib
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.utils import timezone
from rest_framework.test import APIClient

from evalhub.operating.backup import LEFT_OUT, write_backup
from evalhub.operating.restoring import Backup, BadBackup, describe, install
from evalhub.operating.simulation import simulate_collection
from metrics.models import Comparison, MetricVector
from metrics.services.comparisons.stored import compare
from metrics.services.upkeep.integrity import find_faults
from runs.models import Collection, Delivery, RememberedAnswer, Run, Webhook
from runs.services.webhooks.deliveries import claim_next
from tests.conftest import POOR, evaluate_all, upload
from tests.metrics.webhooks import make_webhook
from tests.reliability.backups import BOARD, RUNS, attempt, counts, restore, start_anew
from tests.reliability.conftest import administer
from tests.reliability.servers import ROOT, Server, clean_environment, wait_until_evaluated

SYSTEMS = "/api/v1/collections/small/session-leaderboard/?measures=nsDCG,sDCG@3"
GZIP = {"Content-Type": "application/gzip"}


def test_every_model_of_the_project_is_in_a_backup(filled: APIClient, tmp_path: Path) -> None:
    """A new model is in it by itself, or is named in LEFT_OUT."""
    manifest = write_backup(tmp_path / "b.tar")
    every = {model._meta.label_lower for model in apps.get_models(include_auto_created=True)}
    assert set(manifest["rows"]) | LEFT_OUT == every
    assert set(manifest["rows"]) & LEFT_OUT == set()
    assert manifest["rows"] == counts()
    assert {"runs.run", "runs.rememberedanswer", "metrics.metricvector", "auth.permission"} <= set(
        manifest["rows"]
    )
    ours = {label for label in LEFT_OUT if label.startswith(("runs.", "metrics.", "evalhub."))}
    made_again = {"runs.parameter", "runs.parameterset"}
    assert ours == {"runs.install", "runs.ratecounter", "metrics.dispatcherround", *made_again}


def test_a_backup_comes_back_as_it_was(filled: APIClient, settings: Any, tmp_path: Path) -> None:
    evaluated = Run.objects.filter(
        collection__slug="small", deleted_at=None, evaluations__state="evaluated"
    )
    labelled = {"run": str(evaluated[0].pk)}
    assert filled.put("/api/v1/collections/small/labels/main/", labelled).status_code == 201
    board, systems = filled.get(BOARD).json(), filled.get(SYSTEMS).json()
    vectors = {(v.evaluation_id, v.measure): bytes(v.content) for v in MetricVector.objects.all()}
    before, moments = counts(), list(Run.objects.order_by("pk").values_list("pk", "created_at"))
    write_backup(tmp_path / "b.tar")
    start_anew(settings, tmp_path / "other")
    assert "0 faults" in restore(tmp_path / "b.tar")
    assert counts() == before
    assert list(Run.objects.order_by("pk").values_list("pk", "created_at")) == moments
    assert {
        (v.evaluation_id, v.measure): bytes(v.content) for v in MetricVector.objects.all()
    } == vectors
    again = filled.get(BOARD).json()
    assert filled.get(SYSTEMS).json() == systems
    # What was being evaluated waits again: no worker of the old install holds it.
    assert board["states"] == {"evaluated": 2, "queued": 2, "evaluating": 1}
    assert again["states"] == {"evaluated": 2, "queued": 3}
    states = [[row.pop("state") for row in answer["results"]] for answer in (board, again)]
    assert states == [
        ["ranked"] * 2 + state for state in (["evaluating", "queued", "queued"], ["queued"] * 3)
    ]
    assert {**again, "states": 0} == {**board, "states": 0}
    assert list(find_faults()) == []
    # The token, the sequences, the files and the idempotency key work.
    assert evaluate_all() == 3
    assert compare(comparison_id=str(Comparison.objects.get().pk))
    assert upload(filled, RUNS, POOR, tag="after").status_code == 202
    assert RememberedAnswer.objects.get(key="k").status == 202


def test_webhooks_come_back_and_those_of_another_key_are_disabled(
    filled: APIClient, settings: Any, tmp_path: Path
) -> None:
    webhook = make_webhook(collection=Collection.objects.earliest("pk"))
    Delivery.objects.create(webhook=webhook, event="run.failed", body="{}")
    assert claim_next()
    write_backup(tmp_path / "b.tar")
    start_anew(settings, tmp_path / "same")
    assert "webhooks" not in restore(tmp_path / "b.tar")
    # What was being sent by a worker of the old install is due again.
    assert Delivery.objects.get().state == "due"
    assert Webhook.objects.get(enabled=True).secret_sealed == webhook.secret_sealed
    start_anew(settings, tmp_path / "other")
    settings.SECRET_KEY = "another-key-another-key-another-key-another"
    assert "webhooks disabled: 1; their secrets were sealed with another secret key" in restore(
        tmp_path / "b.tar"
    )
    assert Webhook.objects.get().disabled_reason == "secret_unreadable"


def test_a_backup_is_refused_by_an_install_that_is_not_empty(
    filled: APIClient, tmp_path: Path
) -> None:
    write_backup(tmp_path / "b.tar")
    before = counts()
    with pytest.raises(CommandError, match="not empty"):
        restore(tmp_path / "b.tar")
    assert counts() == before


def test_a_backup_of_another_version_says_so(
    filled: APIClient, settings: Any, tmp_path: Path
) -> None:
    write_backup(tmp_path / "b.tar")
    start_anew(settings, tmp_path / "other")
    backup = Backup(tmp_path / "b.tar")
    backup.manifest["schema"].append("runs.0099_of_the_future")
    with pytest.raises(BadBackup, match=r"runs\.0099_of_the_future"):
        install(backup)
    backup.close()
    assert not Run.objects.exists()


def test_an_interrupted_backup_leaves_nothing_behind(
    filled: APIClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Told to end it removes its own part; the next one removes that of a killed one, and of none that lives."""

    def told_to_end(*arguments: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr("evalhub.operating.backup._stored_files", told_to_end)
        assert attempt("backup", str(tmp_path / "b.tar"))[0] == 128 + signal.SIGTERM
    assert list(tmp_path.glob("*backup*")) == []
    killed, alive, young = (
        tmp_path / f".evalhub-backup-{name}.part" for name in ("killed", "alive", "young")
    )
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
        with pytest.raises(
            CommandError, match=r"cannot write .*: No space left on device; nothing is left of it"
        ):
            call_command("backup", str(tmp_path / "b.tar"))
    assert list(tmp_path.glob("*b*.tar")) + list(tmp_path.glob(".evalhub*")) == []
    for path, what in (
        (tmp_path, "Is a directory"),
        (tmp_path / "b.tar", "No such file or directory"),
    ):
        with pytest.raises(CommandError, match=f"cannot restore {path}: {what}"):
            restore(path)
    write_backup(tmp_path / "b.tar")
    before = counts()
    start_anew(settings, tmp_path / "other")
    with monkeypatch.context() as patch:
        patch.setattr("evalhub.operating.restoring.keep_file", full)
        with pytest.raises(
            CommandError, match=r"no space is left on the disk of .*other; free some"
        ):
            restore(tmp_path / "b.tar")
    assert not Run.objects.exists()
    restore(tmp_path / "b.tar")
    assert counts() == before


def meaning_of(path: Path) -> dict[str, str]:
    """The SHA-256 of every file, and of every model's rows; PostgreSQL has an order of its own in JSON objects."""
    meaning = {}
    with tarfile.open(path) as tar:
        for member in tar:
            content = tar.extractfile(member).read()  # type: ignore[union-attr]
            if member.name.startswith("rows/"):
                rows = [
                    json.dumps(json.loads(line), sort_keys=True) for line in content.splitlines()
                ]
                content = "\n".join(rows).encode()
            if member.name != "manifest.json":
                meaning[member.name] = hashlib.sha256(content).hexdigest()
    return meaning


def move(environment: dict[str, str], source: Path, target: Path) -> str:
    """Restore a backup, check everything, use the sequences, and make another backup; returns what was printed."""
    script = (
        "from django.core.management import call_command as c; from runs.models import Team; "
        f"c('restore', {str(source)!r}); c('fsck'); "
        "Team.objects.create(slug='behind-those', name='x').delete(); "
        f"c('backup', {str(target)!r})"
    )
    command = [sys.executable, "manage.py", "shell", "-c", script]
    done = subprocess.run(
        command, env=environment, cwd=ROOT, check=True, capture_output=True, text=True
    )
    return done.stdout


def fill(server: Server) -> None:
    simulated = simulate_collection(topics=5)
    with server.client() as client:
        client.post("collections/", json={"slug": "moved", "name": "Moved"}).raise_for_status()
        client.post(
            "collections/moved/qrels/", files={"file": ("q", simulated.qrels)}
        ).raise_for_status()
        client.put(
            "collections/moved/documents/", files={"file": ("d", simulated.documents)}
        ).raise_for_status()
        for run in simulated.runs.values():
            answer = client.post(
                "collections/moved/runs/", content=gzip.compress(run.encode()), headers=GZIP
            )
            wait_until_evaluated(client, answer.raise_for_status().json()["url"])


@pytest.mark.services
def test_a_backup_moves_between_the_databases_and_back(
    embedded: Server, database_url: str, data_folder: Path, tmp_path: Path
) -> None:
    """Of a service at work, from SQLite to PostgreSQL to SQLite: every value, every moment, every byte the same."""
    fill(embedded)
    first, two, three = (tmp_path / f"{number}.tar" for number in (1, 2, 3))
    embedded.manage("backup", str(first))
    other = {**clean_environment(data_folder), "EVALHUB_DATABASE_URL": f"{database_url}_moved"}
    administer(f"CREATE DATABASE {other['EVALHUB_DATABASE_URL'].rpartition('/')[2]}")
    try:
        assert "fsck: 0 faults" in move(other, first, two)
        assert "fsck: 0 faults" in move(clean_environment(tmp_path / "third"), two, three)
    finally:
        administer(f"DROP DATABASE {other['EVALHUB_DATABASE_URL'].rpartition('/')[2]} WITH (FORCE)")
    assert meaning_of(first) == meaning_of(two) == meaning_of(three)
    assert len([name for name in meaning_of(first) if name.startswith("files/")]) > 10


@pytest.mark.parametrize(
    ("minutes", "age"),
    [
        (0.2, "made just now"),
        (12.3, "12 minutes old"),
        (190, "3 hours old"),
        (5 * 24 * 60, "5 days old"),
    ],
)
def test_the_age_of_a_backup_is_said_in_words(minutes: float, age: str) -> None:
    made_at = (timezone.now() - timedelta(minutes=minutes)).isoformat()
    manifest = {"rows": {"runs.run": 1200}, "database": "sqlite", "made_at": made_at}
    backup = cast(Backup, SimpleNamespace(manifest=manifest, files=["a"]))
    assert describe(backup) == f"1,200 rows and 1 files of sqlite, {age}"
