"""Refused requests: each has its code, stores nothing, and the next valid one is accepted."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rest_framework.test import APIClient

from runs.models import ApiToken, Collection, Qrels, Run, Team, Topic
from tests.conftest import POOR, QRELS, upload

RUNS, QRELS_PATH, TOPICS = (
    "collections/small/runs/",
    "collections/small/qrels/",
    "collections/small/topics/",
)
LISTS = (
    "collections/",
    RUNS,
    QRELS_PATH,
    TOPICS,
    "collections/small/leaderboard/",
    "teams/",
    "tokens/",
    "measures/",
)
Refuse = Callable[..., dict[str, Any]]


def counts() -> tuple[int, ...]:
    return tuple(model.objects.count() for model in (Run, Qrels, Collection, Topic, Team, ApiToken))  # type: ignore[attr-defined]


def send(
    client: APIClient,
    method: str,
    path: str,
    body: Any = b"",
    kind: str = "application/json",
    **extra: Any,
) -> Any:
    content = (
        body
        if isinstance(body, bytes)
        else body.encode()
        if isinstance(body, str)
        else json.dumps(body).encode()
    )
    return client.generic(method, f"/api/v1/{path}", content, content_type=kind, **extra)


def problem_of(answer: Any, status: int, code: str, attempt: str = "") -> dict[str, Any]:
    """The problem details of an answer, which has this status and code."""
    assert answer.status_code >= 400, (attempt, answer.content)
    body: dict[str, Any] = json.loads(answer.content)
    assert (answer.status_code, body["code"]) == (status, code), (attempt, body)
    assert answer["Content-Type"] == "application/problem+json"
    assert body["status"] == status
    assert body["type"] == f"urn:evalhub:problem:{code}"
    assert body["detail"]
    assert body["title"]
    assert isinstance(body["errors"], list)
    return body


@pytest.fixture
def refuse(api: APIClient, collection: str, settings: Any) -> Any:
    """Send a request that must be refused: nothing is stored, and everything works as before."""
    api.raise_request_exception = False

    def send_and_check(
        status: int, code: str, method: str, path: str, *args: Any, attempt: str = "", **extra: Any
    ) -> dict[str, Any]:
        before = counts()
        body = problem_of(send(api, method, path, *args, **extra), status, code, attempt or path)
        assert counts() == before, attempt or path
        return body

    yield send_and_check
    assert list((Path(settings.EVALHUB_DATA) / "uploads").glob("*")) == []
    for path in LISTS:
        answer = send(api, "GET", path)
        assert answer.status_code == 200, (path, answer.content)
    assert upload(api, RUNS, POOR, tag="after").status_code == 202
    assert upload(api, QRELS_PATH, QRELS + "9 0 a 1\n").status_code == 201


def as_file(
    refuse: Refuse, status: int, code: str, content: bytes | str, path: str = RUNS, **extra: Any
) -> Any:
    return refuse(
        status, code, "PUT" if path == TOPICS else "POST", path, content, "text/plain", **extra
    )
