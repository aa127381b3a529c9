"""The service as a whole: runs a minute from the first POST to the last value, and evaluations after new judgements.

python -m tests.benchmarks service

The clients, the web server, the workers and the database share this machine's cores. What a run
costs is told in processor time, which does not depend on how many cores there are.
"""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import numpy as np
import psutil

from tests.reliability.rigs import own_postgres, own_redis
from tests.reliability.servers import Server, clean_environment, embedded_server, free_port

if TYPE_CHECKING:
    from metrics.models import Evaluation

CLIENTS, RUNS, REEVALUATED = 4, 240, 1000
TOPICS, DEPTH, JUDGED = 50, 1000, 1500
MEASURES = ["nDCG@10", "nDCG", "AP", "P@10", "RR", "R@100", "R@1000", "bpref"]
SETTLING = 1.0
# Of the bare engine, in one process.
BARE, ROUNDS = 60, 3


def measure_service() -> None:
    """Both kinds of database with 1, 2 and 4 processes of workers; judgements that change with as many as cores."""
    for on in ("SQLite", "PostgreSQL and Redis"):
        for workers in (1, 2, 4):
            with running(on, workers) as server, server.client() as client:
                _measure_runs(f"{on}, {workers} worker processes", server, client)
        with running(on, os.cpu_count() or 1) as server, server.client() as client:
            _measure_judgements(on, server, client)


@contextlib.contextmanager
def running(on: str, workers: int) -> Iterator[Server]:
    """A service on an empty database, with a collection and its judgements, and the database's processes as its own."""
    with contextlib.ExitStack() as parts:
        folder = Path(parts.enter_context(tempfile.TemporaryDirectory()))
        free = {"EVALHUB_ADDRESS_RATE": "100000000", "EVALHUB_USER_RATE": "100000000"}
        if on == "SQLite":
            server = parts.enter_context(
                embedded_server(folder, EVALHUB_WORKER_PROCESSES=str(workers), **free)
            )
        else:
            urls = {
                "EVALHUB_DATABASE_URL": parts.enter_context(own_postgres()).url,
                "EVALHUB_REDIS_URL": parts.enter_context(own_redis()).url,
            }
            port = free_port()
            server = Server(
                f"http://127.0.0.1:{port}", {**clean_environment(folder), **urls, **free}
            )
            parts.callback(server.stop)
            server.prepare()
            server.start("evalhub", "web", "--bind", f"127.0.0.1:{port}", "--processes", "2")
            server.start("evalhub", "worker", "--processes", str(workers))
            server.wait()
        with server.client() as client:
            fields = {"slug": "bench", "name": "Bench", "measures": MEASURES}
            client.post("collections/", json=fields).raise_for_status()
            client.post(
                "collections/bench/qrels/", files={"file": ("q", _qrels(0))}
            ).raise_for_status()
        yield server


def _measure_runs(title: str, server: Server, client: httpx.Client) -> None:
    # What the first requests and evaluations load is not of these runs.
    _submit_all(client, range(CLIENTS))
    _wait(client, CLIENTS, 1)
    before, start = _spent(server), time.perf_counter()
    accepted = _submit_all(client, range(CLIENTS, CLIENTS + RUNS))
    taken = time.perf_counter() - start
    _wait(client, CLIENTS + RUNS, 1)
    took = time.perf_counter() - start
    spent = _told(before, _spent(server), RUNS)
    median, slow = np.percentile(accepted, [50, 95])
    print(f"{title}: {60 * RUNS / took:,.0f} runs of {TOPICS} x {DEPTH:,} a minute from POST to values "
          f"({60 * RUNS / taken:,.0f} a minute are accepted; POST p50 {1000 * median:.0f}, p95 {1000 * slow:.0f} ms); "
          f"processor time a run: {spent}", flush=True)  # fmt: skip


def _measure_judgements(on: str, server: Server, client: httpx.Client) -> None:
    _submit_all(client, range(REEVALUATED))
    _wait(client, REEVALUATED, 1)
    before, start = _spent(server), time.time()
    client.post("collections/bench/qrels/", files={"file": ("q", _qrels(1))}).raise_for_status()
    _wait(client, REEVALUATED, 2)
    summary = _told(before, _spent(server), REEVALUATED)
    code = "from tests.benchmarks import service; print(service.last_end()); service.time_bare()"
    ended, judging, measuring = map(float, server.manage("shell", "-v", "0", "-c", code).split())
    rate = REEVALUATED / (ended - start)
    bare, cores = 1 / (judging + measuring), os.cpu_count() or 1
    share = f"file and judging {1000 * judging:.1f} ms, measures {1000 * measuring:.1f}"
    print(f"{on}: {REEVALUATED:,} runs evaluated again after new judgements: {rate:.1f} a second on {cores} cores; the "
          f"bare engine {bare:.1f} a second on each ({share}), {rate / cores / bare:.0%} of it; processor time a run: "
          f"{summary}", flush=True)  # fmt: skip


def last_end() -> float:
    """Return when the last evaluation ended, in seconds of the clock of this machine."""
    from metrics.models import Evaluation

    return Evaluation.objects.latest("since").since.timestamp()


def time_bare() -> None:
    """Print the processor seconds that the engine takes for one run, for its file and judging and for its measures, in
    one process for each core, all at once as in the service; the medians of some rounds over the
    first stored runs."""
    from django.db import connection

    from metrics.models import Evaluation
    from runs.formats.scanning.warm_up import warm_up

    warm_up()
    evaluations = list(Evaluation.objects.select_related("run", "qrels").order_by("pk")[:BARE])
    connection.close()
    cores = os.cpu_count() or 1
    with multiprocessing.get_context("fork").Pool(cores) as processes:
        seconds = processes.map(_time_bare, [evaluations] * cores * ROUNDS, chunksize=ROUNDS)
    print(*np.median(seconds, axis=0))


