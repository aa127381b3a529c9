"""From a file to values, leaderboard and comparison, over HTTP, through real workers."""

from __future__ import annotations

import contextlib
import gzip
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psutil
import zstandard

from evalhub.operating.simulation import TEXTBOOK_QRELS, TEXTBOOK_RUN, simulate_collection
from tests.reliability.servers import (
    ROOT,
    Server,
    clean_environment,
    embedded_server,
    wait_until_evaluated,
)


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
        made = wait_for_comparison(client, {"measures": ["nDCG@10"]})
        assert {**made, "comparison": None} == answer


def wait_for_comparison(client: httpx.Client, body: dict[str, Any]) -> dict[str, Any]:
    """What a worker makes of a question."""
    asked = client.post("collections/sim/comparison/", json=body)
    assert asked.status_code == 202, asked.text
    deadline = time.monotonic() + 60
    while True:
        answer: dict[str, Any] = client.get(asked.headers["Location"]).json()
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
                    own.post(address, data={"tag": f"run-{writer}-{n}"}, **form) for n in range(50)
                ]
            return [answer.status_code for answer in answers]

        with ThreadPoolExecutor(8) as pool:
            codes = [code for codes in pool.map(write, range(8)) for code in codes]
        assert codes == [202] * 400
        assert client.get("collections/writers/runs/", params={"limit": 1}).json()["count"] == 400


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


def test_a_database_locked_for_long_is_said_so_and_nothing_is_half_written(
    data_folder: Path,
) -> None:
    with (
        embedded_server(data_folder, EVALHUB_LOCK_SECONDS="1") as server,
        server.client() as client,
    ):
        client.post("collections/", json={"slug": "locked", "name": "Locked"}).raise_for_status()
        submit = {"url": "collections/locked/runs/", "files": {"file": ("r", TEXTBOOK_RUN)}}
        with contextlib.closing(
            sqlite3.connect(data_folder / "evalhub.sqlite3", isolation_level=None)
        ) as other:
            other.execute("BEGIN IMMEDIATE")
            answer = client.post(**submit)
            assert (answer.status_code, answer.json()["code"]) == (503, "database_unavailable")
            assert answer.headers["Retry-After"] == "5"
            assert client.get("collections/locked/runs/").json()["count"] == 0
            other.execute("ROLLBACK")
        assert client.post(**submit).status_code == 202
        assert list((data_folder / "uploads").iterdir()) == []


def test_killing_the_service_leaves_no_child_and_loses_no_run(data_folder: Path) -> None:
    with embedded_server(data_folder, EVALHUB_LEASE_SECONDS="3") as server:
        supervisor = psutil.Process(server.processes[0].pid)
        children = supervisor.children(recursive=True)
        assert len(children) >= 4
        with server.client() as client:
            client.post("collections/", json={"slug": "kept", "name": "Kept"}).raise_for_status()
            client.post(
                "collections/kept/qrels/", files={"file": ("q", TEXTBOOK_QRELS)}
            ).raise_for_status()
            url = client.post("collections/kept/runs/", files={"file": ("r", TEXTBOOK_RUN)}).json()[
                "url"
            ]
        supervisor.send_signal(signal.SIGKILL)
        _, left = psutil.wait_procs(children, timeout=10)
        # What has ended stays on the list until the first process of the machine takes note of it.
        assert not [
            child for child in left if child.is_running() and child.status() != psutil.STATUS_ZOMBIE
        ]
    with embedded_server(data_folder, EVALHUB_LEASE_SECONDS="3") as again, again.client() as client:
        moved = httpx.URL(url).copy_with(port=httpx.URL(again.url).port)
        assert wait_until_evaluated(client, str(moved))["state"] == "evaluated"


def test_a_second_server_on_the_same_folder_refuses(data_folder: Path) -> None:
    with embedded_server(data_folder):
        command = [sys.executable, "-m", "evalhub", "serve", "--bind", "127.0.0.1:1"]
        second = subprocess.run(
            command,
            env=clean_environment(data_folder),
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    assert second.returncode == 2
    assert "another evalhub serve is using" in second.stderr


def test_killed_pool_processes_stop_nothing(data_folder: Path) -> None:
    """One of them holds the lock of their common queue while it waits; whichever it is, work must go on."""
    with (
        embedded_server(data_folder, EVALHUB_LEASE_SECONDS="3") as server,
        server.client() as client,
    ):
        client.post("collections/", json={"slug": "pool", "name": "Pool"}).raise_for_status()
        client.post(
            "collections/pool/qrels/", files={"file": ("q", TEXTBOOK_QRELS)}
        ).raise_for_status()
        supervisor = psutil.Process(server.processes[0].pid)
        (worker,) = (child for child in supervisor.children() if child.name() == "evalhub worker")
        for child in worker.children():
            child.kill()
        url = client.post("collections/pool/runs/", files={"file": ("r", TEXTBOOK_RUN)}).json()[
            "url"
        ]
        assert wait_until_evaluated(client, url, 120)["state"] == "evaluated"


def test_a_killed_worker_is_replaced_and_its_run_evaluated(data_folder: Path) -> None:
    with (
        embedded_server(data_folder, EVALHUB_LEASE_SECONDS="3") as server,
        server.client() as client,
    ):
        client.post("collections/", json={"slug": "again", "name": "Again"}).raise_for_status()
        client.post(
            "collections/again/qrels/", files={"file": ("q", TEXTBOOK_QRELS)}
        ).raise_for_status()
        deadline = time.monotonic() + 90
        processes = psutil.Process(server.processes[0].pid).children(recursive=True)
        for process in [process for process in processes if process.name() == "evalhub worker"]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        url = client.post("collections/again/runs/", files={"file": ("r", TEXTBOOK_RUN)}).json()[
            "url"
        ]
        assert (
            wait_until_evaluated(client, url, deadline - time.monotonic())["state"] == "evaluated"
        )
