"""Somebody else, in a process of their own: asks /healthz and a leaderboard all the time, and takes the time."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any
from urllib.parse import urlsplit

import psutil

from tests.attack.target import SLUG, VICTIM

PAUSES = {"/healthz": 0.1, f"/api/v1/collections/{SLUG}/leaderboard/": 0.25}
# A probe gives up after this many seconds, which then counts as how long it took.
PATIENCE = 15.0
LOOK_SECONDS = 0.25
QUIET_SECONDS, QUIET_SHARE = 40.0, 0.2


@dataclass
class Seen:
    """The slowest answer to each probe, how many there were and failed, and the peak memory by role in MB."""

    slowest: dict[str, float] = field(default_factory=lambda: dict.fromkeys(PAUSES, 0.0))
    requests: int = 0
    failed: list[str] = field(default_factory=list)
    memory: dict[str, int] = field(default_factory=dict)


class Watch:
    """Asks from its own process, so that what the attacker's threads do does not slow its clock."""

    def __init__(self, url: str, top: list[int]) -> None:
        self.top = top
        self.end, child = get_context("spawn").Pipe()
        self.process = get_context("spawn").Process(
            target=_watch, args=(url, top, child), daemon=True
        )
        self.process.start()
        # Until it can ask.
        self.end.recv()

    @contextlib.contextmanager
    def watching(self) -> Iterator[Seen]:
        """Watch for as long as the block lasts, and until the last question in it is answered."""
        seen = Seen()
        self.end.send("begin")
        try:
            yield seen
        finally:
            self.end.send("end")
            vars(seen).update(vars(self.end.recv()))

    def wait_until_quiet(self) -> float:
        """Wait, QUIET_SECONDS at most, until web server and worker have nothing in hand; the seconds that this took."""
        start = time.monotonic()
        while (since := time.monotonic() - start) < QUIET_SECONDS:
            before = _cpu_seconds(self.top)
            time.sleep(0.5)
            if _cpu_seconds(self.top) - before < QUIET_SHARE * 0.5:
                return since
        return QUIET_SECONDS

    def close(self) -> None:
        self.process.kill()
        self.process.join()


def _watch(url: str, top: list[int], end: Connection) -> None:
    end.send("ready")
    while end.recv() == "begin":
        seen, stop = Seen(), threading.Event()
        threads = [threading.Thread(target=_ask, args=(url, path, seen, stop)) for path in PAUSES]
        threads.append(threading.Thread(target=_weigh, args=(top, seen, stop)))
        for thread in threads:
            thread.start()
        end.recv()
        stop.set()
        for thread in threads:
            thread.join()
        end.send(seen)


def _ask(url: str, path: str, seen: Seen, stop: threading.Event) -> None:
    """Ask again and again, each time over a new connection, as another visitor would.

    A visitor has a machine of their own: what asks takes as little as can be of the one that is
    shared here.
    """
    address = urlsplit(url)
    while not stop.is_set():
        start = time.monotonic()
        connection = HTTPConnection(
            address.hostname or "", address.port, PATIENCE, source_address=(VICTIM, 0)
        )
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                seen.failed.append(f"{path}: {answer.status}")
        except (OSError, HTTPException) as error:
            seen.failed.append(f"{path}: {type(error).__name__}")
        finally:
            connection.close()
        seen.slowest[path] = max(seen.slowest[path], time.monotonic() - start)
        seen.requests += 1
        stop.wait(PAUSES[path])


def _weigh(top: list[int], seen: Seen, stop: threading.Event) -> None:
    """Note the memory that each process has for itself: pages that forked processes share are the first one's."""
    while not stop.is_set():
        for process in _family(top):
            with contextlib.suppress(psutil.Error):
                role, megabytes = role_of(process), _own_memory(process) // 2**20
                seen.memory[role] = max(seen.memory.get(role, 0), megabytes)
        stop.wait(LOOK_SECONDS)


def _own_memory(process: psutil.Process) -> int:
    info: Any = process.memory_full_info()
    return int(info.pss)


def role_of(process: psutil.Process) -> str:
    """What a process of the service is there for, by its name."""
    return {"evalhub worker": "worker", "evalhub web": "web"}.get(process.name(), "supervisor")


def _family(top: list[int]) -> list[psutil.Process]:
    processes = []
    for pid in top:
        with contextlib.suppress(psutil.Error):
            first = psutil.Process(pid)
            processes += [first, *first.children(recursive=True)]
    return processes


def _cpu_seconds(top: list[int]) -> float:
    total = 0.0
    for process in _family(top):
        with contextlib.suppress(psutil.Error):
            if role_of(process) in ("web", "worker"):
                times = process.cpu_times()
                total += times.user + times.system
    return total
