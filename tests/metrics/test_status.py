"""Where a queued run stands: its position, how long it has waited, and what it waits for."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from metrics.models import DispatcherRound, Evaluation
from metrics.services.queue import lifecycle
from runs.models import Collection, User
from tests.conftest import GOOD, POOR, client_of, evaluate_all, upload


def submit(api: APIClient, content: str, tag: str, collection: str = "small") -> str:
    answer = upload(api, f"collections/{collection}/runs/", content, tag=tag)
    assert answer.status_code == 202, answer.content
    return str(answer.json()["id"])


def queue_of(api: APIClient, run: str) -> Any:
    return api.get(f"/api/v1/runs/{run}/").json()["status"]["queue"]


@pytest.fixture
def three(api: APIClient, collection: str) -> list[str]:
    """Three queued runs in the order of submission, the last in a collection of its own."""
    api.post("/api/v1/collections/", {"slug": "other", "name": "Other"})
    upload(api, "collections/other/qrels/", "1 0 a 1\n")
    return [submit(api, GOOD, "one"), submit(api, POOR, "two"), submit(api, GOOD, "three", "other")]


def test_positions_count_the_queue_of_all_collections_in_its_order(api: APIClient, three: list[str]) -> None:
    assert [queue_of(api, run)["position"] for run in three] == [1, 2, 3]
    # As the dispatcher would take them.
    order = [str(Evaluation.objects.get(pk=pk).run_id) for pk in lifecycle.take_due(10, 30)]
    assert order == three
    lifecycle.claim(Evaluation.objects.get(run=three[0]).pk)
    assert queue_of(api, three[0]) is None
    assert [queue_of(api, run)["position"] for run in three[1:]] == [1, 2]


@pytest.mark.parametrize("hidden", [{"blind": True}, {"visibility": "private"}, {"visibility": "team"}])
def test_a_position_does_not_tell_of_what_its_reader_may_not_see(
    api: APIClient, bob: User, three: list[str], hidden: dict[str, Any]
) -> None:
    own = submit(client_of(bob), GOOD, "four", "other")
    assert queue_of(client_of(bob), own)["position"] == 4
    Collection.objects.filter(slug="small").update(**hidden)
    assert queue_of(client_of(bob), own)["position"] == 2
    assert queue_of(api, own)["position"] == 4
    assert queue_of(client_of(User.objects.create_user("staff", is_staff=True)), own)["position"] == 4
    assert queue_of(client_of(None), own)["position"] == 2


def test_waiting_is_measured_from_when_the_run_came_into_the_queue(api: APIClient, three: list[str]) -> None:
    Evaluation.objects.filter(run=three[1]).update(since=timezone.now() - timedelta(seconds=90))
    assert 90 <= queue_of(api, three[1])["seconds"] < 150
    assert 0 <= queue_of(api, three[0])["seconds"] < 60


def test_what_a_run_waits_for(api: APIClient, three: list[str]) -> None:
    assert queue_of(api, three[0])["waits_for"] == "no_worker_alive"
    DispatcherRound.objects.create(worker="one", at=timezone.now())
    assert queue_of(api, three[0])["waits_for"] == "worker"
    Evaluation.objects.update(not_before=timezone.now() + timedelta(seconds=30))
    assert queue_of(api, three[0])["waits_for"] == "retry"
    Evaluation.objects.update(not_before=timezone.now() - timedelta(seconds=30))
    assert queue_of(api, three[0])["waits_for"] == "worker"


def test_who_is_not_in_the_queue_has_no_place_in_it(api: APIClient, three: list[str]) -> None:
    evaluate_all()
    assert [queue_of(api, run) for run in three] == [None, None, None]
    api.post("/api/v1/collections/", {"slug": "unjudged", "name": "Unjudged"})
    status = api.get(f"/api/v1/runs/{submit(api, GOOD, 'one', 'unjudged')}/").json()["status"]
    assert (status["state"], status["code"], status["queue"]) == ("queued", "no_active_qrels", None)


def test_only_the_question_for_one_run_counts_the_queue(api: APIClient, three: list[str]) -> None:
    answer = upload(api, "collections/small/runs/", POOR, tag="four")
    assert answer.json()["status"]["queue"] is None
    with CaptureQueriesContext(connection) as queries:
        rows = api.get("/api/v1/collections/small/runs/").json()["results"]
    assert [row["status"]["queue"] for row in rows] == [None, None, None]
    assert len(queries) <= 6


def test_a_place_costs_three_queries_and_the_count_reads_an_index(api: APIClient, three: list[str]) -> None:
    with CaptureQueriesContext(connection) as queries:
        api.get(f"/api/v1/runs/{three[1]}/")
    assert len(queries) <= 7
    (count,) = [query["sql"] for query in queries if "COUNT(" in query["sql"]]
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {count}")
            assert "USING" in str(cursor.fetchall())
