"""From a file to values, leaderboard and comparison, over HTTP, through real workers."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import signal
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
import zstandard

from evalhub.operating.simulation import TEXTBOOK_QRELS, TEXTBOOK_RUN, simulate_collection
from tests.reliability.servers import (
    Server,
    clean_environment,
    embedded_server,
    run_commands,
    wait_until_evaluated,
)

NUMBERS = itertools.count()


def test_a_run_becomes_values_and_a_rank(server: Server) -> None:
    with server.client() as client:
        client.post("collections/", json={"slug": "flow", "name": "Flow"}).raise_for_status()
        client.post(
            "collections/flow/qrels/", files={"file": ("q", TEXTBOOK_QRELS)}
        ).raise_for_status()
        answer = client.post("collections/flow/runs/", files={"file": ("r", TEXTBOOK_RUN)})
        assert answer.status_code == 202
        assert wait_until_evaluated(client, answer.json()["url"])["state"] == "evaluated"
        values = client.get(answer.json()["url"] + "values/", params={"measures": "AP,P@10"}).json()
        assert round(values["means"]["AP"]["mean"], 4) == round((0.29 + 0.2611111) / 2, 4)
        assert [topic["values"]["P@10"] for topic in values["topics"]] == [0.4, 0.2]


def test_an_odd_charset_breaks_nothing(embedded: Server) -> None:
    for charset in ("zlib", "idna", "hex", "no-such"):
        headers = {"Content-Type": f"text/plain; charset={charset}"}
        answer = httpx.post(f"{embedded.url}/api/v1/collections/", content=b"x", headers=headers)
        assert answer.status_code == 401


def test_compressed_runs_are_compared(server: Server) -> None:
    simulated = simulate_collection(topics=50)
    with server.client() as client:
        client.post("collections/", json={"slug": "sim", "name": "Simulated"}).raise_for_status()
        client.post(
            "collections/sim/qrels/", files={"file": ("q", simulated.qrels)}
        ).raise_for_status()
        bodies = {
            "application/gzip": gzip.compress(simulated.runs["bm25"].encode()),
            "application/zstd": zstandard.compress(simulated.runs["reranked"].encode()),
        }
        for content_type, body in bodies.items():
            answer = client.post(
                "collections/sim/runs/", content=body, headers={"Content-Type": content_type}
            )
            assert answer.status_code == 202, answer.text
            wait_until_evaluated(client, answer.json()["url"])
        board = client.get("collections/sim/leaderboard/").json()
        assert [row["run"]["tag"] for row in board["results"]] == ["reranked", "bm25"]
        answer = client.get("collections/sim/comparison/", params={"measure": "nDCG@10"}).json()
        (pair,) = answer["measures"][0]["pairs"]
        assert pair["tests"]["paired_t"]["significant"]
        assert pair["difference"] > 0
        comparison = wait_for_comparison(client, {"measures": ["nDCG@10"]})
        assert {**comparison, "comparison": None} == answer


def wait_for_comparison(client: httpx.Client, body: dict[str, Any]) -> dict[str, Any]:
    """What a worker makes of a question."""
    response = client.post("collections/sim/comparison/", json=body)
    assert response.status_code == 202, response.text
    deadline = time.monotonic() + 60
    while True:
        answer: dict[str, Any] = client.get(response.headers["Location"]).json()
        if answer["comparison"]["state"] == "compared":
            return answer
        assert time.monotonic() < deadline, answer
        time.sleep(0.05)


def test_eight_writers_at_once_are_all_accepted(embedded: Server) -> None:
    """On Django's own settings for SQLite a third of them would find the database locked."""
    with embedded.client() as client:
        client.post("collections/", json={"slug": "writers", "name": "Writers"}).raise_for_status()
        client.post(
            "collections/writers/qrels/", files={"file": ("q", TEXTBOOK_QRELS)}
        ).raise_for_status()
        address, headers = f"{client.base_url}collections/writers/runs/", dict(client.headers)

        def write(writer: int) -> list[int]:
            with httpx.Client(headers=headers, timeout=60) as own:
                form = {"files": {"file": ("r", TEXTBOOK_RUN)}}
                answers = [
                    own.post(address, data={"tag": f"run-{writer}-{n}"}, **form) for n in range(10)
                ]
            return [answer.status_code for answer in answers]

        with ThreadPoolExecutor(8) as pool:
            codes = [code for codes in pool.map(write, range(8)) for code in codes]
        assert codes == [202] * 80
        assert client.get("collections/writers/runs/", params={"limit": 1}).json()["count"] == 80


