"""The commands of docker/compose.yaml work: run as processes, on a Redis of their own and the test PostgreSQL."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psycopg2
import pytest
import redis

from evalhub.operating.simulation import TEXTBOOK_QRELS, TEXTBOOK_RUN
from tests.reliability.compose import example_environment, load
from tests.reliability.conftest import own_database
from tests.reliability.servers import (
    NO_CERTIFICATES,
    Server,
    clean_environment,
    free_port,
    wait_until_evaluated,
)

pytestmark = pytest.mark.services

TOKEN = "a-token-for-the-scraper-of-these-tests"


def until(true: Callable[[], Any], seconds: float = 60.0) -> Any:
    """What `true` gives, as soon as it is true."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := true():
            return value
        time.sleep(0.1)
    raise TimeoutError(true)


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return load({**example_environment(), "EVALHUB_METRICS_TOKEN": TOKEN})["services"]


@pytest.fixture(scope="module")
def redis_port(compose: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """redis-server with the file's own command line."""
    program, *options = compose["redis"]["command"]
    path = shutil.which(program)
    if not path:
        if os.environ.get("EVALHUB_TEST_REQUIRED"):
            pytest.fail("redis-server is needed")
        pytest.skip("needs redis-server")
    port, folder = free_port(), tmp_path_factory.mktemp("redis")
    command = [path, *options, "--port", str(port), "--bind", "127.0.0.1", "--loglevel", "warning"]
    process = subprocess.Popen(command, cwd=folder)
    yield port
    process.terminate()
    process.wait(10)
    assert any((folder / "appendonlydir").iterdir())


def is_free(url: str) -> bool:
    """Whether nobody but this question is connected: what was stopped has left nothing behind."""
    with psycopg2.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
        return bool(cursor.fetchone() == (1,))


class Stack:
    """The services of the file, started one by one as docker compose would."""

    def __init__(
        self, compose: dict[str, Any], folder: Path, database_url: str, redis_port: int
    ) -> None:
        environment = dict(compose["web"]["environment"])
        environment["EVALHUB_DATABASE_URL"] = database_url
        environment["EVALHUB_REDIS_URL"] = environment["EVALHUB_REDIS_URL"].replace(
            "redis:6379", f"127.0.0.1:{redis_port}"
        )
        environment["EVALHUB_DATA"] = str(folder / "data")
        environment["EVALHUB_WORKER_PROCESSES"] = "1"
        self.port = free_port()
        self.log = folder / "log"
        self.server = Server(
            f"http://127.0.0.1:{self.port}", {**clean_environment(folder), **environment}
        )
        self._compose = compose

    def start(self, name: str) -> subprocess.Popen[bytes]:
        command = [
            part.replace("0.0.0.0:8000", f"127.0.0.1:{self.port}")
            for part in self._compose[name]["command"]
        ]
        return self.server.start(*command, log=self.log)

    def get(self, path: str, token: str = TOKEN) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.get(
            self.server.url + path, headers=headers, timeout=30, verify=NO_CERTIFICATES
        )

    def answers(self, path: str, status: int) -> bool:
        try:
            return self.get(path).status_code == status
        except httpx.TransportError:
            return False

    def figure(self, name: str) -> float:
        figure = re.search(rf"^{re.escape(name)} (\S+)$", self.get("/metrics").text, re.MULTILINE)
        return float(figure[1]) if figure else -1.0


def submit(client: httpx.Client, slug: str) -> str:
    client.post("collections/", json={"slug": slug, "name": slug}).raise_for_status()
    client.post(
        f"collections/{slug}/qrels/", files={"file": ("q", TEXTBOOK_QRELS)}
    ).raise_for_status()
    answer = client.post(f"collections/{slug}/runs/", files={"file": ("r", TEXTBOOK_RUN)})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["url"])


@pytest.fixture
def empty_database() -> Iterator[str]:
    with own_database() as url:
        yield url


def test_the_stack_starts_scales_and_stops(
    compose: dict[str, Any], redis_port: int, empty_database: str, tmp_path: Path
) -> None:
    until(lambda: redis.Redis(port=redis_port).ping())
    stack = Stack(compose, tmp_path, empty_database, redis_port)
    try:
        assert stack.start("web").wait(60) == 1
        assert "Run evalhub migrate first." in stack.log.read_text()
        stack.log.unlink()
        assert stack.start("migrate").wait(60) == 0
        web = stack.start("web")
        until(lambda: stack.answers("/healthz", 200))
        assert [reason["code"] for reason in stack.get("/readyz").json()["reasons"]] == [
            "no_dispatcher_round"
        ]

        with stack.server.client() as client:
            url = submit(client, "waiting")
            queue = client.get(url).json()["status"]["queue"]
            assert (queue["position"], queue["waits_for"]) == (1, "no_worker_alive")
            first = stack.start("worker")
            assert wait_until_evaluated(client, url)["state"] == "evaluated"
            values = client.get(url + "values/", params={"measures": "AP"}).json()
            assert values["means"]["AP"]["mean"] == pytest.approx((0.29 + 0.2611111) / 2, abs=1e-6)
        until(lambda: stack.answers("/readyz", 200))
        check_the_log(stack, url)

        second = stack.start("worker")
        until(lambda: stack.figure("evalhub_dispatchers") == 2)
        assert stack.figure('evalhub_evaluations{state="evaluated"}') == 1
        assert "made-up" not in stack.get("/metrics").text
        for process in (first, second, web):
            process.send_signal(signal.SIGTERM)
        # By themselves: a process that is killed ends with a negative code.
        assert all(process.wait(30) >= 0 for process in (first, second, web))
        until(lambda: is_free(empty_database))
    finally:
        stack.server.stop()


def check_the_log(stack: Stack, run_url: str) -> None:
    """Lines of both kinds of processes, as JSON, without a secret."""
    run = httpx.URL(run_url).path.split("/")[-2]
    text = stack.log.read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    ended = next(line for line in lines if line["logger"] == "evalhub.evaluation")
    assert (ended["run"], ended["state"], ended["attempts"]) == (run, "evaluated", 1)
    requests = [
        line for line in lines if line["logger"] == "evalhub.access" and line["view"] == "run"
    ]
    assert {(line["status"], line["method"]) for line in requests} == {(200, "GET")}
    assert all(line["request_id"] and line["user"] for line in requests)
    for secret in (TOKEN, "made-up-for-the-tests", "evh_"):
        assert secret not in text
