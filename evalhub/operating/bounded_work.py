"""The middleware that limits the work of a request: how much, how long, how many at once."""

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

# The key of waitress's function that returns whether the client has left.
_DISCONNECTED = "waitress.client_disconnected"


class BoundedWork:
    """Limit the work of requests.

    It runs after the authentication of pages; the API's authentication sets the user of the same
    request.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        has_left = request.META.get(_DISCONNECTED) or bool
        with ExitStack() as slots:
            with (
                attention(settings.EVALHUB_ANSWER_SECONDS, has_left) as client_attention,
                limited_work(partial(_keys_of_client, request), slots) as work,
            ):
                response: Any = self.get_response(request)

            if response.streaming and work.placed:
                content, release = response.streaming_content, slots.pop_all().close
                response.streaming_content = _StreamedContent(content, client_attention, release)

            return cast(HttpResponse, response)


class _StreamedContent:
    """An answer that is computed while it is sent: it keeps its slots, and ends with its client."""

    def __init__(
        self, content: Iterable[bytes], attention: Attention, release: Callable[[], None]
    ) -> None:
        self._content, self._attention, self.close = content, attention, release

    def __iter__(self) -> Iterator[bytes]:
        for part in self._content:
            self._attention.check_client()
            yield part


def _keys_of_client(request: HttpRequest) -> tuple[str | None, str]:
    """Return the keys of the account and of the address, for which slots are counted."""
    account = f"user:{request.user.pk}" if request.user.is_authenticated else None
    return account, f"address:{network_of(sender_of(request))}"
