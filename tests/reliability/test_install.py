"""Commands that begin an install, and refuse one whose parts do not belong together, as an operator starts them."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from evalhub.management.commands import migrate
from evalhub.operating.install import (
    NEEDS,
    changed_key,
    newest_migrations,
    require_migrated,
    settle_install,
    settle_redis,
)
from evalhub.serving.worker import CheckStep
from runs.models import Install
from runs.services.storage.installs import WrongPlace, settle
from tests.reliability.rigs import OwnRedis, installed, own_redis
from tests.reliability.servers import ROOT, clean_environment, free_port, run_commands


def in_store(data: Path, statement: str) -> str:
    """Run a statement about the `store` of a data folder, which needs no database, and return what it prints."""
    script = f"""
import django
django.setup()
from pathlib import Path
from runs.services.storage.stores.chosen import the_store
store = the_store()
{statement}
"""
    environment = {**clean_environment(data), "DJANGO_SETTINGS_MODULE": "evalhub.settings"}
    command = [sys.executable, "-c", script]
    return subprocess.run(
        command, env=environment, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def test_a_lost_database_is_not_begun_anew(tmp_path: Path) -> None:
    data, upload, sha256 = tmp_path / "data", tmp_path / "upload", "ab" * 32
    upload.write_bytes(b"1 Q0 d 1 1.0 tag\n")
    in_store(data, f"store.add(Path({str(upload)!r}), {sha256!r})")
    commands = (["migrate"], ["serve", "--bind", f"127.0.0.1:{free_port()}"], ["sweep"])
    for done in run_commands(clean_environment(data), *commands):
        assert done.returncode == 1, done
        assert "there is no database" in done.stderr
        assert "Traceback" not in done.stderr
    assert in_store(data, f"print(store.has({sha256!r}))") == "True\n"
    assert not (data / "evalhub.sqlite3").exists()


def test_two_migrations_at_once_are_one_after_the_other(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "evalhub", "migrate", "--verbosity", "0"]
    started = [
        subprocess.Popen(
            command, env=clean_environment(tmp_path), cwd=ROOT, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    assert [process.communicate(timeout=120)[1] for process in started] == ["", ""]
    assert [process.returncode for process in started] == [0, 0]


def test_who_migrates_holds_a_lock(transactional_db: None, tmp_path: Path) -> None:
    if connection.vendor == "postgresql":
        with migrate._exclusive(), connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")
            assert cursor.fetchone() == (1,)
        return
    # Put back before the test's database is: under a file's name the one in memory would be closed,
    # and lost.
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(connection.settings_dict, "NAME", tmp_path / "new" / "evalhub.sqlite3")
        with (
            migrate._exclusive(),
            (tmp_path / "new" / "migrate.lock").open("w") as lock,
            pytest.raises(BlockingIOError),
        ):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert (tmp_path / "new" / "evalhub.sqlite3").exists()


def test_a_database_of_another_version_is_refused_unless_it_fits(db: None) -> None:
    require_migrated()
    recorder = MigrationRecorder(connection)
    recorder.record_applied("runs", "9999_of_the_future")
    with pytest.raises(WrongPlace, match=r"another version.*runs.9999_of_the_future"):
        require_migrated()
    install = Install.objects.create(needs=list(NEEDS))
    require_migrated()
    install.needs = [*NEEDS, "runs.9999_of_the_future"]
    install.save()
    for command in ("web", "fsck", "sweep"):
        with pytest.raises(CommandError, match="Use that version or a newer one"):
            call_command(command)


def test_a_database_that_was_not_migrated_is_refused(db: None) -> None:
    newest = max(name for app, name in newest_migrations() if app == "metrics")
    MigrationRecorder(connection).record_unapplied("metrics", newest)
    expected = rf"1 migrations are missing, metrics.{newest} first. Run evalhub migrate"
    with pytest.raises(WrongPlace, match=expected):
        require_migrated()


def test_an_install_says_which_code_fits(db: None) -> None:
    settle_install()
    assert Install.objects.get().needs == list(NEEDS)
    newer = [*NEEDS, "runs.9999_of_the_future"]
    for noted, then in ((newer, newer), ([], list(NEEDS))):
        Install.objects.update(needs=noted)
        call_command("migrate", verbosity=0)
        assert Install.objects.get().needs == then


def test_a_changed_secret_key_is_told_once(db: None, settings: Any) -> None:
    settle()
    assert changed_key() == ""
    assert changed_key() == ""
    settings.SECRET_KEY = "another-one-another-one-another-one-another-one"
    assert "everybody must log in again" in changed_key()
    assert changed_key() == ""


def test_a_worker_that_celery_starts_refuses_what_was_never_settled(
    db: None, settings: Any
) -> None:
    settings.EVALHUB_REDIS_URL, settings.EVALHUB_EMBEDDED = "", True
    with pytest.raises(WrongPlace, match="evalhub adopt"):
        CheckStep._check_install(object.__new__(CheckStep))
    settle()
    CheckStep._check_install(object.__new__(CheckStep))


@pytest.fixture(scope="module")
def redis() -> Iterator[OwnRedis]:
    if not installed() and not os.environ.get("EVALHUB_TEST_REQUIRED"):
        pytest.skip("no Redis to start")
    with own_redis() as server:
        yield server


def test_a_redis_of_another_install_is_refused(redis: OwnRedis, settings: Any) -> None:
    settings.EVALHUB_REDIS_URL = redis.url
    first, second = uuid.uuid4(), uuid.uuid4()
    settle_redis(first)
    settle_redis(first)
    with pytest.raises(WrongPlace, match=r"messages of another install.*evalhub adopt"):
        settle_redis(second)
    settle_redis(second, replace=True)
    settle_redis(second)
    # One that was emptied is marked again, and one that is away is no reason.
    redis.client().flushall()
    settle_redis(first)
    settings.EVALHUB_REDIS_URL = "redis://127.0.0.1:1/0"
    settle_redis(second)
