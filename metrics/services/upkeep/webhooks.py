"""Check webhooks and their deliveries."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import partial

from django.utils import timezone

from metrics.services.upkeep.findings import Finding
from runs.models import Delivery, Webhook
from runs.services.webhooks.deliveries import KEPT, LEASE_SECONDS, disable, reap, sweep_deliveries
from runs.services.webhooks.managing import unreadable_webhooks

_DAY = timedelta(days=1)


def find_in_webhooks() -> Iterator[Finding]:
    """Check that secrets open, events are known, and deliveries are free and swept.

    A dead sender must not hold a delivery.
    """
    for webhook in unreadable_webhooks():
        text = (
            f"the secret of {webhook} was sealed with another secret key, or is damaged; "
            "--repair disables it"
        )
        yield Finding(
            "webhook_unreadable", text, partial(disable, webhook, Webhook.Reason.SECRET_UNREADABLE)
        )

    for webhook in Webhook.objects.all():
        if not isinstance(webhook.events, list) or not set(webhook.events) <= set(
            Webhook.Event.values
        ):
            text = (
                f"the events of {webhook} are damaged, and it gets none of them; its owner can "
                "PATCH its events"
            )
            yield Finding("webhook_events", text)

    dead = timezone.now() - timedelta(seconds=LEASE_SECONDS)
    for delivery in Delivery.objects.filter(state=Delivery.State.SENDING, lease_until__lt=dead):
        text = (
            f"{delivery} was being sent until {delivery.lease_until:%F %T}, and no worker took it "
            "back: start a worker; --repair makes it due again"
        )
        yield Finding("delivery_held", text, reap)

    if count := Delivery.objects.filter(created_at__lt=timezone.now() - KEPT - _DAY).count():
        text = (
            f"{count} deliveries of webhooks are older than {KEPT.days} days; evalhub sweep "
            "removes them"
        )
        yield Finding("old_deliveries", text, sweep_deliveries, note=True)
