"""The middleware that limits the work of a request: how much, for how long, and beside how many others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any, cast

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from metrics.services.work import limited_work
from runs.attention import Attention, attention
from runs.web.origin import network_of, sender_of

# The key under which waitress says whether the client has left.
_DISCONNECTED = "waitress.client_disconnected"


class BoundedWork:
    """Limit the work of requests. It runs after the authentication of pages; the API's authentication sets the user of
    the same request."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        has_left = request.META.get(_DISCONNECTED) or bool
        with ExitStack() as places:
            with (
                attention(settings.EVALHUB_ANSWER_SECONDS, has_left) as waiting,
                limited_work(partial(_asker, request), places) as work,
            ):
                response: Any = self.get_response(request)

            if response.streaming and work.placed:
                response.streaming_content = _Held(
                    response.streaming_content, waiting, places.pop_all()
                )

            return cast(HttpResponse, response)


class _Held:
    """An answer that is computed while it is sent: it keeps its places to its end, and ends with its client."""

    def __init__(self, content: Iterable[bytes], waiting: Attention, places: ExitStack) -> None:
        self._content, self._waiting, self.close = content, waiting, places.close

    def __iter__(self) -> Iterator[bytes]:
        for part in self._content:
            self._waiting.check_client()
            yield part


def _asker(request: HttpRequest) -> tuple[str | None, str]:
    """Return the keys of the account and of the address, by which places are counted."""
    account = f"user:{request.user.pk}" if request.user.is_authenticated else None
    return account, f"address:{network_of(sender_of(request))}"
