"""A batch whose server and sender are killed again and again; then every run is counted.

    python -m tests.client.many                      1,000 runs of 50 topics and 1,000 documents, five kills
    python -m tests.client.many --runs 100 --documents 100

Each file becomes one run, none two, and the last call of the same command ends with status 0.
"""

from __future__ import annotations

import argparse
import gzip
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from evalhub.client import Hub
from evalhub.client.config import Config
from tests.reliability.servers import ROOT, Server, embedded_server

COLLECTION = "many"
PATIENCE = 3600.0
# Renderings of each topic, of which every run takes one at random: no two runs are alike.
VARIANTS = 20


@dataclass
class Outcome:
    """What became of a batch: the tags of its runs with their number, states, and how its last sender ended."""

    status: int
    tags: Counter[str]
    states: Counter[str]
    printed: list[str]
    ids: list[str]
    megabytes: float
    seconds: float
    kills: list[str] = field(default_factory=list)

    def faults(self, runs: int) -> list[str]:
        """What contradicts the promise, in words."""
        wrong = [f"the last call ended with status {self.status}"] if self.status else []
        wrong += [f"{tag} is there {count} times" for tag, count in self.tags.items() if count > 1]
        if len(self.tags) != runs:
            wrong.append(f"{len(self.tags)} runs are there instead of {runs}")
        if set(self.states) != {"evaluated"}:
            wrong.append(f"states: {dict(self.states)}")
        if sorted(self.printed) != sorted(self.ids):
            wrong.append("the ids that were printed are not those of the runs")
        return wrong


def write_runs(folder: Path, runs: int, topics: int, documents: int, seed: int = 1) -> float:
    """Write compressed runs, which differ from each other; return their megabytes."""
    draws = random.Random(seed)
    blocks = []
    for topic in range(topics):
        variants = []
        for _ in range(VARIANTS):
            ranked = draws.sample(range(10 * documents), documents)
            lines = [
                f"{topic} Q0 d{document} {rank} {documents - rank} test\n"
                for rank, document in enumerate(ranked, 1)
            ]
            # A file of several gzip members is a gzip file.
            variants.append(gzip.compress("".join(lines).encode(), 1))
        blocks.append(variants)
    folder.mkdir(parents=True)
    size = 0
    for number in range(runs):
        # The first line is its own in any case.
        own = gzip.compress(f"0 Q0 own{number} 0 {documents + 1} test\n".encode(), 1)
        body = own + b"".join(draws.choice(variants) for variants in blocks)
        size += len(body)
        (folder / f"run-{number:04}.run.gz").write_bytes(body)
    return size / 1e6


def prepare(server: Server, folder: Path, topics: int, documents: int) -> Config:
    """Make the collection with judgements of some documents of every topic."""
    config = Config(server.url, server.token, "default")
    lines = [
        f"{topic} 0 d{document} {document % 3}\n"
        for topic in range(topics)
        for document in range(min(100, 10 * documents))
    ]
    (folder / "qrels").write_text("".join(lines))
    with Hub(config) as hub:
        collection = hub.create_collection(
            COLLECTION, team=hub.me().teams[0]["slug"], measures=["AP", "nDCG@10"]
        )
        collection.upload_qrels(folder / "qrels")
    return config


def wait_until_free(url: str) -> None:
    """The processes that answer requests notice within seconds that the one that started them is gone."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            httpx.get(f"{url}/healthz", timeout=2)
        except httpx.TransportError:
            return
        time.sleep(0.1)
    raise AssertionError(f"{url} still answers 20 s after its server was killed")


def send_under_kills(
    server: Server,
    folder: Path,
    *,
    runs: int,
    topics: int,
    documents: int,
    kills: dict[int, str],
    parallel: int = 4,
) -> Outcome:
    """Send runs by the command; when so many of `kills` are there, kill -9 the `server` or the `client`."""
    start = time.monotonic()
    megabytes = write_runs(folder / "runs", runs, topics, documents)
    journal = folder / "journal"
    config = prepare(server, folder, topics, documents)
    environment = {
        **os.environ, "EVH_URL": server.url, "EVH_TOKEN": config.token, "EVH_CONFIG": str(folder / "none"),
    }  # fmt: skip
    command = [
        sys.executable,
        "-m",
        "evalhub.client",
        "submit",
        COLLECTION,
        str(folder / "runs"),
        "--wait",
        "--quiet",
    ]
    command += ["--journal", str(journal), "--parallel", str(parallel)]

    def sender() -> subprocess.Popen[str]:
        return subprocess.Popen(
            command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True
        )

    sending, done = sender(), []
    try:
        for sent, what in sorted(kills.items()):
            wait_for_runs(journal, sent, sending)
            if what == "client":
                sending.kill()
                sending.communicate()
                sending = sender()
            else:
                os.killpg(server.processes[-1].pid, signal.SIGKILL)
                server.processes[-1].wait()
                wait_until_free(server.url)
                server.start("evalhub", "serve", "--bind", server.url.removeprefix("http://"))
            done.append(f"{what} at {sent}")
        printed, _ = sending.communicate(timeout=PATIENCE)
    finally:
        if sending.poll() is None:
            sending.kill()
    with Hub(config) as hub:
        stored = hub.collection(COLLECTION).runs()
    tags, states = Counter(str(run.tag) for run in stored), Counter(run.state for run in stored)
    ids = [str(run.id) for run in stored]
    seconds = time.monotonic() - start
    return Outcome(sending.returncode, tags, states, printed.split(), ids, megabytes, seconds, done)


def wait_for_runs(journal: Path, runs: int, sending: subprocess.Popen[str]) -> None:
    """Wait until the journal names so many runs."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if journal.exists() and journal.read_bytes().count(b'"run": ') >= runs:
            return
        if sending.poll() is not None:
            raise RuntimeError(
                f"the sender ended with status {sending.returncode} before {runs} runs were there"
            )
        time.sleep(0.02)
    raise TimeoutError(f"there are not {runs} runs after {PATIENCE:g} s")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--topics", type=int, default=50)
    parser.add_argument("--documents", type=int, default=1000)
    args = parser.parse_args()
    order = ("server", "client", "server", "client", "server")
    kills = {args.runs * place // 6: what for place, what in enumerate(order, 1)}
    with (
        tempfile.TemporaryDirectory(prefix="evalhub-many-") as name,
        embedded_server(Path(name) / "data") as server,
    ):
        outcome = send_under_kills(
            server,
            Path(name),
            runs=args.runs,
            topics=args.topics,
            documents=args.documents,
            kills=kills,
        )
    sys.stdout.write(
        f"{args.runs} files of {args.topics} x {args.documents}, {outcome.megabytes:.0f} MB compressed\n"
        f"killed: {', '.join(outcome.kills)}\n"
        f"runs: {len(outcome.ids)}, tags: {len(outcome.tags)}, states: {dict(outcome.states)}\n"
        f"last status: {outcome.status}; {outcome.seconds:.0f} s in all\n"
    )
    wrong = outcome.faults(args.runs)
    sys.stdout.write(
        "".join(f"WRONG: {problem}\n" for problem in wrong) or "each file is one run, none two\n"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
