"""The commands in README.md, run as they are pasted, and what they must have printed."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from tests.reliability.servers import ROOT


def run_readme(url: str, token: str, folder: Path) -> list[str]:
    """Run every line of the two blocks against a server; returns what they print, an answer a line."""
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(blocks) == 2
    script = "".join(blocks).replace("http://127.0.0.1:8000", url).replace("evh_...", token)
    # One JSON answer a line: curl prints none of its own.
    script = re.sub(r"^(.*curl -s .*)$", r"\1; echo", script, flags=re.MULTILINE).replace(
        "done; echo", "done"
    )
    script = re.sub(r"^(RUN=.*); echo$", r"\1", script, flags=re.MULTILINE)
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=folder, capture_output=True, text=True,
                          timeout=60, check=True)  # fmt: skip
    return done.stdout.splitlines()


def check_answers(lines: list[str]) -> None:
    """Check that the README's runs were evaluated, ranked and compared, and its bad file refused."""
    answers = [json.loads(line) for line in lines if line.startswith(("{", "["))]
    problems = [
        answer for answer in answers if isinstance(answer, dict) and answer.get("status") == 422
    ]
    assert len(answers) == 10
    assert [len(problem["errors"]) for problem in problems] == [2]
    plain, sure = (answer for answer in answers if "results" in answer)
    assert [row["run"]["tag"] for row in plain["results"]] == ["dense", "bm25"]
    # Two topics tell nothing apart.
    assert [row["statistics"]["tier"] for row in sure["results"]] == [None, None]
    (compared,) = next(answer for answer in answers if "comparison" in answer)["measures"]
    tests = compared["pairs"][0]["tests"]
    for test in ("paired_t", "wilcoxon"):
        assert (tests[test]["significant"], tests[test]["withheld"]) == (False, "too_few_topics")
    said = re.search(
        r"The last line prints:\n\n```\n(.*?)\n```", (ROOT / "README.md").read_text(), re.DOTALL
    )
    assert said
    assert said[1] in "\n".join(lines)
    assert "| dense | **1.0000** |" in lines
