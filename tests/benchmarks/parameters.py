"""Parameters of 50,000 runs, 10,000 of them in the collection that is asked, on the database of the
environment."""

from __future__ import annotations

import os
import statistics
import time
import uuid
from collections.abc import Callable
from typing import Any

import django
import numpy as np
from django.apps import apps
from django.conf import settings
from django.db import connection
from django.test.utils import get_runner

RUNS, ASKED, KEYS, TOPICS = 50_000, 10_000, 30, 5
REQUESTS = 40
_BATCH = 2_000


def measure_parameters() -> None:
    """All rows written again, then p50 and p95 of filters, facets, orders and edits."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalhub.settings")
    django.setup()
    settings.ALLOWED_HOSTS = ["testserver"]
    runner = get_runner(settings)(verbosity=0, interactive=False)
    databases = runner.setup_databases()
    try:
        from runs.services.tracking.parameters import rebuild_parameters

        _fill_runs()
        start, used = time.perf_counter(), time.process_time()
        rebuild_parameters()
        took, used = time.perf_counter() - start, time.process_time() - used
        print(
            f"{connection.vendor}: rows of {RUNS:,} runs x {KEYS}: {took:.1f} s, {used:.1f} s of it here",
            flush=True,
        )
        _evaluate()
        _ask()
    finally:
        runner.teardown_databases(databases)


def _fill_runs() -> None:
    """Runs with 30 parameters each, without the rows of these."""
    user = apps.get_model("runs", "User").objects.create(username="bench", password="!")
    team = apps.get_model("runs", "Team").objects.create(
        slug="bench", name="Bench", personal_of=user
    )
    apps.get_model("runs", "Membership").objects.create(team=team, user=user, role="owner")
    collections = [
        apps.get_model("runs", "Collection").objects.create(
            slug=slug, name=slug, team=team, measures=["AP"]
        )
        for slug in ("bench", "others")
    ]
    rng, model = np.random.default_rng(1), apps.get_model("runs", "Run")
    for start in range(0, RUNS, _BATCH):
        model.objects.bulk_create(
            model(
                id=uuid.uuid4(), collection=collections[number >= ASKED], team=team, tag=f"r{number}", sha256="0" * 64,
                size=1, lines=1, documents=1, topics=TOPICS, tied_documents=0, grouped=True,
                metadata=_metadata(rng, number),
            )
            for number in range(start, start + _BATCH)
        )  # fmt: skip


def _metadata(rng: np.random.Generator, number: int) -> dict[str, Any]:
    """Twenty numbers of few values, eight texts, a boolean, and a number that is another in every
    run."""
    parameters: dict[str, Any] = {
        f"n{index}": float(rng.integers(20)) / 10 for index in range(KEYS - 11)
    }
    parameters |= {
        "k1": float(rng.integers(20)) / 10,
        "seed": number,
        "stemmed": bool(rng.integers(2)),
    }
    return (
        parameters
        | {f"t{index}": f"Model-{rng.integers(12)}" for index in range(7)}
        | {"model": f"splade-{rng.integers(50)}"}
    )


def _evaluate() -> None:
    """Means of the asked collection's runs, as evaluations leave them."""
    models = {name: apps.get_model("metrics", name) for name in ("Evaluation", "MetricVector")}
    collection = apps.get_model("runs", "Collection").objects.get(slug="bench")
    qrels = apps.get_model("runs", "Qrels").objects.create(
        collection=collection, version=1, active=True, sha256="0" * 64, size=1, lines=1, judgements=1, topics=TOPICS,
        topic_ids=[str(topic) for topic in range(TOPICS)], levels={},
    )  # fmt: skip
    rng, stored = np.random.default_rng(2), ("AP", "Judged@10")
    evaluations = models["Evaluation"].objects.bulk_create(
        models["Evaluation"](
            run=run, qrels=qrels, scores="float64", state="evaluated", topics_answered=TOPICS
        )
        for run in apps.get_model("runs", "Run").objects.filter(collection=collection)
    )
    for evaluation in evaluations:
        vectors = rng.random((len(stored), TOPICS))
        models["MetricVector"].objects.bulk_create(
            models["MetricVector"](
                evaluation=evaluation,
                measure=name,
                mean=float(vector.mean()),
                topics=TOPICS,
                content=vector.tobytes(),
            ).seal(qrels.pk)
            for name, vector in zip(stored, vectors, strict=True)
        )
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE" if connection.vendor == "postgresql" else "ANALYZE")


def _ask() -> None:
    from metrics.services.answer_store import forget_all
    from metrics.services.boards.matching import matching_runs
    from tests.conftest import client_of

    user = apps.get_model("runs", "User").objects.get(username="bench")
    run_model = apps.get_model("runs", "Run")
    collection = apps.get_model("runs", "Collection").objects.get(slug="bench")
    runs = list(
        run_model.objects.filter(collection=collection).values_list("pk", flat=True)[:REQUESTS]
    )
    api, address = client_of(user), "/api/v1/collections/bench/"

    def get(path: str, again: bool = False, **query: Any) -> Callable[[int], None]:
        def ask(_: int) -> None:
            if not again:
                forget_all()
            answer = api.get(address + path, query)
            assert answer.status_code == 200, answer.content

        return ask

    def matching(text: str) -> Callable[[int], None]:
        seen = run_model.objects.visible_to(user).filter(collection=collection)
        return lambda _: list(
            matching_runs(collection, text, user, seen).values_list("pk", flat=True)
        )

    def edit(number: int) -> None:
        body = {"metadata": {"k1": number / 7, "new": number}}
        assert api.patch(f"/api/v1/runs/{runs[number]}/", body).status_code == 200

    _time("leaderboard, nothing asked", get("leaderboard/"))
    _time("the runs with k1>1.8", matching("param:k1>1.8"))
    _time("the runs with k1>0.9 model=splade-1*", matching("param:k1>0.9 param:model=splade-1*"))
    _time("the runs without -param:k1=0.9", matching("-param:k1=0.9"))
    _time("leaderboard, filter=param:k1>1.8", get("leaderboard/", filter="param:k1>1.8"))
    _time("facets, q=k1", get("parameters/", q="k1"))
    _time(
        "facets, q=model, filter=param:k1>0.9", get("parameters/", q="model", filter="param:k1>0.9")
    )
    _time(f"facets of all {KEYS} keys", get("parameters/"))
    _time("the same again", get("parameters/", again=True))
    _time("leaderboard, arrange=param:k1, three columns",
          get("leaderboard/", arrange="param:k1", columns="param:k1,param:model,param:seed"))  # fmt: skip
    _time(
        "leaderboard, three columns", get("leaderboard/", columns="param:k1,param:model,param:seed")
    )
    _time("PATCH of a run", edit)


def _time(title: str, ask: Callable[[int], object]) -> None:
    ask(0)
    seconds, used = [], time.process_time()
    for number in range(REQUESTS):
        start = time.perf_counter()
        ask(number)
        seconds.append(time.perf_counter() - start)
    # What this process took itself: on a busy machine the rest is waiting; PostgreSQL is another
    # process.
    own = 1000 * (time.process_time() - used) / REQUESTS
    seconds.sort()
    p50, p95 = 1000 * statistics.median(seconds), 1000 * seconds[int(0.95 * len(seconds))]
    print(
        f"{connection.vendor}: {title}: p50 {p50:.1f} ms, p95 {p95:.1f} ms; {own:.1f} ms of processor",
        flush=True,
    )
