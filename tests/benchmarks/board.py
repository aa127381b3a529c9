"""Leaderboards of 10,000 runs and 40 measures over HTTP, on SQLite and on a PostgreSQL of its own.

python -m tests.benchmarks board

*Again* is a page that somebody asked for before; *new* is one that nobody has asked for since the
last change, which each question is: another measure, page or filter. Times are by the clock, beside
the processor time of the web server.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import tempfile
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil

from tests.benchmarks.rows import finish, insert
from tests.reliability.rigs import own_postgres
from tests.reliability.servers import Server, clean_environment, free_port

RUNS, TOPICS, TEAMS = int(os.environ.get("BOARD_RUNS", "10000")), 50, 100
MEASURES = [f"{name}@{k}" for name in ("nDCG", "P", "R", "AP") for k in (5, 10, 20, 50, 100)]
MANY = [
    f"{name}@{k}"
    for name in ("nDCG", "P", "R", "AP")
    for k in (1, 3, 5, 10, 15, 20, 30, 50, 100, 200)
]
AGAIN, NEW = 200, 40
_URL = "/api/v1/collections/bench/leaderboard/"
_COLUMNS = ",".join(MANY[:10])


def measure_boards() -> None:
    """p50 and p95 of first pages again and new, of other pages, measures, filters and orders."""
    for on in ("SQLite", "PostgreSQL"):
        with filled_server(on) as server, httpx.Client(base_url=server.url, timeout=60) as client:
            for title, queries in _questions():
                _time(
                    f"{on}, {RUNS:,} runs x {len(MANY)} measures, {title}", server, client, queries
                )


def _questions() -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Each with the queries that are asked one after another."""
    few = {"measures": _COLUMNS}
    yield "first page of 10 measures, again", [few] * AGAIN
    yield "first page of 40 measures, again", [{"measures": ",".join(MANY)}] * AGAIN
    yield "sorted by each measure, new", [few | {"sort": name} for name in MANY]
    yield (
        "upside down by each measure, new",
        [few | {"sort": name, "order": "asc"} for name in MANY],
    )
    yield "another page, new", [few | {"offset": str(50 * number)} for number in range(1, NEW)]
    for title, text in (
        ("param: of a fifth", "param:k1>1.5{}{:02d}"),
        ("param: of nearly all", "param:seed>{}{}"),
        ("param: and a model", "param:model=m{} param:k1>0.{:02d}"),
        ("cost: of a half", "cost:latency_ms<2{}.{}"),
        ("measure: of a half", "measure:nDCG@10>0.5{}{:02d}"),
        ("label", "label:l0-{1}0"),
        ("a tag", "tag:r{}{}"),
        ("a word", "r{}{}"),
        ("not a tag", "-tag:r{}{}"),
        ("a team", "team:t{1}"),
        ("status", "status:ranked -r{}{}"),
    ):
        yield (
            f"filter by {title}, new",
            [few | {"filter": text.format(n % 4 + 1, n)} for n in range(NEW)],
        )
    yield (
        "arranged by a parameter, new",
        [
            few | {"arrange": "param:k1", "columns": "param:k1,param:model", "offset": str(n)}
            for n in range(NEW)
        ],
    )


@contextlib.contextmanager
def filled_server(on: str, runs: int = RUNS) -> Iterator[Server]:
    """`evalhub web` with one process on a database with the leaderboard."""
    with contextlib.ExitStack() as parts:
        folder = Path(parts.enter_context(tempfile.TemporaryDirectory()))
        port = free_port()
        environment = clean_environment(folder) | {"EVALHUB_ADDRESS_RATE": "100000000"}
        if on != "SQLite":
            environment["EVALHUB_DATABASE_URL"] = parts.enter_context(own_postgres()).url
        server = Server(f"http://127.0.0.1:{port}", environment)
        parts.callback(server.stop)
        code = f"from tests.benchmarks.board import *; fill({runs}, MANY, teams={TEAMS}, described=True)"
        server.manage("migrate", "--verbosity", "0")
        server.manage("shell", "-v", "0", "-c", code)
        # It has the rows of files that are not there.
        server.manage("adopt")
        server.start("evalhub", "web", "--bind", f"127.0.0.1:{port}", "--processes", "1")
        server.wait()
        yield server


def fill(
    number: int, measures: list[str] = MEASURES, *, teams: int = 1, described: bool = False
) -> None:
    """Rows as evaluations leave them, without the files behind them; described ones have parameters, costs and
    labels."""
    from runs.models import Collection, User

    first = User.objects.create_user("bench").personal_team
    assert first is not None
    insert(
        "runs.Team",
        ((first.pk + n, f"t{n}", f"Team {n}") for n in range(1, teams)),
        "id",
        "slug",
        "name",
    )
    collection = Collection.objects.create(
        slug="bench", name="Bench", team=first, measures=measures
    )
    fill_collection(
        collection.pk, number, measures, [first.pk + n for n in range(teams)], described=described
    )
    finish()


