"""Database, store and Redis of one install belong together, and what does not is left alone."""

from __future__ import annotations

import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from rest_framework.test import APIClient

from evalhub.operating.install import settle_install
from metrics.models import Evaluation
from metrics.services.values.evaluate import evaluate
from runs.models import Install, Run
from runs.services.storage.install_marker import KNOWN, check_store, read_marker, remember
from runs.services.storage.installs import WrongPlace, adopt, judge, require_place, settle
from runs.services.storage.stores.chosen import the_store
from runs.services.storage.stores.folder import stored_path
from runs.services.submissions.sweeping import sweep
from tests.conftest import GOOD, upload
from tests.reliability.servers import ROOT, clean_environment
from tests.runs.test_sweeping import age_all

RUNS = "collections/small/runs/"


def a_run() -> str:
    """The name of a file that no row has."""
    path = stored_path("ab" * 32)
    path.parent.mkdir(parents=True)
    path.write_text(GOOD)
    return path.name


def test_a_new_install_is_marked_once(db: None) -> None:
    assert judge() == "new"
    first = settle()
    assert (settle(), read_marker(), Install.objects.get().uuid, judge()) == (
        first,
        first,
        first,
        "ours",
    )
    check_store()


def test_an_install_of_an_earlier_release_is_marked_by_the_files_that_it_names(
    submit: Callable[..., Run],
) -> None:
    submit(GOOD)
    assert judge() == "unmarked"
    require_place()
    assert (read_marker(), KNOWN.unmarked) == (None, True)
    assert settle() == read_marker()


def test_a_store_of_another_install_is_refused(submit: Callable[..., Run]) -> None:
    submit(GOOD)
    settle()
    Install.objects.update(uuid=uuid.uuid4())
    for look in (judge, settle, require_place):
        with pytest.raises(WrongPlace, match=r"belongs to another install.*evalhub adopt"):
            look()
    install, existing, named = adopt()
    assert (install, existing, named, judge()) == (read_marker(), 2, 2, "ours")


@pytest.mark.parametrize("marked", [True, False])
def test_an_empty_database_does_not_take_a_store_with_files(db: None, marked: bool) -> None:
    if marked:
        settle()
        Install.objects.all().delete()
    a_run()
    with pytest.raises(WrongPlace, match="stored files of another database"):
        settle()
    with pytest.raises(CommandError, match="another database"):
        call_command("sweep")
    assert len(list(the_store().entries())) == 1


def test_an_emptied_store_is_refused(submit: Callable[..., Run], settings: Any) -> None:
    submit(GOOD)
    settle()
    shutil.rmtree(settings.EVALHUB_DATA / "files")
    for command in (["fsck"], ["backup", str(settings.EVALHUB_DATA / "b.tar")], ["sweep"]):
        with pytest.raises(CommandError, match="none of the stored files"):
            call_command(*command)
    adopt()
    assert judge() == "ours"


def test_a_damaged_marker_is_said(db: None, settings: Any, client: Client) -> None:
    settle()
    (settings.EVALHUB_DATA / "files" / "install.id").write_text("nonsense")
    codes = [reason["code"] for reason in client.get("/readyz").json()["reasons"]]
    assert "wrong_store" in codes
    adopt()
    check_store()


def test_a_copy_gets_an_id_of_its_own(db: None) -> None:
    first = settle()
    second, _, _ = adopt(new=True)
    assert (second != first, read_marker(), settle()) == (True, second, second)


@pytest.mark.parametrize("gone", ["folder", "files"])
def test_a_data_folder_that_goes_away_takes_nothing(
    api: APIClient, collection: str, client: Client, settings: Any, gone: str
) -> None:
    settle()
    lost: Path = settings.EVALHUB_DATA if gone == "folder" else settings.EVALHUB_DATA / "files"
    away = lost.rename(lost.with_name("away"))
    answer = upload(api, RUNS, GOOD)
    assert (answer.status_code, answer.json()["code"], answer["Retry-After"]) == (
        503,
        "storage_unavailable",
        "60",
    )
    assert "storage_unavailable" in [
        reason["code"] for reason in client.get("/readyz").json()["reasons"]
    ]
    assert (lost.exists(), Run.objects.exists()) == (False, False)
    away.rename(lost)
    assert upload(api, RUNS, GOOD).status_code == 202


