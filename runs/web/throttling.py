"""The rate limit of a user; evalhub/operating/middleware.py has that of an address."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from runs.services.audit.rates import RATES


class UserRate(BaseThrottle):
    """Allow EVALHUB_USER_RATE requests a minute for each signed-in user, over all their tokens."""

    _wait = 0.0

    def allow_request(self, request: Request, view: Any) -> bool:
        if request.user.is_authenticated:
            self._wait = RATES.take(f"user:{request.user.pk}", settings.EVALHUB_USER_RATE)
        return not self._wait

    def wait(self) -> float:
        return self._wait
