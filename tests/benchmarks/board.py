"""Leaderboards of 1,000 runs and 20 measures, through Django's test client, on the database of the environment."""

from __future__ import annotations

import os
import statistics
import time

import django
import numpy as np
from django.apps import apps
from django.conf import settings
from django.db import connection
from django.test import Client
from django.test.utils import get_runner

RUNS, TOPICS = 1000, 50
MEASURES = [f"{name}@{k}" for name in ("nDCG", "P", "R", "AP") for k in (5, 10, 20, 50, 100)]
REQUESTS = 60


def measure_boards() -> None:
    """p50 and p95 of the first page, of a middle page, and sorted by another measure."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalhub.settings")
    django.setup()
    settings.ALLOWED_HOSTS = ["testserver"]
    runner = get_runner(settings)(verbosity=0, interactive=False)
    databases = runner.setup_databases()
    try:
        fill(RUNS)
        names = ",".join(MEASURES)
        for title, query in (
            ("first page, 20 measures", {"measures": names}),
            ("rows 500 to 550, 20 measures", {"measures": names, "offset": "500"}),
            ("the rows that a filter shows, 20 measures", {"measures": names, "filter": "r1 -r10 OR status:failed"}),
            ("sorted by another measure, 5 measures", {"measures": ",".join(MEASURES[:5]), "sort": "AP@100"}),
        ):
            _time(title, query)
    finally:
        runner.teardown_databases(databases)


def fill(number: int) -> None:
    """Rows as an evaluation leaves them, without the files behind them."""
    models = {name: apps.get_model("metrics", name) for name in ("Evaluation", "MetricVector")}
    runs = {name: apps.get_model("runs", name) for name in ("User", "Collection", "Qrels", "Run")}
    team = runs["User"].objects.create_user("bench").personal_team
    collection = runs["Collection"].objects.create(slug="bench", name="Bench", team=team, measures=MEASURES)
    qrels = runs["Qrels"].objects.create(
        collection=collection, version=1, active=True, sha256="0" * 64, size=1, lines=1, judgements=1, topics=TOPICS,
        topic_ids=[str(i) for i in range(TOPICS)], levels={},
    )  # fmt: skip
    fields = {"collection": collection, "team": team, "sha256": "0" * 64, "size": 1, "lines": 1, "documents": 1}
    rows = runs["Run"].objects.bulk_create(
        runs["Run"](tag=f"r{i}", topics=TOPICS, tied_documents=0, grouped=True, **fields) for i in range(number)
    )
    evaluations = models["Evaluation"].objects.bulk_create(
        models["Evaluation"](run=run, qrels=qrels, scores="float64", state="evaluated", topics_answered=TOPICS)
        for run in rows
    )
    stored = [*MEASURES, "Judged@10"]
    values = np.random.default_rng(1).random((number, len(stored), TOPICS))
    for evaluation, vectors in zip(evaluations, values, strict=True):
        models["MetricVector"].objects.bulk_create(
            models["MetricVector"](
                evaluation=evaluation, measure=name, mean=float(vector.mean()), topics=TOPICS, content=vector.tobytes()
            ).seal(qrels.pk)
            for name, vector in zip(stored, vectors, strict=True)
        )
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE" if connection.vendor == "postgresql" else "ANALYZE")


def _time(title: str, query: dict[str, str]) -> None:
    client, seconds = Client(), []
    for _ in range(REQUESTS):
        start = time.perf_counter()
        answer = client.get("/api/v1/collections/bench/leaderboard/", query)
        seconds.append(time.perf_counter() - start)
        assert answer.status_code == 200, answer.content
    seconds.sort()
    p50, p95 = 1000 * statistics.median(seconds), 1000 * seconds[int(0.95 * len(seconds))]
    print(f"{connection.vendor}: leaderboard of {RUNS} runs, {title}: p50 {p50:.1f} ms, p95 {p95:.1f} ms")
