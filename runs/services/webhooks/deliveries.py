"""The life of a delivery: due, sending, and delivered, due again or given up.

As with evaluations, every change is one UPDATE that names the previous state and the lease: a count
of 1 means that this call made it. Times are the database's. A sender that dies leaves a lease that
expires; the delivery is then sent again under the same id, so that its receiver can recognise it.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Collection as Several
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import DateTimeField, Exists, ExpressionWrapper, F, OuterRef, Q, Subquery
from django.db.models.functions import Now
from django.utils import timezone

from runs.errors import Conflict
from runs.models import AuditEvent, Delivery, Webhook
from runs.services.audit.trail import SYSTEM, record
from runs.services.webhooks.transport import Reply

# The seconds between two attempts, each 10 % more or less; after the last one a delivery is given
# up.
DELAYS = (5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
_JITTER = 0.1
# The longest wait that a receiver can ask for.
_LONGEST_WAIT = 86_400.0
# Longer than a request and the resolution of a name take.
LEASE_SECONDS = 60.0
DISABLED_AFTER = timedelta(days=5)
KEPT = timedelta(days=30)
_State, _Reason = Delivery.State, Webhook.Reason
_GONE = 410


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to send one delivery, until its lease ends. `owner` is the webhook's owner."""

    pk: uuid.UUID
    token: uuid.UUID
    owner: str


def claim_next(crowded: Several[str] = ()) -> Claim | None:
    """Take the delivery that has been due for the longest time. Return None if there is none.

    Deliveries of the owners in `crowded`, and of webhooks with another delivery being sent, wait.
    """
    deliveries = Delivery.objects.filter(webhook=OuterRef("pk"))
    due = deliveries.filter(_is_due(), state=_State.DUE).order_by("next_at", "created_at")
    waiting = (
        Webhook.objects.filter(~Exists(deliveries.filter(state=_State.SENDING)), enabled=True)
        .annotate(first=Subquery(due.values("pk")[:1]), since=Subquery(due.values("next_at")[:1]))
        .filter(first__isnull=False)
        .order_by("since", "pk")
    )

    for delivery, team, collection in waiting.values_list("first", "team", "collection"):
        owner = f"team {team}" if team else f"collection {collection}"
        if owner not in crowded and (claimed := claim(delivery, owner)):
            return claimed

    return None


def claim(pk: uuid.UUID, owner: str = "") -> Claim | None:
    """Take one due delivery.

    Return None if another sender took it, or sends another delivery of its webhook.
    """
    claimed = Claim(pk, uuid.uuid4(), owner)
    lease = {"lease_token": claimed.token, "lease_until": _from_now(LEASE_SECONDS)}
    try:
        with transaction.atomic():
            due = Delivery.objects.filter(pk=pk, state=_State.DUE)
            taken = due.update(state=_State.SENDING, attempts=F("attempts") + 1, **lease)
    except IntegrityError:
        return None

    return claimed if taken else None


def settle(claimed: Claim, reply: Reply) -> bool:
    """Record the result of an attempt, and return whether its lease was still held.

    A success ends the delivery. A failure delays it, or gives it up after the last attempt; 410
    disables the webhook, and so do five days without a success.
    """
    with transaction.atomic():
        delivery = (
            Delivery.objects.filter(pk=claimed.pk)
            .select_related("webhook__team", "webhook__collection")
            .first()
        )

        if delivery is None:
            return False

        webhook = Webhook.objects.filter(pk=delivery.webhook_id)
        reply_fields = {"last_status": reply.status, "last_error": reply.error}

        if reply.delivered:
            if not _leave(claimed, _State.DELIVERED, ended_at=Now(), **reply_fields):
                return False
            webhook.exclude(failing_since=None).update(failing_since=None)
            return True

        if reply.status == _GONE or delivery.attempts > len(DELAYS):
            recorded = _leave(claimed, _State.GIVEN_UP, ended_at=Now(), **reply_fields)
        else:
            jitter = random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311
            wait = DELAYS[delivery.attempts - 1] * jitter
            requested_wait = (
                min(reply.retry_after, _LONGEST_WAIT) if reply.status in (429, 503) else 0.0
            )
            recorded = _leave(
                claimed, _State.DUE, next_at=_from_now(max(wait, requested_wait)), **reply_fields
            )

        if not recorded:
            return False

        webhook.filter(failing_since=None).update(failing_since=Now())
        if reply.status == _GONE:
            disable(delivery.webhook, _Reason.GONE)
        elif webhook.filter(failing_since__lt=_from_now(-DISABLED_AFTER.total_seconds())).exists():
            disable(delivery.webhook, _Reason.FAILING)

    return True


def put_back(claimed: Claim) -> bool:
    """Return a delivery that was not sent; the attempt does not count."""
    return _leave(claimed, _State.DUE, attempts=F("attempts") - 1)


def disable(webhook: Webhook, reason: Webhook.Reason) -> bool:
    """Disable a webhook in the name of the service. Return whether it was enabled."""
    with transaction.atomic():
        changed = Webhook.objects.filter(pk=webhook.pk, enabled=True).update(
            enabled=False, disabled_reason=reason
        )
        if changed:
            action, after = AuditEvent.Action.WEBHOOK_DISABLED, {"reason": str(reason)}
            record(SYSTEM, action, webhook, collection=webhook.collection, after=after)

    return bool(changed)


def reap() -> int:
    """Return the deliveries of dead senders to the queue; the attempt counts. Return how many."""
    is_expired = Q(lease_until__lt=Now()) | Q(lease_until__gt=_from_now(2 * LEASE_SECONDS))
    expired = Delivery.objects.filter(is_expired, state=_State.SENDING)

    # A query takes no lock; on SQLite every write waits for the only writer.
    return interrupt(expired) if expired.exists() else 0


def interrupt(sending: Any) -> int:
    """Return deliveries of dead senders to the queue."""
    count: int = sending.update(state=_State.DUE, next_at=Now(), lease_token=None, lease_until=None)
    return count


def send_again(delivery: Delivery) -> None:
    """Make a delivery due now, with all its attempts.

    Raise Conflict while it is being sent, or if its webhook is disabled.
    """
    if not delivery.webhook.enabled:
        raise Conflict("the webhook is disabled; enable it first", code="webhook_disabled")

    rows = Delivery.objects.filter(pk=delivery.pk).exclude(state=_State.SENDING)
    if not rows.update(state=_State.DUE, attempts=0, next_at=Now(), ended_at=None):
        raise Conflict("the delivery is being sent at this moment")


def sweep_deliveries() -> int:
    """Delete deliveries older than 30 days, successful or not. Return how many."""
    old = Delivery.objects.filter(created_at__lt=timezone.now() - KEPT).exclude(
        state=_State.SENDING
    )
    return old.delete()[0]


def _leave(claimed: Claim, state: Delivery.State, **changes: Any) -> bool:
    leased = Delivery.objects.filter(pk=claimed.pk, state=_State.SENDING, lease_token=claimed.token)
    return bool(leased.update(state=state, lease_token=None, lease_until=None, **changes))


def _is_due() -> Q:
    """Return the condition of due deliveries.

    Those delayed for longer than any delay are due too: their time was written before the clock was
    set back.
    """
    return Q(next_at__lte=Now()) | Q(next_at__gt=_from_now(2 * _LONGEST_WAIT))


def _from_now(seconds: float) -> ExpressionWrapper[Any]:
    return ExpressionWrapper(Now() + timedelta(seconds=seconds), output_field=DateTimeField())
