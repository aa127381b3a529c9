"""Sending of webhooks: every event is sent until it arrives, by one sender at a time."""

from __future__ import annotations

import json
import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from rest_framework.test import APIClient

from evalhub import client as evh
from metrics.services.upkeep import dispatch
from metrics.services.upkeep.dispatch import Dispatcher
from metrics.services.upkeep.integrity import find_faults
from metrics.services.upkeep.job_counts import read_figures
from runs.models import AuditEvent, Collection, Delivery, User, Webhook
from runs.services.webhooks.deliveries import (
    DELAYS,
    claim,
    claim_next,
    reap,
    settle,
    sweep_deliveries,
)
from runs.services.webhooks.managing import change_secret
from runs.services.webhooks.sending import AT_ONCE, AT_ONCE_PER_OWNER, Sender, send
from runs.services.webhooks.signing import secret_text
from runs.services.webhooks.transport import Reply
from tests.conftest import GOOD, POOR, evaluate_all, upload
from tests.metrics.webhooks import BUSY, OK, RUNS, SECRET, Receiver, at_once, make_webhook


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


@pytest.fixture
def due(api: APIClient, webhook: Webhook) -> Delivery:
    """One event that waits to be sent."""
    upload(api, RUNS, GOOD)
    return Delivery.objects.get()


def standing(delivery: Delivery) -> tuple[str, int, str]:
    delivery.refresh_from_db()
    return delivery.state, delivery.attempts, delivery.last_error


def make_due(delivery: Delivery) -> None:
    Delivery.objects.filter(pk=delivery.pk).update(next_at=timezone.now() - timedelta(seconds=1))


def test_an_event_is_sent_and_signed(due: Delivery, webhook: Webhook) -> None:
    receiver = Receiver()
    assert Sender(receiver, at_once).send_due() == 1
    ((url, body, headers),) = receiver.requests
    assert (url, body.decode(), headers["webhook-id"]) == (webhook.url, due.body, str(due.pk))
    assert evh.webhooks.verify(headers, body, secret_text(SECRET))["type"] == "run.submitted"
    assert (headers["User-Agent"], headers["Content-Type"]) == (
        "EvalHub-Webhooks/1",
        "application/json",
    )
    assert standing(due) == ("delivered", 1, "")
    assert (due.last_status, due.ended_at is not None, due.lease_token) == (204, True, None)
    assert Sender(receiver, at_once).send_due() == 0


def test_after_a_change_of_the_secret_both_sign_for_a_day(due: Delivery, webhook: Webhook) -> None:
    new = change_secret(webhook=webhook)
    receiver = Receiver(BUSY)
    for secrets in ((new, secret_text(SECRET)), (new,)):
        make_due(due)
        Sender(receiver, at_once).send_due()
        _, body, headers = receiver.requests[-1]
        assert len(headers["webhook-signature"].split(" ")) == len(secrets)
        for secret in secrets:
            assert evh.webhooks.verify(headers, body, secret)
        Webhook.objects.update(previous_until=timezone.now() - timedelta(seconds=1))
    with pytest.raises(evh.BadSignature):
        evh.webhooks.verify(headers, body, secret_text(SECRET))
    # The same id in every attempt.
    assert len({headers["webhook-id"] for _, _, headers in receiver.requests}) == 1


def test_a_failure_is_repeated_at_longer_and_longer_intervals(
    due: Delivery, webhook: Webhook
) -> None:
    receiver = Receiver(*[Reply(500, "refused")] * (len(DELAYS) + 1))
    for attempt, delay in enumerate(DELAYS, 1):
        assert Sender(receiver, at_once).send_due() == 1
        assert standing(due) == ("due", attempt, "refused")
        waits = (due.next_at - timezone.now()).total_seconds()
        assert 0.89 * delay - 2 < waits < 1.11 * delay
        assert Sender(receiver, at_once).send_due() == 0
        make_due(due)
    assert Sender(receiver, at_once).send_due() == 1
    assert standing(due) == ("given_up", len(DELAYS) + 1, "refused")
    assert sum(DELAYS) == 75 * 3600 + 35 * 60 + 5
    webhook.refresh_from_db()
    assert webhook.enabled
    assert webhook.failing_since is not None


def test_a_busy_receiver_is_given_the_time_that_it_asks_for(due: Delivery) -> None:
    for reply, least, most in (
        (BUSY, 990, 1001),
        (Reply(429, "refused", retry_after=10**8), 86_000, 86_401),
        # Sooner than it would be anyway, and of a status that says nothing of it.
        (Reply(503, "refused", retry_after=1.0), 1600, 2000),
        (Reply(500, "refused", retry_after=10**8), 6400, 8000),
    ):
        make_due(due)
        Sender(Receiver(reply), at_once).send_due()
        due.refresh_from_db()
        assert least < (due.next_at - timezone.now()).total_seconds() < most, reply


