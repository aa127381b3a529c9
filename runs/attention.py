"""Stop computing when the client has left or the time of the answer is over.

Long computations call `keep_going` at natural points: before the next run, measure or block of
resamples. Workers and commands have no waiting client and are never stopped here.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from runs.errors import ClientLeft, Unavailable

_RETRY_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Attention:
    """The limits of a request.

    `ends` is a time of the monotonic clock, `has_left` returns whether the client has left.
    """

    ends: float
    seconds: float
    has_left: Callable[[], object]

    def check_client(self) -> None:
        if self.has_left():
            raise ClientLeft

    def keep_going(self) -> None:
        if self.has_left():
            raise ClientLeft

        if time.monotonic() > self.ends:
            raise Unavailable(
                f"the answer was not ready after {self.seconds:g} s; "
                "try again when the server has less to do",
                wait=_RETRY_SECONDS,
                code="too_slow",
            )


_NOBODY_WAITS = Attention(math.inf, math.inf, bool)
_ATTENTION: ContextVar[Attention] = ContextVar("attention", default=_NOBODY_WAITS)


@contextmanager
def attention(seconds: float, has_left: Callable[[], object]) -> Iterator[Attention]:
    """Compute everything inside the block for a client, for at most this many seconds."""
    current = Attention(time.monotonic() + seconds, seconds, has_left)
    token = _ATTENTION.set(current)
    try:
        yield current
    finally:
        _ATTENTION.reset(token)


def check_client() -> None:
    """Raise ClientLeft if the client has left. This is for uploads, which may take any time."""
    _ATTENTION.get().check_client()


def keep_going() -> None:
    """Raise ClientLeft if the client has left, Unavailable if the answer takes too long."""
    _ATTENTION.get().keep_going()


def present_attention() -> Attention:
    """Return the limits of this request, for the threads that compute for it."""
    return _ATTENTION.get()
