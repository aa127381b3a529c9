"""Submitting runs over the API."""

from __future__ import annotations

from collections.abc import Callable

from rest_framework.test import APIClient

from runs.models import Run
from tests.conftest import GOOD, POOR, evaluate_all, upload
from tests.shared_data import alice, api, collection, module_data, submit

__all__ = ["alice", "api", "collection", "module_data", "submit"]


def test_a_submitted_run_is_queued_then_evaluated(api: APIClient, collection: str) -> None:
    answer = upload(api, f"collections/{collection}/runs/", GOOD)
    assert answer.status_code == 202
    run = answer.json()
    assert (run["tag"], run["status"]["state"], run["documents"], run["topics"]) == (
        "good",
        "queued",
        5,
        3,
    )
    assert answer["Location"] == run["url"]
    assert evaluate_all() == 1
    assert api.get(run["url"]).json()["status"]["state"] == "evaluated"
    values = api.get(run["url"] + "values/", {"measures": "nDCG@10,AP,RR"}).json()
    assert values["means"]["AP"]["mean"] == 1.0
    assert [topic["topic_id"] for topic in values["topics"]] == ["1", "2", "3"]


def test_the_leaderboard_ranks_and_compares(api: APIClient, submit: Callable[..., Run]) -> None:
    submit(POOR)
    submit(GOOD)
    board = api.get("/api/v1/collections/small/leaderboard/").json()
    assert [row["run"]["tag"] for row in board["results"]] == ["good", "poor"]
    assert [row["rank"] for row in board["results"]] == [1, 2]
    assert board["results"][1]["coverage"] == {"answered": 2, "judged": 3}
    comparison = api.get("/api/v1/collections/small/comparison/", {"measure": "AP"}).json()
    (pair,) = comparison["measures"][0]["pairs"]
    assert pair["difference"] > 0
