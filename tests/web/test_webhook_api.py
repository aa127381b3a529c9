"""The API of webhooks: who makes, sees, changes and tries them."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from evalhub import client as evh
from runs.models import AuditEvent, Collection, Delivery, Team, Webhook
from runs.services.webhooks import managing
from runs.services.webhooks.deliveries import claim_next
from runs.services.webhooks.managing import MAX_WEBHOOKS
from runs.services.webhooks.transport import Reply
from tests.conftest import GOOD, evaluate_all
from tests.metrics.webhooks import Receiver, make_webhook
from tests.web.shared_people import module_data, module_people, people
from tests.web.worlds import People, add_qrels, make_collection, submit_form

__all__ = ["module_data", "module_people", "people"]

LAB, ONE = "/api/v1/teams/lab/webhooks/", "/api/v1/collections/one/webhooks/"
NEW = {"url": "https://ci.example.org/hook?token=hidden", "events": ["run.evaluated"]}


@pytest.fixture(autouse=True)
def sending_is_on(settings: Any) -> None:
    settings.EVALHUB_WEBHOOKS = True


@pytest.fixture
def created_webhook(people: People) -> dict[str, Any]:
    """A webhook of the collection `one`, as it was answered when it was made."""
    make_collection(people, "one")
    answer = people.api["owner"].post(ONE, NEW)
    assert answer.status_code == 201, answer.content
    body: dict[str, Any] = answer.json()
    return body


def refusal(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def test_a_secret_is_shown_once(people: People, created_webhook: dict[str, Any]) -> None:
    owner = people.api["owner"]
    assert created_webhook["secret"].startswith("whsec_")
    assert len(created_webhook["secret"]) == 50
    (listed,) = owner.get(ONE).json()["results"]
    assert {**listed, "secret": created_webhook["secret"]} == created_webhook
    assert (listed["collection"], listed["team"], listed["created_by"]) == ("one", None, "owner")
    stored = Webhook.objects.get()
    assert created_webhook["secret"][6:] not in str(vars(stored))
    assert owner.get(f"/api/v1/webhooks/{created_webhook['id']}/").json() == listed
    # Neither the secret nor what an address may hide is in the audit trail.
    event = AuditEvent.objects.get(action="webhook.created")
    assert (event.object_id, event.collection, event.actor) == (
        created_webhook["id"],
        stored.collection,
        "owner",
    )
    assert event.after["host"] == "ci.example.org"
    assert "hidden" not in str(event.after)
    assert created_webhook["secret"] not in str(event.after)


def test_teams_have_webhooks_too(people: People) -> None:
    answer = people.api["owner"].post(LAB, {**NEW, "format": "slack"})
    assert (answer.status_code, answer.json()["secret"], answer.json()["team"]) == (
        201,
        None,
        "lab",
    )
    # Slack's addresses are secrets.
    assert people.api["owner"].get(LAB).json()["results"][0]["url"] == "https://ci.example.org/..."
    secret = people.api["owner"].post(f"/api/v1/webhooks/{answer.json()['id']}/secret/")
    assert refusal(secret) == (409, "unsigned_webhook")


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"url": "http://ci.example.org/"}, "bad_url"),
        ({"url": "https://127.0.0.1/"}, "address_not_permitted"),
        ({"url": "https://ci.example.org:22/"}, "port_not_permitted"),
        ({"events": []}, "invalid"),
        ({"events": ["run.eaten"]}, "invalid"),
        ({"events": "run.failed"}, "invalid"),
        ({"events": None}, "invalid"),
        ({"format": "teams"}, "invalid"),
        ({"secret": "whsec_x"}, "unknown_field"),
        ({"enabled": False}, "read_only_field"),
    ],
)
def test_a_webhook_that_cannot_be_is_refused(
    people: People, changed: dict[str, Any], code: str
) -> None:
    assert refusal(people.api["owner"].post(LAB, {**NEW, **changed})) == (400, code)
    assert not Webhook.objects.exists()


def test_an_owner_has_twenty_webhooks_at_most(people: People) -> None:
    for _ in range(MAX_WEBHOOKS - 1):
        make_webhook(team=Team.objects.get(slug="lab"))
    assert people.api["owner"].post(LAB, NEW).status_code == 201
    assert refusal(people.api["owner"].post(LAB, NEW)) == (409, "too_many_webhooks")
    make_collection(people, "one")
    assert people.api["owner"].post(ONE, NEW).status_code == 201


def test_a_server_without_webhooks_makes_and_tries_none(
    people: People, created_webhook: dict[str, Any], settings: Any
) -> None:
    settings.EVALHUB_WEBHOOKS = False
    owner, own = people.api["owner"], f"/api/v1/webhooks/{created_webhook['id']}/"
    for path in (ONE, f"{own}test/"):
        assert refusal(owner.post(path, NEW if path == ONE else {})) == (409, "webhooks_off")
    assert len(owner.get(ONE).json()["results"]) == 1
    assert owner.patch(own, {"enabled": False}).status_code == 200
    assert owner.delete(own).status_code == 204


def test_a_webhook_is_changed(people: People, created_webhook: dict[str, Any]) -> None:
    owner, own = people.api["owner"], f"/api/v1/webhooks/{created_webhook['id']}/"
    Webhook.objects.update(failing_since=timezone.now(), enabled=False, disabled_reason="failing")
    change = {
        "url": "https://other.example.org/",
        "events": ["run.failed", "run.failed"],
        "enabled": True,
    }
    answer = owner.patch(own, change).json()
    assert (answer["url"], answer["events"], answer["enabled"]) == (
        change["url"],
        ["run.failed"],
        True,
    )
    assert (answer["disabled_reason"], answer["failing_since"]) == ("", None)
    event = AuditEvent.objects.get(action="webhook.changed")
    assert (event.before["enabled"], event.after["host"]) == (False, "other.example.org")
    for wrong in (
        {"url": "https://10.0.0.1/"},
        {"events": []},
        {"format": "slack"},
        {"enabled": "x"},
    ):
        assert owner.patch(own, wrong).status_code == 400, wrong
    assert owner.patch(own, {}).status_code == 200
    assert AuditEvent.objects.filter(action="webhook.changed").count() == 1
    assert owner.delete(own).status_code == 204
    assert AuditEvent.objects.filter(action="webhook.deleted").count() == 1
    assert owner.get(own).status_code == 404


def test_a_new_secret_signs_beside_the_old_one(
    people: People, created_webhook: dict[str, Any], monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    owner, own = people.api["owner"], f"/api/v1/webhooks/{created_webhook['id']}/"
    answer = owner.post(f"{own}secret/").json()
    assert answer["secret"] not in ("", created_webhook["secret"])
    receiver = Receiver()
    monkeypatch.setattr(
        "runs.api.webhooks.try_webhook", partial(managing.try_webhook, post=receiver)
    )
    tried = owner.post(f"{own}test/").json()
    assert (tried["delivered"], tried["status"], tried["error"]) == (True, 204, "")
    ((url, body, headers),) = receiver.requests
    assert url == NEW["url"]
    for secret in (created_webhook["secret"], answer["secret"]):
        event = evh.webhooks.verify(headers, body, secret)
    assert (event["type"], event["data"]["webhook"]) == ("webhook.test", created_webhook["id"])
    assert not Delivery.objects.exists()
    # Sealed with another key neither opens: a new secret is alone.
    settings.SECRET_KEY = "another-key-another-key-another-key-another"
    assert refusal(owner.post(f"{own}test/")) == (409, "secret_unreadable")
    Webhook.objects.update(enabled=False)
    assert refusal(owner.patch(own, {"enabled": True})) == (409, "secret_unreadable")
    alone = owner.post(f"{own}secret/").json()
    assert alone["previous_until"] is None
    assert owner.patch(own, {"enabled": True}).status_code == 200
    assert owner.post(f"{own}test/").status_code == 200
    assert len(receiver.requests[-1][2]["webhook-signature"].split(" ")) == 1


def test_a_test_tells_why_it_failed_and_nothing_of_the_network(
    people: People, created_webhook: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    reply = Receiver(Reply(302, "redirected", seconds=0.5))
    monkeypatch.setattr("runs.api.webhooks.try_webhook", partial(managing.try_webhook, post=reply))
    answer = people.api["owner"].post(f"/api/v1/webhooks/{created_webhook['id']}/test/").json()
    assert answer == {"delivered": False, "status": 302, "error": "redirected", "milliseconds": 500}


def test_deliveries_are_listed_and_sent_again(
    people: People, created_webhook: dict[str, Any]
) -> None:
    owner = people.api["owner"]
    add_qrels(people, "one")
    run = submit_form(people.api["participant"], "one", GOOD, team="guests").json()["id"]
    evaluate_all()
    (listed,) = owner.get(f"/api/v1/webhooks/{created_webhook['id']}/deliveries/").json()["results"]
    assert (listed["event"], listed["state"], listed["attempts"]) == ("run.evaluated", "due", 0)
    assert f'"run":"{run}"' in listed["body"]
    claimed = claim_next()
    assert claimed
    again = f"/api/v1/deliveries/{listed['id']}/again/"
    assert refusal(owner.post(again)) == (409, "conflict")
    ended = {"state": "given_up", "attempts": 10, "lease_token": None, "lease_until": None}
    Delivery.objects.update(
        **ended, ended_at=timezone.now(), next_at=timezone.now() - timedelta(days=3)
    )
    answer = owner.post(again)
    assert answer.status_code == 202
    assert (answer.json()["state"], answer.json()["attempts"], answer.json()["ended_at"]) == (
        "due",
        0,
        None,
    )
    assert answer.json()["id"] == listed["id"]
    Webhook.objects.update(enabled=False)
    assert refusal(owner.post(again)) == (409, "webhook_disabled")


def test_lists_cost_few_queries_however_long_they_are(
    people: People, created_webhook: dict[str, Any]
) -> None:
    counted = []
    for more in (1, 10):
        for _ in range(more):
            make_webhook(
                collection=Collection.objects.get(slug="one"), created_by=people.users["member"]
            )
            Delivery.objects.create(webhook_id=created_webhook["id"], event="run.failed", body="{}")
        for path in (ONE, f"/api/v1/webhooks/{created_webhook['id']}/deliveries/"):
            with CaptureQueriesContext(connection) as queries:
                assert people.api["owner"].get(path).status_code == 200
            counted.append(len(queries))
    assert counted[:2] == counted[2:]
    assert max(counted) <= 6


def test_a_collection_that_moves_keeps_its_webhooks_disabled(
    people: People, created_webhook: dict[str, Any]
) -> None:
    """Its new organisers decide about them: those of before would go on to be told."""
    moved = people.api["owner"].patch("/api/v1/collections/one/", {"team": "owner"})
    assert moved.status_code == 200, moved.content
    webhook = Webhook.objects.get()
    assert (webhook.enabled, webhook.disabled_reason) == (False, "collection_moved")
