"""A suite of 15 collections and 200 systems over HTTP, on SQLite and on a PostgreSQL of its own.

python -m tests.benchmarks suites

*Again* is an address that somebody asked for before; *new* is one that nobody has asked for: the suite
has many versions of the same collections. Times are by the clock. In every round pandas follows: it
computes the mean of each system in each collection from the same number of values in memory, and the
means over collections, without intervals and ranks. The ratio is that of the medians.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import httpx
import numpy as np

from tests.benchmarks.board import TOPICS
from tests.reliability.rigs import own_postgres
from tests.reliability.servers import Server, clean_environment, free_port

COLLECTIONS, SYSTEMS, ROUNDS = 15, 200, 40
_BOARD, _PAGE = "/api/v1/suites/bench/leaderboard/", "/suites/bench/"
_COMPARISON = "/api/v1/suites/bench/comparison/"


def measure_suites() -> None:
    """p50 and p95 of boards, pages and comparisons, again and new, each beside pandas."""
    means = _pandas_means()
    for on in ("SQLite", "PostgreSQL"):
        with _filled_server(on) as server, httpx.Client(base_url=server.url, timeout=60) as client:
            versions = [{"version": str(number)} for number in range(1, ROUNDS + 1)]
            pairs = [{"systems": f"bench/r{n},bench/r{n + 1}"} for n in range(ROUNDS)]
            for title, address, queries in (
                ("JSON, new", _BOARD, versions),
                ("JSON, again", _BOARD, [{}] * ROUNDS),
                ("page, new", _PAGE, versions),
                ("page, again", _PAGE, [{}] * ROUNDS),
                ("two systems, new", _COMPARISON, pairs),
            ):
                _time(f"{on}, {title}", partial(_ask, client, address, queries), means)


def _ask(client: httpx.Client, address: str, queries: list[dict[str, str]], number: int) -> None:
    client.get(address, params=queries[number]).raise_for_status()


def _pandas_means() -> Callable[[], object]:
    import pandas as pd

    collections, systems, topics = np.indices((COLLECTIONS, SYSTEMS, TOPICS)).reshape(3, -1)
    values = np.random.default_rng(1).random(len(topics))
    frame = pd.DataFrame({"collection": collections, "system": systems, "value": values})

    def means() -> object:
        by_collection = frame.groupby(["system", "collection"])["value"].mean().unstack()
        return by_collection.mean(axis=1).sort_values(ascending=False)

    return means


def _time(title: str, ask: Callable[[int], None], means: Callable[[], object]) -> None:
    """Print the times of requests, and of pandas in the same rounds."""
    times, of_pandas = [], []
    for number in range(ROUNDS):
        for function, seconds in ((partial(ask, number), times), (means, of_pandas)):
            start = time.perf_counter()
            function()
            seconds.append(time.perf_counter() - start)

    # The first request of a process loads modules.
    median, high = 1000 * np.percentile(times[1:], (50, 95))
    pandas = 1000 * np.median(of_pandas[1:])
    print(
        f"{title}: p50 {median:.1f} ms, p95 {high:.1f}; means alone by pandas: p50 {pandas:.1f} ms; "
        f"ratio {median / pandas:.2f}",
        flush=True,
    )


@contextlib.contextmanager
def _filled_server(on: str) -> Iterator[Server]:
    with contextlib.ExitStack() as parts:
        folder = Path(parts.enter_context(tempfile.TemporaryDirectory()))
        port = free_port()
        environment = clean_environment(folder) | {"EVALHUB_ADDRESS_RATE": "100000000"}
        if on != "SQLite":
            environment["EVALHUB_DATABASE_URL"] = parts.enter_context(own_postgres()).url
        server = Server(f"http://127.0.0.1:{port}", environment)
        parts.callback(server.stop)
        server.manage("migrate", "--verbosity", "0")
        code = "from tests.benchmarks.suites import fill; fill()"
        server.manage("shell", "-v", "0", "-c", code)
        # It has the rows of files that are not there.
        server.manage("adopt")
        server.start("evalhub", "web", "--bind", f"127.0.0.1:{port}", "--processes", "1")
        server.wait()
        yield server


def fill() -> None:
    """The collections with a run of each system, and the suite of them."""
    from evalhub.suites.services.suites import (
        MemberRequest,
        add_version,
        create_suite,
        members_of,
    )
    from runs.models import Collection, User
    from tests.benchmarks.board import fill_collection
    from tests.benchmarks.rows import finish

    user = User.objects.create_user("bench")
    team = user.personal_team
    assert team is not None
    for number in range(COLLECTIONS):
        slug = f"bench-{number}"
        collection = Collection.objects.create(
            slug=slug, name=slug, team=team, measures=["nDCG@10"]
        )
        fill_collection(
            collection.pk, SYSTEMS, ["nDCG@10"], [team.pk], described=False, seed=number
        )
    requests = [MemberRequest(f"bench-{number}") for number in range(COLLECTIONS)]
    suite = create_suite(
        slug="bench", name="Bench", team=team, user=user, members=members_of(requests, user)
    ).suite
    for _ in range(ROUNDS):
        add_version(suite=suite, members=members_of(requests, user), user=user)
    finish()
