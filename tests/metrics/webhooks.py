"""Webhooks whose secret is known, and a receiver that is a function."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from runs.models import Webhook
from runs.services.webhooks.signing import seal
from runs.services.webhooks.transport import Reply

RUNS = "collections/small/runs/"
SECRET = bytes(range(32))
OK, BUSY = Reply(204), Reply(503, "refused", retry_after=1000.0)


def make_webhook(*events: str, **fields: Any) -> Webhook:
    webhook = Webhook(
        url="https://ci.example.org/hook", events=list(events or Webhook.Event.values), **fields
    )
    webhook.secret_sealed = seal(SECRET, webhook.pk)
    webhook.save()
    return webhook


def written(webhook: Webhook) -> list[dict[str, Any]]:
    """The bodies written for a webhook, in the order of the events."""
    return [json.loads(delivery.body) for delivery in webhook.deliveries.order_by("created_at")]


def events(webhook: Webhook) -> list[str]:
    return [body["type"] for body in written(webhook)]


class Receiver:
    """Takes the place of the network: answers in turn what it was given, and notes what was sent."""

    def __init__(self, *replies: Reply) -> None:
        self.replies, self.requests = list(replies), []

    def __call__(self, url: str, body: bytes, headers: Mapping[str, str]) -> Reply:
        self.requests.append((url, body, dict(headers)))
        return self.replies.pop(0) if self.replies else OK


def at_once(run: Callable[[Any], None], claimed: Any) -> None:
    run(claimed)
