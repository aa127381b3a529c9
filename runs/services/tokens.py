"""Making API tokens."""

from __future__ import annotations

from datetime import datetime

from metrics.engine.errors import Conflict
from runs.models import ApiToken, User

MAX_TOKENS = 20


def issue_token(*, user: User, name: str, expires_at: datetime | None = None) -> tuple[ApiToken, str]:
    """A new token of the user and its text, which cannot be had again; Conflict where the user has too many."""
    if ApiToken.objects.usable().filter(user=user).count() >= MAX_TOKENS:
        raise Conflict(f"you have {MAX_TOKENS} tokens already; revoke one first", code="too_many_tokens")
    return ApiToken.objects.issue(user=user, name=name, expires_at=expires_at)
