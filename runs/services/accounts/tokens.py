"""Create and revoke API tokens."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from runs.errors import Conflict, NotAllowed, NotFound
from runs.models import DEFAULT_SCOPES, ApiToken, AuditEvent, User
from runs.services.audit.trail import SYSTEM, Origin, record

MAX_TOKENS = 20


def issue_token(
    *,
    user: User,
    name: str,
    expires_at: datetime | None = None,
    scopes: Iterable[str] = DEFAULT_SCOPES,
    maker: ApiToken | None = None,
    origin: Origin = SYSTEM,
) -> tuple[ApiToken, str]:
    """Return a new token of the user and its text, which cannot be read again.

    Raise Conflict if the user has too many, NotAllowed if the token that creates it has fewer
    scopes or expires earlier.
    """
    scopes = list(scopes)

    if maker:
        _check_maker(maker, scopes, expires_at)

    with transaction.atomic():
        User.objects.select_for_update().get(pk=user.pk)
        if maker and not ApiToken.objects.usable().filter(pk=maker.pk).exists():
            raise NotAllowed("the token that was to create one has been revoked")

        if ApiToken.objects.usable().filter(user=user).count() >= MAX_TOKENS:
            raise Conflict(
                f"you have {MAX_TOKENS} tokens already; revoke one first", code="too_many_tokens"
            )

        token, text = ApiToken.objects.issue(
            user=user, name=name, expires_at=expires_at, scopes=scopes, maker=maker
        )
        after = {"user": user.username, "name": name, "scopes": scopes, "expires_at": expires_at}
        record(origin, AuditEvent.Action.TOKEN_CREATED, token, after=after)

    return token, text


def revoke_token(*, user: User, key: str, origin: Origin = SYSTEM) -> None:
    """Revoke a token of the user, the tokens that were created with it, and so on.

    Raise NotFound if the user has no active token with this key.
    """
    with transaction.atomic():
        # Lock against another token that is created with this one at the same time.
        User.objects.select_for_update().get(pk=user.pk)
        tokens = list(ApiToken.objects.filter(user=user, key=key, revoked_at=None))
        if not tokens:
            raise NotFound(f"you have no token {key!r}")

        now = timezone.now()
        while tokens:
            ApiToken.objects.filter(pk__in=[token.pk for token in tokens]).update(revoked_at=now)
            for token in tokens:
                before, after = {"user": user.username}, {"revoked_at": now}
                record(origin, AuditEvent.Action.TOKEN_REVOKED, token, before=before, after=after)
            tokens = list(ApiToken.objects.filter(maker__in=tokens, revoked_at=None))


def _check_maker(maker: ApiToken, scopes: list[str], expires_at: datetime | None) -> None:
    missing = [scope for scope in scopes if scope not in maker.scopes]
    if missing:
        message = f"a token without the scope {missing[0]!r} cannot create one that has it"
        raise NotAllowed(message, code="missing_scope", pointer="/scopes")

    if maker.expires_at and (expires_at is None or expires_at > maker.expires_at):
        message = (
            "a token cannot create one that expires later than itself; give an earlier expires_at"
        )
        raise NotAllowed(message, pointer="/expires_at")
