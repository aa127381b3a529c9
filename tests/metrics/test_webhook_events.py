"""Events of webhooks: which are written, for whom, and with what."""

from __future__ import annotations

from datetime import timedelta
from ipaddress import ip_network
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from evalhub.operating.checks import check_webhooks
from metrics.engine.measures.grammar import parse_measure
from metrics.models import Evaluation
from metrics.services.comparisons.comparison import ComparisonQuery
from metrics.services.comparisons.stored import compare, queue_comparison
from metrics.services.queue import lifecycle
from metrics.services.queue.notices import announce_done
from metrics.services.upkeep.dispatch import Dispatcher
from runs.models import Collection, Delivery, Team, UnannouncedEvaluations, User, Webhook
from tests.conftest import GOOD, POOR, QRELS, SESSIONS, client_of, evaluate_all, upload
from tests.metrics.webhooks import RUNS, events, make_webhook, written


@pytest.fixture(autouse=True)
def sending_is_on(settings: Any) -> None:
    settings.EVALHUB_WEBHOOKS, settings.EVALHUB_URL = True, "https://eval.example.org"


@pytest.fixture
def small(collection: str) -> Collection:
    return Collection.objects.get(slug=collection)


@pytest.fixture
def webhook(small: Collection) -> Webhook:
    """One of the collection that wants everything."""
    return make_webhook(collection=small)


def test_a_collection_is_told_of_all_that_happens_to_it(
    api: APIClient, small: Collection, webhook: Webhook
) -> None:
    run = upload(api, RUNS, GOOD, tag="good").json()["id"]
    assert announce_done() == 0
    evaluate_all()
    assert (announce_done(), announce_done()) == (1, 0)
    upload(api, "collections/small/qrels/", QRELS + "3 0 y 1\n")
    body = {
        "data": SESSIONS,
        "content_type": "text/plain",
        "query_params": {"judged_by": "topic", "tag": "log"},
    }
    assert api.post("/api/v1/collections/small/sessions/", **body).status_code == 202
    evaluate_all()
    assert announce_done() == 1
    query = ComparisonQuery([parse_measure("AP")], tests=["paired_t"])
    upload(api, RUNS, POOR, tag="poor")
    evaluate_all()
    stored = queue_comparison(collection=small, query=query)
    assert compare(comparison_id=str(stored.pk))
    events = written(webhook)
    assert [event["type"] for event in events] == [
        "run.submitted", "run.evaluated", "evaluations.done", "qrels.activated", "run.evaluated",
        "session_set.evaluated", "evaluations.done", "run.submitted", "run.evaluated", "comparison.compared",
    ]  # fmt: skip
    identity = {"run": run, "collection": "small", "team": "alice", "tag": "good"}
    link = {"url": f"https://eval.example.org/api/v1/runs/{run}/"}
    assert events[0]["data"] == {**identity, "state": "received", **link}
    assert events[1]["data"] == {**identity, "state": "evaluated", "qrels": 1, **link}
    assert events[2]["data"] == {
        "collection": "small", "qrels": 1, "url": "https://eval.example.org/api/v1/collections/small/qrels/1/",
    }  # fmt: skip
    assert events[4]["data"]["qrels"] == 2
    assert events[5]["data"]["session_set"]
    assert events[9]["data"]["comparison"] == str(stored.pk)
    # Every link leads to its object, and no body has a number but a version.
    for event in events:
        path = event["data"].pop("url").removeprefix("https://eval.example.org")
        assert api.get(path).status_code == 200, path
        assert {type(value) for name, value in event["data"].items() if name != "qrels"} == {str}
    sizes = [len(delivery.body) for delivery in webhook.deliveries.all()]
    assert max(sizes) < 1000


def test_what_is_rolled_back_is_not_told(
    api: APIClient, webhook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: Any) -> None:
        raise RuntimeError("the process dies here")

    with monkeypatch.context() as patch:
        patch.setattr("runs.services.submissions.submissions.take_quota", broken)
        with pytest.raises(RuntimeError), transaction.atomic():
            upload(api, RUNS, GOOD)
    assert not Delivery.objects.exists()
    upload(api, RUNS, GOOD)
    (evaluation,) = Evaluation.objects.all()
    lease = lifecycle.claim(evaluation.pk)
    assert lease
    with transaction.atomic():
        assert lifecycle.fail(lease, code="evaluation_timeout", message="x")
        assert "run.failed" in events(webhook)
        transaction.set_rollback(True)
    assert events(webhook) == ["run.submitted"]


def test_an_evaluation_that_fails_is_told_once(api: APIClient, webhook: Webhook) -> None:
    upload(api, RUNS, GOOD, tag="a")
    upload(api, RUNS, POOR, tag="b")
    first, second = Evaluation.objects.order_by("pk")
    lease = lifecycle.claim(first.pk)
    assert lease
    assert lifecycle.fail(lease, code="evaluation_timeout", message="x")
    assert not lifecycle.fail(lease, code="evaluation_timeout", message="x")
    lifecycle.claim(second.pk)
    gone = {"attempts": lifecycle.MAX_DEATHS, "lease_until": timezone.now() - timedelta(seconds=1)}
    Evaluation.objects.filter(pk=second.pk).update(**gone)
    assert [lifecycle.reap_expired() for _ in range(2)] == [1, 0]
    assert announce_done() == 1
    assert events(webhook)[2:] == ["run.failed", "run.failed", "evaluations.done"]
    assert {body["data"].get("state") for body in written(webhook)[2:4]} == {"failed"}


