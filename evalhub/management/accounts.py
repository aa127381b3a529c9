"""Create and find accounts for commands."""

from __future__ import annotations

import secrets
from collections.abc import Iterable

from django.core.exceptions import ValidationError
from django.core.management import CommandError
from django.db import transaction

from runs.models import AuditEvent, User
from runs.services.accounts.tokens import issue_token
from runs.services.audit.trail import SYSTEM, record


def create_account(
    name: str, *, scopes: Iterable[str], email: str = "", administrator: bool = False
) -> tuple[str, str]:
    """Create a user with a personal team, who gets mail at the address.

    Return the password and a token with these scopes. Raise CommandError if the name is taken, or
    if it or the address is invalid.
    """
    if User.objects.filter(username=name).exists():
        raise CommandError(
            f"there is a user {name!r} already; evalhub create_token {name} creates another token"
        )

    try:
        User._meta.get_field("username").clean(name, None)
    except ValidationError as error:
        raise CommandError(f"{name!r} cannot be a user name: {' '.join(error.messages)}") from error

    try:
        User._meta.get_field("email").clean(email, None)
    except ValidationError as error:
        raise CommandError(
            f"{email!r} is not a mail address: {' '.join(error.messages)}"
        ) from error

    password = secrets.token_urlsafe(12)
    create = User.objects.create_superuser if administrator else User.objects.create_user
    with transaction.atomic():
        user = create(name, email, password=password)
        record(SYSTEM, AuditEvent.Action.USER_CREATED, user, after={"is_superuser": administrator})
        _, token = issue_token(user=user, name="first token", scopes=scopes)

    return password, token


def find_account(name: str) -> User:
    """Return a user by name. Raise CommandError if there is none."""
    user = User.objects.filter(username=name).first()
    if user is None:
        raise CommandError(f"there is no user {name!r}")
    return user
