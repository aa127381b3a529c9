"""A web server with what it needs, all of our own, behind a network that can be cut; workers come and go."""

from __future__ import annotations

import contextlib
import itertools
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil

from evalhub.operating.simulation import TEXTBOOK_QRELS, TEXTBOOK_RUN
from tests.reliability.rigs import OwnPostgres, OwnRedis, Proxy, own_postgres, own_redis
from tests.reliability.servers import Server, clean_environment, free_port

NUMBERS = itertools.count()


@dataclass
class Rig:
    """A web server and what it needs; workers come and go."""

    server: Server
    client: httpx.Client
    redis: OwnRedis
    postgres: OwnPostgres
    network: Proxy

    def submit(self, tag: str = "run") -> str:
        """The address of a new run."""
        fields = {"tag": f"{tag}-{next(NUMBERS)}"}
        answer = self.client.post(
            "collections/faults/runs/", files={"file": ("r", TEXTBOOK_RUN)}, data=fields
        )
        assert answer.status_code == 202, answer.text
        return str(answer.json()["url"])

    def evaluation(self, run: str) -> dict[str, Any]:
        (evaluation,) = self.client.get(run + "evaluations/").json()
        return dict(evaluation)

    def wait_for(self, run: str, state: str, seconds: float = 30.0) -> None:
        deadline, pause = time.monotonic() + seconds, 0.02
        while self.client.get(run).json()["status"]["state"] != state:
            assert time.monotonic() < deadline, self.evaluation(run)
            time.sleep(pause)
            # A question costs processor time that what is waited for needs.
            pause = min(pause * 1.2, 0.3)

    def ask_comparison(self, seed: int) -> str:
        """The address of a new comparison of all evaluated runs."""
        answer = self.client.post(
            "collections/faults/comparison/", json={"tests": ["bootstrap"], "seed": seed}
        )
        assert answer.status_code == 202, answer.text
        return str(answer.json()["comparison"]["url"])

    def wait_for_comparison(
        self, address: str, state: str, seconds: float = 30.0
    ) -> dict[str, Any]:
        deadline, pause = time.monotonic() + seconds, 0.02
        while True:
            comparison = self.client.get(address).json()["comparison"]
            if comparison["state"] == state:
                return dict(comparison)
            assert time.monotonic() < deadline, comparison
            time.sleep(pause)
            pause = min(pause * 1.2, 0.3)

    @contextlib.contextmanager
    def worker(self, slow: float = 0.0, limit: str = "") -> Iterator[subprocess.Popen[bytes]]:
        self.server.environment.update(
            {"SLOW_SECONDS": str(slow), "LIMIT_SECONDS": limit, "REMAP_SIGTERM": "SIGQUIT"}
        )
        process = self.server.start(
            "celery", "--quiet", "-A", "tests.reliability.slow_worker", "worker", "--concurrency", "1",
            "--loglevel", "ERROR", "--hostname", f"{next(NUMBERS)}@test",
        )  # fmt: skip
        try:
            yield process
        finally:
            signal_all(process, signal.SIGKILL)
            process.wait()


def signal_all(worker: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        top = psutil.Process(worker.pid)
        for process in [top, *top.children(recursive=True)]:
            process.send_signal(number)


def child_of(worker: subprocess.Popen[bytes]) -> psutil.Process:
    (child,) = psutil.Process(worker.pid).children()
    return child


@contextlib.contextmanager
def running_rig(folder: Path, lease: int) -> Iterator[Rig]:
    """A rig whose leases last so many seconds."""
    with own_redis() as redis, own_postgres() as postgres:
        network, port = Proxy(redis.port), free_port()
        environment = {
            **clean_environment(folder),
            "EVALHUB_DATABASE_URL": postgres.url,
            "EVALHUB_REDIS_URL": f"redis://127.0.0.1:{network.port}/0",
            "EVALHUB_LEASE_SECONDS": str(lease),
        }
        server = Server(f"http://127.0.0.1:{port}", environment)
        try:
            server.prepare()
            server.start("evalhub", "web", "--bind", f"127.0.0.1:{port}", "--processes", "1")
            server.wait()
            with server.client() as client:
                client.post(
                    "collections/", json={"slug": "faults", "name": "Faults"}
                ).raise_for_status()
                client.post(
                    "collections/faults/qrels/", files={"file": ("q", TEXTBOOK_QRELS)}
                ).raise_for_status()
                yield Rig(server, client, redis, postgres, network)
        finally:
            server.stop()
            network.close()
