"""The leaderboard of a phase of 200 teams with 5 entries each, over HTTP, on a PostgreSQL of its own."""

from __future__ import annotations

import statistics
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import httpx
import zstandard
from django.apps import apps

from metrics.engine.judgement.depth import judged_depth
from runs.digests import digest_of_depth
from tests.benchmarks.board import fill as fill_board
from tests.benchmarks.views import judged_view
from tests.reliability.rigs import own_postgres
from tests.reliability.servers import Server, clean_environment, free_port

TEAMS, ENTRIES, REQUESTS = 200, 5, 200
_BOARD, _PAGE = "/api/v1/campaigns/cup/phases/task/board/", "/campaigns/cup/phases/task/"


def measure_campaigns() -> None:
    """p50 and p95 of a page that was asked before, and of pages and views that were not."""
    with tempfile.TemporaryDirectory() as folder, own_postgres() as postgres:
        port = free_port()
        environment = {**clean_environment(Path(folder)), "EVALHUB_DATABASE_URL": postgres.url,
                       "EVALHUB_ADDRESS_RATE": "100000000"}  # fmt: skip
        server = Server(f"http://127.0.0.1:{port}", environment)
        try:
            server.manage("migrate", "--verbosity", "0")
            server.manage("shell", "-c", "from tests.benchmarks.campaigns import fill; fill()")
            # It has the rows of files that are not there.
            server.manage("adopt")
            server.start("evalhub", "web", "--bind", f"127.0.0.1:{port}", "--processes", "1")
            server.wait()
            with httpx.Client(base_url=server.url, timeout=60) as client:
                for of, url in (("JSON", _BOARD), ("the page", _PAGE)):
                    _time(client, url, f"{of}, remembered", [{}] * REQUESTS)
                    _time(
                        client, url, f"{of}, new", [{"offset": str(i)} for i in range(1, REQUESTS)]
                    )
                    typed = [
                        {"view": "all", "run_type": "manual", "offset": str(i)}
                        for i in range(REQUESTS)
                    ]
                    _time(
                        client,
                        url,
                        f"{of}, new, the rows of a run type in the view of all entries",
                        typed,
                    )
                best = "from runs.models import Phase; Phase.objects.update(selection='best')"
                server.manage("shell", "-v", "0", "-c", best)
                for of, url in (("JSON", _BOARD), ("the page", _PAGE)):
                    _time(
                        client,
                        url,
                        f"{of}, new, the best entry of each team",
                        [{"offset": str(i)} for i in range(99)],
                    )
        finally:
            server.stop()


def fill() -> None:
    """A public phase whose entries are the runs of the benchmark of leaderboards."""
    fill_board(TEAMS * ENTRIES)
    runs = {name: apps.get_model("runs", name) for name in (
        "Campaign", "Collection", "Entry", "Participation", "Phase", "Run", "Team",
    )}  # fmt: skip
    lab, at = runs["Team"].objects.get(), datetime(2026, 1, 1, tzinfo=UTC)
    cup = runs["Campaign"].objects.create(slug="cup", name="Cup", team=lab, state="published")
    fields = {
        "kind": "development",
        "opens_at": at,
        "closes_at": at.replace(year=2027),
        "measures": ["nDCG@10"],
    }
    of = {
        "campaign": cup,
        "slug": "task",
        "name": "Task",
        "collection": runs["Collection"].objects.get(),
    }
    phase = runs["Phase"].objects.create(**of, **fields)
    teams = runs["Team"].objects.bulk_create(
        runs["Team"](slug=f"t{i}", name=f"Team {i}") for i in range(TEAMS)
    )
    taking_part = runs["Participation"].objects.bulk_create(
        runs["Participation"](
            campaign=cup, team=team, name=team.name, state="accepted", pseudonym=i
        )
        for i, team in enumerate(teams, 1)
    )
    rows = list(runs["Run"].objects.order_by("pk"))
    for i, run in enumerate(rows):
        run.team = teams[i // ENTRIES]
    runs["Run"].objects.bulk_update(rows, ["team"], batch_size=500)
    runs["Entry"].objects.bulk_create(
        runs["Entry"](
            phase=phase, participation=taking_part[i // ENTRIES], run=run, number=i + 1, arrived_at=at,
            run_type=("automatic", "manual")[i % 2], priority=i % ENTRIES + 1,
        )
        for i, run in enumerate(rows)
    )  # fmt: skip
    # The page reads of each run how deep it is judged.
    view = judged_view("S")
    content, depth = zstandard.compress(view.to_bytes()), judged_depth(view)
    evaluations, views = (
        apps.get_model("metrics", name).objects for name in ("Evaluation", "JudgedView")
    )
    for pk, qrels in list(evaluations.values_list("pk", "qrels")):
        views.bulk_create([views.model(evaluation_id=pk, content=content).seal(qrels)])
        evaluations.filter(pk=pk).update(
            judged_depth=depth, depth_digest=digest_of_depth(pk, qrels, "", depth)
        )


def _time(client: httpx.Client, url: str, title: str, queries: list[dict[str, str]]) -> None:
    seconds = []
    for query in queries:
        start = time.perf_counter()
        answer = client.get(url, params=query)
        seconds.append(1000 * (time.perf_counter() - start))
        assert answer.status_code == 200, answer.text
    seconds.sort()
    p50, p95 = statistics.median(seconds), seconds[int(0.95 * len(seconds))]
    print(
        f"leaderboard of a phase, {TEAMS} teams x {ENTRIES} entries, {title}: p50 {p50:.1f} ms, p95 {p95:.1f} ms"
    )
