"""docs/your-numbers.md prints what it says, on the collections that it names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parent.parent / "docs/your-numbers.md"
COMMANDS = re.findall(r"^\$ (.*\n(?:(?!\$ |```).*\n)*)", PAGE.read_text(), re.MULTILINE)


@pytest.mark.slow
@pytest.mark.real_data
def test_every_number_of_the_page_comes_from_its_command(real_data: Path, tmp_path: Path) -> None:
    """The commands are one session: later ones read the files of earlier ones."""
    for folder in ("robust03", "trec-covid-round1"):
        (tmp_path / folder).symlink_to(real_data / folder)
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    assert len(COMMANDS) > 10
    for command in COMMANDS:
        line, _, expected = command.partition("\n")
        done = subprocess.run(
            line,
            shell=True,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == expected, line
