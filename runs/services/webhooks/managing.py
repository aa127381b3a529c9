"""Create, change, delete and test webhooks, and give them new secrets."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from runs.errors import Conflict
from runs.models import AuditEvent, Collection, Delivery, Team, User, Webhook
from runs.services.audit.trail import SYSTEM, Origin, changed, record
from runs.services.webhooks.addresses import parse_url
from runs.services.webhooks.deliveries import disable, interrupt
from runs.services.webhooks.events import as_text, compose
from runs.services.webhooks.sending import headers_of
from runs.services.webhooks.signing import Unreadable, new_secret, seal, secret_text, unseal
from runs.services.webhooks.transport import Post, Reply, post

MAX_WEBHOOKS = 20
# How long the previous secret signs together with a new one.
BOTH_SIGN = timedelta(hours=24)
TEST_EVENT = "webhook.test"
_Action, _Reason = AuditEvent.Action, Webhook.Reason


def check_on() -> None:
    """Raise Conflict if this server sends no webhooks."""
    if not settings.EVALHUB_WEBHOOKS:
        message = "this server sends no webhooks; its operator can set EVALHUB_WEBHOOKS=on"
        raise Conflict(message, code="webhooks_off")


def create_webhook(
    *,
    owner: Team | Collection,
    user: User | None,
    url: str,
    events: Iterable[str],
    format: str = Webhook.Format.STANDARD,
    origin: Origin = SYSTEM,
) -> tuple[Webhook, str]:
    """Return a new webhook and its secret, which cannot be read again.

    The secret is empty for a format that is not signed. Raise InvalidInput for an address that is
    not permitted, Conflict if the owner has too many webhooks, or if the server sends none.
    """
    check_on()
    parse_url(url)
    owner_field = {"team": owner} if isinstance(owner, Team) else {"collection": owner}
    webhook = Webhook(
        id=uuid.uuid4(), url=url, events=list(events), format=format, created_by=user, **owner_field
    )
    secret = b"" if webhook.format == Webhook.Format.SLACK else new_secret()
    webhook.secret_sealed = seal(secret, webhook.pk) if secret else ""

    with transaction.atomic():
        # Lock against others that are created at the same time.
        type(owner)._default_manager.select_for_update().get(pk=owner.pk)
        if Webhook.objects.filter(**owner_field).count() >= MAX_WEBHOOKS:
            message = f"{owner} has {MAX_WEBHOOKS} webhooks already; delete one first"
            raise Conflict(message, code="too_many_webhooks")

        webhook.save(force_insert=True)
        _record(
            origin, _Action.WEBHOOK_CREATED, webhook, after={"of": str(owner), **_details(webhook)}
        )

    return webhook, secret_text(secret) if secret else ""


def change_webhook(*, webhook: Webhook, changes: dict[str, Any], origin: Origin = SYSTEM) -> None:
    """Change a webhook's address or events, enable or disable it.

    Enabling it forgets its failures. Raise InvalidInput for an address that is not permitted,
    Conflict if its secret cannot be read any more.
    """
    if "url" in changes:
        parse_url(changes["url"])

    if changes.get("enabled"):
        _check_secret(webhook)

    with transaction.atomic():
        before = _details(webhook)
        _, after = changed(webhook, changes)
        if not after:
            return

        if "enabled" in after:
            after |= {"disabled_reason": "", "failing_since": None}

        for name, value in after.items():
            setattr(webhook, name, value)

        if Webhook.objects.filter(pk=webhook.pk).update(**after):
            _record(
                origin, _Action.WEBHOOK_CHANGED, webhook, before=before, after=_details(webhook)
            )


def delete_webhook(*, webhook: Webhook, origin: Origin = SYSTEM) -> None:
    """Delete a webhook with its deliveries, sent or not."""
    with transaction.atomic():
        if Webhook.objects.filter(pk=webhook.pk).delete()[0]:
            _record(origin, _Action.WEBHOOK_DELETED, webhook, before=_details(webhook))


def change_secret(*, webhook: Webhook, origin: Origin = SYSTEM) -> str:
    """Give a webhook a new secret and return it.

    The previous one, if it can be read, signs together with it for 24 hours. Raise Conflict for a
    format that is not signed.
    """
    if webhook.format == Webhook.Format.SLACK:
        raise Conflict("a webhook of format slack has no secret", code="unsigned_webhook")

    secret = new_secret()
    with transaction.atomic():
        locked = Webhook.objects.select_for_update().get(pk=webhook.pk)
        sealed: dict[str, Any] = {"previous_secret_sealed": "", "previous_until": None}

        if _has_readable_secret(locked):
            sealed = {
                "previous_secret_sealed": locked.secret_sealed,
                "previous_until": timezone.now() + BOTH_SIGN,
            }

        sealed["secret_sealed"] = seal(secret, webhook.pk)
        Webhook.objects.filter(pk=webhook.pk).update(**sealed)
        _record(
            origin,
            _Action.WEBHOOK_SECRET_CHANGED,
            webhook,
            after={"previous_until": sealed["previous_until"]},
        )

    for name, value in sealed.items():
        setattr(webhook, name, value)

    return secret_text(secret)


def try_webhook(*, webhook: Webhook, post: Post = post) -> Reply:
    """Send a test event now, whether the webhook is enabled or not, and return the reply.

    Nothing is stored. Raise Conflict if its secret cannot be read any more, or if this server sends
    no webhooks.
    """
    check_on()
    _check_secret(webhook)
    text = compose(
        TEST_EVENT, timezone.now(), f"webhooks/{webhook.pk}/", {"webhook": str(webhook.pk)}
    )
    body = (text if webhook.format == Webhook.Format.STANDARD else as_text(text)).encode()

    return post(webhook.url, body, headers_of(webhook, str(uuid.uuid4()), body, int(time.time())))


def disable_moved(collection: Collection) -> None:
    """Disable the webhooks of a collection that moved to another team, which may enable them."""
    for webhook in collection.webhooks.filter(enabled=True):
        disable(webhook, _Reason.COLLECTION_MOVED)


def settle_restored() -> int:
    """Prepare the webhooks of a restored backup.

    Return interrupted deliveries to the queue, and disable webhooks with secrets that were sealed
    with another secret key. Return the number of these.
    """
    interrupt(Delivery.objects.filter(state=Delivery.State.SENDING))
    return sum(disable(webhook, _Reason.SECRET_UNREADABLE) for webhook in unreadable_webhooks())


def unreadable_webhooks() -> list[Webhook]:
    """Return the enabled webhooks with secrets that cannot be read."""
    return [
        webhook
        for webhook in Webhook.objects.filter(enabled=True)
        if not _has_readable_secret(webhook)
    ]


def _has_readable_secret(webhook: Webhook) -> bool:
    if webhook.format == Webhook.Format.SLACK:
        return True

    try:
        unseal(webhook.secret_sealed, webhook.pk)
    except Unreadable:
        return False

    return True


def _check_secret(webhook: Webhook) -> None:
    if not _has_readable_secret(webhook):
        raise Conflict(
            "the webhook's secret was sealed with another secret key of the server; "
            "give it a new one first",
            code="secret_unreadable",
        )


def _details(webhook: Webhook) -> dict[str, Any]:
    """Return a webhook's fields for the audit trail; the rest of its address may be secret."""
    return {
        "host": webhook.host,
        "events": webhook.events,
        "format": webhook.format,
        "enabled": webhook.enabled,
    }


def _record(origin: Origin, action: AuditEvent.Action, webhook: Webhook, **details: Any) -> None:
    record(origin, action, webhook, collection=webhook.collection, **details)
