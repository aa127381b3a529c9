"""Settings under which runs would be lost are refused before anything starts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command

from evalhub.operating import checks
from evalhub.operating.checks import (
    check_data_folder,
    check_database,
    check_lease,
    check_redis,
    file_system,
)
from evalhub.serving.worker import CheckStep
from tests.reliability.rigs import OwnRedis, installed, own_redis
from tests.reliability.servers import ROOT, Server, clean_environment, run_commands


def ids(messages: list[Any]) -> list[str]:
    return [message.id for message in messages]


def test_the_settings_of_the_tests_are_sound() -> None:
    assert [*check_database(), *check_data_folder(), *check_lease()] == []


@pytest.mark.parametrize(
    ("url", "codes"),
    [
        ("redis://redis.example.org:6379/0", ["evalhub.E001"]),
        ("redis://127.0.0.1:6379/0", ["evalhub.W001"]),
        ("unix:///run/redis.sock", ["evalhub.W001"]),
    ],
)
def test_sqlite_is_not_shared_between_machines(settings: Any, url: str, codes: list[str]) -> None:
    settings.EVALHUB_DATABASE_URL, settings.EVALHUB_REDIS_URL = "", url
    assert ids(check_database()) == codes
    settings.EVALHUB_DATABASE_URL = "postgres://db/evalhub"
    assert check_database() == []


MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
server:/export /srv nfs4 rw 0 0
/dev/sdb1 /srv/local ext4 rw 0 0
sshfs#x /mnt fuse.sshfs rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/srv/evalhub", "nfs4"),
        ("/srv/local/evalhub", "ext4"),
        ("/srvs", "ext4"),
        ("/mnt", "fuse.sshfs"),
        ("/", "ext4"),
    ],
)
def test_the_file_system_of_a_path_is_the_nearest_mount(
    tmp_path: Path, path: str, kind: str
) -> None:
    (tmp_path / "mounts").write_text(MOUNTS)
    assert file_system(Path(path), tmp_path / "mounts") == kind
    assert file_system(Path(path), tmp_path / "nothing") == ""


def test_sqlite_on_a_network_file_system_is_refused(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.EVALHUB_DATABASE_URL = settings.EVALHUB_REDIS_URL = ""
    monkeypatch.setattr(checks, "file_system", lambda path: "nfs4")
    assert ids(check_database()) == ["evalhub.E002"]
    settings.EVALHUB_DATABASE_URL = "postgres://db/evalhub"
    assert check_database() == []


def test_a_data_folder_that_cannot_be_used_is_refused(settings: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    settings.EVALHUB_DATA = tmp_path / "file"
    (message,) = check_data_folder()
    assert (message.id, "cannot be written to" in message.msg) == ("evalhub.E003", True)
    settings.EVALHUB_DATA = tmp_path / "file" / "data"
    (message,) = check_data_folder()
    assert "cannot be made" in message.msg
    settings.EVALHUB_DATA = tmp_path / "a" / "b"
    assert check_data_folder() == []


@pytest.mark.parametrize(
    ("seconds", "sound"),
    [(1, False), (2, True), (30, True), (3600, True), (3601, False), (0, False)],
)
def test_a_lease_is_neither_too_short_nor_too_long(
    settings: Any, seconds: int, sound: bool
) -> None:
    settings.EVALHUB_LEASE_SECONDS = seconds
    assert (check_lease() == []) == sound


def test_commands_refuse_what_the_checks_refuse(tmp_path: Path) -> None:
    environment = {**clean_environment(tmp_path), "EVALHUB_LEASE_SECONDS": "1"}
    for done in run_commands(environment, ["serve", "--bind", "127.0.0.1:1"], ["worker"]):
        assert done.returncode == 1, done
        assert "evalhub.E004" in done.stderr


@pytest.mark.parametrize(
    "started",
    [
        "from django.core.management import execute_from_command_line as run; run(['evalhub', 'worker', '--help'])",
        "from django.core.management import call_command; import django; django.setup()\n"
        "call_command('migrate', verbosity=0, skip_checks=False); call_command('sweep', skip_checks=False)",
        "from evalhub.serving.celery import app; app.loader.import_default_modules(); app.loader.init_worker()",
    ],
)
def test_what_serves_no_page_loads_none(tmp_path: Path, started: str) -> None:
    """Each takes a second and a hundred megabytes less for it."""
    left_out = {"metrics.urls", "redis"}
    code = f"import sys\ntry:\n    exec({started!r})\nfinally:\n    assert not {left_out} & sys.modules.keys()"
    environment = {**clean_environment(tmp_path), "DJANGO_SETTINGS_MODULE": "evalhub.settings"}
    Server("", environment).prepare()
    subprocess.run([sys.executable, "-c", code], env=environment, cwd=ROOT, check=True, timeout=60)


def test_a_process_that_ends_looks_for_no_garbage(tmp_path: Path) -> None:
    code = (
        "import atexit, gc; atexit.register(lambda: print(gc.get_freeze_count() > 1000, len(gc.get_objects()) < 100)); "
        "import django; django.setup()"
    )
    environment = {**clean_environment(tmp_path), "DJANGO_SETTINGS_MODULE": "evalhub.settings"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, env=environment, cwd=ROOT, check=True, timeout=60, capture_output=True, text=True
    )
    assert done.stdout == "True True\n"


def test_a_worker_that_celery_starts_refuses_as_well(settings: Any) -> None:
    settings.EVALHUB_LEASE_SECONDS = 1
    with pytest.raises(ImproperlyConfigured):
        CheckStep.create(object.__new__(CheckStep), None)


@pytest.fixture(scope="module")
def redis() -> Iterator[OwnRedis]:
    if not installed() and not os.environ.get("EVALHUB_TEST_REQUIRED"):
        pytest.skip("no Redis to start")
    with own_redis() as server:
        yield server


@pytest.mark.parametrize(
    ("options", "codes"),
    [
        ({"maxmemory-policy": "noeviction", "appendonly": "yes"}, []),
        ({"maxmemory-policy": "noeviction", "appendonly": "no", "save": "60 1000"}, []),
        ({"maxmemory-policy": "noeviction", "appendonly": "no", "save": ""}, ["evalhub.W008"]),
        ({"maxmemory-policy": "volatile-lru", "save": "60 1000"}, ["evalhub.W007"]),
        ({"maxmemory-policy": "allkeys-lru", "save": "60 1000"}, ["evalhub.E007"]),
        ({"maxmemory-policy": "allkeys-random", "save": ""}, ["evalhub.E007", "evalhub.W008"]),
    ],
)
def test_a_redis_that_evicts_messages_is_refused(
    redis: OwnRedis, options: dict[str, str], codes: list[str]
) -> None:
    for name, value in options.items():
        redis.client().config_set(name, value)
    assert ids(check_redis(redis.url)) == codes


def test_a_redis_that_is_away_is_waited_for() -> None:
    assert ids(check_redis("redis://127.0.0.1:1/0")) == ["evalhub.W005"]


def test_a_redis_that_refuses_the_user_is_told_from_one_that_is_away(redis: OwnRedis) -> None:
    refused = redis.url.replace("redis://", "redis://nobody:wrong@")
    assert ids(check_redis(refused)) == ["evalhub.W010"]


def test_check_connects_to_the_services_when_it_is_asked(
    db: None, redis: OwnRedis, settings: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    redis.client().config_set("maxmemory-policy", "noeviction")
    redis.client().config_set("save", "60 1000")
    settings.EVALHUB_REDIS_URL = redis.url
    call_command("check", "--services", "--tag", "evalhub")
    assert "Redis accepts the connection" in capsys.readouterr().out
    settings.EVALHUB_REDIS_URL = "redis://127.0.0.1:1/0"
    with pytest.raises(CommandError, match="Redis"):
        call_command("check", "--services", "--tag", "evalhub")
