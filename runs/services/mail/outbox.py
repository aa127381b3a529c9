"""The life of a mail: due, sending, and sent, due again or given up.

As with deliveries of webhooks, every change is one UPDATE that names the previous state and the
lease. A sender that dies leaves a lease that expires; the mail is then sent again under the same
id. If mail is not set up, rows are written all the same: organisers can read these mails, which are
never sent.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Case, DateTimeField, ExpressionWrapper, F, Q, TextField, Value, When
from django.db.models.functions import Now
from django.utils import timezone

from runs.models import Campaign, Mail, User

# Seconds between two attempts while the mail server is unavailable: doubled from the first wait up
# to the second.
FIRST_WAIT, LONGEST_WAIT = 30.0, 3600.0
# Longer than the mail server may take for one mail.
LEASE_SECONDS = 120.0
KEPT = timedelta(days=90)
MAX_SUBJECT = 200
_State = Mail.State


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to send one mail, until its lease ends."""

    pk: uuid.UUID
    token: uuid.UUID


def write_mails(
    *, campaign: Campaign, event: str, recipients: Iterable[User], subject: str, text: str
) -> list[Mail]:  # fmt: skip
    """Write a mail for each recipient, in the transaction of its event. Return the mails."""
    if not transaction.get_connection().in_atomic_block:
        raise transaction.TransactionManagementError(
            f"{event} is told outside the transaction of its cause"
        )

    # A header has one line, whatever the names in it are.
    subject_line = " ".join(subject.split())[:MAX_SUBJECT]
    common = {"campaign": campaign, "event": event, "subject": subject_line, "text": text}
    return Mail.objects.bulk_create(
        Mail(**common, recipient=recipient, state=_first_state(recipient))
        for recipient in recipients
    )


def write_mail(
    *, event: str, address: str, subject: str, text: str, recipient: User | None = None
) -> Mail:
    """Write a mail with a secret, of no campaign, to an address that may have no account.

    Call this only where the server sends mail. The text is removed when the mail was sent.
    """
    return Mail.objects.create(
        event=event, recipient=recipient, address=address, subject=subject, text=text
    )


def _first_state(recipient: User) -> Mail.State:
    if not settings.EVALHUB_MAIL_URL:
        return _State.NOT_SET_UP
    return _State.DUE if recipient.email else _State.NO_ADDRESS


def claim_next() -> Claim | None:
    """Take the mail that has been due for the longest time. Return None if there is none."""
    due = Q(next_at__lte=Now()) | Q(next_at__gt=_from_now(2 * LONGEST_WAIT))
    waiting = Mail.objects.filter(due, state=_State.DUE).order_by("next_at", "created_at")
    for pk in waiting.values_list("pk", flat=True)[:10]:
        claimed = Claim(pk, uuid.uuid4())
        lease = {"lease_token": claimed.token, "lease_until": _from_now(LEASE_SECONDS)}
        rows = Mail.objects.filter(pk=pk, state=_State.DUE)
        if rows.update(state=_State.SENDING, attempts=F("attempts") + 1, **lease):
            return claimed

    return None


def settle_sent(claimed: Claim) -> bool:
    """Record that a mail was accepted, and return whether its lease was still held."""
    # A mail of no campaign has a secret, which nobody else is to read.
    text = Case(When(campaign=None, then=Value("")), default=F("text"), output_field=TextField())
    return _leave(claimed, _State.SENT, ended_at=Now(), last_error="", text=text)


def settle_failed(claimed: Claim, error: str, *, for_good: bool) -> bool:
    """Record that a mail was not accepted: it is due again later, or given up `for_good`."""
    last_error = error[:200]
    if for_good:
        return _leave(claimed, _State.GIVEN_UP, ended_at=Now(), last_error=last_error)

    attempts = Mail.objects.filter(pk=claimed.pk).values_list("attempts", flat=True).first() or 1
    wait = min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(attempts - 1, 20))
    return _leave(claimed, _State.DUE, next_at=_from_now(wait), last_error=last_error)


def settle_without_address(claimed: Claim) -> bool:
    """Record that the person has no address any more."""
    return _leave(claimed, _State.NO_ADDRESS, ended_at=Now())


def reap_mails() -> int:
    """Return the mails of dead senders to the queue. Return how many."""
    is_expired = Q(lease_until__lt=Now()) | Q(lease_until__gt=_from_now(2 * LEASE_SECONDS))
    expired = Mail.objects.filter(is_expired, state=_State.SENDING)
    if not expired.exists():
        return 0
    return expired.update(state=_State.DUE, next_at=Now(), lease_token=None, lease_until=None)


def sweep_mails() -> int:
    """Delete mails older than 90 days that are not to be sent. Return how many."""
    old = Mail.objects.filter(created_at__lt=timezone.now() - KEPT).exclude(
        state__in=(_State.DUE, _State.SENDING)
    )
    return old.delete()[0]


def _leave(claimed: Claim, state: Mail.State, **changes: Any) -> bool:
    leased = Mail.objects.filter(pk=claimed.pk, state=_State.SENDING, lease_token=claimed.token)
    return bool(leased.update(state=state, lease_token=None, lease_until=None, **changes))


def _from_now(seconds: float) -> ExpressionWrapper[Any]:
    return ExpressionWrapper(Now() + timedelta(seconds=seconds), output_field=DateTimeField())
