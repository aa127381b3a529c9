"""Warm the cache with the answers that readers of a large collection ask for first, as a request
would make them.

The pages are asked for as by a reader of the collection, and what is kept of them
(metrics/questions/answer_cache.py) is there when somebody comes. Nothing depends on it: a task that
fails, is killed or never comes leaves the work to the first request.
"""

from __future__ import annotations

import io
import logging
import time
from contextlib import ExitStack
from http import HTTPStatus
from itertools import product
from typing import Any
from urllib.parse import urlsplit

from celery import shared_task
from celery.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.core.handlers.wsgi import WSGIRequest
from django.urls import resolve, reverse

from metrics.models import Evaluation, Job
from metrics.services.work import limited_work
from runs.attention import attention
from runs.models import Collection, Membership, Run

logger = logging.getLogger(__name__)
# Answers about fewer runs are made while their reader waits.
LEAST_RUNS = 200
# The leaderboard with its statistics first: its page asks for it.
PAGES = (
    "board-piece",
    "comparison-page",
    "parameters-page",
    "frontier-page",
    "importance-page",
    "what-if-page",
)
MOST_SECONDS = 20.0


@shared_task(name="evalhub.warm_cache", soft_time_limit=int(2 * MOST_SECONDS), ignore_result=True)
def warm_cache(*, collection_id: int) -> int:
    """Make the answers about a collection for the cache. Return how many were made.

    Blind collections have none: which runs their readers see depends on the reader, and every
    reading is recorded.
    """
    collection = Collection.objects.filter(pk=collection_id, blind=False).first()
    if (
        collection is None
        or Run.objects.filter(collection=collection, deleted_at=None).count() < LEAST_RUNS
    ):
        return 0

    count, ends = 0, time.monotonic() + MOST_SECONDS
    try:
        for reader, name in product(_readers(collection), PAGES):
            # Evaluations of the collection would make the rest useless; their end is another mark.
            moves = Evaluation.objects.filter(
                run__collection=collection, state__in=(Job.QUEUED, Evaluation.HELD)
            )
            shown = Collection.objects.filter(pk=collection.pk, blind=False)
            if time.monotonic() > ends or moves.exists() or not shown.exists():
                break

            count += _ask(reverse(name, args=[collection.slug]), reader) == HTTPStatus.OK
    except SoftTimeLimitExceeded:
        logger.warning("answers about %s took longer than their time limit", collection.slug)
    except Exception:
        # Whoever asks for the page will be told; here nobody waits.
        logger.exception("answers about %s could not be cached", collection.slug)

    return count


def _readers(collection: Collection) -> list[Any]:
    """Return readers for whom the pages differ: somebody without an account or, where these see
    nothing, a member of the team, who sees nothing of a private collection; and an organiser."""
    team = Membership.objects.filter(team=collection.team, user__is_active=True)
    members = team.select_related("user").order_by("pk")
    organiser = members.filter(role=Membership.Role.OWNER).first()

    if collection.visibility == Collection.Visibility.PUBLIC:
        reader: Any = AnonymousUser()
    elif collection.visibility == Collection.Visibility.TEAM:
        member = members.exclude(role=Membership.Role.OWNER).first()
        reader = member and member.user
    else:
        reader = None

    return [user for user in (reader, organiser and organiser.user) if user is not None]


def _ask(address: str, reader: Any) -> int:
    """Ask for a page and return its status."""
    host = (
        urlsplit(settings.EVALHUB_URL).netloc
        or settings.ALLOWED_HOSTS[0].lstrip(".*")
        or "localhost"
    )

    environ = {
        "REQUEST_METHOD": "GET",
        "PATH_INFO": address,
        "HTTP_HOST": host,
        "wsgi.input": io.BytesIO(),
    }

    request: Any = WSGIRequest(environ)
    request.user = reader
    # Pages mark their own name among their links.
    request.resolver_match = resolve(address)
    view, _, names = request.resolver_match

    own = ("warming the cache", "warming the cache")
    with ExitStack() as places, attention(MOST_SECONDS, bool), limited_work(lambda: own, places):
        status: int = view(request, **names).status_code
        return status
