"""Session sets through Django's test client, on a database of its own: 10,000 sessions of 3 queries x 100 documents are
uploaded, evaluated and read. Times are medians."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import django
from django.apps import apps
from django.conf import settings
from django.test import Client
from django.test.utils import get_runner

from tests.benchmarks.sessions import NAMES, as_columns, as_json, levels, simulated

ROUNDS = 5
_COLLECTION = "/api/v1/collections/bench/"


def measure_session_sets() -> None:
    """MB/s of an upload, seconds of an evaluation, milliseconds of each answer."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalhub.settings")
    django.setup()
    settings.ALLOWED_HOSTS = ["testserver"]
    settings.EVALHUB_USER_RATE = settings.EVALHUB_ADDRESS_RATE = 0
    runner = get_runner(settings)(verbosity=0, interactive=False)
    databases = runner.setup_databases()
    try:
        with tempfile.TemporaryDirectory() as folder:
            settings.EVALHUB_DATA = Path(folder)
            from runs.services.storage.installs import settle

            settle()
            _measure()
    finally:
        runner.teardown_databases(databases)


def _measure() -> None:
    client = Client()
    client.force_login(apps.get_model("runs", "User").objects.create_user("bench"))
    client.post(
        "/api/v1/collections/", {"slug": "bench", "name": "Bench"}, content_type="application/json"
    )
    sessions, judged = simulated(), levels()
    lines = [
        f"{topic} 0 {doc} {level}\n"
        for topic, levels in enumerate(judged)
        for doc, level in levels.items()
    ]
    _send(client, "qrels/", "".join(lines).encode())
    for name, form in (("columns", as_columns), ("jsonl", as_json)):
        content = form(sessions)
        seconds = _median(lambda round_: _send(client, f"sessions/?tag={name}-{round_}", content))  # noqa: B023
        print(
            f"upload of {name}: {len(content) / 1e6:.0f} MB in {seconds:.2f} s, {len(content) / 1e6 / seconds:.0f} MB/s"
        )
    _measure_answers(client)


def _measure_answers(client: Client) -> None:
    # Models cannot be imported before the apps are ready.
    from metrics.services.sessions.evaluate import evaluate_sessions

    waiting = list(
        apps.get_model("metrics", "SessionEvaluation")
        .objects.order_by("-pk")
        .values_list("pk", "session_set")
    )
    start = time.perf_counter()
    evaluate_sessions(evaluation_id=waiting[0][0])
    print(f"evaluation: {time.perf_counter() - start:.2f} s")
    path, names = f"/api/v1/session-sets/{waiting[0][1]}/", " ".join(NAMES)
    for title, address in (
        (
            f"values, {len(NAMES)} settings, 1,000 sessions listed",
            f"{path}values/?measures={names}",
        ),
        (
            f"values, {len(NAMES)} settings, 10,000 sessions listed",
            f"{path}values/?limit=10000&measures={names}",
        ),
        ("curves of sDCG@10", f"{path}curves/?measure=sDCG"),
        ("curves of nsDCG@100", f"{path}curves/?measure=nsDCG@100"),
        ("queries", f"{path}queries/"),
        ("lengths", f"{path}lengths/"),
        ("the first session", f"{path}sessions/s0/"),
        ("the last session", f"{path}sessions/s9999/"),
        ("the board", f"{_COLLECTION}session-leaderboard/"),
    ):
        print(f"{title}: {1000 * _median(lambda _: _get(client, address)):.0f} ms")  # noqa: B023


def _send(client: Client, path: str, content: bytes) -> None:
    answer = client.post(f"{_COLLECTION}{path}", content, content_type="application/octet-stream")
    if answer.status_code not in (201, 202):
        raise SystemExit(f"{path}: {answer.status_code} {answer.content[:500]!r}")


def _get(client: Client, address: str) -> None:
    answer = client.get(address)
    if answer.status_code != 200:
        raise SystemExit(f"{address}: {answer.status_code} {answer.content[:500]!r}")


def _median(call: Callable[[int], Any]) -> float:
    seconds = []
    for round_ in range(ROUNDS):
        start = time.perf_counter()
        call(round_)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)
