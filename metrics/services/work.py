"""Limit the work of a request, which is known before it begins.

Few expensive requests are computed at once.

Code that is about to compute something calls `begin` with the estimated seconds. All parts of one
request count together: beyond EVALHUB_WORK_SECONDS it is refused, and beyond a moment it needs one
of the places of its account (or of all readers without one), of its address and of the process.
Cheap requests never need one. Workers and commands are not limited here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from django.conf import settings

from metrics.engine.errors import StatisticsError
from runs.attention import keep_going
from runs.errors import LimitReached, Unavailable
from runs.services.audit.slots import SLOTS

# Requests that take no longer than this need no place: a server answers hundreds of them while
# others compute.
CHEAP_SECONDS = 0.1
# Charts that are drawn for one reader at once, for each place for expensive requests.
_DRAWN = 4
_RETRY_SECONDS = 2.0


@dataclass
class Work:
    """The estimated seconds of the current request so far.

    `asker` returns the keys of its places: one of its account, or None, and one of its address.
    """

    asker: Callable[[], tuple[str | None, str]]
    places: ExitStack
    seconds: float = 0.0
    placed: bool = False
    drawing: bool = False
    sizes: dict[int, int] = field(default_factory=dict)


_WORK: ContextVar[Work | None] = ContextVar("work", default=None)


@contextmanager
def limited_work(asker: Callable[[], tuple[str | None, str]], places: ExitStack) -> Iterator[Work]:
    """Count everything computed inside as one request; its places are held by `places`."""
    work = Work(asker, places)
    token = _WORK.set(work)
    try:
        yield work
    finally:
        _WORK.reset(token)


def begin(seconds: float, subject: str, advice: str, pointer: str | None) -> None:
    """Declare the estimated seconds of a computation before it begins.

    Raise StatisticsError if the request exceeds its limit, LimitReached or Unavailable if too many
    requests compute at the moment.
    """
    keep_going()
    work = _WORK.get()
    if work is not None:
        _check(work.seconds + seconds, settings.EVALHUB_WORK_SECONDS, subject, advice, pointer)
        work.seconds += seconds
        _take_place(work, work.seconds)


def begin_reading(seconds: float, subject: str, advice: str, pointer: str | None) -> None:
    """Declare that a stored file is read, which takes time by its size, whatever is requested.

    It may use half of the time of an answer.
    """
    keep_going()
    work = _WORK.get()
    if work is not None:
        _check(seconds, settings.EVALHUB_ANSWER_SECONDS / 2, subject, advice, pointer)
        _take_place(work, seconds)


def begin_file(seconds: float) -> None:
    """Declare a file that is written while it is sent, or a request to another server.

    It may take as long as the other side does.
    """
    work = _WORK.get()
    if work is not None:
        _take_place(work, seconds)


def _check(seconds: float, limit: float, subject: str, advice: str, pointer: str | None) -> None:
    if seconds > limit:
        message = (
            f"{subject} would take about {seconds:,.{int(seconds < 10)}f} s; "
            f"the limit is {limit:g} s: {advice}"
        )
        raise StatisticsError(message, code="too_much_work", pointer=pointer)


def _take_place(work: Work, seconds: float) -> None:
    most = settings.EVALHUB_DEAR_REQUESTS
    if seconds <= CHEAP_SECONDS or work.placed or not most:
        return

    account, address = work.asker()
    place, full = SLOTS.take({account or "anonymous": most, address: 2 * most}, most)
    if place is None:
        raise _refusal(full, account, address, most)
    work.places.enter_context(place)
    work.placed = True


def known_sizes() -> dict[int, int]:
    """Return the known sizes of judged views of this request, for callers to extend."""
    work = _WORK.get()
    return {} if work is None else work.sizes


def begin_drawing() -> None:
    """Declare that charts are about to be drawn: many at once for one reader delay others.

    Raise LimitReached if as many requests draw as a browser sends at once.
    """
    keep_going()
    work, most = _WORK.get(), _DRAWN * settings.EVALHUB_DEAR_REQUESTS
    if work is None or work.drawing or not most:
        return

    account, address = work.asker()
    place = SLOTS.take_one(f"drawing:{account or address}", most)
    if place is None:
        message = (
            f"{most} charts are being drawn for you already: wait until some of them are there"
        )
        raise LimitReached(message, wait=_RETRY_SECONDS, code="too_many_at_once")
    work.places.enter_context(place)
    work.drawing = True


def _refusal(full: str, account: str | None, address: str, most: int) -> LimitReached | Unavailable:
    if not full:
        message = "the server is computing as much as it can for others; try again in a moment"
        return Unavailable(message, wait=_RETRY_SECONDS)

    if full == account:
        owner, advice = f"your account has {most}", "wait for their answers"
    elif full == address:
        owner, advice = f"your address has {2 * most}", "wait for their answers"
    else:
        owner = f"readers who are not signed in have {most}"
        advice = "sign in, or try again in a moment"

    message = f"{owner} requests that are being computed already: {advice}"
    return LimitReached(message, wait=_RETRY_SECONDS, code="too_many_at_once")
