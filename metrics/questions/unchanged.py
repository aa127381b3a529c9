"""Answers that are expensive to make and seldom change: 304 to a client that has the present one, and a small memory.

The tag of an answer is a digest of everything it depends on: the address with its query, who asks, and a fingerprint of
what is stored (services/boards/fingerprints.py). The fingerprint is read after the view's own check of who may see
what, with every request. Nothing expires: what changes gets another tag.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import nullcontext
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
from metrics.questions.parameters import board_query
from metrics.services.boards.fingerprints import Fingerprint, of_boards, of_code, of_filter, of_run
from metrics.services.snapshots import one_snapshot
from runs.api.access import scored_collection, scored_run
from runs.models import Collection, Membership

# Reads what the view would find and refuses what it would refuse; None where the answer has no tag.
Reader = Callable[..., Fingerprint | None]
_LARGEST = 1024 * 1024
# A form is for one visitor: what it carries is set in a cookie of the answer that it was made for.
_FORM = b"csrfmiddlewaretoken"
_ALL = 16 * 1024 * 1024
_VARY = ("Accept", "Accept-Encoding", "Authorization", "Cookie")


class Memory:
    """The last bodies of this process by their keys, as many as fit; a key says all that its body depends on."""

    def __init__(self) -> None:
        self._bodies: OrderedDict[str, tuple[bytes, str]] = OrderedDict()
        self._lock = threading.Lock()
        self._size = 0

    def recall(self, key: str) -> HttpResponse | None:
        with self._lock:
            if key not in self._bodies:
                return None
            self._bodies.move_to_end(key)
            content, content_type = self._bodies[key]
        return HttpResponse(content, content_type=content_type)

    def keep(self, key: str, response: Any) -> None:
        if response.status_code != 200 or len(response.content) > _LARGEST or _FORM in response.content:
            return
        with self._lock:
            if key not in self._bodies:
                self._bodies[key] = response.content, response["Content-Type"]
                self._size += len(response.content)
            while self._size > _ALL:
                self._size -= len(self._bodies.popitem(last=False)[1][0])

    def forget(self) -> None:
        with self._lock:
            self._bodies.clear()
            self._size = 0


MEMORY = Memory()


def unchanged(read: Reader, *, snapshot: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """For the `get` of a view of the API, whose answer is the same to everybody who may have it."""

    def decorate(get: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(get)
        def answer(self: Any, request: Request, **names: Any) -> Any:
            with one_snapshot() if snapshot else nullcontext():
                return _answer(request, read(request, **names), False, lambda: get(self, request, **names))

        return answer

    return decorate


def unchanged_page(
    read: Reader, *, snapshot: bool = False
) -> Callable[[Callable[..., HttpResponse]], Callable[..., HttpResponse]]:
    """For a page, which also says who is reading."""

    def decorate(page: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
        @wraps(page)
        def answer(request: HttpRequest, **names: Any) -> Any:
            with one_snapshot() if snapshot else nullcontext():
                return _answer(request, read(request, **names), True, lambda: page(request, **names))

        return answer

    return decorate


def of_collection(request: HttpRequest | Request, collection: str) -> Fingerprint:
    return of_boards(scored_collection(request, collection))


def of_board(request: HttpRequest | Request, collection: str) -> Fingerprint | None:
    return of_asked_board(request, scored_collection(request, collection))


def of_asked_board(request: HttpRequest | Request, collection: Collection) -> Fingerprint | None:
    """Of a board and the rows of it that are asked for; None where the question has no answer."""
    try:
        query = board_query(request.GET.dict(), collection, request.user)
        return of_boards(collection) + of_filter(collection, query)
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
    viewer = (*_viewer(request), request.COOKIES.get(settings.CSRF_COOKIE_NAME)) if personal else _viewer(request)
    asked = _digest(request.build_absolute_uri(), fingerprint)
    key = _digest(asked, viewer) if personal else asked
    tag = f'W/"{_digest(asked, viewer)}"'
    if _is_known(request, tag):
        return _labelled(HttpResponseNotModified(), tag)
    response = MEMORY.recall(key)
    if response is None:
        response = make()
        _keep_when_rendered(key, response)
    return _labelled(response, tag) if response.status_code == 200 else response


def _keep_when_rendered(key: str, response: Any) -> None:
    if isinstance(response, SimpleTemplateResponse):
        response.add_post_render_callback(lambda rendered: MEMORY.keep(key, rendered))
    else:
        MEMORY.keep(key, response)


def _is_known(request: HttpRequest | Request, tag: str) -> bool:
    """Whether If-None-Match names the tag; the comparison is weak, as it is for GET."""
    given = parse_etags(request.headers.get("If-None-Match", ""))
    return "*" in given or any(known.removeprefix("W/") == tag.removeprefix("W/") for known in given)


def _labelled(response: Any, tag: str) -> Any:
    response["ETag"] = tag
    patch_cache_control(response, private=True, no_cache=True)
    patch_vary_headers(response, _VARY)
    return response


def _viewer(request: HttpRequest | Request) -> Fingerprint:
    """Who asks and in which teams."""
    user = request.user
    if not user.is_authenticated:
        return ()
    teams = Membership.objects.filter(user=user).order_by("team").values_list("team", "role")
    return user.pk, user.get_username(), user.is_staff, tuple(teams)


def _digest(*parts: Any) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:40]
