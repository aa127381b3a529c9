"""Warm the cache with the answers that readers of a large collection request first.

Pages are requested as by a reader of the collection, and their parts are kept in the cache
(metrics/questions/answer_cache.py). Nothing depends on it: if a task fails, is killed or never
runs, the first request does the work.
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
# Answers about fewer runs are computed while their reader waits.
LEAST_RUNS = 200
# First the leaderboard with its statistics, which its page requests.
PAGES = (
    "board-piece",
    "comparison-page",
    "parameters-page",
    "frontier-page",
    "importance-page",
    "what-if-page",
)
MAX_SECONDS = 20.0


@shared_task(name="evalhub.warm_cache", soft_time_limit=int(2 * MAX_SECONDS), ignore_result=True)
def warm_cache(*, collection_id: int) -> int:
    """Compute the answers about a collection for the cache, and return how many pages were requested.

    Blind collections have none: their readers see different runs, and every reading is recorded.
    """
    collection = Collection.objects.filter(pk=collection_id, blind=False).first()
    runs = Run.objects.filter(collection=collection, deleted_at=None)
    if collection is None or runs.count() < LEAST_RUNS:
        return 0

    count, deadline = 0, time.monotonic() + MAX_SECONDS
    try:
        for reader, name in product(_readers(collection), PAGES):
            # Evaluations of the collection would outdate the rest, and their end starts this again.
            evaluations = Evaluation.objects.filter(
                run__collection=collection, state__in=(Job.QUEUED, Evaluation.HELD)
            )
            still_open = Collection.objects.filter(pk=collection.pk, blind=False)
            if time.monotonic() > deadline or evaluations.exists() or not still_open.exists():
                break

            count += _request(reverse(name, args=[collection.slug]), reader) == HTTPStatus.OK
    except SoftTimeLimitExceeded:
        logger.warning("answers about %s took longer than their time limit", collection.slug)
    except Exception:
        # A reader who requests the page will see the error; here nobody waits.
        logger.exception("answers about %s could not be cached", collection.slug)

    return count


def _readers(collection: Collection) -> list[Any]:
    """Return readers for whom the pages differ: a visitor or a member of the team, and an organiser.

    The visitor has no account. A team collection is shown to members only, a private one to
    organisers only.
    """
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


def _request(address: str, reader: Any) -> int:
    """Request a page and return its status."""
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
    # Pages mark the link to themselves.
    request.resolver_match = resolve(address)
    view, _, parameters = request.resolver_match

    owner = ("warming the cache", "warming the cache")
    with ExitStack() as stack, attention(MAX_SECONDS, bool), limited_work(lambda: owner, stack):
        status: int = view(request, **parameters).status_code
        return status
