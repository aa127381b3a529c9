"""The how-to guides work as they are pasted, and print what they say they print."""

from __future__ import annotations

import math
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.reliability.readme import evh_of
from tests.reliability.servers import ROOT, START_SECONDS, Server, clean_environment, free_port

GUIDES = [
    "compare-two-systems",
    "lab-leaderboard",
    "blind-campaign",
    "run-a-campaign",
    "sessions",
    "webhooks",
    "gate",
    "parameters",
    "explain",
    "cost",
    "ci",
    "pools",
    "judging",
    "answers",
    "sampled-judgements",
    "seeds",
]
# Tried by other tests: test_ways_in.py, which reads the mails, client/test_judging.py, which runs the script,
# and test_provider.py, which has a provider.
TRIED_ELSEWHERE = {"invite-people", "judgements-by-a-model", "provider"}
# Two users without rights; the last one's token is printed.
USERS = """
from django.core.management import call_command
from runs.models import User
for name in ("bob", "carol"):
    User.objects.create_user(name)
call_command("create_token", "carol")
"""
# What has no id, date or hash in it is printed to the letter.
EXACT = (
    "| ",
    '"state"',
    '"late"',
    '"slots_left"',
    "AP: build-27",
    '{"username"',
    "undecided: ",
    "  undecided: ",
    "  fine: ",
    "status ",
    "bm25.k1 ",
    "k1 ",
    "tag,",
    "careful,",
    "plain,",
    "bm25,",
    "dense,",
    "1,d1,",
    "bm25   0",
    "dense  0",
    "large  ",
    "small  ",
    "other topics and other replicates",
)


@dataclass
class Site:
    server: Server
    # Of a user without rights.
    participant: str

    def run_script(self, script: str, folder: Path) -> str:
        """Run a guide's commands with tokens and the address of this site; return what they print."""
        script = script.replace("PARTICIPANT=evh_...", f"PARTICIPANT={self.participant}")
        script = script.replace("evh_...", self.server.token)
        script = script.replace("http://127.0.0.1:8000", self.server.url)
        own = shlex.join(
            f"{name}={value}"
            for name, value in self.server.environment.items()
            if name.startswith("EVALHUB_")
        )
        commands = (
            evh_of(sys.executable)
            + f'evalhub() {{ env {own} {sys.executable} -m evalhub "$@"; }}\n'
        )
        command = ["bash", "-euo", "pipefail", "-c", commands + script]
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The server of the demo with its collections, the README's `tiny`, and two users without rights."""
    data, port = tmp_path_factory.mktemp("guides"), free_port()
    environment = {**clean_environment(data), "EVALHUB_WEBHOOKS": "on", "PYTHONUNBUFFERED": "1"}
    server, printed = Server(f"http://127.0.0.1:{port}", environment), data / "printed"
    try:
        server.prepare()
        with printed.open("wb") as output:
            bind = f"127.0.0.1:{port}"
            command = [sys.executable, "-m", "evalhub", "demo", "--examples", "--bind", bind]
            server.processes.append(
                subprocess.Popen(
                    command, env=environment, cwd=ROOT, start_new_session=True, stdout=output
                )
            )
        participant = re.findall(r"evh_\S+", server.manage("shell", "-v", "0", "-c", USERS))[-1]
        deadline = time.monotonic() + START_SECONDS
        while "A token to try the API with" not in printed.read_text():
            assert time.monotonic() < deadline, printed.read_text()
            time.sleep(0.2)
        demo = Site(server, participant)
        readme = (ROOT / "README.md").read_text().partition("```sh\n")[2].partition("```")[0]
        demo.run_script(readme, data)
        yield demo
    finally:
        server.stop()


@pytest.mark.parametrize("name", GUIDES)
def test_every_line_of_a_guide_works(site: Site, tmp_path: Path, name: str) -> None:
    text = (ROOT / f"docs/how-to/{name}.md").read_text()
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    for script in (block for kind, block in blocks if kind == "bash"):
        (tmp_path / "evalhub-submit.sh").write_text(script)
    printed = site.run_script("".join(block for kind, block in blocks if kind == "sh"), tmp_path)
    output = [line for kind, block in blocks if not kind for line in block.splitlines()]
    exact = [line for line in output if line.startswith(EXACT) and "build-28" not in line]
    assert exact or name in ("sessions", "webhooks")
    assert [line for line in exact if line not in printed] == [], printed


def numbers_in(answer: object, name: str = "") -> Iterator[tuple[str, float]]:
    """Every number of an answer with the name of its field."""
    if isinstance(answer, dict):
        for key, value in answer.items():
            yield from numbers_in(value, key)
    elif isinstance(answer, list):
        for value in answer:
            yield from numbers_in(value, name)
    elif isinstance(answer, int | float):
        yield name, float(answer)


def test_the_example_of_a_comparison_is_an_answer(site: Site) -> None:
    """The numbers of docs/api/comparisons.md are those that the demo's collection gives."""
    page = (ROOT / "docs/api/comparisons.md").read_text()
    example = page.partition("```json\n")[2].partition("```")[0]
    with site.server.client() as api:
        address = (
            "collections/simulated/comparison/?measures=nDCG@10&tests=paired_t,wilcoxon&limit=1"
        )
        real = set(numbers_in(api.get(address).raise_for_status().json()))
    figures = [
        (name, float(value))
        for name, value in re.findall(r'"(\w+)": (-?\d[\d.]*(?:e-\d+)?)', example)
    ]
    assert len(figures) > 40
    wrong = [
        figure
        for figure in figures
        if not any(figure[0] == name and close(figure[1], value) for name, value in real)
    ]
    assert wrong == []


def close(printed: float, real: float) -> bool:
    """Whether a number is said as it is: with four decimals, and p far below that with three digits."""
    return math.isclose(printed, real, rel_tol=5e-3, abs_tol=5e-5 if abs(printed) > 1e-4 else 0.0)


def test_every_guide_is_tried() -> None:
    assert {page.stem for page in (ROOT / "docs/how-to").glob("*.md")} == {
        *GUIDES,
        *TRIED_ELSEWHERE,
        "README",
    }