def test_a_receiver_that_is_gone_disables_its_webhook(
    api: APIClient, due: Delivery, webhook: Webhook
) -> None:
    upload(api, RUNS, POOR, tag="b")
    receiver = Receiver(Reply(410, "refused"))
    assert Sender(receiver, at_once).send_due() == 1
    webhook.refresh_from_db()
    assert (webhook.enabled, webhook.disabled_reason, standing(due)[0]) == (
        False,
        "gone",
        "given_up",
    )
    event = AuditEvent.objects.get(action="webhook.disabled")
    assert (event.object_id, event.after, event.actor) == (str(webhook.pk), {"reason": "gone"}, "")
    upload(api, RUNS, POOR, tag="c")
    assert Delivery.objects.count() == 2


def test_five_days_without_a_success_disable_a_webhook(due: Delivery, webhook: Webhook) -> None:
    failing = Reply(None, "timed_out")
    for days, enabled in ((4.9, True), (5.1, False)):
        make_due(due)
        Webhook.objects.update(failing_since=timezone.now() - timedelta(days=days))
        Sender(Receiver(failing), at_once).send_due()
        webhook.refresh_from_db()
        assert webhook.enabled == enabled
    assert webhook.disabled_reason == "failing"
    Webhook.objects.update(enabled=True)
    make_due(due)
    Sender(Receiver(), at_once).send_due()
    webhook.refresh_from_db()
    assert (webhook.failing_since, standing(due)[0]) == (None, "delivered")


def test_a_sender_that_dies_leaves_its_delivery_to_others(due: Delivery) -> None:
    """Killed between the transaction and the request, or between the request and its record."""
    claimed = claim_next()
    assert claimed
    assert (standing(due)[0], claim_next(), reap()) == ("sending", None, 0)
    Delivery.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    assert (reap(), standing(due)) == (1, ("due", 1, ""))
    receiver = Receiver()
    Sender(receiver, at_once).send_due()
    assert receiver.requests[0][2]["webhook-id"] == str(due.pk)
    # It was only asleep, and finds that another one has sent it.
    assert not settle(claimed, Reply(500, "refused"))
    assert standing(due) == ("delivered", 2, "")


def test_a_lease_of_a_wrong_clock_ends_too(due: Delivery) -> None:
    assert claim_next()
    Delivery.objects.update(lease_until=timezone.now() + timedelta(days=1))
    assert reap() == 1
    Delivery.objects.update(next_at=timezone.now() + timedelta(days=30))
    assert claim_next()


def test_a_webhook_gets_one_delivery_at_a_time_from_whoever_sends(
    api: APIClient, due: Delivery, webhook: Webhook
) -> None:
    upload(api, RUNS, POOR, tag="b")
    first, second = Delivery.objects.order_by("created_at")
    delivery = claim(first.pk)
    # Another dispatcher has read the same rows before: the database refuses what the query would
    # not have found.
    assert delivery
    assert (claim(first.pk), claim(second.pk), claim_next()) == (None, None, None)
    settle(delivery, OK)
    assert claim(second.pk)


def test_few_are_sent_at_once_and_fewer_of_one_owner(
    api: APIClient, alice: User, small: Collection
) -> None:
    of_team = [make_webhook("run.submitted", team=alice.personal_team) for _ in range(AT_ONCE)]
    of_collection = [make_webhook("run.submitted", collection=small) for _ in range(AT_ONCE)]
    upload(api, RUNS, GOOD)
    assert Delivery.objects.count() == len(of_team) + len(of_collection)
    taken: list[Any] = []
    sender = Sender(Receiver(), lambda run, claimed: taken.append(lambda: run(claimed)))
    assert sender.send_due() == 2 * AT_ONCE_PER_OWNER
    assert sender.send_due() == 0
    taken.pop()()
    assert sender.send_due() == 1
    while taken:
        taken.pop()()
        sender.send_due()
    assert set(Delivery.objects.values_list("state", flat=True)) == {"delivered"}


def test_a_disabled_or_deleted_webhook_gets_nothing_more(due: Delivery, webhook: Webhook) -> None:
    receiver = Receiver()
    claimed = claim_next()
    assert claimed
    Webhook.objects.update(enabled=False)
    send(claimed, receiver)
    assert (standing(due), claim_next()) == (("due", 0, ""), None)
    Webhook.objects.update(enabled=True)
    claimed = claim_next()
    assert claimed
    webhook.delete()
    send(claimed, receiver)
    assert not settle(claimed, OK)
    assert receiver.requests == []


