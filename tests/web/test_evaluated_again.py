"""Runs that come back, and judgements that become active: what is evaluated again."""

from __future__ import annotations

import pytest

from metrics.models import Evaluation, SessionEvaluation
from runs.models import AuditEvent, Qrels, Run
from tests.conftest import GOOD, evaluate_all, upload
from tests.web.shared_people import module_data, module_people, people, run
from tests.web.worlds import People, make_collection, make_session_set, submit_form

__all__ = ["module_data", "module_people", "people", "run"]

OTHER_QRELS = "1 0 a 1\n2 0 y 2\n3 0 z 1\n"


@pytest.fixture(autouse=True, scope="module")
def sessions(module_people: People, run: str) -> str:
    """A session set in the open collection with two runs of `guests`."""
    return make_session_set(module_people, "one")


def test_a_restored_run_is_what_it_was(people: People) -> None:
    board, guests = "/api/v1/collections/one/leaderboard/", people.api["participant"]
    before = people.api["owner"].get(board).json()["results"]
    run = Run.objects.get(tag="good")
    assert guests.delete(f"/api/v1/runs/{run.pk}/").status_code == 204
    assert len(people.api["owner"].get(board).json()["results"]) == 1
    assert guests.post(f"/api/v1/runs/{run.pk}/restore/").status_code == 200
    assert people.api["owner"].get(board).json()["results"] == before
    poor = Run.objects.get(tag="poor")
    assert guests.post(f"/api/v1/runs/{poor.pk}/restore/").status_code == 404


def test_what_was_cancelled_with_its_run_is_evaluated_when_it_comes_back(people: People) -> None:
    guests = people.api["participant"]
    sent = submit_form(guests, "one", GOOD, team="guests", tag="late")
    run = Run.objects.get(pk=sent.json()["id"])
    assert guests.delete(f"/api/v1/runs/{run.pk}/").status_code == 204
    assert Evaluation.objects.get(run=run).state == "cancelled"

    # The judgements change meanwhile: it comes back under both versions.
    upload(people.api["owner"], "collections/one/qrels/", OTHER_QRELS)
    evaluate_all()
    assert guests.post(f"/api/v1/runs/{run.pk}/restore/").status_code == 200
    evaluate_all()
    assert set(Evaluation.objects.filter(run=run).values_list("qrels__version", "state")) == {
        (1, "evaluated"), (2, "evaluated"),
    }  # fmt: skip


def test_activated_judgements_queue_every_run_and_session_set(people: People) -> None:
    upload(people.api["owner"], "collections/one/qrels/", OTHER_QRELS, activate="false")
    second = Qrels.objects.get(version=2)
    answer = people.api["owner"].post("/api/v1/collections/one/qrels/2/activate/")
    assert answer.status_code == 200, answer.content
    event = AuditEvent.objects.order_by("-pk")[0]
    assert (event.action, event.object_id) == ("qrels.activated", "one v2")
    assert Evaluation.objects.filter(qrels=second, state="queued").count() == 2
    assert SessionEvaluation.objects.filter(qrels=second, state="queued").count() == 1


def test_a_release_that_has_nothing_to_show_is_refused(people: People) -> None:
    make_collection(people, "veiled", blind=True)
    for slug, reason in (
        ("veiled", "has no active judgements, so there is nothing to release"),
        ("one", "collection one is not blind"),
    ):
        answer = people.api["owner"].post(f"/api/v1/collections/{slug}/release/")
        assert answer.status_code == 409
        assert reason in answer.json()["detail"]
