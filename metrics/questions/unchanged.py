"""Cache answers that take long to compute and seldom change, and answer 304 to clients that have the current one.

The tag of an answer is a digest of everything on which it depends: the address with its query, the reader, and a
fingerprint of what is stored (metrics/services/boards/fingerprints.py). Every request reads the fingerprint after the
view's own permission check. No entry expires: changed data has another tag.

While runs arrive, the leaderboard changes every second. If it takes long to compute, the last one is returned for up to
EVALHUB_BOARD_SECONDS, with its own tag and its age, as long as only runs have changed.

With `snapshot`, the fingerprint and the answer are read as of one moment. No body is then cached under the tag of
another state, which may come back when a run is withdrawn and restored. Use it only for views that write nothing: the
view of a comparison may queue it.
"""

from __future__ import annotations

import hashlib
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.template.response import SimpleTemplateResponse
from django.utils.cache import patch_cache_control, patch_vary_headers
from django.utils.http import parse_etags
from rest_framework.request import Request

from metrics.engine.errors import EvalHubError
from metrics.questions.boards import board_query
from metrics.questions.measured import measured_board
from metrics.questions.saved_views import with_view
from metrics.questions.values import together_query
from metrics.services.boards.fingerprints import (
    Fingerprint,
    RunGroups,
    of_all_judgements,
    of_boards,
    of_code,
    of_described,
    of_filter,
    of_parameters,
    of_run,
)
from metrics.services.snapshots import read_in_snapshot
from runs.api.access import scored_collection, scored_run, sees_scores, visible_collection
from runs.api.parameters import text_of
from runs.models import Collection, Membership, can_see_scores

# Finds and refuses the same objects as the view, and returns None if the answer has no tag.
Reader = Callable[..., Fingerprint | None]
_LARGEST = 1024 * 1024
# A form belongs to one visitor: its token is set in a cookie of the answer.
_FORM = b"csrfmiddlewaretoken"
_ALL = 16 * 1024 * 1024
_MOST_BOARDS = 256
# What is cached with a body.
_KEPT_HEADERS = ("Content-Type", "Content-Disposition")
# A leaderboard that is computed faster than this is never returned from before.
_SLOW_SECONDS = 0.1
_VARY = ("Accept", "Accept-Encoding", "Authorization", "Cookie")


class Memory:
    """The latest bodies of this process by their keys, as many as fit; a key contains everything on which its body
    depends."""

    def __init__(self) -> None:
        self._bodies: OrderedDict[str, tuple[bytes, dict[str, str]]] = OrderedDict()
        self._lock = threading.Lock()
        self._size = 0
        # By everything but its runs: when a leaderboard was computed, how long it took, and the digest of its request.
        self._boards: OrderedDict[str, tuple[float, float, str]] = OrderedDict()
        # The number of answers returned from this cache, by which benchmarks know whether an answer was computed.
        self.recalled = 0

    def recall(self, key: str) -> HttpResponse | None:
        with self._lock:
            if key not in self._bodies:
                return None
            self._bodies.move_to_end(key)
            self.recalled += 1
            content, headers = self._bodies[key]
        return HttpResponse(content, headers=headers)

    def keep(self, key: str, response: Any) -> None:
        if response.status_code != 200 or len(response.content) > _LARGEST or _FORM in response.content:
            return
        with self._lock:
            if key not in self._bodies:
                headers = {name: response[name] for name in _KEPT_HEADERS if name in response}
                self._bodies[key] = response.content, headers
                self._size += len(response.content)
            while self._size > _ALL:
                self._size -= len(self._bodies.popitem(last=False)[1][0])

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
            return (asked, age) if took >= _SLOW_SECONDS and age <= settings.EVALHUB_BOARD_SECONDS else None

    def forget(self) -> None:
        with self._lock:
            self._bodies.clear()
            self._boards.clear()
            self._size = 0


MEMORY = Memory()


