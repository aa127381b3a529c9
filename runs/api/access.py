"""Finding what a request names: what its user may not see does not exist."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import Http404, HttpRequest
from rest_framework.request import Request

from metrics.engine.errors import NotAllowed
from runs.models import Collection, Qrels, Run, Topic


def collections_of(user: Any) -> QuerySet[Collection]:
    """Visible collections with their numbers of topics and runs and their active qrels version."""
    topics = Topic.objects.filter(collection=OuterRef("pk")).order_by().values("collection")
    runs = Run.objects.filter(collection=OuterRef("pk"), deleted_at=None).order_by().values("collection")
    versions = Qrels.objects.filter(collection=OuterRef("pk"), active=True)
    return (
        Collection.objects.visible_to(user)
        .select_related("team")
        .annotate(
            topic_count=Coalesce(Subquery(topics.annotate(n=Count("pk")).values("n")), 0),
            run_count=Coalesce(Subquery(runs.annotate(n=Count("pk")).values("n")), 0),
            active_version=Subquery(versions.values("version")[:1]),
        )
    )


def visible_collection(request: HttpRequest | Request, slug: str) -> Collection:
    found = Collection.objects.visible_to(request.user).select_related("team").filter(slug=slug).first()
    if found is None:
        raise Http404(f"there is no collection {slug!r}")
    return found


def counted_collection(request: HttpRequest | Request, slug: str) -> Collection:
    """The same with its numbers of topics and runs and its active qrels version."""
    visible_collection(request, slug)
    return collections_of(request.user).get(slug=slug)


def managed_collection(request: Request, slug: str) -> Collection:
    """A collection that the user may change; NotAllowed where the user may only see it."""
    found = visible_collection(request, slug)
    if not Collection.objects.managed_by(request.user).filter(pk=found.pk).exists():
        raise NotAllowed(f"only members of team {found.team} may change collection {slug}")
    return found


def visible_run(request: HttpRequest | Request, run_id: UUID) -> Run:
    found = Run.objects.visible_to(request.user).select_related("team", "collection").filter(pk=run_id).first()
    if found is None:
        raise Http404(f"there is no run {run_id}")
    return found


def owned_run(request: Request, run_id: UUID) -> Run:
    """A run that the user may change; NotAllowed where the user may only see it."""
    found = visible_run(request, run_id)
    if not Run.objects.owned_by(request.user).filter(pk=found.pk).exists():
        raise NotAllowed(f"only members of team {found.team} may change this run")
    return found
