"""Cache answers that take long to compute and seldom change, and answer 304 to clients that have the current one.

An answer is cached under a digest of everything on which it depends: the address with its query, the reader, and a
fingerprint of what is stored (metrics/services/boards/fingerprints.py). Every request reads the fingerprint after the
view's own permission check. No entry expires: changed data has another key.

The tag of an answer is a digest of its body. A digest of the key would reveal changes of what its reader does not see.

While runs arrive, the leaderboard changes every second. If it takes long to compute, the last one is returned for up to
EVALHUB_BOARD_SECONDS, with its own tag and its age, as long as only runs have changed.

An answer that took long is kept for all processes as well (metrics/services/kept_answers.py). A page is kept without
its reader (metrics/questions/left_out.py): with `standing`, one for all readers of whom it shows the same, and
otherwise one for each reader.

Fingerprint and answer are read as of one moment. Otherwise the body of one state could be cached under the key of
another one, which comes back when a run is withdrawn and restored, or when earlier judgements are activated again.

A view therefore writes nothing while it reads: it leaves writes to `runs.services.reading.after_snapshot`. If its answer
depends on what it writes, as that of a comparison which it queues, it returns a function that writes and answers.
"""

from __future__ import annotations

import hashlib
import json
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, wraps
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.template.response import SimpleTemplateResponse
from django.utils.cache import patch_cache_control, patch_vary_headers
from django.utils.http import parse_etags
from rest_framework.request import Request

from metrics.engine.errors import EvalHubError
from metrics.questions.left_out import with_reader, without_reader
from metrics.questions.measured import measured_board
from metrics.questions.saved_views import with_view
from metrics.services import kept_answers
from metrics.services.boards.asked import BoardQuery
from metrics.services.boards.fingerprints import (
    Fingerprint,
    of_all_judgements,
    of_boards,
    of_code,
    of_described,
    of_filter,
    of_parameters,
    of_run,
)
from metrics.services.boards.groups import RunGroups
from metrics.services.snapshots import read_in_snapshot
from metrics.services.values.curves_together import TogetherQuery
from runs.api.access import (
    find_again,
    scored_collection,
    scored_run,
    sees_scores,
    visible_collection,
)
from runs.api.parameters import text_of
from runs.models import Collection, Membership, Run, Team, can_see_scores

# Finds and refuses the same objects as the view, and returns None if the answer has no tag.
Reader = Callable[..., Fingerprint | None]
# What a page shows of its reader beside the header; None if that is not known.
Standing = Callable[..., Fingerprint | None]
_LARGEST, _ALL = 1024 * 1024, 16 * 1024 * 1024
_MOST_BOARDS = 256
# What is cached with a body.
_KEPT_HEADERS = ("Content-Type", "Content-Disposition")
# A leaderboard that is computed faster than this is never returned from before, and no such answer is kept in a file.
_SLOW_SECONDS = 0.1
# With these words in a parameter an answer depends on its reader: a label names the run of one of the reader's teams,
# and a view may name a label.
_OF_READERS = ("label", "view", "own")
_VARY = ("Accept", "Accept-Encoding", "Authorization", "Cookie")


@dataclass(frozen=True)
class Body:
    """An answer as it is kept; a page is without its reader."""

    content: bytes
    headers: dict[str, str]

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @classmethod
    def of(cls, response: Any, page: bool) -> Body:
        headers = {name: response[name] for name in _KEPT_HEADERS if name in response}
        return cls(without_reader(response.content) if page else response.content, headers)

    def answer(self, request: HttpRequest | Request, page: bool) -> HttpResponse:
        content = with_reader(self.content, request) if page else self.content
        return HttpResponse(content, headers=self.headers)


