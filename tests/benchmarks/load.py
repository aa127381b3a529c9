"""Requests over HTTP to servers of our own, whose clients, web server and database share this machine's cores.

python -m tests.benchmarks load
"""

from __future__ import annotations

import signal
import socket
import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

import httpx
import psutil

from evalhub.operating.simulation import TEXTBOOK_QRELS, TEXTBOOK_RUN
from tests.reliability.faults import Rig, running_rig, signal_all
from tests.reliability.rigs import own_postgres
from tests.reliability.servers import Server, clean_environment, embedded_server, free_port

WRITERS, SUBMISSIONS = 8, 1000
READERS, SECONDS, STORED = 16, 10.0, 500
# Seconds, and how often.
LEASE, SILENCE, START, ROUNDS, SUBMITTED = 30, 10.0, 8.0, 3, 200


def measure_load() -> None:
    """Everything below, one after another."""
    measure_writers()
    measure_readers()
    measure_recovery()


def measure_writers() -> None:
    """Small runs from several writers at once, on SQLite, through `evalhub serve`."""
    with (
        tempfile.TemporaryDirectory() as folder,
        embedded_server(Path(folder)) as server,
        server.client() as client,
    ):
        client.post("collections/", json={"slug": "load", "name": "Load"}).raise_for_status()
        client.post(
            "collections/load/qrels/", files={"file": ("q", TEXTBOOK_QRELS)}
        ).raise_for_status()
        start = time.perf_counter()
        codes, seconds = _write(str(client.base_url), dict(client.headers))
        took = time.perf_counter() - start
    print(f"SQLite, {WRITERS} writers, {SUBMISSIONS} POSTs of a small run: {dict(codes)}, {_percentiles(seconds)}, "
          f"{SUBMISSIONS / took:.0f} a second")  # fmt: skip


