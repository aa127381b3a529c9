"""The address to which a person's mail goes. It counts when the person has read a mail that was sent to it: otherwise
anybody could let the server send mail to anybody."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.core import signing
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from runs.errors import Conflict, InvalidInput, LimitReached
from runs.models import AuditEvent, Mail, User
from runs.services.audit.trail import SYSTEM, Origin, record

EVENT = "address.confirm"
# Mails to addresses that a person enters, in a day.
MAX_ASKED = 5
_DAY = timedelta(days=1)
_LASTS = timedelta(days=3)
_SALT = "address"


def ask_address(*, user: User, email: str, origin: Origin = SYSTEM) -> bool:
    """Send a mail to an address that the user entered; with an empty one, forget the address at once. Return whether
    something is to be confirmed.

    Raise InvalidInput for what is no address, Conflict (`mail_not_set_up`) where the server sends
    no mail, LimitReached for the sixth in a day.
    """
    email = User.objects.normalize_email(email.strip())
    try:
        User._meta.get_field("email").clean(email, None)
    except ValidationError as error:
        raise InvalidInput(" ".join(error.messages), pointer="/email") from error
    if email == user.email:
        return False
    if not email:
        _change(user, "", origin)
        return False
    if not settings.EVALHUB_MAIL_URL:
        raise Conflict(
            "this server sends no mail; ask its operator to enter your address",
            code="mail_not_set_up",
        )
    with transaction.atomic():
        User.objects.select_for_update().get(pk=user.pk)
        asked = Mail.objects.filter(
            recipient=user, event=EVENT, created_at__gt=timezone.now() - _DAY
        )
        if asked.count() >= MAX_ASKED:
            raise LimitReached(
                f"{MAX_ASKED} addresses in a day are enough", wait=_DAY.total_seconds()
            )
        subject = "Confirm your address for mail of EvalHub"
        Mail.objects.create(
            event=EVENT,
            recipient=user,
            address=email,
            subject=subject,
            text=_text(user, token_of(user, email)),
        )
    return True


def confirm_address(*, user: User, token: str, origin: Origin = SYSTEM) -> None:
    """Set the address to which the mail with this token went. Raise InvalidInput for a token of somebody else, one that
    was used, or one of more than three days."""
    try:
        asked = signing.loads(token, salt=_SALT, max_age=_LASTS)
    except signing.BadSignature:
        asked = {}
    if (asked.get("user"), asked.get("before")) != (user.pk, user.email):
        message = "this confirmation is not valid for your account, or not any more; enter the address again"
        raise InvalidInput(message, pointer="/confirmation")
    _change(user, asked["email"], origin)


def token_of(user: User, email: str) -> str:
    return signing.dumps({"user": user.pk, "before": user.email, "email": email}, salt=_SALT)


def _change(user: User, email: str, origin: Origin) -> None:
    with transaction.atomic():
        User.objects.filter(pk=user.pk).update(email=email)
        # The trail has that it was changed, not the address.
        record(
            origin,
            AuditEvent.Action.USER_CHANGED,
            user,
            after={"email": "changed" if email else "removed"},
        )
    user.email = email


def _text(user: User, token: str) -> str:
    link = f"{settings.EVALHUB_URL}/account/?confirm={token}" if settings.EVALHUB_URL else ""
    where = (
        f"open\n\n{link}\n\n"
        if link
        else f"send this as `confirmation` with PATCH me/:\n\n{token}\n\n"
    )
    return (
        f"The user {user.get_username()} entered this address for mail of campaigns. If that was you, {where}"
        "and confirm it within three days. If it was not, do nothing: no more mail will come.\n"
    )
