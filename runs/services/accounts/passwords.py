"""A new password by mail, for people who forgot theirs."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.contrib.auth.tokens import default_token_generator
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from runs.errors import InvalidInput, NotFound
from runs.models import Mail, User
from runs.services.accounts.accounts import change_password
from runs.services.audit.trail import SYSTEM, Origin

EVENT = "password.reset"
# Mails about a forgotten password to one account, in a day.
MAX_RESETS = 5
_DAY = timedelta(days=1)


def takes_passwords() -> bool:
    """Return whether users log in with passwords of this server."""
    return bool(settings.EVALHUB_PASSWORD_LOGIN)


def may_use_password(user: User) -> bool:
    """Return whether a user can log in with a password of this server.

    Where EVALHUB_PASSWORD_LOGIN is off, superusers alone can: they repair what the provider, or its
    settings, lock out.
    """
    return user.has_usable_password() and (takes_passwords() or user.is_superuser)


def request_reset(*, email: str) -> None:
    """Mail links that set a new password to an address, one for each account with it.

    Each mail goes to an address as its accounts confirmed it, with the links of these accounts
    alone: databases compare `ı` with `i` as equal, and they are letters of different domains. An
    address without an account gets none, and its request writes a row as well: neither the answer
    nor its time says which addresses have one. An account without a password of this server gets
    no link. Raise InvalidInput for an address that is invalid.
    """
    address = User.objects.normalize_email(email.strip())
    try:
        validate_email(address)
    except ValidationError as error:
        raise InvalidInput("enter a mail address", pointer="/email") from error

    with transaction.atomic():
        users = User.objects.filter(email__iexact=address, is_active=True).order_by("pk")[:20]
        by_address: dict[str, list[User]] = defaultdict(list)
        for user in users:
            if may_use_password(user):
                by_address[user.email].append(user)

        for confirmed, accounts in by_address.items():
            _write(confirmed, accounts)
        if not by_address:
            _write("", [])


def _write(address: str, accounts: list[User]) -> None:
    first = accounts[0] if accounts else None
    recent = Mail.objects.filter(event=EVENT, recipient=first, created_at__gt=timezone.now() - _DAY)
    is_sent = recent.count() < MAX_RESETS and first is not None

    Mail.objects.create(
        event=EVENT,
        recipient=first,
        address=address,
        subject="A new password for EvalHub",
        text=_text(accounts) if is_sent else "",
        state=Mail.State.DUE if is_sent else Mail.State.NO_ADDRESS,
    )


def _text(accounts: list[User]) -> str:
    links = "\n".join(
        f"{user.get_username()}: {settings.EVALHUB_URL}/new-password/?code={token_of(user)}"
        for user in accounts
    )
    return (
        "Someone, probably you, requested a new password for EvalHub. These links set one, by "
        f"user name:\n\n{links}\n\nEach works once, within "
        f"{settings.PASSWORD_RESET_TIMEOUT // 3600} hours. If you did not request it, do "
        "nothing: your password stays as it is.\n"
    )


def token_of(user: User) -> str:
    return f"{user.pk}-{default_token_generator.make_token(user)}"


def user_of(token: str) -> User:
    """Return the user of a token. Raise NotFound for one that is wrong, used or expired."""
    key, _, rest = token.partition("-")
    user = User.objects.filter(pk=int(key), is_active=True).first() if _is_key(key) else None
    if user is None or not default_token_generator.check_token(user, rest):
        raise NotFound("this link has expired or was used; ask for another one")
    return user


def reset_password(*, token: str, password: str, origin: Origin = SYSTEM) -> User:
    """Set a new password, which ends all sessions of the account and its other links.

    Raise NotFound for a token that is wrong, used or expired, InvalidInput for a password that is
    not permitted.
    """
    with transaction.atomic():
        # The second one of two simultaneous requests finds the token used.
        User.objects.select_for_update().filter(pk=user_of(token).pk).first()
        user = user_of(token)
        try:
            validate_password(password, user)
        except ValidationError as error:
            raise InvalidInput(" ".join(error.messages), pointer="/password") from error

        User.objects.filter(pk=user.pk).update(sessions_ended=F("sessions_ended") + 1)
        change_password(user=user, password=password, origin=origin)

    return user


def _is_key(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19
