"""What a start does not load: most processes never need it, and it takes longer than all the rest of a command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.reliability.servers import ROOT, clean_environment

COMMAND = """
import contextlib, io, json, sys
from evalhub.cli import main
sys.argv = ["evalhub", *ARGUMENTS]
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    main()
print(json.dumps(sorted(sys.modules)))
"""
HEAVY = {"numpy", "django", "celery", "rest_framework", "scipy", "altair", "metrics", "runs"}


def loaded(script: str, data: Path) -> set[str]:
    environment = {**clean_environment(data), "DJANGO_SETTINGS_MODULE": "evalhub.settings"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    "arguments", [["--version"], ["submit", "--help"], ["campaign", "--help"]], ids=" ".join
)
def test_commands_of_the_client_load_nothing_of_the_service(
    tmp_path: Path, arguments: list[str]
) -> None:
    modules = loaded(COMMAND.replace("ARGUMENTS", repr(arguments)), tmp_path)
    assert modules & HEAVY == set()
