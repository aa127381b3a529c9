"""The commands in README.md and the tutorial, run as they are pasted, and what they must have printed."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.reliability.servers import ROOT


def evh_of(python: str) -> str:
    """Define the command of the client in a shell, for an environment without its name in PATH."""
    return f'evh() {{ {shlex.quote(python)} -m evalhub.client "$@"; }}\n'


def blocks_of(page: Path) -> list[tuple[str, str]]:
    """Return the language and the text of each block of code of a page."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)


def run_readme(url: str, token: str, folder: Path, python: str = sys.executable) -> list[str]:
    """Run every line of the two blocks against a server; returns what they print, an answer a line."""
    blocks = [text for language, text in blocks_of(ROOT / "README.md") if language == "sh"]
    assert len(blocks) == 2
    # One JSON answer a line: curl prints none of its own.
    script = re.sub(r"^(.*curl -s .*)$", r"\1; echo", "".join(blocks), flags=re.MULTILINE)
    return run_commands(script, url, token, folder, python).splitlines()


def run_commands(
    script: str, url: str, token: str, folder: Path, python: str = sys.executable
) -> str:
    """Run pasted commands against a server, and return what they print."""
    script = script.replace("http://127.0.0.1:8000", url).replace("evh_...", token)
    command = ["bash", "-euo", "pipefail", "-c", evh_of(python) + script]
    environment = {**os.environ, "EVH_CONFIG": str(folder / "config.ini")}
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=120, check=False,
        env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def check_answers(lines: list[str]) -> None:
    """Check that the README's runs were evaluated, ranked and compared, and its bad file refused."""
    answers = [json.loads(line) for line in lines if line.startswith("{")]
    refused, plain, sure, comparison = answers
    assert (refused["status"], len(refused["errors"])) == (422, 2)
    assert [row["run"]["tag"] for row in plain["results"]] == ["dense", "bm25"]
    # Two topics tell nothing apart.
    assert [row["statistics"]["tier"] for row in sure["results"]] == [None, None]
    tests = comparison["measures"][0]["pairs"][0]["tests"]
    for test in ("paired_t", "wilcoxon"):
        assert (tests[test]["significant"], tests[test]["withheld"]) == (False, "too_few_topics")

    leaderboard = re.search(
        r"The last line prints:\n\n```\n(.*?)\n```", (ROOT / "README.md").read_text(), re.DOTALL
    )
    assert leaderboard
    assert leaderboard[1] in "\n".join(lines)
    assert "| dense | **1.0000** |" in lines
