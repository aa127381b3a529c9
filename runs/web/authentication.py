"""Tokens in the Authorization header, as `Bearer` or as `Token`."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from runs.errors import LimitReached
from runs.models import ApiToken, User
from runs.services.audit.rates import RATES
from runs.web.origin import network_of, sender_of

_SCHEMES = (b"bearer", b"token")
_SEEN_EVERY = timedelta(minutes=1)


class TokenAuthentication(BaseAuthentication):
    """Give the same answer for unknown, expired and revoked tokens, so that nobody can tell which.

    An address that keeps trying has to wait. A valid token is never refused because of attempts
    from the same address: guessing 256 random bits takes longer than any limit.
    """

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        parts = get_authorization_header(request).split()
        if not parts or parts[0].lower() not in _SCHEMES:
            return None

        text = parts[1].decode("ascii", errors="replace") if len(parts) == 2 else ""
        token = ApiToken.objects.find(text)
        if token is None:
            refuse_often(network_of(sender_of(request)))
            raise AuthenticationFailed("the token is unknown, expired or revoked")

        # At most once a minute, so that most reads write nothing.
        now = timezone.now()
        if token.last_used_at is None or now - token.last_used_at > _SEEN_EVERY:
            ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)

        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


def refuse_often(network: str) -> None:
    """Count a failed login. Raise LimitReached for a network with too many of them in a minute."""
    wait = RATES.take(f"login:{network}", settings.EVALHUB_LOGIN_RATE)
    if wait:
        raise LimitReached("too many failed logins from this address; try again later", wait=wait)
