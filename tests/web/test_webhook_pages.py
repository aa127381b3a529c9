"""The pages of webhooks: made, tried and seen without scripts."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import pytest

from runs.models import Collection, Delivery, Webhook
from runs.pages.webhooks import _MEANINGS
from runs.services.webhooks import managing
from runs.services.webhooks.transport import Reply
from tests.metrics.webhooks import Receiver, make_webhook
from tests.web.shared_people import module_data, module_people, people
from tests.web.worlds import People, make_collection

__all__ = ["module_data", "module_people", "people"]

LAB, ONE = "/teams/lab/webhooks/", "/collections/one/webhooks/"
NEW = {
    "action": "create",
    "url": "https://ci.example.org/hook",
    "events": ["run.evaluated"],
    "format": "standard",
}


@pytest.fixture(autouse=True)
def sending_is_on(settings: Any) -> None:
    settings.EVALHUB_WEBHOOKS = True


def text_of(answer: Any) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", answer.content.decode()).split())


def test_every_event_is_offered() -> None:
    """If one is not: add it to _MEANINGS."""
    assert set(_MEANINGS) == set(Webhook.Event)


def test_a_webhook_is_made_tried_changed_and_deleted(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = people.browsers["owner"]
    assert "No webhook yet" in text_of(browser.get(LAB))
    response = browser.post(LAB, NEW)
    assert (response.status_code, response["Cache-Control"]) == (201, "no-store")
    (secret,) = re.findall(r"whsec_[\w+/=]+", response.content.decode())
    assert secret not in browser.get(LAB).content.decode()
    webhook = Webhook.objects.get()
    Delivery.objects.create(
        webhook=webhook, event="run.failed", body="{}", attempts=3, last_error="timed_out"
    )
    text = text_of(browser.get(LAB))
    assert "run.failed" in text
    assert "3 timed_out" in text

    receiver = Receiver(Reply(200), Reply(500, "refused"))
    monkeypatch.setattr(
        "runs.pages.webhooks.try_webhook", partial(managing.try_webhook, post=receiver)
    )

    def do(action: str, status: int = 200) -> str:
        answer = browser.post(LAB, {"action": action, "webhook": str(webhook.pk)})
        assert answer.status_code == status, answer.content
        return text_of(answer)

    assert "ci.example.org answered with status 200" in do("test")
    assert "not delivered with status 500: refused" in do("test")
    assert "disabled" in do("disable")
    assert not Webhook.objects.get().enabled
    assert "enabled" in do("enable")
    assert "whsec_" in do("secret")
    assert "There is no action" in do("explode", 404)
    assert "No webhook yet" in do("delete")
    assert "has no webhook" in do("delete", 404)


@pytest.mark.parametrize(
    ("changed", "status", "says"),
    [
        ({"url": "http://ci.example.org/"}, 400, "must be an https address"),
        ({"url": "https://10.0.0.1/"}, 400, "it is not a public address"),
        ({"events": []}, 400, "events"),
        ({"nonsense": "1"}, 400, "unknown field"),
    ],
)
def test_a_webhook_that_cannot_be_is_refused_with_its_reason(
    people: People, changed: dict[str, Any], status: int, says: str
) -> None:
    answer = people.browsers["owner"].post(LAB, {**NEW, **changed})
    assert (answer.status_code, says.lower() in text_of(answer).lower()) == (status, True), text_of(
        answer
    )
    assert not Webhook.objects.exists()


def test_a_collection_has_a_page_of_its_own(people: People, settings: Any) -> None:
    make_collection(people, "one")
    assert people.browsers["owner"].post(ONE, NEW).status_code == 201
    assert people.browsers["member"].get(ONE).status_code == 403
    other = make_webhook(collection=Collection.objects.get(slug="one"))
    # One of another owner is not named on this page.
    answer = people.browsers["owner"].post(LAB, {"action": "delete", "webhook": str(other.pk)})
    assert (answer.status_code, Webhook.objects.count()) == (404, 2)
    settings.EVALHUB_WEBHOOKS = False
    assert "sends no webhooks" in text_of(people.browsers["owner"].get(ONE))


def test_owners_are_told_of_webhooks_that_the_service_disabled(people: People) -> None:
    make_collection(people, "one")
    make_webhook(
        collection=Collection.objects.get(slug="one"), enabled=False, disabled_reason="gone"
    )
    make_webhook(collection=Collection.objects.get(slug="one"), enabled=False)
    message = "The webhook to ci.example.org of collection one is disabled: its receiver answered that it is gone (410)."
    assert text_of(people.browsers["owner"].get("/account/")).count(message) == 1
    for role in ("member", "participant", "staff"):
        assert "is disabled" not in text_of(people.browsers[role].get("/account/"))
    links = people.browsers["owner"].get("/account/").content.decode()
    assert LAB in links
    assert ONE in links