def fill_collection(
    collection: int,
    number: int,
    measures: list[str],
    teams: list[int],
    *,
    described: bool,
    seed: int = 1,
    view: bytes = b"",
    files: tuple[str, str] = ("0" * 64, "0" * 64),
) -> None:
    """Evaluated runs of a collection that has no judgements yet, with keys behind all that there are; each has a judged
    view of these bytes, if any are given. `files` are the SHA-256 of the judgements and of every
    run."""
    from metrics.models import Evaluation
    from metrics.services.queue.vectors import JUDGED
    from runs.digests import digest_of_vector, digests_of_means
    from runs.models import Qrels

    rng = np.random.default_rng(seed)
    qrels = Qrels.objects.create(
        collection_id=collection, version=1, active=True, sha256=files[0], size=1, lines=1, judgements=1,
        topics=TOPICS, topic_ids=[str(i) for i in range(TOPICS)], levels={},
    )  # fmt: skip
    at, keys = (
        datetime(2026, 1, 1, tzinfo=UTC),
        [uuid.UUID(bytes=rng.bytes(16), version=4) for _ in range(number)],
    )
    times = [at + timedelta(seconds=60 * n) for n in range(number)]
    metadata, costs = _described(rng, number) if described else ([{}] * number, [{}] * number)
    insert(
        "runs.Run",
        (
            (keys[n], collection, teams[n % len(teams)], f"r{n}", times[n], f"Run {n}.", metadata[n], costs[n],
             files[1], 1, 1, 1, TOPICS, 0, True)
            for n in range(number)
        ),
        "id", "collection_id", "team_id", "tag", "created_at", "description", "metadata", "costs",
        "sha256", "size", "lines", "documents", "topics", "tied_documents", "grouped",
    )  # fmt: skip
    last = Evaluation.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    ids = range(last + 1, last + number + 1)
    insert(
        "metrics.Evaluation",
        ((pk, key, qrels.pk, "float64", "evaluated", TOPICS) for pk, key in zip(ids, keys, strict=True)),
        "id", "run_id", "qrels_id", "scores", "state", "topics_answered",
    )  # fmt: skip
    stored = [*measures, JUDGED.name]
    skill = rng.normal(0, 0.1, number)

    def vectors() -> Iterator[tuple[Any, ...]]:
        for pk, own in zip(ids, skill.tolist(), strict=True):
            values = np.clip(0.5 + own + rng.normal(0, 0.2, (len(stored), TOPICS)), 0, 1)
            means = values.mean(axis=1).tolist()
            digests = digests_of_means(
                [pk] * len(stored), qrels.pk, stored, means, [TOPICS] * len(stored)
            ).tolist()
            for name, row, mean, digest in zip(stored, values, means, digests, strict=True):
                content = row.tobytes()
                yield (
                    pk,
                    name,
                    mean,
                    TOPICS,
                    content,
                    digest_of_vector(pk, qrels.pk, name, content),
                    digest,
                )

    columns = ("evaluation_id", "measure", "mean", "topics", "content", "digest", "mean_digest")
    insert("metrics.MetricVector", vectors(), *columns)
    if view:
        insert("metrics.JudgedView", ((pk, view) for pk in ids), "evaluation_id", "content")
    if described:
        _store_described(collection, keys, teams, metadata, costs)


def _described(
    rng: np.random.Generator, number: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    k1, model, latency = (
        rng.integers(20, size=number),
        rng.integers(12, size=number),
        rng.lognormal(3, 1, number),
    )
    metadata = [
        {
            "k1": k1[n].item() / 10,
            "b": n % 9 / 10,
            "model": f"m{model[n]}",
            "seed": n,
            "stemmed": bool(n % 2),
        }
        for n in range(number)
    ]
    return metadata, [{"latency_ms": latency[n].item()} for n in range(number)]


def _store_described(
    collection: int,
    keys: list[uuid.UUID],
    teams: list[int],
    metadata: list[dict[str, Any]],
    costs: list[Any],
) -> None:
    from runs.models import ParameterKey, ParameterSet

    names = {name: ParameterKey.objects.create(collection_id=collection, space="param", name=name).pk
             for name in metadata[0]}  # fmt: skip
    names |= {name: ParameterKey.objects.create(collection_id=collection, space="cost", name=name).pk
              for name in costs[0]}  # fmt: skip
    last = ParameterSet.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    own = range(last + 1, last + len(keys) + 1)
    insert("runs.ParameterSet", ((pk, key, "0" * 64) for pk, key in zip(own, keys, strict=True)),
           "id", "run_id", "digest")  # fmt: skip

    def parameters() -> Iterator[tuple[Any, ...]]:
        for pk, fields, cost in zip(own, metadata, costs, strict=True):
            for name, value in {**fields, **cost}.items():
                text, boolean = isinstance(value, str), isinstance(value, bool)
                number = None if text or boolean else float(value)
                yield pk, names[name], number, value if text else None, value if boolean else None

    insert("runs.Parameter", parameters(), "owner_id", "key_id", "number", "folded", "boolean")
    labelled = (
        (collection, teams[n % len(teams)], f"l{n % 4}-{n}", keys[n])
        for n in range(0, len(keys), 10)
    )
    insert("runs.Label", labelled, "collection_id", "team_id", "name", "run_id")


def _time(title: str, server: Server, client: httpx.Client, queries: list[dict[str, str]]) -> None:
    seconds = []
    if queries[0] == queries[-1]:
        client.get(_URL, params=queries[0])
    before = _spent(server)
    for query in queries:
        start = time.perf_counter()
        answer = client.get(_URL, params=query)
        seconds.append(1000 * (time.perf_counter() - start))
        assert answer.status_code == 200, answer.text
    spent = 1000 * (_spent(server) - before) / len(queries)
    seconds.sort()
    p50, p95 = statistics.median(seconds), seconds[int(0.95 * len(seconds))]
    print(
        f"{title}: p50 {p50:.1f} ms, p95 {p95:.1f} ms; web server {spent:.1f} ms each", flush=True
    )


def _spent(server: Server) -> float:
    """Return the processor seconds of the web server's processes so far, which unlike the clock hardly depend on what
    else the machine does."""
    top = psutil.Process(server.processes[0].pid)
    times = [process.cpu_times() for process in (top, *top.children(recursive=True))]
    return sum(taken.user + taken.system for taken in times)
