"""A leaderboard whose statistics are compared with other programs."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from metrics.engine.significance.pairs import Matrix
from runs.models import Collection, Run, User
from tests.metrics.boards import make_board, simulated

BOARD = "/api/v1/collections/board/leaderboard/"
NOBODY = "7b2d1a52-8a52-4b0e-9d5b-0d5f8f0f0f0f"
RUNS, TOPICS = 9, 30


@pytest.fixture
def values() -> Matrix:
    return simulated(RUNS, TOPICS, spread=0.12, decimals=2)


@pytest.fixture
def board(alice: User, values: Matrix) -> Collection:
    return make_board(alice.personal_team, {"AP": values, "P@10": simulated(RUNS, TOPICS, seed=6)})


def rows_of(client: APIClient, **query: Any) -> dict[str, dict[str, Any]]:
    """The rows by tag."""
    answer = client.get(BOARD, query)
    assert answer.status_code == 200, answer.content
    return {row["run"]["tag"]: row for row in answer.json()["results"]}


def id_of(tag: str) -> str:
    return str(Run.objects.get(tag=tag).pk)