@dataclass(frozen=True)
class Asked:
    """What a request asks for: `whole` is a digest of its address and its fingerprint, `key` also of its `reader`, and
    `address` of everything but the runs. A `personal` answer belongs to one reader."""

    whole: str
    key: str
    address: str
    reader: Fingerprint
    personal: bool

    @classmethod
    def of(
        cls,
        request: HttpRequest | Request,
        fingerprint: Fingerprint,
        page: bool,
        standing: Fingerprint | None,
    ) -> Asked:
        # Decoded: an address may write any letter as %61.
        words = [
            text.casefold() for name, values in request.GET.lists() for text in (name, *values)
        ]
        personal = any(word in text for text in words for word in _OF_READERS) or (
            page and standing is None
        )
        reader = _viewer(request) if personal else standing or ()
        # Shared pages are the same under every name of the host: one that names it is not kept.
        url = request.build_absolute_uri() if personal or not page else request.get_full_path()
        whole = _digest(url, fingerprint)
        settled = [part for part in fingerprint if not isinstance(part, RunGroups)]
        return cls(whole, _digest(whole, reader), _digest(url, settled, reader), reader, personal)


class Memory:
    """The latest bodies of this process by their keys, as many as fit; a key contains everything on which its body
    depends."""

    def __init__(self) -> None:
        self._bodies: OrderedDict[str, Body] = OrderedDict()
        self._lock = threading.Lock()
        self._size = 0
        # By everything but its runs: when a leaderboard was computed, how long it took, and the digest of its request.
        self._boards: OrderedDict[str, tuple[float, float, str]] = OrderedDict()
        # The number of answers returned from this cache, by which benchmarks know whether an answer was computed.
        self.recalled = 0

    def recall(self, key: str) -> Body | None:
        with self._lock:
            if key not in self._bodies:
                return None
            self._bodies.move_to_end(key)
            self.recalled += 1
            return self._bodies[key]

    def keep(self, key: str, body: Body) -> None:
        if len(body.content) > _LARGEST:
            return
        with self._lock:
            if key not in self._bodies:
                self._bodies[key] = body
                self._size += len(body.content)
            while self._size > _ALL:
                self._size -= len(self._bodies.popitem(last=False)[1].content)

    def keep_board(self, address: str, asked: str, since: float) -> None:
        """Record that computing the leaderboard began at `since`, a reading of the monotonic clock, and ends now."""
        with self._lock:
            now = time.monotonic()
            self._boards[address] = now, now - since, asked
            self._boards.move_to_end(address)
            while len(self._boards) > _MOST_BOARDS:
                self._boards.popitem(last=False)

    def lately(self, address: str) -> tuple[str, float] | None:
        """Return the digest of the last leaderboard's request and its age in seconds, or None if it was computed
        quickly or long ago."""
        with self._lock:
            made, took, asked = self._boards.get(address, (0.0, 0.0, ""))
            age = time.monotonic() - made
            return (
                (asked, age)
                if took >= _SLOW_SECONDS and age <= settings.EVALHUB_BOARD_SECONDS
                else None
            )

    def forget(self) -> None:
        with self._lock:
            self._bodies.clear()
            self._boards.clear()
            self._size = 0


MEMORY = Memory()


