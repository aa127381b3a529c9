"""A PostgreSQL with 100,000 runs of 1,000 teams and ten million judgements: what every list, leaderboard, comparison,
round of a dispatcher, sweep and backup takes on it.

python -m tests.benchmarks capacity

The rows are those that evaluations leave; stored files are one small file that all runs name.
CAPACITY_SHARE=0.1 makes a tenth of it, so that what grows, and how, is seen from two runs.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import numpy as np
import zstandard

from evalhub.operating.simulation import TEXTBOOK_QRELS, TEXTBOOK_RUN
from tests.benchmarks.board import TOPICS, fill_collection
from tests.benchmarks.rows import finish, insert
from tests.benchmarks.views import judge_files
from tests.reliability.rigs import own_postgres
from tests.reliability.servers import Server, clean_environment, free_port

SHARE = float(os.environ.get("CAPACITY_SHARE", "1"))
TEAMS, JUDGEMENTS = 1_000, 10_000_000
# How many collections have how many runs.
SIZES = {10_000: 1, 2_000: 15, 300: 200}
MEASURES = ["nDCG@10", "AP", "P@10", "RR", "R@100", "R@1000", "nDCG", "Bpref"]
QUEUED, ROUNDS = 5_000, 9
_TOKEN = "only-for-benchmarks-only-for-benchmarks"


def measure_capacity() -> None:
    """Fill, then ask over HTTP, in a process of its own for the dispatcher, and by commands."""
    with contextlib.ExitStack() as parts:
        folder, port = Path(parts.enter_context(tempfile.TemporaryDirectory())), free_port()
        environment = clean_environment(folder) | {
            "EVALHUB_ADDRESS_RATE": "100000000",
            "EVALHUB_METRICS_TOKEN": _TOKEN,
        }
        environment["EVALHUB_DATABASE_URL"] = parts.enter_context(own_postgres()).url
        server = Server(f"http://127.0.0.1:{port}", environment)
        parts.callback(server.stop)
        server.manage("migrate", "--verbosity", "0")
        server.manage("adopt")
        _shell(server, "fill()")
        server.start("evalhub", "web", "--bind", f"127.0.0.1:{port}", "--processes", "1")
        server.wait()
        _ask(server)
        print(_shell(server, "time_rounds()"), end="", flush=True)
        for command in (["sweep"], ["fsck", "--fast"], ["backup", str(folder / "backup.tar")]):
            _command(server, command)
        size = (folder / "backup.tar").stat().st_size
        print(f"the backup has {size / 1e6:,.0f} MB", flush=True)


def _shell(server: Server, code: str) -> str:
    return server.manage(
        "shell", "-v", "0", "-c", f"from tests.benchmarks.capacity import *; {code}"
    )


def fill() -> None:
    """Teams with an owner each, collections with judgements, and their runs; one file that all of them name."""
    from runs.models import Collection, Qrels, Team
    from runs.services.storage.files import keep_file, storing

    teams, first = int(TEAMS * SHARE), 1_000
    insert(
        "runs.User",
        ((first + n, f"user{n}", "!") for n in range(teams)),
        "id",
        "username",
        "password",
    )
    insert(
        "runs.Team", ((first + n, f"t{n}", f"Team {n}") for n in range(teams)), "id", "slug", "name"
    )
    members = ((first + n, first + n, "owner") for n in range(teams))
    insert("runs.Membership", members, "team_id", "user_id", "role")
    finish()
    view, files = _view(), (_sha256(TEXTBOOK_QRELS), _sha256(TEXTBOOK_RUN))
    with storing():
        for text in (TEXTBOOK_QRELS, TEXTBOOK_RUN):
            with tempfile.NamedTemporaryFile("w", delete=False) as file:
                file.write(text)
            keep_file(Path(file.name), _sha256(text))
    sizes = [size for size, count in SIZES.items() for _ in range(max(1, int(count * SHARE)))]
    sizes[0] = int(sizes[0] * SHARE)
    for number, size in enumerate(sizes):
        collection = Collection.objects.create(
            slug=f"c{number}", name=f"Collection {number}", team=Team.objects.get(pk=first + number % teams),
            measures=MEASURES,
        )  # fmt: skip
        own = [first + (number + n) % teams for n in range(min(teams, max(10, size // 20)))]
        fill_collection(
            collection.pk, size, MEASURES, own, described=True, seed=number, view=view, files=files
        )
    Qrels.objects.update(judgements=int(JUDGEMENTS * SHARE) // len(sizes))
    finish()


def _view() -> bytes:
    """Return the stored view of a run of 50 topics x 200 documents, half of them judged."""
    rng, lines, judged = np.random.default_rng(0), list[str](), list[str]()
    for topic in range(TOPICS):
        for rank, score in enumerate(np.sort(rng.random(200))[::-1].tolist()):
            lines.append(f"{topic} Q0 d{rank} {rank} {score:.6f} r\n")
            if rank % 2:
                judged.append(f"{topic} 0 d{rank} {rng.integers(4)}\n")
    with tempfile.TemporaryDirectory() as folder:
        qrels, run = Path(folder) / "qrels", Path(folder) / "run"
        qrels.write_text("".join(judged))
        run.write_text("".join(lines))
        return zstandard.compress(judge_files(qrels, run).to_bytes())


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _ask(server: Server) -> None:
    """Print what addresses take that nobody has asked for, and again."""
    with server.client() as api:
        rows = (
            api.get("collections/c0/leaderboard/", params={"limit": 10})
            .raise_for_status()
            .json()["results"]
        )
        ids = [row["run"]["id"] for row in rows]
    compared = f"runs={','.join(ids)}"
    headers = {"Authorization": f"Bearer {server.token}"}
    for who, extra in (("anybody", {}), ("an administrator", headers)):
        with httpx.Client(base_url=server.url, timeout=120, headers=extra) as client:
            for path in (
                "/", "/api/v1/collections/", "/api/v1/collections/c0/", "/api/v1/runs/", "/api/v1/runs/?offset=5000",
                "/api/v1/runs/?filter=param:k1>1.5", "/api/v1/collections/c0/runs/", "/api/v1/teams/", "/teams/",
                "/api/v1/collections/c0/leaderboard/", "/api/v1/collections/c1/leaderboard/",
                "/api/v1/collections/c20/leaderboard/", "/collections/c0/", "/collections/c1/", "/collections/c20/",
                "/collections/c0/board/", "/collections/c20/board/", "/api/v1/collections/c0/parameters/",
                f"/api/v1/collections/c0/comparison/?{compared}", f"/collections/c0/comparison/?{compared}",
                "/api/v1/collections/c20/comparison/", f"/runs/{ids[0]}/", f"/api/v1/runs/{ids[0]}/values/",
                f"/api/v1/runs/{ids[0]}/", "/api/v1/collections/c0/audit/", "/api/v1/experiments/", "/api/v1/systems/",
            ):  # fmt: skip
                _time(
                    f"{who}: {path.replace(compared, 'runs=10 runs').replace(ids[0], 'RUN')}",
                    client,
                    path,
                )
    with httpx.Client(
        base_url=server.url, timeout=120, headers={"Authorization": f"Bearer {_TOKEN}"}
    ) as client:
        _time("a scrape: /metrics", client, "/metrics")
        _time("a probe: /readyz", client, "/readyz")


def _time(title: str, client: httpx.Client, path: str) -> None:
    seconds, code = [], 0
    for _ in range(ROUNDS):
        start = time.perf_counter()
        code = client.get(path).status_code
        seconds.append(1000 * (time.perf_counter() - start))
    note = "" if code == 200 else f" (status {code})"
    print(
        f"{title}{note}: first {seconds[0]:.0f} ms, then {statistics.median(seconds[1:]):.0f} ms",
        flush=True,
    )


def time_rounds() -> None:
    """Print what a dispatcher asks, with an empty queue and with thousands that wait."""
    from metrics.models import Evaluation
    from metrics.services.queue.lifecycle import claim, kinds_due, reap_expired, take_due
    from metrics.services.queue.notices import announce_done
    from metrics.services.queue.queueing import queue_missing

    def timed(title: str, call: Callable[[], object]) -> None:
        seconds = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            call()
            seconds.append(1000 * (time.perf_counter() - start))
        print(f"{title}: median {statistics.median(seconds):.1f} ms, first {seconds[0]:.1f} ms")

    def ask() -> object:
        return kinds_due(30.0)

    timed("dispatcher: is anything due, with an empty queue", ask)
    timed("dispatcher: reaping", reap_expired)
    timed("dispatcher: announcing", announce_done)
    timed("dispatcher: queueing what was not queued (each hour)", queue_missing)
    waiting = list(Evaluation.objects.order_by("-pk").values_list("pk", flat=True)[:QUEUED])
    Evaluation.objects.filter(pk__in=waiting).update(state="queued")
    timed(f"dispatcher: is anything due, {QUEUED:,} wait", ask)
    timed(f"dispatcher: taking 50 of {QUEUED:,}", lambda: take_due(50, 30.0))
    timed(f"worker: claiming one of {QUEUED:,}", lambda: claim(waiting.pop()))
    Evaluation.objects.exclude(state="evaluated").update(
        state="evaluated", lease_token=None, lease_until=None, dispatched_at=None
    )


def _command(server: Server, command: list[str]) -> None:
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with contextlib.suppress(Exception):
        server.manage(*command)
    took, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"evalhub {command[0]}: {took:.1f} s, {spent:.1f} s of processor", flush=True)