def test_a_damaged_row_keeps_no_job_from_ending(api: APIClient, webhook: Webhook) -> None:
    """Its event needs ids and names alone."""
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL stores no JSON that is none")
    upload(api, RUNS, GOOD)
    lease = lifecycle.claim(Evaluation.objects.get().pk)
    assert lease
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA ignore_check_constraints = ON")
        for table, column in (
            ("run", "metadata"),
            ("collection", "level_labels"),
            ("qrels", "levels"),
        ):
            cursor.execute(f"UPDATE runs_{table} SET {column} = '['")
        cursor.execute("PRAGMA ignore_check_constraints = OFF")
    assert lifecycle.fail(lease, code="stored_value_corrupt", message="x")
    assert announce_done() == 1
    assert events(webhook)[1:] == ["run.failed", "evaluations.done"]


def test_an_evaluation_in_another_way_is_not_told(
    api: APIClient, small: Collection, webhook: Webhook
) -> None:
    run = upload(api, RUNS, GOOD).json()["id"]
    evaluate_all()
    assert api.post(f"/api/v1/runs/{run}/evaluations/", {"scores": "float32"}).status_code == 202
    evaluate_all()
    assert events(webhook) == ["run.submitted", "run.evaluated"]


def test_all_evaluations_are_announced_after_the_last_one(api: APIClient, webhook: Webhook) -> None:
    for tag in "abc":
        upload(api, RUNS, GOOD, tag=tag)
    pks = list(Evaluation.objects.order_by("pk").values_list("pk", flat=True))
    for pk in pks[:2]:
        lease = lifecycle.claim(pk)
        assert lease
        lifecycle.fail(lease, code="evaluation_timeout", message="x")
    assert (announce_done(), UnannouncedEvaluations.objects.count()) == (0, 1)
    evaluate_all()
    assert (announce_done(), UnannouncedEvaluations.objects.count()) == (1, 0)
    upload(api, RUNS, GOOD, tag="d")
    evaluate_all()
    # Other judgements became active meanwhile, and their evaluations are not done.
    upload(api, "collections/small/qrels/", "1 0 a 1\n")
    assert (announce_done(), UnannouncedEvaluations.objects.count()) == (0, 0)
    assert events(webhook).count("evaluations.done") == 1


def test_a_team_is_told_of_its_own_runs_where_it_may_see_them(
    api: APIClient, alice: User, bob: User, small: Collection
) -> None:
    organisers = make_webhook(team=alice.personal_team)
    guests, others = (make_webhook(team=Team.objects.get(slug=slug)) for slug in ("bob", "alice"))
    guest = client_of(bob)
    upload(guest, RUNS, GOOD)
    evaluate_all()
    announce_done()
    assert events(guests) == ["run.submitted", "run.evaluated", "evaluations.done"]
    assert events(organisers) == events(others) == []
    upload(api, RUNS, POOR)
    evaluate_all()
    assert len(events(guests)) == 3
    assert events(others) == ["run.submitted", "run.evaluated"]
    Collection.objects.update(visibility="team")
    upload(api, "collections/small/qrels/", "1 0 a 1\n")
    evaluate_all()
    assert len(events(guests)) == 3
    assert events(others)[2:] == ["qrels.activated", "run.evaluated"]


def test_a_comparison_is_told_to_the_teams_whose_runs_are_compared(
    api: APIClient, alice: User, bob: User, small: Collection
) -> None:
    own, other = (
        make_webhook("comparison.compared", team=user.personal_team) for user in (alice, bob)
    )
    for tag, content in {"a": GOOD, "b": POOR}.items():
        upload(api, RUNS, content, tag=tag)
    evaluate_all()
    query = ComparisonQuery([parse_measure("AP")], tests=["paired_t"])
    compare(comparison_id=str(queue_comparison(collection=small, query=query).pk))
    assert (events(own), events(other)) == (["comparison.compared"], [])


def test_only_what_was_asked_for_is_written(api: APIClient, small: Collection) -> None:
    some = make_webhook("run.evaluated", collection=small)
    disabled = make_webhook(collection=small, enabled=False)
    upload(api, RUNS, GOOD)
    evaluate_all()
    assert (events(some), events(disabled)) == (["run.evaluated"], [])


def test_nothing_is_written_where_webhooks_are_off(
    api: APIClient, webhook: Webhook, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.EVALHUB_WEBHOOKS = False
    with CaptureQueriesContext(connection) as queries:
        upload(api, RUNS, GOOD)
        evaluate_all()
        Dispatcher(lambda pk: None).round()
    assert not [
        query["sql"] for query in queries if "webhook" in query["sql"] or "delivery" in query["sql"]
    ]
    assert not Delivery.objects.exists()


def test_settings_are_checked(settings: Any) -> None:
    assert check_webhooks() == []
    settings.EVALHUB_URL = ""
    settings.EVALHUB_WEBHOOK_ALLOW = (ip_network("169.254.0.0/16"),)
    assert [message.id for message in check_webhooks()] == ["evalhub.W011", "evalhub.W012"]
    settings.EVALHUB_WEBHOOKS = False
    assert check_webhooks() == []
