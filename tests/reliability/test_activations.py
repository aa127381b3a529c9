"""Readers of real servers while judgements are activated: a tag has one body, and a state has its own."""

from __future__ import annotations

import itertools
import threading
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

import httpx

from evalhub.operating.simulation import simulate_collection
from tests.reliability.servers import Server, wait_until_evaluated

READERS, ACTIVATIONS = 4, 5
MORE = "&" * 40
# Of a run, a pair and all runs; each number makes another address.
ADDRESSES = (
    "runs/{run}/values/?measures=P@{n}",
    "runs/{run}/curve/?depth={n}&readings=true",
    "runs/{run}/precision-recall/?points={n}",
    "collections/activated/difference/?runs={run},{other}&measure=P@{n}",
    "collections/activated/comparison/?measures=P@{n}",
)


def activate(client: httpx.Client, version: int) -> None:
    client.post(f"collections/activated/qrels/{version}/activate/").raise_for_status()


def test_readers_during_activations_leave_no_answer_of_another_state(server: Server) -> None:
    simulated = simulate_collection(topics=20)
    lines = simulated.qrels.splitlines(keepends=True)
    versions = ("".join(lines), "".join(lines[::2]))
    tags = defaultdict[tuple[str, str], set[bytes]](set)
    done = threading.Event()
    numbers = itertools.count(1)

    with server.client() as client:
        client.post(
            "collections/", json={"slug": "activated", "name": "Activated"}
        ).raise_for_status()
        runs = []
        for qrels in versions:
            client.post(
                "collections/activated/qrels/", files={"file": ("q", qrels)}
            ).raise_for_status()
            for tag, text in itertools.islice(simulated.runs.items(), 2):
                if len(runs) < 2:
                    answer = client.post(
                        "collections/activated/runs/", files={"file": (tag, text)}
                    ).raise_for_status()
                    runs.append(answer.json())
            for run in runs:
                wait_until_evaluated(client, run["url"])

        def read() -> None:
            with server.client() as reader:
                while not done.is_set():
                    number = next(numbers)
                    address = ADDRESSES[number % len(ADDRESSES)].format(
                        run=runs[0]["id"], other=runs[1]["id"], n=2 + number % 100
                    )
                    # Another address that asks the same: so every request is a first one.
                    path = address + "&" * (number // 100)
                    answer = reader.get(path).raise_for_status()
                    tags[path, answer.headers["ETag"]].add(answer.content)

        with ThreadPoolExecutor(READERS) as readers:
            reading = [readers.submit(read) for _ in range(READERS)]
            try:
                for number in range(ACTIVATIONS):
                    activate(client, 2 - number % 2)
                    done.wait(0.15)
            finally:
                done.set()
            for each in reading:
                each.result()

        activate(client, 1)
        wrong = []
        for path in dict.fromkeys(path for path, _ in tags):
            answer = client.get(path).raise_for_status()
            tags[path, answer.headers["ETag"]].add(answer.content)
            # The same question at an address that nobody has asked.
            if client.get(f"{path}{MORE}").raise_for_status().content != answer.content:
                wrong.append(path)
    assert len(tags) > len(ADDRESSES)
    assert wrong == []
    assert [key for key, bodies in tags.items() if len(bodies) > 1] == []
