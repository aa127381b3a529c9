"""Save, change and delete views of leaderboards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.utils import timezone

from runs.errors import Conflict, InvalidInput, NotAllowed
from runs.models import AuditEvent, Collection, Team, User, View
from runs.services.audit.trail import SYSTEM, Origin, record

# Views of one account in one collection.
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
    """Return a new view.

    Raise NotAllowed if the user may not save one with this scope, Conflict if they have too many.
    """
    with transaction.atomic():
        User.objects.select_for_update().get(pk=owner.pk)

        # Delete private views of deleted accounts.
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
            origin,
            AuditEvent.Action.VIEW_CREATED,
            view,
            collection=collection,
            after=_details(view),
        )

    return view


def change_view(
    *, view: View, user: User, changes: Mapping[str, Any], origin: Origin = SYSTEM
) -> None:
    """Change name, query or scope of a view. Raise NotAllowed as `create_view` does."""
    with transaction.atomic():
        current = View.objects.select_for_update().get(pk=view.pk)
        before = _details(current)

        if "scope" in changes or "team" in changes:
            scope = changes.get("scope", current.scope)
            team = changes.get("team") or (current.team if scope == View.Scope.TEAM else None)
            if scope == View.Scope.ME != current.scope and current.owner_id != user.pk:
                raise NotAllowed("only the account that saved this view can keep it to itself")

            for name, value in _shared_with(current.collection, user, scope, team).items():
                setattr(current, name, value)

        for name in ("name", "query"):
            setattr(current, name, changes.get(name, getattr(current, name)))

        current.changed_at = timezone.now()
        current.save()
        record(
            origin,
            AuditEvent.Action.VIEW_CHANGED,
            current,
            collection=current.collection,
            before=before,
            after=_details(current),
        )

    for field in ("name", "query", "scope", "team", "changed_at"):
        setattr(view, field, getattr(current, field))


def delete_view(*, view: View, origin: Origin = SYSTEM) -> None:
    with transaction.atomic():
        if View.objects.filter(pk=view.pk).delete()[0]:
            record(
                origin,
                AuditEvent.Action.VIEW_DELETED,
                view,
                collection=view.collection,
                before=_details(view),
            )


def _shared_with(
    collection: Collection, user: User, scope: str, team: str | Team | None
) -> dict[str, Any]:
    """Return the fields `scope` and `team` of a view.

    Raise NotAllowed if the user may not share a view so, InvalidInput for a team that does not go
    with the scope.
    """
    if team and scope != View.Scope.TEAM:
        raise InvalidInput(
            f"team belongs to scope=team; leave it out of scope={scope}", pointer="/team"
        )

    if scope == View.Scope.COLLECTION:
        if not Collection.objects.managed_by(user).filter(pk=collection.pk).exists():
            raise NotAllowed(
                f"only owners of team {collection.team} save views "
                f"for all readers of collection {collection}",
                pointer="/scope",
            )

        return {"scope": scope, "team": None}

    if scope == View.Scope.ME:
        return {"scope": scope, "team": None}

    slug = str(team or "")
    membership_team = Team.objects.of(user).filter(slug=slug, personal_of=None).first()
    if membership_team is None:
        message = (
            f"you have no team {slug[:64]!r} with other members"
            if slug
            else "name the team that shares the view"
        )
        raise InvalidInput(message, code="invalid" if slug else "required", pointer="/team")

    return {"scope": scope, "team": membership_team}


def _details(view: View) -> dict[str, Any]:
    """Return the fields for the trail, which organisers read.

    Name and query are included only if all readers see the view.
    """
    details = {"scope": view.scope}

    if view.team:
        details["team"] = view.team.slug

    if view.scope == View.Scope.COLLECTION:
        details |= {"name": view.name, "query": view.query}

    return details
