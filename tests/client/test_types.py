"""What a strict type checker reads of the client."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reliability.servers import ROOT

PROGRAM = """
from typing import assert_type
import evalhub.client as evh

def errand(hub: evh.Hub) -> None:
    c = hub.collection("c")
    run = c.submit("a.run")
    assert_type(run, evh.Run)
    assert_type(c.submit("a.run", dry_run=True), evh.Check)
    assert_type(run.wait(), evh.Run)
    assert_type(run.means("AP")["AP"], float | None)
    assert_type(c.submit_all("runs").runs, list[evh.Run])
    assert_type(c.compare("a", "b"), evh.Comparison)
    assert_type(c.qrels(), evh.Listed)
    assert_type(c.qrels(2).file(), bytes)
    assert_type(c.sessions.submit("log").wait(), evh.SessionSet)
    phase = hub.campaign("cup").phase("task")
    assert_type(phase.enter("a.run"), evh.Entry)
    assert_type(phase.enter("a.run", dry_run=True), evh.Check)
    run.wait()["AP"]  # the only error
"""


@pytest.mark.slow
def test_a_strict_type_checker_reads_every_answer(tmp_path: Path) -> None:
    mypy = pytest.importorskip("mypy.api")
    program, settings = tmp_path / "program.py", tmp_path / "mypy.ini"
    program.write_text(PROGRAM)
    settings.write_text(f"[mypy]\nstrict = true\nmypy_path = {ROOT}\n")
    report, problems, _ = mypy.run(
        ["--config-file", str(settings), "--cache-dir", str(tmp_path), str(program)]
    )
    assert problems == ""
    errors = [line for line in report.splitlines() if "error:" in line]
    assert len(errors) == 1, report
    assert "program.py:" in errors[0]
    assert "not indexable" in errors[0]
