"""Save, change and delete views of leaderboards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.utils import timezone

from runs.errors import Conflict, InvalidInput, NotAllowed
from runs.models import AuditEvent, Collection, Team, User, View
from runs.services.audit.trail import SYSTEM, Origin, record

# Of one account in one collection.
MAX_VIEWS = 100


def create_view(
    *,
    collection: Collection,
    owner: User,
    name: str,
    query: str,
    scope: str,
    team: str = "",
    origin: Origin = SYSTEM,
) -> View:
    """Return a new view. Raise NotAllowed if the user may not save one of this scope, Conflict for one too many."""
    with transaction.atomic():
        User.objects.select_for_update().get(pk=owner.pk)
        # What deleted accounts saved for themselves.
        View.objects.filter(scope=View.Scope.ME, owner=None).delete()
        if View.objects.filter(collection=collection, owner=owner).count() >= MAX_VIEWS:
            message = (
                f"you have {MAX_VIEWS} views of collection {collection} already; delete one first"
            )
            raise Conflict(message, code="too_many_views")
        shared = _shared_with(collection, owner, scope, team)
        view = View.objects.create(
            collection=collection, owner=owner, name=name, query=query, **shared
        )
        record(
            origin, AuditEvent.Action.VIEW_CREATED, view, collection=collection, after=_told(view)
        )
    return view


def change_view(
    *, view: View, user: User, changes: Mapping[str, Any], origin: Origin = SYSTEM
) -> None:
    """Change name, query or scope of a view that the user may change. Raise NotAllowed as `create_view` does."""
    with transaction.atomic():
        found = View.objects.select_for_update().get(pk=view.pk)
        before = _told(found)
        if "scope" in changes or "team" in changes:
            scope = changes.get("scope", found.scope)
            team = changes.get("team") or (found.team if scope == View.Scope.TEAM else None)
            if scope == View.Scope.ME != found.scope and found.owner_id != user.pk:
                raise NotAllowed("only the account that saved this view can keep it to itself")
            for name, value in _shared_with(found.collection, user, scope, team).items():
                setattr(found, name, value)
        for name in ("name", "query"):
            setattr(found, name, changes.get(name, getattr(found, name)))
        found.changed_at = timezone.now()
        found.save()
        record(origin, AuditEvent.Action.VIEW_CHANGED, found, collection=found.collection, before=before,
               after=_told(found))  # fmt: skip
    for field in ("name", "query", "scope", "team", "changed_at"):
        setattr(view, field, getattr(found, field))


def delete_view(*, view: View, origin: Origin = SYSTEM) -> None:
    with transaction.atomic():
        if View.objects.filter(pk=view.pk).delete()[0]:
            record(
                origin,
                AuditEvent.Action.VIEW_DELETED,
                view,
                collection=view.collection,
                before=_told(view),
            )


def _shared_with(
    collection: Collection, user: User, scope: str, team: str | Team | None
) -> dict[str, Any]:
    """Return the scope of a view and its team. Raise NotAllowed if the user may not share a view so, InvalidInput for a
    team that does not go with the scope."""
    if team and scope != View.Scope.TEAM:
        raise InvalidInput(
            f"team belongs to scope=team; leave it out of scope={scope}", pointer="/team"
        )
    if scope == View.Scope.COLLECTION:
        if not Collection.objects.managed_by(user).filter(pk=collection.pk).exists():
            message = f"only owners of team {collection.team} save views for all readers of collection {collection}"
            raise NotAllowed(message, pointer="/scope")
        return {"scope": scope, "team": None}
    if scope == View.Scope.ME:
        return {"scope": scope, "team": None}
    slug = str(team or "")
    found = Team.objects.of(user).filter(slug=slug, personal_of=None).first()
    if found is None:
        message = (
            f"you have no team {slug[:64]!r} with other members"
            if slug
            else "name the team that shares the view"
        )
        raise InvalidInput(message, code="invalid" if slug else "required", pointer="/team")
    return {"scope": scope, "team": found}


def _told(view: View) -> dict[str, Any]:
    """Return what the trail keeps, which organisers read: the text of a view only if all readers see it."""
    shared = {"scope": view.scope, **({"team": view.team.slug} if view.team else {})}
    return {
        **shared,
        **({"name": view.name, "query": view.query} if view.scope == View.Scope.COLLECTION else {}),
    }
