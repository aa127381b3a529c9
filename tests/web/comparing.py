"""Runs to be compared on a page, which the tests of a file share: see tests/shared_data.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from evalhub.operating.simulation import simulate_collection
from metrics.services.comparisons import workload
from runs.models import Run
from tests.conftest import GOOD, POOR, evaluate_all, upload

Submit = Callable[..., Run]
SMALL = "/collections/small/comparison/"


@pytest.fixture
def browser() -> Client:
    return Client()


@pytest.fixture(scope="module")
def pair(submit: Submit) -> tuple[Run, Run]:
    """The better one first."""
    return submit(GOOD), submit(POOR)


@pytest.fixture(scope="module")
def many(api: Any) -> list[Run]:
    """Six simulated runs on twelve topics, in a collection of their own; the worst was submitted first."""
    simulated = simulate_collection(topics=12, pool=60, judged=40, depth=30)
    fields = {"slug": "many", "name": "Many", "measures": ["nDCG@10", "AP"]}
    assert api.post("/api/v1/collections/", fields).status_code == 201
    assert upload(api, "collections/many/qrels/", simulated.qrels).status_code == 201
    for content in list(simulated.runs.values())[::2]:
        assert upload(api, "collections/many/runs/", content).status_code == 202
    evaluate_all()
    return list(Run.objects.filter(collection__slug="many").order_by("created_at"))


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is made while its reader waits."""
    monkeypatch.setattr(workload, "AT_ONCE_SECONDS", 0.0)


def ids(*runs: Run) -> list[str]:
    return [str(run.pk) for run in runs]


def answer_of(browser: Client, path: str, **query: Any) -> dict[str, Any]:
    answer = browser.get(path, query)
    assert answer.status_code == 200, answer.content
    payload: dict[str, Any] = answer.json()
    return payload