def test_another_installs_folder_takes_nothing(api: APIClient, collection: str) -> None:
    settle()
    Install.objects.update(uuid=uuid.uuid4())
    remember(unmarked=False)
    answer = upload(api, RUNS, GOOD)
    assert (answer.status_code, answer.json()["code"]) == (503, "wrong_store")


def test_an_evaluation_waits_for_a_store_that_went_away(
    api: APIClient, collection: str, settings: Any
) -> None:
    settle()
    upload(api, RUNS, GOOD)
    queued = Evaluation.objects.get()
    away = settings.EVALHUB_DATA.rename(settings.EVALHUB_DATA.with_name("away"))
    assert not evaluate(evaluation_id=queued.pk)
    queued.refresh_from_db()
    assert (queued.state, queued.attempts, queued.error_code) == (
        "queued",
        0,
        "storage_unavailable",
    )
    away.rename(settings.EVALHUB_DATA)
    Evaluation.objects.update(not_before=None)
    assert evaluate(evaluation_id=queued.pk)


def test_nothing_of_another_install_is_swept(submit: Callable[..., Run]) -> None:
    submit(GOOD)
    settle()
    a_run()
    age_all()
    Install.objects.update(uuid=uuid.uuid4())
    remember(unmarked=False)
    with pytest.raises(Exception, match="belongs to another database"):
        sweep()
    assert len(list(the_store().entries())) == 3


@pytest.mark.parametrize("command", ["fsck", "backup", "sweep"])
def test_a_folder_that_is_not_there_is_named(
    db: None, settings: Any, tmp_path: Path, command: str
) -> None:
    settings.EVALHUB_DATA = tmp_path / "none"
    arguments = [str(tmp_path / "b.tar")] if command == "backup" else []
    with pytest.raises(CommandError, match="there is no data folder"):
        call_command(command, *arguments)
    assert not settings.EVALHUB_DATA.exists()


def modes(folder: Path) -> dict[str, str]:
    return {path.name: oct(path.stat().st_mode & 0o777) for path in (folder, *folder.iterdir())}


def test_a_start_closes_an_open_data_folder(db: None, own_data_folder: Path) -> None:
    for name in ("files", "uploads"):
        (own_data_folder / name).mkdir(exist_ok=True)
        (own_data_folder / name).chmod(0o755)
    for name in ("evalhub.sqlite3", "evalhub.sqlite3-wal", "secret.key"):
        (own_data_folder / name).touch(0o644)
        (own_data_folder / name).chmod(0o644)
    own_data_folder.chmod(0o755)
    settle_install()
    assert modes(own_data_folder) == {
        own_data_folder.name: "0o700",
        "files": "0o700",
        "uploads": "0o700",
        "evalhub.sqlite3": "0o600",
        "evalhub.sqlite3-wal": "0o600",
        "secret.key": "0o600",
    }
    # What many users write into belongs to all of them.
    own_data_folder.chmod(0o1777)
    settle_install()
    assert own_data_folder.stat().st_mode & 0o7777 == 0o1777


@pytest.mark.slow
def test_a_command_makes_a_data_folder_for_its_user_alone(tmp_path: Path) -> None:
    data = tmp_path / "parent" / "data"
    command = [sys.executable, "-m", "evalhub", "migrate", "--verbosity", "0"]
    subprocess.run(command, env=clean_environment(data), cwd=ROOT, umask=0o022, check=True)
    file_modes = modes(data)
    assert "evalhub.sqlite3" in file_modes
    assert {mode[-2:] for mode in file_modes.values()} == {"00"}
