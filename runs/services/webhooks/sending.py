"""Send due deliveries from a worker, while it evaluates."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable

from django.db import DatabaseError, connections
from django.utils import timezone

from runs.models import Delivery, Webhook
from runs.services.webhooks.deliveries import Claim, claim_next, disable, put_back, settle
from runs.services.webhooks.signing import Unreadable, signatures, unseal
from runs.services.webhooks.transport import Post, post

logger = logging.getLogger(__name__)

# Deliveries that a process sends at once, and those of them for one team or collection: receivers
# that hang must not delay the deliveries of others.
AT_ONCE = 10
AT_ONCE_PER_OWNER = 3
AGENT = "EvalHub-Webhooks/1"
_THREAD = "webhook"

Start = Callable[[Callable[[Claim], None], Claim], None]


def in_a_thread(send: Callable[[Claim], None], claimed: Claim) -> None:
    """Send in a thread that ends with its worker: an interrupted delivery is sent again."""
    threading.Thread(target=send, args=(claimed,), name=_THREAD, daemon=True).start()


class Sender:
    """Sends due deliveries, at most ten at once. `start` runs the sending of one."""

    def __init__(self, post: Post = post, start: Start = in_a_thread) -> None:
        self._post, self._start = post, start
        self._lock = threading.Lock()
        self._under_way: Counter[str] = Counter()

    def send_due(self) -> int:
        """Start to send due deliveries while there is room, and return how many."""
        started = 0
        while claimed := self._claim():
            self._start(self._send, claimed)
            started += 1

        return started

    def _claim(self) -> Claim | None:
        with self._lock:
            if self._under_way.total() >= AT_ONCE:
                return None
            crowded = {
                owner for owner, count in self._under_way.items() if count >= AT_ONCE_PER_OWNER
            }

        claimed = claim_next(crowded)
        if claimed:
            with self._lock:
                self._under_way[claimed.owner] += 1

        return claimed

    def _send(self, claimed: Claim) -> None:
        try:
            send(claimed, self._post)
        except DatabaseError as error:
            # The lease ends, and another attempt is made.
            logger.warning("webhook delivery %s: not recorded: %s", claimed.pk, error)
        except Exception:
            logger.exception("webhook delivery %s failed", claimed.pk)
        finally:
            with self._lock:
                self._under_way[claimed.owner] -= 1
            _let_go()


def send(claimed: Claim, post: Post = post, clock: Callable[[], float] = time.time) -> None:
    """Send one delivery and record the result."""
    delivery = (
        Delivery.objects.select_related("webhook__team", "webhook__collection")
        .filter(pk=claimed.pk)
        .first()
    )

    if delivery is None:
        return

    if not delivery.webhook.enabled:
        put_back(claimed)
        return

    try:
        headers = headers_of(
            delivery.webhook, str(delivery.pk), delivery.body.encode(), int(clock())
        )
    except Unreadable:
        put_back(claimed)
        disable(delivery.webhook, Webhook.Reason.SECRET_UNREADABLE)
        logger.error(
            "%s is disabled: its secret was sealed with another secret key", delivery.webhook
        )
        return

    _let_go()
    reply = post(delivery.webhook.url, delivery.body.encode(), headers)
    settle(claimed, reply)

    if not reply.delivered:
        logger.info("webhook delivery %s: %s %s", claimed.pk, reply.error, reply.status or "")


def _let_go() -> None:
    """Close the database connection of a sending thread.

    The thread may wait for its receiver for a quarter of a minute.
    """
    if threading.current_thread().name == _THREAD:
        connections.close_all()


def headers_of(webhook: Webhook, message_id: str, body: bytes, now: int) -> dict[str, str]:
    """Return the headers of a request, signed by the secret, for a day by the previous one, too.

    Raise Unreadable if a secret cannot be read.
    """
    headers = {"Content-Type": "application/json", "User-Agent": AGENT}
    if webhook.format == Webhook.Format.SLACK:
        return headers

    secrets = [unseal(webhook.secret_sealed, webhook.pk)]
    previous_until = webhook.previous_until
    if webhook.previous_secret_sealed and previous_until and previous_until > timezone.now():
        secrets.append(unseal(webhook.previous_secret_sealed, webhook.pk))

    signature = signatures(secrets, message_id, now, body)
    return {
        **headers,
        "webhook-id": message_id,
        "webhook-timestamp": str(now),
        "webhook-signature": signature,
    }
