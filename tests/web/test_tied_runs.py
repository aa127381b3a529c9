"""Runs with equal means share a rank, wherever one is shown."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from tests.conftest import evaluate_all, upload
from tests.web.test_pages import page

pytestmark = pytest.mark.words

# Where each run has the one relevant document of topics 1 to 6: two of them on other topics as far
# down.
PLACES = {
    "one": (1, 2, 4, 1, 2, 4),
    "two": (4, 1, 2, 2, 4, 1),
    "three": (4, 4, 4, 4, 4, 2),
    "four": (4, 4, 4, 4, 4, 4),
}


def test_the_ranks_of_ties_are_those_of_the_board(client: Client, api: Any) -> None:
    fields = {"slug": "tied", "name": "Tied", "measures": ["RR"]}
    assert api.post("/api/v1/collections/", fields).status_code == 201
    assert (
        upload(
            api, "collections/tied/qrels/", "".join(f"{t} 0 d0 1\n" for t in range(1, 7))
        ).status_code
        == 201
    )
    for tag, places in PLACES.items():
        lines = [
            f"{topic} Q0 {'d0' if rank == place else f'u{rank}'} 0 {9 - rank} {tag}\n"
            for topic, place in enumerate(places, 1)
            for rank in range(1, 5)
        ]
        assert upload(api, "collections/tied/runs/", "".join(lines)).status_code == 202
    evaluate_all()
    expected = {"one": 1, "two": 1, "three": 3, "four": 4}
    board = client.get("/api/v1/collections/tied/leaderboard/").json()["results"]
    assert {row["run"]["tag"]: row["rank"] for row in board} == expected
    table = re.search(
        r'<table class="runs.*?</table>', page(client, "/collections/tied/comparison/"), re.DOTALL
    )
    assert table
    rows = re.findall(
        r'<td class="number rank"[^>]*>(\d+)</td><th[^>]*><a [^>]*>(\w+)</a>', table[0]
    )
    assert {tag: int(rank) for rank, tag in rows} == expected
    drawn = client.get("/api/v1/collections/tied/charts/ranks.json").json()
    points = drawn["layer"][0].get("data", drawn.get("data"))["values"]
    assert {point["run"]: point["rank"] for point in points} == expected
