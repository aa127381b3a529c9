"""The client against a real server: an errand, and a batch whose server and sender are killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalhub.client import AsyncHub, BadFile, Hub
from evalhub.client.config import Config
from tests.reliability.servers import ROOT, Server, embedded_server

pytestmark = pytest.mark.slow
QRELS = "1 0 a 1\n1 0 b 0\n2 0 c 2\n3 0 q 1\n"
BM25 = {"1": {"a": 3.0, "b": 2.0}, "2": {"x": 3.0, "c": 2.0}}
DENSE = {"1": {"z": 2.0, "a": 1.0}, "2": {"c": 1.0}, "3": {"q": 1.0}}
RUNS = 60


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Config]]:
    """A server with a collection, and what a client needs to reach it."""
    folder = tmp_path_factory.mktemp("errand")
    with embedded_server(folder / "data") as server:
        config = Config(server.url, server.token or server.make_admin(), "default", collection="tiny")
        with Hub(config) as hub:
            team = hub.me().teams[0]["slug"]
            made = hub.create_collection("tiny", team=team, measures=["AP", "nDCG@10"])
            (folder / "qrels").write_text(QRELS)
            made.upload_qrels(folder / "qrels")
        yield server, config


def test_an_errand(place: tuple[Server, Config]) -> None:
    """AP by hand: of bm25 (1 + 1/2 + 0) / 3, of dense (1/2 + 1 + 1) / 3."""
    with Hub(place[1]) as hub:
        tiny = hub.collection()
        assert tiny.submit(BM25, tag="bm25", dry_run=True).lines == 4
        bm25 = tiny.submit(BM25, tag="bm25").wait(60)
        dense = tiny.submit(DENSE, tag="dense", metadata={"k1": 0.9}).wait(60)
        assert bm25.means("AP")["AP"] == pytest.approx(0.5, abs=1e-12)
        assert dict(bm25.values("AP")) == {"1": 1.0, "2": 0.5, "3": 0.0}
        assert bm25.means().coverage == {"answered": 2, "judged": 3}
        rows = tiny.leaderboard("AP").rows()
        assert [(row["rank"], row["tag"], round(row["AP"], 12)) for row in rows] == [
            (1, "dense", 0.833333333333),
            (2, "bm25", 0.5),
        ]
        (pair,) = tiny.compare("bm25", dense, measures=["AP"], tests=["sign"]).rows()
        assert (pair["a"], pair["b"], round(pair["difference"], 12)) == ("dense", "bm25", 0.333333333333)
        assert tiny.difference("bm25", "dense", "AP").losses == 2
        assert tiny.submit(BM25, tag="bm25", if_taken="skip").id == bm25.id
        assert tiny.submit(DENSE, tag="bm25", if_taken="suffix").tag == "bm25-2"
        assert tiny.run("dense").metadata == {"k1": 0.9}
        assert bm25.file().startswith(b"1 Q0 a 1 3.0 bm25\n")
        assert "<table>" in tiny.leaderboard("AP")._repr_html_()
        with pytest.raises(BadFile, match="run:1: bad_score"):
            tiny.submit(b"1 Q0 a 1 high x\n")


def test_the_example_of_the_documentation_prints_what_it_says(place: tuple[Server, Config], tmp_path: Path) -> None:
    page = (ROOT / "docs/client.md").read_text()
    example, printed = page.partition("```python\n")[2].split("```")[0:3:2]
    (tmp_path / "tiny.qrels").write_text(QRELS)
    (tmp_path / "bm25.run").write_text(page.partition("named `pyterrier`\n\n```\n")[2].partition("```")[0])
    with Hub(place[1]) as hub:
        example = example.replace("alice", hub.me().teams[0]["slug"])
    example = example.replace("import evalhub_client", "import evalhub.client").replace('"tiny"', '"shown"')
    environment = {**os.environ, "EVH_URL": place[1].url, "EVH_TOKEN": place[1].token, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", example], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == printed.removeprefix("\n")


def test_an_errand_of_a_program_that_awaits(place: tuple[Server, Config]) -> None:
    async def errand() -> Any:
        async with AsyncHub(place[1]) as hub:
            run = await hub.collection().submit(DENSE, tag="awaited")
            await run.wait(60)
            return await run.means("AP")

    assert asyncio.run(errand())["AP"] == pytest.approx(2.5 / 3, abs=1e-12)


def test_a_batch_survives_the_kill_of_its_sender_and_of_the_server(tmp_path: Path) -> None:
    """Each run is there once, after the second call of the same command."""
    folder = tmp_path / "runs"
    folder.mkdir()
    for number in range(RUNS):
        (folder / f"run-{number:02}.run").write_text(f"1 Q0 a 1 {number + 1}.0 test\n2 Q0 c{number} 1 1.0 test\n")
    with embedded_server(tmp_path / "data") as server:
        environment = {
            **os.environ,
            "EVH_URL": server.url,
            "EVH_TOKEN": server.token,
            "EVH_CONFIG": str(tmp_path / "none"),
        }
        with Hub(Config(server.url, server.token, "default")) as hub:
            hub.create_collection("tiny", team=hub.me().teams[0]["slug"], measures=["AP"])
            (tmp_path / "qrels").write_text(QRELS)
            hub.collection("tiny").upload_qrels(tmp_path / "qrels")
        command = [sys.executable, "-m", "evalhub.client", "submit", "tiny", str(folder), "--wait", "--quiet"]
        command += ["--journal", str(tmp_path / "journal"), "--parallel", "2"]
        sender = subprocess.Popen(command, env=environment, cwd=ROOT, stdout=subprocess.DEVNULL)
        wait_for_lines(tmp_path / "journal", 20)
        sender.kill()
        sender.wait()
        sender = subprocess.Popen(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        wait_for_lines(tmp_path / "journal", 60)
        os.killpg(server.processes[0].pid, signal.SIGKILL)
        server.processes[0].wait()
        server.start("evalhub", "serve", "--bind", server.url.removeprefix("http://"))
        output, _ = sender.communicate(timeout=180)
        assert sender.returncode == 0
        with Hub(Config(server.url, server.token, "default")) as hub:
            runs = hub.collection("tiny").runs()
        assert sorted(run.tag for run in runs) == [f"run-{number:02}" for number in range(RUNS)]
        assert {run.state for run in runs} == {"evaluated"}
        assert sorted(output.split()) == sorted(run.id for run in runs)


def wait_for_lines(path: Path, lines: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if path.exists() and path.read_bytes().count(b"\n") >= lines:
            return
        time.sleep(0.01)
    raise TimeoutError(f"{path} has not {lines} lines")