def unchanged(
    read: Reader, *, stored: bool = True
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate the `get` of a view of the API, whose answer is the same for every permitted reader. One that depends on
    nothing `stored` is given without the database."""

    def decorate(get: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(get)
        def answer(self: Any, request: Request, **names: Any) -> Any:
            def compute() -> Any:
                return _answer(
                    request, read(request, **names), False, lambda: get(self, request, **names)
                )

            return _as_of_one_moment(request, compute) if stored else compute()

        # For the description: it may be answered 304.
        answer.unchanged = True  # type: ignore[attr-defined]
        return answer

    return decorate


def unchanged_page(
    read: Reader, *, stored: bool = True, standing: Standing | None = None
) -> Callable[[Callable[..., HttpResponse]], Callable[..., HttpResponse]]:
    """Decorate a page, which also shows who reads it; `standing` returns what else of the reader it depends on."""

    def decorate(page: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
        @wraps(page)
        def answer(request: HttpRequest, **names: Any) -> Any:
            def compute() -> Any:
                fingerprint = read(request, **names)
                stands = standing(request, **names) if standing and fingerprint else None
                return _answer(request, fingerprint, True, lambda: page(request, **names), stands)

            return _as_of_one_moment(request, compute) if stored else compute()

        answer.unchanged = True  # type: ignore[attr-defined]
        return answer

    return decorate


def _as_of_one_moment(request: HttpRequest | Request, compute: Callable[[], Any]) -> Any:
    """Return the answer that `compute` reads as of one moment. If it is a function, call it afterwards: it may write."""
    # Who reads is settled before: a session that has become invalid is deleted, and a snapshot refuses that.
    bool(request.user.is_authenticated)

    def read() -> Any:
        # Damaged values are read again at a later moment, and so is everything else.
        find_again(request)
        return compute()

    response = read_in_snapshot(read)
    return response() if callable(response) else response


def same_for_all(request: HttpRequest, slug: str) -> Fingerprint | None:
    """Return the standing of readers for a page about all runs of a collection: none, once the judgements are public.
    Before, the reader decides which runs there are."""
    return None if visible_collection(request, slug).blind else ()


def same_for_signed_in(request: HttpRequest, slug: str) -> Fingerprint | None:
    """Return the same for a page that offers more to those who are signed in."""
    stands = same_for_all(request, slug)
    return stands if stands is None else (request.user.is_authenticated,)


def same_for_strangers(request: HttpRequest, slug: str) -> Fingerprint | None:
    """Return the same for a page that marks the runs of the reader's teams: None for those who have some."""
    found, user = visible_collection(request, slug), request.user
    if (
        user.is_authenticated
        and Run.objects.filter(collection=found, team__in=Team.objects.of(user)).exists()
    ):
        return None
    return same_for_signed_in(request, slug)


def same_for_organisers(request: HttpRequest, slug: str) -> Fingerprint | None:
    """Return the same for a page with forms for organisers."""
    found, stands = visible_collection(request, slug), same_for_all(request, slug)
    return (
        stands
        if stands is None
        else (Collection.objects.managed_by(request.user).filter(pk=found.pk).exists(),)
    )


def of_visible_collection(request: HttpRequest | Request, slug: str) -> Fingerprint | None:
    """Return the fingerprint of a collection's leaderboards for a page, or None while the judgements are blind."""
    found = visible_collection(request, slug)
    return of_boards(found) if sees_scores(request, found) else None


def of_collection(request: HttpRequest | Request, collection: str) -> Fingerprint:
    return of_boards(scored_collection(request, collection))


def of_judged_collection(request: HttpRequest | Request, collection: str) -> Fingerprint:
    return of_all_judgements(scored_collection(request, collection, values=False))


def of_board(request: HttpRequest | Request, collection: str) -> Fingerprint | None:
    return of_asked_board(request, scored_collection(request, collection))


def of_chosen_runs(request: HttpRequest | Request, collection: str) -> Fingerprint | None:
    """Return the fingerprint of the runs that `runs` or `filter` select, or None if the request is invalid."""
    return _of_chosen(request, scored_collection(request, collection))


def _of_chosen(request: HttpRequest | Request, found: Collection) -> Fingerprint | None:
    try:
        board = TogetherQuery.read(text_of(request.GET), found, request.user).board
        return of_boards(found) + (of_filter(found, board) if board else ())
    except EvalHubError:
        return None


def of_explained(request: HttpRequest | Request, collection: str) -> Fingerprint | None:
    """Return the fingerprint of the chosen runs with their parameters and costs, or None if the request is invalid."""
    found = scored_collection(request, collection)
    chosen = _of_chosen(request, found)
    return chosen and (*chosen, *of_parameters(found), *of_described(found))


def of_explained_page(request: HttpRequest | Request, slug: str) -> Fingerprint | None:
    """Return the same for a page, or None while the judgements are blind."""
    found = visible_collection(request, slug)
    return of_explained(request, slug) if can_see_scores(request.user, found) else None


def of_measured_runs(request: HttpRequest | Request, collection: str) -> Fingerprint | None:
    """Return the fingerprint of runs with their parameters, or None if the request is invalid."""
    found = scored_collection(request, collection)
    try:
        query = measured_board(text_of(request.GET), found, request.user)
        return (
            of_boards(found) + of_parameters(found) + of_described(found) + of_filter(found, query)
        )
    except EvalHubError:
        return None


def of_asked_board(request: HttpRequest | Request, collection: Collection) -> Fingerprint | None:
    """Return the fingerprint of a leaderboard and its requested rows, or None if the request is invalid."""
    try:
        given = text_of(request.GET)
        parameters = with_view(given, collection, request.user)
        query = BoardQuery.read(parameters, collection, request.user)
        kept = (tuple(sorted(parameters.items())),) if given.get("view") else ()
        return of_boards(collection) + of_filter(collection, query) + kept
    except EvalHubError:
        return None


def of_scored_run(request: HttpRequest | Request, run: UUID) -> Fingerprint:
    return of_run(scored_run(request, run))


def of_measures(request: HttpRequest | Request, **names: str) -> Fingerprint:
    return of_code()


def _answer(
    request: HttpRequest | Request,
    fingerprint: Fingerprint | None,
    page: bool,
    make: Callable[[], Any],
    standing: Fingerprint | None = None,
) -> Any:
    """Return the answer that is kept, or a new one. `standing` is what a page shows of its reader, if that is known."""
    if fingerprint is None:
        return make()
    asked, since = Asked.of(request, fingerprint, page, standing), time.monotonic()
    age = 0.0
    body = MEMORY.recall(asked.key) or _of_all_processes(asked.key)
    if body is None and any(part.under_way for part in fingerprint if isinstance(part, RunGroups)):
        earlier, age = MEMORY.lately(asked.address) or ("", 0.0)
        body = MEMORY.recall(_digest(earlier, asked.reader))
    if body is not None:
        response: Any = body.answer(request, page)
        if age:
            response["Age"] = str(math.ceil(age))
        return _conditional(request, response, body, page)
    response = make()
    if callable(response):
        return response

    def keep(rendered: Any) -> Any:
        if rendered.status_code != HTTPStatus.OK:
            return rendered
        body = Body.of(rendered, page)
        names_host = page and request.get_host().encode() in body.content
        if asked.personal or not names_host:
            MEMORY.keep(asked.key, body)
            MEMORY.keep_board(asked.address, asked.whole, since)
            if time.monotonic() - since >= _SLOW_SECONDS and not (page and asked.personal):
                headers = json.dumps(body.headers).encode()
                kept_answers.keep(asked.key, headers + b"\n" + body.content)
        return _conditional(request, rendered, body, page)

    if isinstance(response, SimpleTemplateResponse):
        response.add_post_render_callback(keep)
        return response
    return keep(response)


def _of_all_processes(key: str) -> Body | None:
    """Return what any process of the server kept."""
    found = kept_answers.recall(key)
    if found is None:
        return None
    headers, _, content = found.partition(b"\n")
    body = Body(content, json.loads(headers))
    MEMORY.keep(key, body)
    return body


def _is_known(request: HttpRequest | Request, tag: str) -> bool:
    """Return whether If-None-Match contains the tag; the comparison is weak, as it is for GET."""
    given = parse_etags(request.headers.get("If-None-Match", ""))
    return "*" in given or any(
        known.removeprefix("W/") == tag.removeprefix("W/") for known in given
    )


def _conditional(request: HttpRequest | Request, response: Any, body: Body, page: bool) -> Any:
    """Return the response with its tag, or 304 with its other headers if the client has it."""
    # A page with a form belongs to one browser, by its cookie, and names its reader, whom the body leaves out.
    browser = (_viewer(request), request.COOKIES.get(settings.CSRF_COOKIE_NAME)) if page else ()
    tag = f'W/"{_digest(body.digest, body.headers, browser)}"'
    response["ETag"] = tag
    patch_cache_control(response, private=True, no_cache=True)
    patch_vary_headers(response, _VARY)
    if not _is_known(request, tag):
        return response
    headers = {name: value for name, value in response.items() if name not in _KEPT_HEADERS}
    return HttpResponseNotModified(headers=headers)


def _viewer(request: HttpRequest | Request) -> Fingerprint:
    """Return the reader and their teams."""
    user = request.user
    if not user.is_authenticated:
        return ()
    teams = Membership.objects.filter(user=user).order_by("team").values_list("team", "role")
    return user.pk, user.get_username(), user.is_staff, tuple(teams)


def _digest(*parts: Any) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:40]