def test_a_secret_of_another_key_disables_its_webhook(
    due: Delivery, webhook: Webhook, settings: Any
) -> None:
    assert list(find_faults()) == []
    settings.SECRET_KEY = "another-key-another-key-another-key-another"
    (finding,) = find_faults()
    assert finding.code == "webhook_unreadable"
    receiver = Receiver()
    assert Sender(receiver, at_once).send_due() == 1
    webhook.refresh_from_db()
    assert (webhook.enabled, webhook.disabled_reason) == (False, "secret_unreadable")
    assert (receiver.requests, standing(due)) == ([], ("due", 0, ""))
    assert list(find_faults()) == []


def test_faults_of_webhooks_are_found_and_repaired(due: Delivery, webhook: Webhook) -> None:
    assert claim_next()
    Delivery.objects.update(
        lease_until=timezone.now() - timedelta(minutes=5),
        created_at=timezone.now() - timedelta(days=32),
    )
    Webhook.objects.update(events=["run.eaten"])
    by_code = {finding.code: finding for finding in find_faults()}
    assert set(by_code) == {"delivery_held", "webhook_events", "old_deliveries"}
    for code in ("delivery_held", "old_deliveries"):
        repair = by_code[code].repair
        assert repair
        repair()
    assert not Delivery.objects.exists()


def test_figures_tell_what_is_not_sent(due: Delivery, webhook: Webhook) -> None:
    def figures() -> tuple[int, int]:
        figures = read_figures()
        return figures.deliveries_overdue, figures.webhooks_disabled

    assert figures() == (0, 0)
    Delivery.objects.update(next_at=timezone.now() - timedelta(minutes=2))
    assert figures() == (1, 0)
    Webhook.objects.update(enabled=False, disabled_reason="gone")
    assert figures() == (0, 1)


def test_slack_gets_a_text_without_a_signature(api: APIClient, small: Collection) -> None:
    make_webhook("run.evaluated", collection=small, format="slack")
    run = upload(api, RUNS, GOOD, tag="good").json()["id"]
    evaluate_all()
    receiver = Receiver()
    Sender(receiver, at_once).send_due()
    ((_, body, headers),) = receiver.requests
    assert json.loads(body) == {
        "text": f"run.evaluated: run {run}, collection small, team alice, tag good, state evaluated, qrels 1\n"
        f"https://eval.example.org/api/v1/runs/{run}/"
    }
    assert not [name for name in headers if name.startswith("webhook")]


def test_old_deliveries_are_swept(api: APIClient, due: Delivery, webhook: Webhook) -> None:
    upload(api, RUNS, POOR, tag="b")
    Delivery.objects.filter(pk=due.pk).update(created_at=timezone.now() - timedelta(days=31))
    assert (sweep_deliveries(), sweep_deliveries(), Delivery.objects.count()) == (1, 0, 1)


def test_a_dispatcher_announces_and_sends(
    api: APIClient, webhook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver = Receiver()
    monkeypatch.setattr(dispatch, "Sender", lambda: Sender(receiver, at_once))
    upload(api, RUNS, GOOD)
    evaluate_all()
    Dispatcher(lambda pk: None).round()
    assert [json.loads(body)["type"] for _, body, _ in receiver.requests] == [
        "run.submitted", "run.evaluated", "evaluations.done",
    ]  # fmt: skip


def test_a_sender_that_fails_frees_its_place(
    due: Delivery, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*arguments: Any) -> Reply:
        raise RuntimeError("a defect")

    sender = Sender(broken, at_once)
    assert sender.send_due() == 1
    assert "a defect" in caplog.text
    Delivery.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    assert (reap(), sender.send_due()) == (1, 1)
    assert not sender._under_way.total()


@pytest.mark.django_db(transaction=True)
def test_two_dispatchers_send_each_delivery_once(alice: User) -> None:
    """Side by side, in threads with connections of their own."""
    if connection.vendor == "sqlite":
        pytest.skip("SQLite's test database is in the memory of one connection")
    hooks = [make_webhook("run.submitted", team=alice.personal_team) for _ in range(3)]
    for number in range(30):
        Delivery.objects.create(webhook=hooks[number % 3], event="run.submitted", body="{}")
    receiver = Receiver()

    def go_round() -> None:
        sender = Sender(receiver, at_once)
        try:
            for _ in range(200):
                sender.send_due()
        finally:
            connection.close()

    threads = [threading.Thread(target=go_round) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(headers["webhook-id"] for _, _, headers in receiver.requests) == sorted(
        map(str, Delivery.objects.values_list("pk", flat=True))
    )
    assert set(Delivery.objects.values_list("state", "attempts")) == {("delivered", 1)}
