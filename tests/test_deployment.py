"""Production settings, and the commands that installations are made of."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from evalhub.serving import processes, worker
from metrics.models import DispatcherRound
from tests.reliability.servers import ROOT, SECRET_KEY

PRODUCTION = {
    "EVALHUB_SECRET_KEY": SECRET_KEY * 2,
    "EVALHUB_HTTPS": "1",
    "EVALHUB_ALLOWED_HOSTS": "eval.example.org",
    "EVALHUB_TRUSTED_ORIGINS": "https://eval.example.org",
    "EVALHUB_DATABASE_URL": "postgres://evalhub:secret@db:5432/evalhub",
    "EVALHUB_REDIS_URL": "redis://redis:6379/0",
    "EVALHUB_METRICS_TOKEN": "a-token-of-the-scraper",
    "EVALHUB_LOG_FORMAT": "json",
}


def manage(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("EVALHUB_")}
    command = [sys.executable, "-W", "error", "manage.py", *arguments]
    return subprocess.run(
        command, env={**clean, **environment}, cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_djangos_deployment_checks_are_clean(tmp_path: Path) -> None:
    done = manage(
        "check", "--deploy", "--fail-level", "WARNING", EVALHUB_DATA=str(tmp_path), **PRODUCTION
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "no issues (0 silenced)" in done.stdout


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("EVALHUB_METRICS_TOKEN", "short", "at least 16 characters"),
        ("EVALHUB_LOG_LEVEL", "LOUD", "DEBUG, INFO, WARNING"),
        ("EVALHUB_LOG_FORMAT", "xml", "line or json"),
    ],
)
def test_a_setting_that_means_nothing_is_refused(
    tmp_path: Path, name: str, value: str, says: str
) -> None:
    done = manage("check", EVALHUB_DATA=str(tmp_path), **{name: value})
    assert done.returncode != 0
    assert says in done.stderr


def test_a_worker_alone_needs_a_broker(settings: Any) -> None:
    with pytest.raises(CommandError, match="EVALHUB_REDIS_URL"):
        call_command("worker")


def test_the_web_command_becomes_the_server_it_starts(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No process stays in between: a signal to the one that was started reaches the server."""
    served: list[tuple[int, str, int]] = []

    def serve(bind: str, processes: int) -> int:
        served.append((os.getpid(), bind, processes))
        return 7

    monkeypatch.setattr("evalhub.management.commands.web.load_web", lambda: serve)
    with pytest.raises(SystemExit) as ended:
        call_command("web", bind="0.0.0.0:80", processes=5)
    assert (served, ended.value.code) == ([(os.getpid(), "0.0.0.0:80", 5)], 7)


def test_every_web_server_has_a_folder_of_figures_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    memory = tmp_path / "memory"
    memory.mkdir()
    monkeypatch.setattr(processes, "SHARED_MEMORY", str(memory))
    folders = {processes.web_environment()[processes.COUNTERS_VARIABLE] for _ in range(2)}
    assert folders == {str(path) for path in memory.iterdir()}
    assert len(folders) == 2


def test_a_worker_is_well_while_its_own_dispatcher_goes_round(db: None) -> None:
    with pytest.raises(CommandError, match="no dispatcher"):
        call_command("check_worker")
    DispatcherRound.objects.create(worker="elsewhere-7", at=timezone.now())
    with pytest.raises(CommandError, match="no dispatcher"):
        call_command("check_worker")
    DispatcherRound.objects.create(worker=f"{socket.gethostname()}-7", at=timezone.now())
    call_command("check_worker")


def test_an_embedded_worker_finishes_what_it_has_in_hand_and_then_ends_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    in_hand, killed = ["second", "first"], []
    pool = SimpleNamespace(_pool=SimpleNamespace(_pool=[]))
    watch = worker.PoolWatch(SimpleNamespace(pool=pool))
    consumer = SimpleNamespace(should_stop=0, should_terminate=None, reserved_requests=in_hand)
    monkeypatch.setattr(worker, "state", consumer)
    monkeypatch.setattr(worker.time, "sleep", lambda seconds: in_hand and in_hand.pop())
    monkeypatch.setattr(
        worker.os, "killpg", lambda group, number: killed.append((group, number, list(in_hand)))
    )
    watch.run()
    assert killed == [(0, signal.SIGKILL, [])]
