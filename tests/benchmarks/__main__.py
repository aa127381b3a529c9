"""make bench: measured times. Prints medians and ratios; asserts nothing about time.

`python -m tests.benchmarks peers` evaluates files beside trec_eval (the binary that TREC_EVAL
names), pytrec_eval and ir_measures; `... views` computes measures and curves from judged views;
`... upload` takes a compressed run from upload to values; `python -m tests.benchmarks board` reads
leaderboards of 10,000 runs x 40 measures over HTTP on both databases; `python -m tests.benchmarks
standings` reads leaderboards with their statistics, orders and designs; `python -m tests.benchmarks
submit` submits runs of 50 topics x 1,000 documents over HTTP to a server of its own; `python -m
tests.benchmarks load` asks servers of its own from many clients at once, and kills and cuts them
off; `python -m tests.benchmarks statistics` compares all pairs of 100 runs x 50 topics, and SciPy a
sample of them; `python -m tests.benchmarks sessions` reads 10,000 sessions of each format and
scores them from their stored form; `python -m tests.benchmarks session-sets` uploads and evaluates
the same and reads every answer; `python -m tests.benchmarks suites` reads the leaderboard of a suite of 15
collections and 200 systems; `python -m tests.benchmarks parameters` stores 30 parameters of
50,000 runs, filters, counts, arranges and edits them; `python -m tests.benchmarks service` counts
runs a minute from POST to values, and evaluations after new judgements; `python -m tests.benchmarks
campaigns` reads the leaderboard of a phase of 200 teams with 5 entries each over HTTP; `python -m
tests.benchmarks beside` searches runs with MLflow and compares systems with PyTerrier, then does
both here; `python -m tests.benchmarks capacity` fills a PostgreSQL with 100,000 runs of 1,000 teams
and asks for everything; `python -m tests.benchmarks pages` loads the pages of a site with 1,000
runs in Chromium, on a desk and on a phone; `... server-pages` measures the processor time of the
server alone, of these and of pages about all 1,000 runs.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

import httpx
import numpy as np

from tests.benchmarks.beside import measure_beside
from tests.benchmarks.board import measure_boards
from tests.benchmarks.campaigns import measure_campaigns
from tests.benchmarks.capacity import measure_capacity
from tests.benchmarks.load import measure_load
from tests.benchmarks.pages import measure_pages, measure_server_pages
from tests.benchmarks.parameters import measure_parameters
from tests.benchmarks.peers import measure_peers
from tests.benchmarks.service import measure_service
from tests.benchmarks.session_sets import measure_session_sets
from tests.benchmarks.sessions import measure_sessions
from tests.benchmarks.standings import measure_standings
from tests.benchmarks.statistics import measure_statistics
from tests.benchmarks.suites import measure_suites
from tests.benchmarks.views import measure_upload, measure_views
from tests.reliability.servers import embedded_server, wait_until_evaluated

ROUNDS = 9


def big_run(tag: str, seed: int, topics: int = 50, depth: int = 1000) -> str:
    """A run of realistic size, scores to four decimals, a few ties."""
    rng = np.random.default_rng(seed)
    lines = []
    for topic in range(1, topics + 1):
        scores = np.sort(rng.gamma(2.0, 5.0, depth))[::-1]
        documents = rng.permutation(5 * depth)[:depth]
        lines += [
            f"{topic} Q0 DOC-{document:07d} {rank} {score:.4f} {tag}\n"
            for rank, (document, score) in enumerate(
                zip(documents.tolist(), scores.tolist(), strict=True), 1
            )
        ]
    return "".join(lines)


def big_qrels(topics: int = 50, judged: int = 1500) -> str:
    rng = np.random.default_rng(0)
    return "".join(
        f"{topic} 0 DOC-{document:07d} {level}\n"
        for topic in range(1, topics + 1)
        for document, level in enumerate(rng.choice(4, judged, p=(0.7, 0.15, 0.1, 0.05)).tolist())
    )


def measure_submission() -> None:
    """POST to 202, and POST to values readable, of a run of 50,000 lines."""
    with (
        tempfile.TemporaryDirectory() as folder,
        embedded_server(Path(folder)) as server,
        server.client() as client,
    ):
        client.post("collections/", json={"slug": "bench", "name": "Bench"}).raise_for_status()
        client.post(
            "collections/bench/qrels/", files={"file": ("q", big_qrels())}
        ).raise_for_status()
        accepted, readable = zip(
            *(_submit(client, number) for number in range(ROUNDS)), strict=True
        )
    print(f"POST of a 50 x 1000 run to 202: median {_ms(accepted)} ms of {ROUNDS}")
    print(f"POST of a 50 x 1000 run to values readable: median {_ms(readable)} ms of {ROUNDS}")


def _submit(client: httpx.Client, number: int) -> tuple[float, float]:
    run = big_run(f"r{number}", number).encode()
    start = time.perf_counter()
    answer = client.post(
        "collections/bench/runs/", content=run, headers={"Content-Type": "text/plain"}
    )
    accepted = time.perf_counter() - start
    wait_until_evaluated(client, answer.raise_for_status().json()["url"])
    client.get(answer.json()["url"] + "values/").raise_for_status()
    return accepted, time.perf_counter() - start


def _ms(seconds: tuple[float, ...]) -> str:
    return f"{1000 * statistics.median(seconds):.0f}"


PARTS = {
    "peers": measure_peers,
    "views": measure_views,
    "upload": measure_upload,
    "statistics": measure_statistics,
    "sessions": measure_sessions,
    "session-sets": measure_session_sets,
    "submit": measure_submission,
    "board": measure_boards,
    "standings": measure_standings,
    "suites": measure_suites,
    "parameters": measure_parameters,
    "campaigns": measure_campaigns,
    "load": measure_load,
    "service": measure_service,
    "beside": measure_beside,
    "capacity": measure_capacity,
    "pages": measure_pages,
    "server-pages": measure_server_pages,
}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
