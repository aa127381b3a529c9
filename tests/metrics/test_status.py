"""Where a queued run stands: its position, how long it has waited, and what it waits for."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from metrics.models import DispatcherRound, Evaluation
from metrics.services.queue import lifecycle
from runs.models import Collection, User
from tests.conftest import GOOD, POOR, client_of, evaluate_all, upload
from tests.shared_data import alice, api, collection, module_data

__all__ = ["alice", "api", "collection", "module_data"]
pytestmark = [pytest.mark.django_db, pytest.mark.words]


def submit(api: APIClient, content: str, tag: str, collection: str = "small") -> str:
    answer = upload(api, f"collections/{collection}/runs/", content, tag=tag)
    assert answer.status_code == 202, answer.content
    return str(answer.json()["id"])


def queue_of(api: APIClient, run: str) -> Any:
    return api.get(f"/api/v1/runs/{run}/").json()["status"]["queue"]


@pytest.fixture(scope="module")
def three(api: APIClient, collection: str) -> list[str]:
    """Three queued runs in the order of submission, the last in a collection of its own."""
    api.post("/api/v1/collections/", {"slug": "other", "name": "Other"})
    upload(api, "collections/other/qrels/", "1 0 a 1\n")
    return [submit(api, GOOD, "one"), submit(api, POOR, "two"), submit(api, GOOD, "three", "other")]


def test_positions_count_the_queue_of_all_collections_in_its_order(
    api: APIClient, three: list[str]
) -> None:
    assert [queue_of(api, run)["position"] for run in three] == [1, 2, 3]
    # As the dispatcher would take them.
    order = [str(Evaluation.objects.get(pk=pk).run_id) for pk in lifecycle.take_due(10, 30)]
    assert order == three
    lifecycle.claim(Evaluation.objects.get(run=three[0]).pk)
    assert queue_of(api, three[0]) is None
    assert [queue_of(api, run)["position"] for run in three[1:]] == [1, 2]


@pytest.mark.queries
@pytest.mark.parametrize(
    "hidden", [{"blind": True}, {"visibility": "private"}, {"visibility": "team"}]
)
def test_a_position_does_not_tell_of_what_its_reader_may_not_see(
    api: APIClient, bob: User, three: list[str], hidden: dict[str, Any]
) -> None:
    own = submit(client_of(bob), GOOD, "four", "other")
    assert queue_of(client_of(bob), own)["position"] == 4
    Collection.objects.filter(slug="small").update(**hidden)
    assert queue_of(client_of(bob), own)["position"] == 2
    assert queue_of(api, own)["position"] == 4
    assert (
        queue_of(client_of(User.objects.create_user("staff", is_staff=True)), own)["position"] == 4
    )
    assert queue_of(client_of(None), own)["position"] == 2


@pytest.mark.queries
def test_waiting_is_measured_from_when_the_run_came_into_the_queue(
    api: APIClient, three: list[str]
) -> None:
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


def test_a_place_costs_four_queries_and_the_counts_read_an_index(
    api: APIClient, three: list[str]
) -> None:
    with CaptureQueriesContext(connection) as queries:
        api.get(f"/api/v1/runs/{three[1]}/")
    assert len(queries) <= 9
    # Of those before it in the queue, and of the team's runs up to this one.
    counts = [query["sql"] for query in queries if "COUNT(" in query["sql"]]
    assert len(counts) == 2
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            for count in counts:
                cursor.execute(f"EXPLAIN QUERY PLAN {count}")
                assert "USING" in str(cursor.fetchall())


def states_of(api: APIClient, *runs: str) -> Any:
    return api.get("/api/v1/runs/", {"id": ",".join(runs)})


def test_one_request_has_the_states_of_many_runs(api: APIClient, three: list[str]) -> None:
    gone = str(uuid4())
    body = states_of(api, three[2], gone, three[0], three[2]).json()
    assert [row["id"] for row in body["runs"]] == [three[2], three[0]]
    assert body["missing"] == [gone]
    for row in body["runs"]:
        alone = api.get(f"/api/v1/runs/{row['id']}/").json()["status"]
        # The seconds go on between the requests.
        alone["queue"]["seconds"] = row["queue"]["seconds"]
        assert row == {"id": row["id"], **alone}
    assert [row["queue"]["position"] for row in body["runs"]] == [3, 1]
    evaluate_all()
    assert {row["state"] for row in states_of(api, *three).json()["runs"]} == {"evaluated"}


@pytest.mark.slow
def test_the_states_of_many_cost_as_many_queries_as_of_two(
    api: APIClient, three: list[str]
) -> None:
    three += [
        submit(api, GOOD.replace("3.0", f"3.{number}1"), f"more-{number}") for number in range(10)
    ]
    with CaptureQueriesContext(connection) as queries:
        positions = [row["queue"]["position"] for row in states_of(api, *three).json()["runs"]]
    assert positions == list(range(1, 14))
    assert len(queries) <= 9


@pytest.mark.parametrize(
    "text", ["", ",", "x", ",".join(["5cd6de33-c3c2-4ede-abde-97956450e8ad"] * 201)]
)
def test_ids_that_are_none_are_refused_by_the_name_of_the_parameter(
    api: APIClient, text: str
) -> None:
    answer = api.get("/api/v1/runs/", {"id": text})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "id")


@pytest.mark.queries
def test_what_is_on_its_way_says_when_to_ask_again(api: APIClient, three: list[str]) -> None:
    requests = [lambda: states_of(api, *three), lambda: api.get(f"/api/v1/runs/{three[2]}/")]
    assert [ask()["Retry-After"] for ask in requests] == ["1", "1"]
    done = submit(api, GOOD.replace("3.0", "3.5"), "done")
    Evaluation.objects.filter(run=done).update(state="evaluated", seconds=8.0)
    # The next is done after one evaluation, the third after three; no more than a minute is asked
    # of anybody.
    assert [ask()["Retry-After"] for ask in requests] == ["8", "24"]
    Evaluation.objects.filter(run=done).update(seconds=80.0)
    assert [ask()["Retry-After"] for ask in requests] == ["60", "60"]
    evaluate_all()
    assert [ask().has_header("Retry-After") for ask in requests] == [False, False]


def test_a_blind_run_is_received_and_nothing_says_when(
    api: APIClient, bob: User, three: list[str]
) -> None:
    own = submit(client_of(bob), GOOD, "four", "other")
    Collection.objects.update(blind=True)
    answer = states_of(client_of(bob), own, three[0])
    assert [(row["state"], row["queue"]) for row in answer.json()["runs"]] == [("received", None)]
    assert answer.json()["missing"] == [three[0]]
    assert not answer.has_header("Retry-After")


@pytest.mark.queries
def test_a_run_is_found_by_its_file(api: APIClient, three: list[str]) -> None:
    sha256 = api.get(f"/api/v1/runs/{three[1]}/").json()["sha256"]
    rows = api.get("/api/v1/collections/small/runs/", {"sha256": sha256}).json()["results"]
    assert [row["id"] for row in rows] == [three[1]]
    assert api.get("/api/v1/collections/small/runs/", {"sha256": "0" * 64}).json()["results"] == []
    refused = api.get("/api/v1/collections/small/runs/", {"sha256": sha256[:10]})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, "/sha256")
