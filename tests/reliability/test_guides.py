"""The how-to guides work as they are pasted, and print what they say they print."""

from __future__ import annotations

import math
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reliability.servers import ROOT, Server, clean_environment, embedded_server

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
]
USERS = (
    "from runs.models import User; [User.objects.create_user(name) for name in ('bob', 'carol')]"
)
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
)
# The command of the client, which the tests have not installed under its name.
EVH = f'evh() {{ {sys.executable} -m evalhub.client "$@"; }}\n'


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with the demo's collections, the README's `tiny`, and two users without rights."""
    data = tmp_path_factory.mktemp("guides")
    demo = [sys.executable, "-m", "evalhub", "demo", "--no-serve"]
    subprocess.run(
        demo, env=clean_environment(data), cwd=ROOT, check=True, capture_output=True, timeout=120
    )
    with embedded_server(data, EVALHUB_WEBHOOKS="on") as server:
        server.manage("shell", "-c", USERS)
        readme = (ROOT / "README.md").read_text().partition("```sh\n")[2].partition("```")[0]
        run_script(server, readme, data)
        yield server


def run_script(server: Server, script: str, folder: Path) -> str:
    token = server.client().headers["Authorization"].removeprefix("Bearer ")
    if "PARTICIPANT=evh_..." in script:
        participant = re.findall(r"evh_\S+", server.manage("create_token", "carol"))[-1]
        script = script.replace("PARTICIPANT=evh_...", f"PARTICIPANT={participant}")
    script = script.replace("evh_...", token)
    script = script.replace("http://127.0.0.1:8000", server.url)
    own = shlex.join(
        f"{name}={value}"
        for name, value in server.environment.items()
        if name.startswith("EVALHUB_")
    )
    commands = EVH + f'evalhub() {{ env {own} {sys.executable} -m evalhub "$@"; }}\n'
    command = ["bash", "-euo", "pipefail", "-c", commands + script]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


@pytest.mark.parametrize("name", GUIDES)
def test_every_line_of_a_guide_works(site: Server, tmp_path: Path, name: str) -> None:
    text = (ROOT / f"docs/how-to/{name}.md").read_text()
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    for script in (block for kind, block in blocks if kind == "bash"):
        (tmp_path / "evalhub-submit.sh").write_text(script)
    printed = run_script(site, "".join(block for kind, block in blocks if kind == "sh"), tmp_path)
    said = [line for kind, block in blocks if not kind for line in block.splitlines()]
    exact = [line for line in said if line.startswith(EXACT) and "build-28" not in line]
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


def test_the_example_of_a_comparison_is_an_answer(site: Server) -> None:
    """The numbers of docs/api/comparisons.md are those that the demo's collection gives."""
    page = (ROOT / "docs/api/comparisons.md").read_text()
    example = page.partition("```json\n")[2].partition("```")[0]
    with site.client() as api:
        asked = "collections/simulated/comparison/?measures=nDCG@10&tests=paired_t,wilcoxon&limit=1"
        real = set(numbers_in(api.get(asked).raise_for_status().json()))
    said = [
        (name, float(value))
        for name, value in re.findall(r'"(\w+)": (-?\d[\d.]*(?:e-\d+)?)', example)
    ]
    assert len(said) > 40
    wrong = [
        one
        for one in said
        if not any(one[0] == name and close(one[1], value) for name, value in real)
    ]
    assert wrong == []


def close(said: float, real: float) -> bool:
    """Whether a number is said as it is: with four decimals, and p far below that with three digits."""
    return math.isclose(said, real, rel_tol=5e-3, abs_tol=5e-5 if abs(said) > 1e-4 else 0.0)


def test_every_guide_is_tried() -> None:
    assert {page.stem for page in (ROOT / "docs/how-to").glob("*.md")} == {*GUIDES, "README"}
