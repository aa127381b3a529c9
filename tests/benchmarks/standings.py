"""Leaderboards with their statistics, orders and designs, through Django's test client, on a database of its own.

Times are medians of all rounds. "first" is a question that nobody has asked before: every memory is
emptied before each round, and a round that was answered out of one ends the benchmark. "again" is a
question whose answer is remembered.
"""

from __future__ import annotations

import os
import statistics
import time
from typing import Any

import django
import numpy as np
from django.apps import apps
from django.conf import settings
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import get_runner

BOARDS = ((50, 50), (200, 50), (200, 250), (1000, 50), (1000, 250))
MEASURES = ["nDCG@10", "AP", "P@10"]
ROUNDS = 7


def measure_standings() -> None:
    """Plain boards, boards with everything, orders and designs, of several sizes."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalhub.settings")
    django.setup()
    settings.ALLOWED_HOSTS = ["testserver"]
    runner = get_runner(settings)(verbosity=0, interactive=False)
    databases = runner.setup_databases()
    try:
        team = apps.get_model("runs", "User").objects.create_user("bench").personal_team
        for runs, topics in BOARDS:
            _measure_board(fill(team, runs, topics))
        for runs in (50, 100):
            _measure_design(fill(team, runs, 50, "design"))
    finally:
        runner.teardown_databases(databases)


def _measure_board(slug: str) -> None:
    board = f"{slug}/leaderboard/"
    best = Client().get(f"/api/v1/collections/{board}").json()["results"][0]["run"]["id"]
    everything = {"statistics": "all", "baseline": best}
    _time(f"{board} plain, first", board, {})
    for part in ("intervals", "tiers", "ranks"):
        _time(f"{board} {part}, first", board, {"statistics": part})
    _time(f"{board} tiers by max_t, first", board, {"statistics": "tiers", "test": "max_t"})
    _time(f"{board} baseline, first", board, {"baseline": best})
    _time(f"{board} all, first", board, everything)
    _time(f"{board} all, again", board, everything, forget=False)


def _measure_design(slug: str) -> None:
    _time(f"{slug}/orders/ 3 measures, B = 1,000", f"{slug}/orders/", {})
    _time(f"{slug}/design/ 3 measures", f"{slug}/design/", {})
    tukey = {"test": "randomised_tukey_hsd", "measures": "AP"}
    _time(f"{slug}/design/ randomised Tukey, B = 10,000", f"{slug}/design/", tukey)


def fill(team: Any, runs: int, topics: int, name: str = "board") -> str:
    """Rows as an evaluation leaves them, without the files behind them; returns the collection's slug."""
    from metrics.services.queue.vectors import JUDGED

    slug = f"{name}-{runs}-{topics}"
    evaluation, vector = (
        apps.get_model("metrics", model) for model in ("Evaluation", "MetricVector")
    )
    collection_of, qrels_of, run_of = (
        apps.get_model("runs", model) for model in ("Collection", "Qrels", "Run")
    )
    collection = collection_of.objects.create(slug=slug, name=slug, team=team, measures=MEASURES)
    qrels = qrels_of.objects.create(
        collection=collection, version=1, active=True, sha256="0" * 64, size=1, lines=1, judgements=1, topics=topics,
        topic_ids=[str(topic) for topic in range(topics)], levels={},
    )  # fmt: skip
    fields = {
        "collection": collection,
        "team": team,
        "sha256": "0" * 64,
        "size": 1,
        "lines": 1,
        "documents": 1,
    }
    rows = run_of.objects.bulk_create(
        run_of(tag=f"r{index}", topics=topics, tied_documents=0, grouped=True, **fields)
        for index in range(runs)
    )
    done = evaluation.objects.bulk_create(
        evaluation(
            run=run, qrels=qrels, scores="float64", state="evaluated", topics_answered=topics
        )
        for run in rows
    )
    rng = np.random.default_rng(7)
    ease, skill = rng.beta(1, 2, (len(MEASURES), topics)), rng.normal(0, 0.06, runs)
    for row, of_run in zip(done, skill.tolist(), strict=True):
        values = np.clip(ease + of_run + rng.normal(0, 0.15, ease.shape), 0, 1)
        # There is no judged view to compute the column of every leaderboard from.
        columns = zip([*MEASURES, JUDGED.name], [*values, np.ones(topics)], strict=True)
        vector.objects.bulk_create(
            vector(
                evaluation=row,
                measure=name,
                mean=float(of.mean()),
                topics=topics,
                content=of.tobytes(),
            )
            for name, of in columns
        )
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE" if connection.vendor == "postgresql" else "ANALYZE")
    return slug


def _time(title: str, address: str, query: dict[str, str], *, forget: bool = True) -> None:
    from metrics.services.answer_store import forget_all
    from tests.kept import recalled_answers

    client, path, seconds, busy = Client(), f"/api/v1/collections/{address}", [], []
    if not forget:
        client.get(path, query)
    for _ in range(ROUNDS):
        if forget:
            cache.clear()
            forget_all()
        with recalled_answers() as recalled:
            start, begun = time.perf_counter(), time.process_time()
            answer = client.get(path, query)
            seconds.append(time.perf_counter() - start)
            busy.append(time.process_time() - begun)
        assert answer.status_code == 200, answer.content
        assert bool(recalled) != forget, f"{title}: remembered answers are mixed with new ones"
    print(
        f"{connection.vendor}: {title}: median {1000 * statistics.median(seconds):.0f} ms of {ROUNDS}, "
        f"first round {1000 * seconds[0]:.0f} ms, processor time {1000 * statistics.median(busy):.0f} ms",
        flush=True,
    )
