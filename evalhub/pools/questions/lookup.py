"""Find the pools of a request among those that its user sees."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest
from rest_framework.request import Request

from evalhub.pools.models import Assignment, Pool
from evalhub.pools.questions.recipes import residual_versions
from evalhub.pools.services.pools import (
    Contributor,
    PoolPlan,
    entries_to_pool,
    plan_pool,
)
from runs.errors import Conflict, InvalidInput, NotAllowed
from runs.models import Collection, Phase, Run
from runs.web.access import find_once


def pools_of(user: Any) -> QuerySet[Pool]:
    """Return the pools that a user sees, with what their answers name."""
    return Pool.objects.visible_to(user).select_related(
        "collection__team", "phase__campaign", "created_by", "frozen_by"
    )


def visible_pool(request: HttpRequest | Request, pk: UUID) -> Pool:
    pool = find_once(request, ("pool", pk), lambda: pools_of(request.user).filter(pk=pk).first())
    if pool is None:
        raise Http404(f"there is no pool {pk}")
    return pool


def manages(user: Any, pool: Pool) -> bool:
    """Return whether the user makes, freezes and shows this pool."""
    return bool(Pool.objects.managed_by(user).filter(pk=pool.pk).exists())


def managed_pool(request: HttpRequest | Request, pk: UUID) -> Pool:
    """Return a pool that the user manages. Raise NotAllowed if the user may only see it."""
    return check_managed(request, visible_pool(request, pk))


def check_managed(request: HttpRequest | Request, pool: Pool) -> Pool:
    """Return the pool. Raise NotAllowed if the user does not manage it."""
    if not manages(request.user, pool):
        raise NotAllowed("only organisers of the collection or campaign can do this with a pool")
    return pool


def find_assigned_pool(request: HttpRequest | Request, pk: UUID) -> Pool:
    """Return a pool that the user manages, or has topics of to judge."""

    def read() -> Pool | None:
        user = request.user
        own = Q(pk__in=Pool.objects.managed_by(user).values("pk"))
        if user.is_authenticated:
            own |= Q(pk__in=Assignment.objects.filter(assessor__user=user).values("pool"))
        return Pool.objects.filter(own, pk=pk).select_related("collection__team").first()

    pool = find_once(request, ("assigned pool", pk), read)
    if pool is None:
        raise Http404(f"there is no pool {pk}")
    return pool


def assignments_of(user: Any, pool: Pool) -> QuerySet[Assignment]:
    """Return the assignments of a pool that the user sees: all for its managers, else own ones."""
    rows = pool.assignments.select_related("assessor", "pool__collection").order_by("pk")
    return rows if manages(user, pool) else rows.filter(assessor__user=user.pk)


def own_assignment(request: HttpRequest | Request, pool: Pool, topic_id: str) -> Assignment:
    """Return the assignment of a topic to the user."""
    rows = pool.assignments.select_related("assessor", "pool__collection")
    assignment = rows.filter(assessor__user=request.user.pk, topic_id=topic_id).first()
    if assignment is None:
        raise Http404(f"you have no topic {topic_id[:40]!r} to judge in this pool")
    return assignment


def planned_pool(
    request: Request, collection: Collection, phase: Phase | None, fields: dict[str, Any]
) -> PoolPlan:
    """Return the pool that the validated fields of a PoolSerializer describe; nothing is stored."""
    recipe = fields["recipe"]
    if phase:
        if fields.get("runs"):
            message = "a pool of a phase is made of its entries; name priorities instead"
            raise InvalidInput(message, code="bad_recipe", pointer="/runs")
        contributors = entries_to_pool(phase, recipe)
    else:
        for name in ("priorities", "baselines"):
            if fields.get(name):
                message = f"{name} are those of entries: POST to the pools of a phase"
                raise InvalidInput(message, code="bad_recipe", pointer=f"/{name}")
        contributors = _runs_to_pool(request.user, collection, fields.get("runs"))

    return plan_pool(
        collection=collection,
        recipe=recipe,
        contributors=contributors,
        phase=phase,
        seed=fields.get("seed"),
        residual_of=residual_versions(request.user, fields.get("residual_of") or []),
        note=fields.get("note", ""),
    )


def _runs_to_pool(user: Any, collection: Collection, keys: list[UUID] | None) -> list[Contributor]:
    """Return the runs with these keys in their order, or all that the user sees, by team and tag."""
    rows = Run.objects.visible_to(user).filter(collection=collection).ranked()
    rows = rows.select_related("collection", "team").order_by("team__slug", "tag", "pk")
    if keys is None:
        runs = list(rows)
        if not runs:
            message = f"collection {collection} has no run that a pool could have"
            raise Conflict(message, code="nothing_to_pool")
    else:
        seen = {run.pk: run for run in rows.filter(pk__in=keys)}
        for place, key in enumerate(keys):
            if key not in seen:
                message = f"you see no run {key} with a ranking in collection {collection}"
                raise InvalidInput(message, code="unknown_run", pointer=f"/runs/{place}")
        runs = [seen[key] for key in dict.fromkeys(keys)]

    return [Contributor(run=run, team=run.team) for run in runs]
