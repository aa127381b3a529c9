"""Keep answers that take long to compute, and answer 304 to clients that have the current one.

An answer is kept under its address, the class of its reader, and the revision of the collection
that it is about (runs/services/audit/revisions.py), which every change raises: nothing is ever
invalidated. Every request checks the permissions of its reader first. A view that says nothing is
kept for one reader; `shared_by` says of whom else the answer is the same.

The revision and the answer are read as of one moment: the body of one state is never kept under the
revision of another one. A view therefore writes nothing while it reads: it leaves writes to
`runs.services.audit.reading.after_snapshot`. If its answer depends on what it writes, as that of a
comparison which it queues, it returns a function that writes and answers.

A page is kept in pieces: between them are what its header says of its reader, and the tokens of its
forms, which belong to one browser (`PageSlots`).

The tag of an answer is a digest of its body. A digest of the key would reveal changes of what its
reader does not see.

While runs arrive, the leaderboard changes every second. If it takes long to compute, the last one
is returned for up to EVALHUB_BOARD_SECONDS, with its own tag and its age, as long as only runs
arrive.
"""

from __future__ import annotations

import hashlib
import math
import secrets
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.middleware.csrf import get_token
from django.template.loader import render_to_string
from django.template.response import SimpleTemplateResponse
from django.utils import timezone
from django.utils.cache import patch_cache_control, patch_vary_headers
from django.utils.http import parse_etags
from rest_framework.request import Request

from metrics.engine.errors import EvalHubError
from metrics.models import Evaluation
from metrics.questions.run_ids import without_labels
from metrics.questions.saved_views import with_view
from metrics.services.answer_store import keep, recall
from metrics.services.boards.filter import asks_for
from metrics.services.boards.filter_grammar import parse_filter
from metrics.services.snapshots import read_in_snapshot, revision_in_snapshot
from runs.models import Collection, Membership, Run, Team
from runs.web.access import (
    find_again,
    scored_collection,
    scored_run,
    sees_scores,
    visible_collection,
)
from runs.web.parameters import text_of

AnyRequest = HttpRequest | Request
# What is kept with a body.
_KEPT_HEADERS = ("Content-Type", "Content-Disposition")
_VARY = ("Accept", "Accept-Encoding", "Authorization", "Cookie")
# A leaderboard that is computed faster than this is never returned from before.
_SLOW_SECONDS = 0.1
_MOVING = (Evaluation.State.QUEUED, Evaluation.State.EVALUATING)


@dataclass(frozen=True)
class Subject:
    """What an answer is about: a collection, and in `extras` what else it shows that the
    collection's revision does not cover. If it `may_be_old`, the last answer is returned while runs
    arrive."""

    collection: Collection
    extras: tuple[Hashable, ...] = ()
    may_be_old: bool = True


# Finds and refuses the same objects as the view. Returns None if the answer is not kept.
Find = Callable[..., Subject | None]
# Returns what of its reader an answer depends on, or None if the answer is one reader's.
Sharing = Callable[[AnyRequest, Collection], Hashable]


@dataclass(frozen=True)
class PageSlots:
    """The places of a page for what belongs to its reader. While the page is rendered, they contain
    texts that nobody can guess."""

    account: str = field(default_factory=lambda: secrets.token_hex(32))
    token: str = field(default_factory=lambda: secrets.token_hex(32))

    def split(self, content: bytes) -> tuple[tuple[bytes, ...], ...]:
        """Return the pieces before and after the account, each as its own pieces before and after
        every token."""
        account, token = self.account.encode(), self.token.encode()
        return tuple(tuple(piece.split(token)) for piece in content.split(account))


def page_slots(request: HttpRequest) -> dict[str, str]:
    """Return the texts in place of the account and tokens of a page that is kept.

    This is a context processor.
    """
    slots: PageSlots | None = getattr(request, "page_slots", None)
    return {"account_slot": slots.account, "csrf_token": slots.token} if slots else {}


@dataclass(frozen=True)
class KeptAnswer:
    """An answer as it is kept: its body in pieces. An answer of the API has one piece."""

    headers: dict[str, str]
    pieces: tuple[tuple[bytes, ...], ...]
    digest: str

    @classmethod
    def of(cls, response: Any, slots: PageSlots | None) -> KeptAnswer:
        headers = {name: response[name] for name in _KEPT_HEADERS if name in response}
        pieces = slots.split(response.content) if slots else ((response.content,),)
        body = hashlib.sha256(b"".join(piece for row in pieces for piece in row))

        return cls(headers, pieces, _digest(headers, body.hexdigest()))

    def names(self, host: str) -> bool:
        return any(host.encode() in piece for row in self.pieces for piece in row)

    def content(self, request: AnyRequest) -> bytes:
        """Return the body for the reader of a request."""
        token = account = b""
        if any(len(pieces) > 1 for pieces in self.pieces):
            token = get_token(request).encode()

        if len(self.pieces) > 1:
            account = render_to_string("evalhub/_account.html", request=request).encode()

        return account.join(token.join(pieces) for pieces in self.pieces)


