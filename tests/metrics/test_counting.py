"""Which evaluation counts for a run or session set: one rule for states, queueing and faults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from metrics.models import Evaluation, SessionEvaluation
from metrics.services.queue.queueing import queue_missing
from metrics.services.upkeep.integrity import find_faults
from runs.models import Run
from tests.conftest import GOOD, QRELS, SESSIONS, evaluate_all, upload
from tests.shared_data import alice, api, collection, module_data, submit

__all__ = ["alice", "api", "collection", "module_data", "submit"]

PATH = "collections/small/"
OWN = '{"session_id": "o", "queries": [{"documents": ["a", "b"], "judged": {"b": 2}}]}\n'
# What the API is asked for, and where: after it another evaluation counts.
MOVES: dict[str, Callable[[APIClient], Any]] = {
    "judgements": lambda api: upload(api, f"{PATH}qrels/", QRELS + "9 0 a 1\n"),
    "scores": lambda api: api.patch(f"/api/v1/{PATH}", {"scores": "float32"}),
}


@pytest.fixture(scope="module")
def run(submit: Callable[..., Run]) -> Run:
    return submit(GOOD)


@pytest.mark.parametrize("move", list(MOVES))
def test_of_a_run_counts_what_the_collection_asks_for_now(
    api: APIClient, run: Run, move: str
) -> None:
    first = run.evaluations.get()
    assert list(run.evaluations.counting()) == [first]
    assert MOVES[move](api).status_code in (200, 201)
    second = run.evaluations.exclude(pk=first.pk).get()
    assert list(run.evaluations.counting()) == [second]
    listed = api.get(f"/api/v1/{PATH}runs/", {"status": "queued"}).json()
    assert [row["id"] for row in listed["results"]] == [str(run.pk)]
    assert api.get(f"/api/v1/{PATH}runs/", {"status": "evaluated"}).json()["count"] == 0


def test_of_a_set_counts_the_way_it_is_judged(api: APIClient, collection: str) -> None:
    session_set = upload(api, f"{PATH}sessions/", OWN, judged_by="own").json()
    assert [evaluation.qrels for evaluation in SessionEvaluation.objects.counting()] == [None]
    assert (
        api.patch(f"/api/v1/session-sets/{session_set['id']}/", {"judged_by": "topic"}).status_code
        == 200
    )
    assert [evaluation.judged_by for evaluation in SessionEvaluation.objects.counting()] == [
        "topic"
    ]
    assert SessionEvaluation.objects.count() == 2


@pytest.mark.parametrize(
    ("kind", "code"),
    [(Evaluation, "run_not_queued"), (SessionEvaluation, "session_set_not_queued")],
)
def test_of_another_engine_none_counts(api: APIClient, run: Run, kind: Any, code: str) -> None:
    upload(api, f"{PATH}sessions/", SESSIONS)
    evaluate_all()
    kind.objects.update(engine_version="0")
    assert not kind.objects.counting().exists()
    assert [finding.code for finding in find_faults()] == [code]
    assert (queue_missing(), queue_missing()) == (1, 0)
    assert kind.objects.counting().get().state == "queued"


def test_what_was_withdrawn_is_live_no_more(api: APIClient, run: Run) -> None:
    assert Evaluation.objects.counting().live().exists()
    api.delete(f"/api/v1/runs/{run.pk}/")
    assert not Evaluation.objects.counting().live().exists()
    assert Evaluation.objects.counting().exists()
