"""What a killed server leaves behind, and what a server that cannot start says."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from evalhub.serving import processes
from evalhub.serving.processes import abandoned_folders
from runs.services.submissions.sweeping import delete_uploads_left_behind
from tests.reliability.servers import ROOT, Server, clean_environment, free_port, run_commands

# A web server until it dies: its environment, then the process that it becomes.
OWNER = """
import os, sys
from evalhub.serving import processes
processes.SHARED_MEMORY = sys.argv[1]
environment = processes.web_environment()
print(environment[processes.COUNTERS_VARIABLE], flush=True)
os.execve("/bin/sleep", ["sleep", "60"], environment)
"""


@contextmanager
def owner(memory: Path) -> Iterator[tuple[Path, subprocess.Popen[str]]]:
    """A process that holds a folder of request counters, as a web server does."""
    environment = {
        **clean_environment(memory),
        "PYTHONPATH": str(ROOT),
        "DJANGO_SETTINGS_MODULE": "evalhub.settings",
    }
    command = [sys.executable, "-c", OWNER, str(memory)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            yield Path(process.stdout.readline().strip()), process
        finally:
            process.kill()


def test_the_next_server_removes_the_counters_of_a_killed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "SHARED_MEMORY", str(tmp_path))
    with owner(tmp_path) as (living, _), owner(tmp_path) as (killed, process):
        assert list(abandoned_folders()) == []
        process.kill()
        process.wait()
        assert list(abandoned_folders()) == [killed]
        with owner(tmp_path) as (following, _):
            assert sorted(tmp_path.glob("evalhub-*")) == sorted([living, following])


def test_uploads_of_dead_requests_go_when_the_only_server_starts(
    tmp_path: Path, settings: Any
) -> None:
    settings.EVALHUB_DATA = tmp_path
    (tmp_path / "uploads").mkdir()
    (tmp_path / "uploads" / "cut-off").touch()
    settings.EVALHUB_DATABASE_URL = "postgres://db/evalhub"
    assert delete_uploads_left_behind() == 0
    settings.EVALHUB_DATABASE_URL = ""
    assert delete_uploads_left_behind() == 1
    assert list((tmp_path / "uploads").iterdir()) == []


@pytest.mark.parametrize("damage", ["cut", "other", "schema"])
def test_a_damaged_database_is_named_with_what_to_do(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "evalhub.sqlite3"
    if damage == "cut":
        prepare(tmp_path)
        os.truncate(path, path.stat().st_size * 6 // 10)
    elif damage == "schema":
        prepare(tmp_path)
        content = path.read_bytes()
        assert b"CREATE TABLE" in content
        # One flipped bit of a word.
        path.write_bytes(content.replace(b"CREATE TABLE", b"CREATE TABME"))
    else:
        path.write_bytes(b"this was a database once. " * 1000)
    commands = (["fsck"], ["serve", "--bind", f"127.0.0.1:{free_port()}"])
    for done in run_commands(clean_environment(tmp_path), *commands):
        assert done.returncode == 1, done
        assert f"the database {path} is damaged" in done.stderr
        assert "evalhub restore" in done.stderr
        assert "Traceback" not in done.stderr


def test_fsck_looks_into_the_pages_of_a_database_and_goes_on(tmp_path: Path) -> None:
    """Of an index that no query of fsck reads, and of a row whose parent is gone."""
    path = tmp_path / "evalhub.sqlite3"
    prepare(tmp_path)
    with sqlite3.connect(path) as database:
        database.execute("INSERT INTO django_admin_log (action_time, object_repr, action_flag, change_message, user_id)"
                         " VALUES ('2026-01-01', 'x', 1, '', 77)")  # fmt: skip
        (page,) = database.execute(
            "SELECT rootpage FROM sqlite_master WHERE name LIKE 'django_session_expire%'"
        ).fetchone()
        (size,) = database.execute("PRAGMA page_size").fetchone()
    database.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(bytes(size))
    fast, whole = run_commands(clean_environment(tmp_path), ["fsck", "--fast"], ["fsck"])
    gone = "wrong dangling_row: row 1 of django_admin_log names one of runs_user that is not there"
    assert (fast.returncode, gone in fast.stdout, "database_damaged" in fast.stdout) == (
        1,
        True,
        False,
    ), fast
    assert (whole.returncode, gone in whole.stdout, "wrong database_damaged: " in whole.stdout) == (
        1,
        True,
        True,
    ), whole
    assert f"the database {path} is damaged" in whole.stderr
    assert "fsck: " in whole.stdout


@pytest.mark.parametrize(
    ("url", "commands", "message"),
    [
        ("", ("fsck", "backup", "sweep"), "Run evalhub migrate first."),
        ("postgres://nobody:wrong@127.0.0.1:1/none", ("fsck", "backup"), "Check EVALHUB_DATABASE_URL."),
    ],
    ids=["not migrated", "away"],
)  # fmt: skip
def test_a_database_that_is_not_ready_is_said_in_a_sentence(
    tmp_path: Path, url: str, commands: tuple[str, ...], message: str
) -> None:
    backup = str(tmp_path / "b.tar")
    lines = [[command, backup] if command == "backup" else [command] for command in commands]
    environment = clean_environment(tmp_path)
    if url:
        environment["EVALHUB_DATABASE_URL"] = url
    for done in run_commands(environment, *lines):
        seen = (done.returncode, message in done.stderr, "Traceback" in done.stderr)
        assert seen == (1, True, False), done
        assert "wrong@" not in done.stderr


@pytest.mark.parametrize("closed", [True, False], ids=["stopped", "killed"])
def test_backup_and_fsck_work_on_a_disk_that_became_read_only(tmp_path: Path, closed: bool) -> None:
    """Whether the database was closed in order or its log is still there."""
    data, backup = tmp_path / "data", tmp_path / "b.tar"
    prepare(data)
    log = data / "evalhub.sqlite3-wal"
    with closing(sqlite3.connect(data / "evalhub.sqlite3", isolation_level=None)) as database:
        database.execute(
            "INSERT INTO runs_team (slug, name, created_at) VALUES ('late', 'Late', '2026-01-01')"
        )
        if not closed:
            # As a killed process leaves it: what was written last is in the log alone.
            shutil.copytree(data, tmp_path / "killed")
    if not closed:
        data, log = tmp_path / "killed", tmp_path / "killed" / log.name
    assert log.exists() != closed
    script = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
    environment = clean_environment(data)

    within = ["unshare", "--mount", "sh", "-c", script, str(data)]
    if subprocess.run([*within, "true"], check=False, capture_output=True).returncode:
        pytest.skip("only root mounts a folder read-only")
    touched = subprocess.run([*within, "touch", str(data / "x")], check=False, capture_output=True)
    assert touched.returncode == 1
    checked, made_backup = run_commands(
        environment, ["fsck"], ["backup", str(backup)], within=within
    )
    assert (checked.returncode, checked.stderr) == (0, ""), checked
    assert "fsck: 0 faults" in checked.stdout
    assert (made_backup.returncode, made_backup.stderr) == (0, ""), made_backup
    with tarfile.open(backup) as tar:
        assert b'"late"' in tar.extractfile("rows/runs.team.jsonl").read()  # type: ignore[union-attr]


def test_a_worker_of_a_user_without_a_name_starts_in_silence(tmp_path: Path) -> None:
    nameless = (
        "import grp\n"
        "def unknown(gid):\n    raise KeyError(gid)\n"
        "grp.getgrgid = unknown\n"
        "from celery.platforms import check_privileges\n"
        "check_privileges(['json'])"
    )
    loud = run(["-W", "error", "-c", nameless])
    assert "An entry for the specified gid" in loud.stderr
    silenced = f"import django; django.setup(); from evalhub.serving.worker import ignore_warnings; ignore_warnings()\n{nameless}"
    environment = {**clean_environment(tmp_path), "DJANGO_SETTINGS_MODULE": "evalhub.settings"}
    silent = run(["-W", "error", "-c", silenced], env=environment, cwd=ROOT)
    assert (silent.returncode, silent.stderr) == (0, "")


def prepare(data: Path) -> None:
    """Put a migrated database there."""
    Server("", clean_environment(data)).prepare()


def run(arguments: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], check=False, capture_output=True, text=True, **options
    )