def test_of_equal_requests_with_one_key_at_once_one_is_done(server: Server) -> None:
    with server.client() as client:
        client.post("collections/", json={"slug": "once", "name": "Once"}).raise_for_status()
        address, headers = (
            f"{client.base_url}collections/once/runs/",
            {**client.headers, "Idempotency-Key": "one"},
        )

        def send(number: int) -> httpx.Response:
            return httpx.post(
                address, files={"file": ("r", TEXTBOOK_RUN)}, headers=headers, timeout=60
            )

        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(send, range(16)))
        assert {answer.status_code for answer in answers} == {202}
        assert len({answer.json()["id"] for answer in answers}) == 1
        assert client.get("collections/once/runs/").json()["count"] == 1


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that others do not use: its parts are killed, and at last it is."""
    settings = {"EVALHUB_LEASE_SECONDS": "3", "EVALHUB_LOCK_SECONDS": "5"}
    with embedded_server(tmp_path_factory.mktemp("own"), **settings) as server:
        with server.client() as client:
            client.post("collections/", json={"slug": "own", "name": "Own"}).raise_for_status()
            client.post(
                "collections/own/qrels/", files={"file": ("q", TEXTBOOK_QRELS)}
            ).raise_for_status()
        yield server


def submit(client: httpx.Client) -> httpx.Response:
    """Send a run of its own: one that was sent before is evaluated."""
    fields = {"tag": f"run-{next(NUMBERS)}"}
    return client.post("collections/own/runs/", files={"file": ("r", TEXTBOOK_RUN)}, data=fields)


def test_a_database_locked_for_long_is_said_so_and_nothing_is_half_written(own: Server) -> None:
    data = Path(own.environment["EVALHUB_DATA"])
    with own.client() as client:
        with contextlib.closing(
            sqlite3.connect(data / "evalhub.sqlite3", isolation_level=None)
        ) as other:
            other.execute("BEGIN IMMEDIATE")
            answer = submit(client)
            assert (answer.status_code, answer.json()["code"]) == (503, "database_unavailable")
            assert answer.headers["Retry-After"] == "5"
            assert client.get("collections/own/runs/").json()["count"] == 0
            other.execute("ROLLBACK")
        assert submit(client).status_code == 202
    assert list((data / "uploads").iterdir()) == []


def test_killed_pool_processes_stop_nothing(own: Server) -> None:
    """One of them holds the lock of their common queue while it waits; whichever it is, work must go on."""
    supervisor = psutil.Process(own.processes[0].pid)
    (worker,) = (child for child in supervisor.children() if child.name() == "evalhub worker")
    for child in worker.children():
        child.kill()
    with own.client() as client:
        url = submit(client).raise_for_status().json()["url"]
        assert wait_until_evaluated(client, url, 120)["state"] == "evaluated"


def test_a_killed_worker_is_replaced_and_its_run_evaluated(own: Server) -> None:
    processes = psutil.Process(own.processes[0].pid).children(recursive=True)
    for process in [process for process in processes if process.name() == "evalhub worker"]:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    with own.client() as client:
        url = submit(client).raise_for_status().json()["url"]
        assert wait_until_evaluated(client, url, 90)["state"] == "evaluated"


def test_killing_the_service_leaves_no_child_and_loses_no_run(own: Server) -> None:
    """Its next start deletes what it left of an upload; ended in order, it leaves no process either."""
    data = Path(own.environment["EVALHUB_DATA"])
    supervisor = psutil.Process(own.processes[0].pid)
    children = supervisor.children(recursive=True)
    assert len(children) >= 4
    with own.client() as client:
        url = submit(client).raise_for_status().json()["url"]
    supervisor.send_signal(signal.SIGKILL)
    assert_ended(children)
    (data / "uploads" / "cut-off").touch()
    with embedded_server(data, EVALHUB_LEASE_SECONDS="3") as again:
        assert list((data / "uploads").iterdir()) == []
        with httpx.Client(headers={"Authorization": f"Bearer {own.token}"}) as client:
            moved = httpx.URL(url).copy_with(port=httpx.URL(again.url).port)
            assert wait_until_evaluated(client, str(moved))["state"] == "evaluated"
        children = psutil.Process(again.processes[0].pid).children(recursive=True)
    assert_ended(children)


def assert_ended(processes: list[psutil.Process]) -> None:
    _, alive = psutil.wait_procs(processes, timeout=10)
    # What has ended stays on the list until the first process of the machine takes note of it.
    assert not [
        process
        for process in alive
        if process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    ]


def test_a_second_server_refuses_the_same_folder_and_the_same_port(
    embedded: Server, tmp_path: Path
) -> None:
    address = embedded.url.removeprefix("http://")
    (folder,) = run_commands(embedded.environment, ["serve", "--bind", "127.0.0.1:1"])
    (port,) = run_commands(clean_environment(tmp_path), ["serve", "--bind", address])
    assert (folder.returncode, port.returncode) == (2, 1)
    assert "another evalhub serve is using" in folder.stderr
    assert f"cannot listen at {address}: another program is listening there" in port.stderr
    assert "Traceback" not in folder.stderr + port.stderr