def _time_bare(evaluations: list[Evaluation]) -> tuple[float, float]:
    from metrics.engine.measures.grammar import parse_measure
    from metrics.services.queue.vectors import JUDGED
    from metrics.services.values.evaluate import make_vector
    from runs.formats.scanning.ahead import few_threads
    from runs.formats.trec_run import judge_run
    from runs.services.collections.qrels import load_judgements
    from runs.services.storage.files import HASH_SEED, read_stored

    measures = [parse_measure(name) for name in [*MEASURES, JUDGED.name]]
    qrels = evaluations[0].qrels
    judgements = load_judgements(qrels)
    judging = measuring = 0.0
    with few_threads(1):
        for evaluation in evaluations:
            run, begun = evaluation.run, time.process_time()
            view = read_stored(
                run.sha256,
                lambda opener: judge_run(
                    opener,
                    judgements,
                    evaluation.scores,  # type: ignore[arg-type]  # noqa: B023 - called at once
                    grouped=run.grouped,  # noqa: B023
                    seed=HASH_SEED,
                ),
            )
            judged = time.process_time()
            for measure in measures:
                make_vector(evaluation.pk, measure, view)
            judging += judged - begun
            measuring += time.process_time() - judged
    return judging / len(evaluations), measuring / len(evaluations)


def _submit_all(client: httpx.Client, numbers: range) -> list[float]:
    """POST runs from several clients, and return how long each POST took."""
    headers = {**client.headers, "Content-Type": "text/plain"}

    def submit(client_number: int) -> list[float]:
        seconds = []
        with httpx.Client(base_url=client.base_url, headers=headers, timeout=60) as own:
            for number in numbers[client_number::CLIENTS]:
                body, start = _run(number), time.perf_counter()
                own.post("collections/bench/runs/", content=body).raise_for_status()
                seconds.append(time.perf_counter() - start)
        return seconds

    with ThreadPoolExecutor(CLIENTS) as clients:
        return [answer for answers in clients.map(submit, range(CLIENTS)) for answer in answers]


def _wait(client: httpx.Client, runs: int, version: int) -> None:
    """Wait until so many runs are evaluated under this version of the judgements."""
    ends = time.monotonic() + 600
    while time.monotonic() < ends:
        answer = (
            client.get("collections/bench/leaderboard/", params={"limit": 1})
            .raise_for_status()
            .json()
        )
        if answer["states"] == {"evaluated": runs} and answer["qrels"] == version:
            return
        # Each question takes processor time that what is waited for needs.
        time.sleep(0.1 if runs < REEVALUATED else 1.0)
    raise TimeoutError(f"{runs} runs are not evaluated under version {version}: {answer['states']}")


def _run(number: int) -> bytes:
    """A run of realistic size, put together from a few rankings of each topic, so that the clients take little time."""
    texts = _rankings()
    run = "".join(texts[(number >> topic % 12) % len(texts)][topic] for topic in range(TOPICS))
    return run.replace("@", f"run-{number}").encode()


@functools.cache
def _rankings() -> list[list[str]]:
    rng = np.random.default_rng(0)
    return [[_ranking(rng, topic) for topic in range(1, TOPICS + 1)] for _ in range(8)]


def _ranking(rng: np.random.Generator, topic: int) -> str:
    scores = np.sort(rng.gamma(2.0, 5.0, DEPTH))[::-1]
    rows = enumerate(
        zip(rng.permutation(5 * DEPTH)[:DEPTH].tolist(), scores.tolist(), strict=True), 1
    )
    return "".join(
        f"{topic} Q0 DOC-{document:07d} {rank} {score:.4f} @\n" for rank, (document, score) in rows
    )


def _qrels(seed: int) -> str:
    rng = np.random.default_rng(seed)
    return "".join(
        f"{topic} 0 DOC-{document:07d} {level}\n"
        for topic in range(1, TOPICS + 1)
        for document, level in enumerate(rng.choice(4, JUDGED, p=(0.7, 0.15, 0.1, 0.05)).tolist())
    )


def _spent(server: Server) -> Counter[str]:
    """The processor seconds of the service's processes so far, by what they do."""
    # A process that has ended is waited for by then.
    time.sleep(SETTLING)
    spent: Counter[str] = Counter()
    processes = psutil.Process().children(recursive=True)
    if (
        port := server.environment.get("EVALHUB_DATABASE_URL", "")
        .rpartition(":")[2]
        .partition("/")[0]
    ):
        # It is nobody's child.
        postmaster = next(
            process
            for process in psutil.process_iter()
            if "postgres" in process.name() and port in process.cmdline()
        )
        processes += [postmaster, *postmaster.children()]
    for process in processes:
        with contextlib.suppress(psutil.Error):
            times, part = process.cpu_times(), _part(process)
            spent[part] += times.user + times.system
            # A worker replaces each of its processes after some hundred evaluations.
            spent["evaluating" if part == "dispatching" else part] += (
                times.children_user + times.children_system
            )
    return spent


def _part(process: psutil.Process) -> str:
    command, parent, name = " ".join(process.cmdline()), process.parent(), process.name()
    if "postgres" in command:
        return "PostgreSQL"
    if "redis" in command:
        return "Redis"
    if name == "evalhub worker":
        return "evaluating" if parent and parent.name() == name else "dispatching"
    return "web"


def _told(before: Counter[str], after: Counter[str], runs: int) -> str:
    return ", ".join(
        f"{part} {1000 * (after[part] - before[part]) / runs:.1f} ms" for part in sorted(after)
    )
