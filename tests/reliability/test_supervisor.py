"""No child of a supervisor outlives it, whenever it is killed."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.reliability.servers import ROOT, clean_environment

# A child that is slow between its birth and its question to the kernel.
SLOW = """
import sys, time
from pathlib import Path
from evalhub.serving import supervisor

ask = supervisor.die_with

def ask_late(parent):
    Path("born").touch()
    time.sleep(1)
    ask(parent)

supervisor.die_with = ask_late
started = "from pathlib import Path; Path('started').touch()"
supervisor.Supervisor({"worker": [sys.executable, "-c", started]}).start()
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


def _until(file: Path) -> None:
    deadline = time.monotonic() + 30
    while not file.exists():
        assert time.monotonic() < deadline, f"no {file.name}"
        time.sleep(0.02)
