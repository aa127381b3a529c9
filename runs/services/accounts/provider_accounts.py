"""Accounts of an OpenID Connect provider, with which users log in.

Issuer and subject alone say who somebody is. An account with the same mail address is not theirs
because of that: its user logs in to it and links it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from runs.errors import Conflict, NotAllowed, NotFound
from runs.models import AuditEvent, ProviderAccount, User
from runs.services.accounts.accounts import create_account
from runs.services.accounts.passwords import may_use_password
from runs.services.audit.trail import SYSTEM, Origin, record

_NOT_IN_A_NAME = re.compile(r"[^\w.@+-]+")


@dataclass(frozen=True)
class Identity:
    """Who somebody is at the provider: `email` is empty unless the provider verified it."""

    issuer: str
    subject: str
    email: str = ""
    username: str = ""


def provider_label() -> str:
    """Return what pages call the provider; empty where there is none."""
    return settings.EVALHUB_OIDC_LABEL if settings.EVALHUB_OIDC_ISSUER else ""


def identity_of(claims: Mapping[str, Any]) -> Identity:
    """Return the identity in the claims of a checked ID token.

    Raise NotAllowed for people whom EVALHUB_OIDC_DOMAINS or EVALHUB_OIDC_CLAIM leave out, and for a
    subject that cannot be stored.
    """
    identity = Identity(
        issuer=settings.EVALHUB_OIDC_ISSUER,
        subject=_text_of(claims, "sub"),
        email=_verified_address(claims),
        username=_user_name(claims),
    )
    label = provider_label()
    try:
        ProviderAccount._meta.get_field("subject").clean(identity.subject, None)
    except ValidationError as error:
        raise NotAllowed(f"{label} sent a login without a valid subject") from error

    domains = settings.EVALHUB_OIDC_DOMAINS
    if domains and identity.email.rpartition("@")[2].lower() not in domains:
        raise NotAllowed(
            f"this server takes people with a verified mail address of {', '.join(domains)}; "
            f"log in at {label} with such an account, or ask an administrator"
        )

    name, _, value = settings.EVALHUB_OIDC_CLAIM.partition("=")
    if name and value not in _texts(claims.get(name)):
        raise NotAllowed(
            f"your account of {label} may not use this server; ask an administrator for access"
        )

    return identity


def find_user(identity: Identity) -> User | None:
    """Return the user who logs in with an identity, if there is one.

    Raise NotAllowed if the account is disabled.
    """
    account = _accounts_of(identity).select_related("user").first()
    if account is None:
        return None
    if not account.user.is_active:
        raise NotAllowed("your account of this server is disabled; ask an administrator")

    return account.user


def create_with_provider(*, identity: Identity, username: str, origin: Origin = SYSTEM) -> User:
    """Return a new user without a password, who logs in with an identity.

    Of two requests for one identity the second returns the user of the first. Raise the errors of
    `create_account`, and NotAllowed if the account is disabled.
    """
    if user := find_user(identity):
        return user

    try:
        with transaction.atomic():
            user = create_account(
                username=username, password=None, email=identity.email, origin=origin
            )
            _link(user, identity, origin)
    except (Conflict, IntegrityError):
        existing = find_user(identity)
        if existing is None:
            raise
        return existing

    return user


def link_provider(*, user: User, identity: Identity, origin: Origin = SYSTEM) -> None:
    """Let a user log in with an identity. Raise Conflict if another user does."""
    try:
        with transaction.atomic():
            if not _accounts_of(identity).filter(user=user).exists():
                _link(user, identity, origin)
    except IntegrityError as error:
        raise Conflict(
            f"another user logs in with this account of {provider_label()}; "
            "unlink it there first, or log in as that user"
        ) from error


def unlink_provider(*, user: User, key: str, origin: Origin = SYSTEM) -> None:
    """Remove one of a user's accounts of the provider.

    Raise NotFound if there is none with this key, Conflict if the user could not log in any more.
    """
    with transaction.atomic():
        User.objects.select_for_update().get(pk=user.pk)
        accounts = user.provider_accounts
        account = accounts.filter(pk=int(key)).first() if _is_key(key) else None
        if account is None:
            raise NotFound("you have no such account of a provider")

        others = accounts.filter(issuer=settings.EVALHUB_OIDC_ISSUER).exclude(pk=account.pk)
        if not may_use_password(user) and not others.exists():
            raise Conflict(
                "you log in with this account alone; ask an administrator for a password first"
            )

        account.delete()
        before = {"issuer": account.issuer}
        record(origin, AuditEvent.Action.PROVIDER_UNLINKED, user, before=before)


def _accounts_of(identity: Identity) -> QuerySet[ProviderAccount]:
    return ProviderAccount.objects.filter(issuer=identity.issuer, subject=identity.subject)


def _link(user: User, identity: Identity, origin: Origin) -> None:
    ProviderAccount.objects.create(user=user, issuer=identity.issuer, subject=identity.subject)
    after = {"issuer": identity.issuer}
    record(origin, AuditEvent.Action.PROVIDER_LINKED, user, after=after)


def _verified_address(claims: Mapping[str, Any]) -> str:
    """Return the mail address if the provider says that it verified it, else an empty text."""
    address = User.objects.normalize_email(_text_of(claims, "email"))
    if claims.get("email_verified") is not True or len(address) > 254:
        return ""
    try:
        validate_email(address)
    except ValidationError:
        return ""

    return address


def _user_name(claims: Mapping[str, Any]) -> str:
    """Return a user name to begin with."""
    name = _text_of(claims, "preferred_username") or _text_of(claims, "email")
    return _NOT_IN_A_NAME.sub("", name.partition("@")[0])[:150]


def _text_of(claims: Mapping[str, Any], name: str) -> str:
    value = claims.get(name)
    return value if isinstance(value, str) else ""


def _texts(value: Any) -> list[str]:
    """Return the values of a claim as texts: true is written `true`, as in JSON."""
    values = value if isinstance(value, list) else [value]
    return [str(item).lower() if isinstance(item, bool) else str(item) for item in values]


def _is_key(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19