@dataclass(frozen=True)
class Key:
    """The keys of an answer: `exact` has the revision of its collection, and `settled` the revision
    without arriving runs. `shared` says whether it is for others than one reader."""

    exact: str
    settled: str
    shared: bool

    @classmethod
    def of(
        cls, request: AnyRequest, subject: Subject | None, sharing: Sharing | None, *, page: bool
    ) -> Key:
        collection = subject.collection if subject else None
        shares = sharing(request, collection) if sharing and collection else None
        shared = shares is not None or (sharing is not None and collection is None)

        # Shared pages are the same under every name of the host: one that names it is not kept.
        address = request.get_full_path() if shared and page else request.build_absolute_uri()
        reader = ("shared", shares) if shared else ("of one reader", reader_of(request))
        # A citation names the day; names of teams are shown from a moment on.
        now = timezone.now().date(), collection and collection.veiled
        parts = (address, reader, now, subject and subject.extras)
        if collection is None:
            return cls(_digest(parts), "", shared)

        revision = revision_in_snapshot(collection.pk)
        return cls(
            _digest("exact", parts, collection.pk, revision.changes),
            _digest("settled", parts, collection.pk, revision.others),
            shared,
        )


def cached(
    find: Find | None, *, shared_by: Sharing | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate the `get` of a view of the API; `find` is None if it reads nothing stored."""

    def decorate(get: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(get)
        def answer(self: Any, request: Request, **names: Any) -> Any:
            question = Question(request, find, shared_by, names, page=False)
            return question.answer(lambda: get(self, request, **names))

        # For the description: it may be answered 304.
        answer.cached, answer.shared_by = True, shared_by  # type: ignore[attr-defined]
        return answer

    return decorate


def cached_page(
    find: Find | None, *, shared_by: Sharing | None = None
) -> Callable[[Callable[..., HttpResponse]], Callable[..., HttpResponse]]:
    """Decorate the view of a page, which has a header and form tokens of each reader."""

    def decorate(page: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
        @wraps(page)
        def answer(request: HttpRequest, **names: Any) -> Any:
            question = Question(request, find, shared_by, names, page=True)
            return question.answer(lambda: page(request, **names))

        answer.cached, answer.shared_by = True, shared_by  # type: ignore[attr-defined]
        return answer

    return decorate


@dataclass(frozen=True)
class Question:
    """A request for an answer that may be kept."""

    request: Any
    find: Find | None
    sharing: Sharing | None
    names: Mapping[str, Any]
    page: bool

    def answer(self, make: Callable[[], Any]) -> Any:
        """Return the answer that is kept, or the one that `make` makes, as of one moment."""
        if self.find is None:
            return self._read(make)

        # Who reads is settled before: a session that has become invalid is deleted, and a snapshot
        # refuses that.
        bool(self.request.user.is_authenticated)

        def read() -> Any:
            # Damaged values are read again at a later moment, and so is everything else.
            find_again(self.request)
            return self._read(make)

        response = read_in_snapshot(read)
        # It may write.
        return response() if callable(response) else response

    def _read(self, make: Callable[[], Any]) -> Any:
        since = time.monotonic()
        subject = self.find(self.request, **self.names) if self.find else None
        if self.find and subject is None:
            return make()

        key = Key.of(self.request, subject, self.sharing, page=self.page)
        if answer := recall(key.exact):
            return self._respond(answer)

        # While runs arrive, the last answer that took long is returned for some seconds.
        if subject and subject.may_be_old and (old := recall(key.settled)) and are_moving(subject):
            exact, stored_at = old
            if answer := recall(exact):
                return self._respond(answer, age=time.time() - stored_at)

        slots = PageSlots() if self.page else None
        response = self._make(make, slots)
        if callable(response):
            return response

        def keep_rendered(rendered: Any) -> Any:
            return self._keep(rendered, slots, key, time.monotonic() - since)

        if isinstance(response, SimpleTemplateResponse):
            response.add_post_render_callback(keep_rendered)
            return response

        return keep_rendered(response)

    def _make(self, make: Callable[[], Any], slots: PageSlots | None) -> Any:
        if slots is None:
            return make()

        self.request.page_slots = slots
        try:
            return make()
        finally:
            del self.request.page_slots

    def _respond(self, answer: KeptAnswer, age: float = 0.0) -> Any:
        response = HttpResponse(answer.content(self.request), headers=answer.headers)
        if age:
            response["Age"] = str(math.ceil(age))

        return self._conditional(response, answer)

    def _keep(self, response: Any, slots: PageSlots | None, key: Key, took: float) -> Any:
        answer = KeptAnswer.of(response, slots)
        if slots:
            response.content = answer.content(self.request)

        if response.status_code != HTTPStatus.OK:
            return response

        if not (self.page and key.shared and answer.names(self.request.get_host())):
            keep(key.exact, answer, took=took)
            if took >= _SLOW_SECONDS and settings.EVALHUB_BOARD_SECONDS:
                latest = key.exact, time.time()
                keep(key.settled, latest, took=took, seconds=settings.EVALHUB_BOARD_SECONDS)

        return self._conditional(response, answer)

    def _conditional(self, response: Any, answer: KeptAnswer) -> Any:
        """Return the response with its tag, or 304 with its other headers if the client has it."""
        browser: Hashable = ()
        if self.page:
            # A page with a form belongs to one browser, by its cookie, and names its reader.
            cookie = self.request.COOKIES.get(settings.CSRF_COOKIE_NAME)
            browser = reader_of(self.request), cookie

        tag = f'W/"{_digest(answer.digest, browser)}"'
        response["ETag"] = tag
        patch_cache_control(response, private=True, no_cache=True)
        patch_vary_headers(response, _VARY)
        if not self._has(tag):
            return response

        headers = {name: value for name, value in response.items() if name not in _KEPT_HEADERS}
        return HttpResponseNotModified(headers=headers)

    def _has(self, tag: str) -> bool:
        """Return whether If-None-Match contains the tag, by weak comparison as GET requires."""
        tags = parse_etags(self.request.headers.get("If-None-Match", ""))
        opaque_tags = [candidate.removeprefix("W/") for candidate in tags]
        return "*" in tags or tag.removeprefix("W/") in opaque_tags


def are_moving(subject: Subject) -> bool:
    """Return whether runs of the collection are to be evaluated."""
    jobs = Evaluation.objects.filter(qrels__collection=subject.collection, state__in=_MOVING)
    return jobs.exists()


def reader_of(request: AnyRequest) -> tuple[Hashable, ...]:
    """Return the reader and their teams."""
    user = request.user
    if not user.is_authenticated:
        return ()

    teams = Membership.objects.filter(user=user).order_by("team").values_list("team", "role")
    return user.pk, user.get_username(), user.is_staff, tuple(teams)


# What answers are about.


def of_collection(request: AnyRequest, collection: str, **names: str) -> Subject:
    return Subject(scored_collection(request, collection))


def of_judged_collection(request: AnyRequest, collection: str) -> Subject:
    return Subject(scored_collection(request, collection, values=False))


def of_scored_run(request: AnyRequest, run: UUID) -> Subject:
    return Subject(scored_run(request, run).collection)


def of_visible_collection(request: AnyRequest, slug: str, **names: str) -> Subject | None:
    """Return the collection of a page, or None while its judgements are blind: a tag would reveal
    every change behind them."""
    collection = visible_collection(request, slug)
    return Subject(collection) if sees_scores(request, collection) else None


# For whom an answer is the same.


def everybody(request: AnyRequest, collection: Collection) -> Hashable:
    """Share an answer with all who may read it and mean the same by their labels, the view and
    their own runs."""
    try:
        parameters = with_view(text_of(request.GET), collection, request.user)
        return meaning_of(parameters, collection, request.user)
    except EvalHubError:
        return None


def meaning_of(
    parameters: Mapping[str, str], collection: Collection, reader: Any
) -> tuple[Hashable, ...]:
    """Return the meaning of parameters: the runs that labels name, and the reader for `own`."""
    by_id = without_labels(parameters, collection, reader)
    term = parse_filter(by_id.get("filter", ""))
    own = reader.pk if term and asks_for(term, "own") else None

    return tuple(sorted(by_id.items())), own


def all_who_signed_in(request: AnyRequest, collection: Collection) -> Hashable:
    """Share a page about all runs of a collection, which offers more to those who are signed in,
    once its judgements are public. Before, the reader decides which runs there are."""
    shares = None if collection.blind else everybody(request, collection)
    return shares and (shares, request.user.is_authenticated)


def all_without_runs(request: AnyRequest, collection: Collection) -> Hashable:
    """Share a page that marks the runs of the reader's teams with those who have none."""
    user = request.user
    teams = Team.objects.of(user) if user.is_authenticated else Team.objects.none()
    if Run.objects.filter(collection=collection, team__in=teams).exists():
        return None

    return all_who_signed_in(request, collection)


def all_organisers(request: AnyRequest, collection: Collection) -> Hashable:
    """Share a page with forms for organisers among these, and among all others."""
    shares = all_who_signed_in(request, collection)
    managed = Collection.objects.managed_by(request.user).filter(pk=collection.pk)
    return shares and (shares, managed.exists())


def _digest(*parts: Any) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:40]
