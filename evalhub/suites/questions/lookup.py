"""Find the suites of a request among those that its user sees."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

from django.contrib.messages import get_messages
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import Http404, HttpRequest
from rest_framework.request import Request

from evalhub.suites.models import Suite, SuiteVersion
from evalhub.suites.services.board import SuiteBoard, SuiteBoardQuery, SuiteQuery, read_board
from evalhub.suites.services.comparison import (
    SuiteComparison,
    SuiteComparisonQuery,
    compare_systems,
)
from metrics.questions.answer_cache import Subject
from metrics.services.snapshots import revision_in_snapshot
from runs.errors import NotAllowed
from runs.models import Collection
from runs.web.access import find_once, sees_scores
from runs.web.parameters import text_of

AnyRequest = HttpRequest | Request


def suites_of(user: Any) -> QuerySet[Any]:
    """Return the suites that a user sees, each with the key of its newest visible version."""
    versions = SuiteVersion.objects.visible_to(user).filter(suite=OuterRef("pk"))
    newest = Subquery(versions.order_by("-number").values("pk")[:1])
    return Suite.objects.annotate(newest=newest).exclude(newest=None).select_related("team")


def versions_of(request: AnyRequest, slug: str) -> QuerySet[SuiteVersion]:
    """Return the versions of a suite that the user sees, newest first."""
    versions = SuiteVersion.objects.visible_to(request.user).filter(suite__slug=slug)
    return versions.select_related("suite__team", "created_by").order_by("-number")


def visible_version(request: AnyRequest, slug: str, number: int | None = None) -> SuiteVersion:
    """Return a version of a suite, the newest one without a number."""

    def read() -> SuiteVersion | None:
        versions = versions_of(request, slug)
        return (versions if number is None else versions.filter(number=number)).first()

    version = find_once(request, ("suite", slug, number), read)
    if version is None:
        raise Http404(f"there is no suite {slug!r}" + (f" v{number}" if number else ""))
    return version


def managed_suite(request: Request, slug: str) -> Suite:
    """Return a suite that the user makes versions of. Raise NotAllowed if it is only visible."""
    suite = visible_version(request, slug).suite
    if not manages(request.user, suite):
        raise NotAllowed(
            f"only owners of team {suite.team} can make versions of suite {slug}, or delete it"
        )
    return suite


def deletable_suite(request: Request, slug: str) -> Suite:
    """Return a suite that the user manages, also one with collections that they see no more. Raise
    NotAllowed if it is only visible."""
    managed = Suite.objects.managed_by(request.user).filter(slug=slug).select_related("team")
    return managed.first() or managed_suite(request, slug)


def manages(user: Any, suite: Suite) -> bool:
    """Return whether the user makes versions of this suite."""
    return bool(Suite.objects.managed_by(user).filter(pk=suite.pk).exists())


def scored_collections(request: AnyRequest, version: SuiteVersion) -> frozenset[int]:
    """Return the keys of the collections with results that the user sees and is about to read."""
    members = version.members.select_related("collection__team")
    collections = [member.collection for member in members]
    return frozenset(row.pk for row in collections if sees_scores(request, row))


def of_suite(request: AnyRequest, suite: str, **names: str) -> Subject | None:
    """Return what a leaderboard or comparison of a suite is about: the version, and the collections
    with their revisions. None where the reader does not see the results of one: how fast an answer
    is would reveal changes behind them."""
    version = visible_version(request, suite, SuiteQuery.read(text_of(request.GET)).version)
    members = version.members.select_related("collection__team").order_by("position")
    collections = [member.collection for member in members]
    if not all(sees_scores(request, collection) for collection in collections):
        return None

    changes = tuple(revision_in_snapshot(collection.pk).changes for collection in collections)
    extras = (version.pk, version.digest, changes)
    return Subject(collections[0], extras, may_be_old=False)


def of_suite_page(request: HttpRequest, suite: str) -> Subject | None:
    """Return the same of the page of a suite, which lists its versions. None for a page that says
    what its reader has just done."""
    subject = of_suite(request, suite)
    if subject is None or len(get_messages(request)):
        return None

    versions = tuple(versions_of(request, suite).values_list("number", flat=True))
    return replace(subject, extras=(*subject.extras, versions))


def all_who_see_the_results(request: AnyRequest, collection: Collection) -> Hashable:
    """Share an answer about a suite: `of_suite` keeps none for who does not see all results."""
    return ()


def visible_results(request: AnyRequest, version: SuiteVersion) -> frozenset[int]:
    """Return the keys of the collections with results that the user sees.

    Unlike `scored_collections` it records no reading: a version names judgements, no values.
    """
    keys = version.members.values("collection")
    scored = Collection.objects.scored_for(request.user).filter(pk__in=keys)
    return frozenset(scored.values_list("pk", flat=True))


def board_of(request: AnyRequest, slug: str) -> SuiteBoard:
    """Return the leaderboard that the parameters of a request ask for."""
    query = SuiteBoardQuery.read(text_of(request.GET), reader=request.user)
    version = visible_version(request, slug, query.version)
    return read_board(version, scored_collections(request, version), query)


def comparison_of(request: AnyRequest, slug: str) -> SuiteComparison:
    """Return the difference of two systems that the parameters of a request ask for."""
    query = SuiteComparisonQuery.read(text_of(request.GET), reader=request.user)
    version = visible_version(request, slug, query.version)
    return compare_systems(version, scored_collections(request, version), query)
