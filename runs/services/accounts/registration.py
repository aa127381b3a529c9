"""Accounts that people create themselves, where EVALHUB_REGISTRATION is on.

The address comes first and the password after its confirmation: otherwise somebody could enter the
address of another person with a password of their own, and this person would confirm it.
"""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from runs.errors import InvalidInput, NotFound
from runs.models import InvitationLink, Mail, User
from runs.services.accounts.invitation_links import mail_has_links, store_link
from runs.services.accounts.passwords import takes_passwords
from runs.services.audit.trail import SYSTEM, Origin
from runs.services.mail.outbox import write_mail

EVENT = "account.registered"
# Mails to one address that asks for an account, in a day.
MAX_MAILS = 3
_DAYS = 1


def takes_registrations() -> bool:
    """Return whether people can register themselves."""
    return bool(settings.EVALHUB_REGISTRATION and takes_passwords() and mail_has_links())


def request_account(*, email: str, origin: Origin = SYSTEM) -> None:
    """Mail a link that creates an account to an address, or, if it has one, say so in the mail.

    Nobody else learns which. Raise NotFound where registration is off, InvalidInput for an address
    that is invalid or of another domain than those that are allowed.
    """
    if not takes_registrations():
        raise NotFound("administrators create the accounts of this server")

    address = User.objects.normalize_email(email.strip()).lower()
    try:
        if not address:
            raise ValidationError("enter your mail address")
        User._meta.get_field("email").clean(address, None)
    except ValidationError as error:
        raise InvalidInput(" ".join(error.messages), pointer="/email") from error

    domains = settings.EVALHUB_REGISTRATION_DOMAINS
    if domains and address.rpartition("@")[2] not in domains:
        raise InvalidInput(
            f"this server takes addresses of {', '.join(domains)}; ask an administrator otherwise",
            pointer="/email",
        )

    with transaction.atomic():
        since = timezone.now() - timedelta(days=_DAYS)
        recent = Mail.objects.filter(event=EVENT, address=address, created_at__gt=since)
        if recent.count() >= MAX_MAILS:
            return

        # Only the newest link works.
        InvitationLink.objects.filter(created_by=None, email=address).delete()
        link, code = store_link(by=None, email=address, days=_DAYS, max_uses=1, origin=origin)
        has_account = User.objects.filter(email__iexact=address).exists()
        if has_account:
            link.delete()
            text = (
                "Someone, probably you, requested an account of EvalHub with this address. It has "
                f"one already: log in at {settings.EVALHUB_URL}/login/, or set a new password at "
                f"{settings.EVALHUB_URL}/forgotten-password/.\n"
            )
        else:
            text = (
                "Someone, probably you, requested an account of EvalHub with this address. This "
                f"link creates it:\n\n{settings.EVALHUB_URL}/join/?code={code}\n\nIt works once, "
                "within a day. If you did not request it, do nothing.\n"
            )

        write_mail(event=EVENT, address=address, subject="Your account of EvalHub", text=text)
