"""No child of a supervisor outlives it, whenever it is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evalhub.serving.supervisor import exclusive
from tests.reliability.servers import ROOT, clean_environment

# A child that is slow between its birth and its question to the kernel.
SLOW = """
import time
from pathlib import Path
from evalhub.serving import supervisor

ask = supervisor.die_with

def ask_late(parent):
    Path("born").touch()
    time.sleep(1)
    ask(parent)

supervisor.die_with = ask_late
supervisor.Supervisor({"worker": Path("started").touch}).start()
time.sleep(60)
"""


@pytest.mark.parametrize("killed", [True, False])
def test_a_child_whose_parent_died_early_does_not_start(tmp_path: Path, killed: bool) -> None:
    environment = {**clean_environment(tmp_path), "PYTHONPATH": str(ROOT)}
    environment["DJANGO_SETTINGS_MODULE"] = "evalhub.settings"
    with subprocess.Popen([sys.executable, "-c", SLOW], env=environment, cwd=tmp_path) as parent:
        _until(tmp_path / "born")
        if killed:
            parent.kill()
            parent.wait()
            time.sleep(2)
            assert not (tmp_path / "started").exists()
        else:
            _until(tmp_path / "started")
            parent.kill()


# A child that does not end, whatever it is told.
STUBBORN = """
import os, signal, time
from pathlib import Path
from evalhub.serving import supervisor

def work():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Path("stubborn").write_text(str(os.getpid()))
    time.sleep(60)

with supervisor.exclusive(Path("data")):
    supervisor.Supervisor({"worker": work}).start()
    time.sleep(60)
"""


def test_a_child_that_is_still_ending_holds_no_data_folder(tmp_path: Path) -> None:
    environment = {**clean_environment(tmp_path), "PYTHONPATH": str(ROOT)}
    environment["DJANGO_SETTINGS_MODULE"] = "evalhub.settings"
    with subprocess.Popen(
        [sys.executable, "-c", STUBBORN], env=environment, cwd=tmp_path
    ) as parent:
        _until(tmp_path / "stubborn")
        while not (child := (tmp_path / "stubborn").read_text()):
            time.sleep(0.02)
        parent.kill()
        parent.wait()
        try:
            with exclusive(tmp_path / "data"):
                os.kill(int(child), 0)
        finally:
            os.kill(int(child), signal.SIGKILL)


def _until(file: Path) -> None:
    deadline = time.monotonic() + 30
    while not file.exists():
        assert time.monotonic() < deadline, f"no {file.name}"
        time.sleep(0.02)
