"""Who logs in with a password: everybody, or superusers alone where a provider replaces it."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.http import HttpRequest

from runs.models import User
from runs.services.accounts.passwords import may_use_password


class PasswordBackend(ModelBackend):
    """Check passwords as Django does, for users who may log in with one."""

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **credentials: Any,
    ) -> User | None:
        user = super().authenticate(request, username=username, password=password, **credentials)
        return user if isinstance(user, User) and may_use_password(user) else None
