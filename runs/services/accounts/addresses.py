"""The mail address of a user, which a mail to it confirms.

Without that, anybody could let the server send mail to anybody.
"""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.core import signing
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from runs.errors import Conflict, InvalidInput, LimitReached
from runs.models import AuditEvent, Mail, User
from runs.services.audit.trail import SYSTEM, Origin, record
from runs.services.mail.outbox import write_mail

EVENT = "address.confirm"
# Mails to addresses that a person enters, and to one address, in a day.
MAX_ADDRESSES = 5
_DAY = timedelta(days=1)
_LASTS = timedelta(days=3)
_SALT = "address"


def ask_address(*, user: User, email: str, origin: Origin = SYSTEM) -> bool:
    """Send a mail to an address that the user entered. Return whether it is to be confirmed.

    An empty address removes the present one at once. Raise InvalidInput for an invalid address,
    Conflict (`mail_not_set_up`) if the server sends no mail, LimitReached for the sixth mail in a day
    that the user asks for, or that is sent to the address.
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
        mails = Mail.objects.filter(
            Q(recipient=user) | Q(address__iexact=email),
            event=EVENT,
            created_at__gt=timezone.now() - _DAY,
        )
        if mails.count() >= MAX_ADDRESSES:
            raise LimitReached(
                f"{MAX_ADDRESSES} mails in a day to confirm an address are the limit",
                wait=_DAY.total_seconds(),
            )

        subject = "Confirm your address for mail of EvalHub"
        write_mail(
            event=EVENT,
            recipient=user,
            address=email,
            subject=subject,
            text=_text(user, token_of(user, email)),
        )

    return True


def confirm_address(*, user: User, token: str, origin: Origin = SYSTEM) -> None:
    """Set the address to which the mail with this token went.

    Raise InvalidInput for another user's token, a used one, or one older than three days.
    """
    try:
        confirmation = signing.loads(token, salt=_SALT, max_age=_LASTS)
    except signing.BadSignature:
        confirmation = {}

    if (confirmation.get("user"), confirmation.get("before")) != (user.pk, user.email):
        raise InvalidInput(
            "this confirmation is not valid for your account, or not any more; "
            "enter the address again",
            pointer="/confirmation",
        )

    _change(user, confirmation["email"], origin)


def address_in(token: str) -> str:
    """Return the address that a token confirms; empty for one that is not valid."""
    try:
        return str(signing.loads(token, salt=_SALT, max_age=_LASTS)["email"])
    except signing.BadSignature:
        return ""


def token_of(user: User, email: str) -> str:
    return signing.dumps({"user": user.pk, "before": user.email, "email": email}, salt=_SALT)


def _change(user: User, email: str, origin: Origin) -> None:
    with transaction.atomic():
        User.objects.filter(pk=user.pk).update(email=email)

        # The trail records that it was changed, not the address.
        record(
            origin,
            AuditEvent.Action.USER_CHANGED,
            user,
            after={"email": "changed" if email else "removed"},
        )

    user.email = email


def _text(user: User, token: str) -> str:
    if settings.EVALHUB_URL:
        step = f"open\n\n{settings.EVALHUB_URL}/account/?confirm={token}\n\n"
    else:
        step = f"send this as `confirmation` with PATCH me/:\n\n{token}\n\n"

    return (
        f"The user {user.get_username()} entered this address for mail of campaigns. "
        f"If that was you, {step}and confirm it within three days. "
        "If it was not, do nothing: no more mail will come.\n"
    )