def unchanged(read: Reader, *, snapshot: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate the `get` of a view of the API, whose answer is the same for every permitted reader."""

    def decorate(get: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(get)
        def answer(self: Any, request: Request, **names: Any) -> Any:
            def make() -> Any:
                return _answer(request, read(request, **names), False, lambda: get(self, request, **names))

            return read_in_snapshot(make) if snapshot else make()

        # For the description: it may be answered 304.
        answer.unchanged = True  # type: ignore[attr-defined]
        return answer

    return decorate


def unchanged_page(
    read: Reader, *, snapshot: bool = False
) -> Callable[[Callable[..., HttpResponse]], Callable[..., HttpResponse]]:
    """Decorate a page, which also shows who is reading."""

    def decorate(page: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
        @wraps(page)
        def answer(request: HttpRequest, **names: Any) -> Any:
            def make() -> Any:
                return _answer(request, read(request, **names), True, lambda: page(request, **names))

            return read_in_snapshot(make) if snapshot else make()

        return answer

    return decorate


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
        board = together_query(text_of(request.GET), found, request.user).board
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
        return of_boards(found) + of_parameters(found) + of_described(found) + of_filter(found, query)
    except EvalHubError:
        return None


def of_asked_board(request: HttpRequest | Request, collection: Collection) -> Fingerprint | None:
    """Return the fingerprint of a leaderboard and its requested rows, or None if the request is invalid."""
    try:
        given = text_of(request.GET)
        parameters = with_view(given, collection, request.user)
        query = board_query(parameters, collection, request.user)
        kept = (tuple(sorted(parameters.items())),) if given.get("view") else ()
        return of_boards(collection) + of_filter(collection, query) + kept
    except EvalHubError:
        return None


def of_scored_run(request: HttpRequest | Request, run: UUID) -> Fingerprint:
    return of_run(scored_run(request, run))


def of_measures(request: HttpRequest | Request, **names: str) -> Fingerprint:
    return of_code()


def _answer(
    request: HttpRequest | Request, fingerprint: Fingerprint | None, personal: bool, make: Callable[[], Any]
) -> Any:
    if fingerprint is None:
        return make()
    # A label names the run of one of the reader's teams, and a view may name a label.
    personal = personal or any(word in request.META.get("QUERY_STRING", "") for word in ("label", "view"))
    viewer = (*_viewer(request), request.COOKIES.get(settings.CSRF_COOKIE_NAME)) if personal else _viewer(request)
    url = request.build_absolute_uri()
    asked, since = _digest(url, fingerprint), time.monotonic()
    settled = [part for part in fingerprint if not isinstance(part, RunGroups)]
    address = _digest(url, settled, viewer if personal else ())
    key = _digest(asked, viewer) if personal else asked
    response, age = MEMORY.recall(key), 0.0
    if response is None and any(part.under_way for part in fingerprint if isinstance(part, RunGroups)):
        earlier, age = MEMORY.lately(address) or ("", 0.0)
        response = MEMORY.recall(_digest(earlier, viewer) if personal else earlier)
        asked = earlier if response else asked
    tag = f'W/"{_digest(asked, viewer)}"'
    if _is_known(request, tag):
        return _labelled(HttpResponseNotModified(), tag)
    if response is None:
        response = make()

        def keep(rendered: Any) -> None:
            MEMORY.keep(key, rendered)
            MEMORY.keep_board(address, asked, since)

        if isinstance(response, SimpleTemplateResponse):
            response.add_post_render_callback(keep)
        else:
            keep(response)
    elif age:
        response["Age"] = str(math.ceil(age))
    return _labelled(response, tag) if response.status_code == 200 else response


def _is_known(request: HttpRequest | Request, tag: str) -> bool:
    """Return whether If-None-Match contains the tag; the comparison is weak, as it is for GET."""
    given = parse_etags(request.headers.get("If-None-Match", ""))
    return "*" in given or any(known.removeprefix("W/") == tag.removeprefix("W/") for known in given)


def _labelled(response: Any, tag: str) -> Any:
    response["ETag"] = tag
    patch_cache_control(response, private=True, no_cache=True)
    patch_vary_headers(response, _VARY)
    return response


def _viewer(request: HttpRequest | Request) -> Fingerprint:
    """Return the reader and their teams."""
    user = request.user
    if not user.is_authenticated:
        return ()
    teams = Membership.objects.filter(user=user).order_by("team").values_list("team", "role")
    return user.pk, user.get_username(), user.is_staff, tuple(teams)


def _digest(*parts: Any) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:40]