def _write(base: str, headers: dict[str, str]) -> tuple[Counter[int], list[float]]:
    url = httpx.URL(base)
    token = headers["authorization"]

    def write(writer: int) -> list[tuple[int, float]]:
        with socket.create_connection((url.host, url.port)) as connection:
            return [
                _post(connection, url, token, f"run-{writer}-{number}")
                for number in range(SUBMISSIONS // WRITERS)
            ]

    with ThreadPoolExecutor(WRITERS) as pool:
        answers = [answer for answers in pool.map(write, range(WRITERS)) for answer in answers]
    return Counter(code for code, _ in answers), [seconds for _, seconds in answers]


def _post(connection: socket.socket, url: httpx.URL, token: str, tag: str) -> tuple[int, float]:
    body = TEXTBOOK_RUN.encode()
    lines = [f"POST {url.path}collections/load/runs/?tag={tag} HTTP/1.1", f"Host: {url.host}:{url.port}",
             f"Authorization: {token}", "Content-Type: text/plain", f"Content-Length: {len(body)}", "", ""]  # fmt: skip
    start = time.perf_counter()
    connection.sendall("\r\n".join(lines).encode() + body)
    code, _ = _receive(connection)
    return code, time.perf_counter() - start


def measure_readers() -> None:
    """The first page of a board of 500 runs, from keep-alive clients in a process of their own, on PostgreSQL."""
    with board_server() as server, httpx.Client(base_url=server.url) as client:
        for title, path in (
            ("board as JSON", "/api/v1/collections/bench/leaderboard/"),
            ("page", "/collections/bench/"),
        ):
            answer = client.get(path).raise_for_status()
            size = f"{STORED} runs, {len(answer.content)} bytes"
            print(f"PostgreSQL, {READERS} clients, {title} of {size}: {_read(server, path)}")
            if tag := answer.headers.get("ETag"):
                print(
                    f"PostgreSQL, {READERS} clients, {title}, unchanged: {_read(server, path, f'If-None-Match: {tag}')}"
                )


@contextmanager
def board_server() -> Iterator[Server]:
    """`evalhub web` with two processes on a PostgreSQL of its own that holds an evaluated collection."""
    with tempfile.TemporaryDirectory() as folder, own_postgres() as postgres:
        port = free_port()
        environment = {**clean_environment(Path(folder)), "EVALHUB_DATABASE_URL": postgres.url,
                       "EVALHUB_ADDRESS_RATE": "100000000"}  # fmt: skip
        server = Server(f"http://127.0.0.1:{port}", environment)
        try:
            server.manage("migrate", "--verbosity", "0")
            server.manage("shell", "-c", f"from tests.benchmarks.board import fill; fill({STORED})")
            # Its rows name files that nobody has stored.
            server.manage("adopt")
            server.start("evalhub", "web", "--bind", f"127.0.0.1:{port}", "--processes", "2")
            server.wait()
            yield server
        finally:
            server.stop()


def measure_recovery() -> None:
    """From the kill of a worker in an evaluation to the values; POSTs without Redis; hearing again after a silence."""
    with tempfile.TemporaryDirectory() as folder, running_rig(Path(folder), LEASE) as rig:
        killed = [_recover(rig) for _ in range(ROUNDS)]
        print(
            f"worker killed in an evaluation, lease {LEASE} s: evaluated after {_seconds(killed)} s"
        )
        for what, away, back in (
            ("refused", rig.redis.kill, rig.redis.start), ("silent", rig.network.cut.set, rig.network.cut.clear)
        ):  # fmt: skip
            away()
            seconds = [_timed(rig.submit) for _ in range(SUBMITTED)]
            back()
            print(
                f"POST of a small run while Redis is {what}: {_percentiles(seconds)} of {SUBMITTED}"
            )
        with rig.worker():
            heard = [_hear(rig) for _ in range(ROUNDS)]
        print(
            f"network to Redis silent for {SILENCE} s: a run evaluated {_seconds(heard)} s after it healed"
        )


def _timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _recover(rig: Rig) -> float:
    """A worker takes a run and is killed with all its processes; another one is there."""
    with rig.worker(slow=3600) as doomed:
        run = rig.submit()
        rig.wait_for(run, "evaluating", 120)
        with rig.worker():
            # It has gone round before the other one dies: what is measured is the wait, and no
            # start.
            time.sleep(START)
            signal_all(doomed, signal.SIGKILL)
            return _timed(lambda: rig.wait_for(run, "evaluated", 300))


def _hear(rig: Rig) -> float:
    rig.wait_for(rig.submit(), "evaluated", 120)
    rig.network.cut.set()
    time.sleep(SILENCE)
    run = rig.submit()
    rig.network.cut.clear()
    return _timed(lambda: rig.wait_for(run, "evaluated", 300))


def _seconds(times: list[float]) -> str:
    return ", ".join(f"{seconds:.1f}" for seconds in sorted(times))


def _read(server: Server, path: str, *headers: str) -> str:
    host, port = server.url.removeprefix("http://").split(":")
    request = "\r\n".join(
        [f"GET {path} HTTP/1.1", f"Host: {host}:{port}", *headers, "", ""]
    ).encode()
    before = _cpu_seconds(server)
    with get_context("spawn").Pool(1) as pool:
        codes, seconds, rate, count = pool.apply(
            read_for, (host, int(port), request, READERS, SECONDS)
        )
    cpu = 1000 * (_cpu_seconds(server) - before) / count
    return f"{codes}, {rate:.0f} requests a second, {_percentiles(seconds)}, {cpu:.1f} ms of the web server's CPU each"


def _cpu_seconds(server: Server) -> float:
    """Of the web server's processes so far: unlike a rate, it hardly depends on what else the machine does."""
    top = psutil.Process(server.processes[0].pid)
    times = [process.cpu_times() for process in (top, *top.children(recursive=True))]
    return sum(taken.user + taken.system for taken in times)


Taken = tuple[dict[int, int], list[float], float, int]


def read_for(host: str, port: int, request: bytes, readers: int, seconds: float) -> Taken:
    """Answers by status, the seconds of each, how many came in a second, without the first one; how many in all."""
    begin = time.perf_counter() + 1.0
    end = begin + seconds
    taken: list[list[tuple[int, float, float]]] = [[] for _ in range(readers)]
    threads = [
        threading.Thread(target=_ask, args=(host, port, request, end, answers)) for answers in taken
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counted = [answer for answers in taken for answer in answers if begin <= answer[1] <= end]
    codes = Counter(code for code, _, _ in counted)
    return (
        dict(codes),
        [took for _, _, took in counted],
        len(counted) / seconds,
        sum(map(len, taken)),
    )


def _ask(
    host: str, port: int, request: bytes, end: float, answers: list[tuple[int, float, float]]
) -> None:
    """Plain sockets: a client that costs little of the cores that the server needs."""
    with socket.create_connection((host, port)) as connection:
        while time.perf_counter() < end:
            start = time.perf_counter()
            connection.sendall(request)
            code, closes = _receive(connection)
            now = time.perf_counter()
            answers.append((code, now, now - start))
            if closes:
                connection.close()
                connection = socket.create_connection((host, port))


def _receive(connection: socket.socket) -> tuple[int, bool]:
    """Status of the next answer, and whether it is the connection's last."""
    content = b""
    while (head := content.find(b"\r\n\r\n")) < 0:
        part = connection.recv(262_144)
        if not part:
            return 0, True
        content += part
    fields = content[:head].lower()
    at = fields.find(b"content-length: ")
    length = int(fields[at + 16 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
    missing = head + 4 + length - len(content)
    while missing > 0:
        missing -= len(connection.recv(262_144))
    return int(fields[9:12]), b"connection: close" in fields


def _percentiles(seconds: list[float]) -> str:
    cuts = statistics.quantiles(seconds, n=100)
    return ", ".join(f"p{share} {1000 * cuts[share - 1]:.0f} ms" for share in (50, 95, 99))
