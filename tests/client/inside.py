"""A client whose server is this process: its requests are given to Django without a socket."""

from __future__ import annotations

from typing import Any

import httpx
from django.test import Client

from evalhub.client import Hub
from evalhub.client.config import Config
from runs.models import ALL_SCOPES, ApiToken, User
from tests.web.worlds import body_of

URL = "http://localhost"


def answer(request: httpx.Request) -> httpx.Response:
    """What Django answers to a request."""
    headers = {
        name: value
        for name, value in request.headers.items()
        if name in ("authorization", "idempotency-key")
    }
    response = Client().generic(
        request.method,
        request.url.raw_path.decode(),
        request.read(),
        content_type=request.headers.get("content-type", ""),
        headers=headers,
    )
    return httpx.Response(
        response.status_code, content=body_of(response), headers=dict(response.items())
    )


def token_of(user: User) -> str:
    return ApiToken.objects.issue(user=user, name="inside", scopes=ALL_SCOPES)[1]


def hub_inside(user: User, **options: Any) -> Hub:
    """The client of a user."""
    return Hub(
        Config(URL, token_of(user), "default"), transport=httpx.MockTransport(answer), **options
    )
