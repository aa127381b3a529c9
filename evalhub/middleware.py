"""Headers that every answer carries."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

# Swagger's page styles itself inline; nothing else does, and no page runs a script that is not a file of ours.
_POLICY = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; frame-ancestors 'none'"
_DOCS_POLICY = f"{_POLICY}; style-src 'self' 'unsafe-inline'"


class ContentSecurityPolicy:
    """Only our own files may run or be shown, in nobody's frame."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        policy = _DOCS_POLICY if request.path == "/api/v1/docs/" else _POLICY
        response.setdefault("Content-Security-Policy", policy)
        return response
