"""Write the audit trail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import models, transaction

from runs.models import AuditEvent, Collection, User
from runs.services.audit.revisions import raise_revision


@dataclass(frozen=True, slots=True)
class Origin:
    """The actor of a change, and the key of the token, the id and the address of the request."""

    actor: User | None = None
    token: str = ""
    request_id: str = ""
    address: str | None = None


# The origin of commands and scripts on the server itself.
SYSTEM = Origin()
_Action = AuditEvent.Action
# Events that change nothing.
_READINGS = (_Action.VALUES_READ, _Action.QRELS_READ)
# Lookups from collections to objects that their answers show, by kind of object, for events without
# a collection.
_SHOWN_BY = {
    "collection": ("pk",),
    "run": ("runs",),
    "note": ("notes", "runs__notes"),
    "team": ("team", "runs__team", "phases__campaign__participations__team"),
    "system": ("runs__system",),
    "user": ("notes__author", "runs__notes__author"),
    "campaign": ("phases__campaign",),
    "participation": ("phases__campaign__participations",),
    "phase": ("phases",),
    "entry": ("phases__entries",),
    "release": ("phases__releases",),
}
# The attribute that names an object in the trail, if its text does not.
_IDS = {
    "run": "pk",
    "sessionset": "pk",
    "comparison": "pk",
    "webhook": "pk",
    "apitoken": "key",
    "invitationlink": "key",
    "sharelink": "key",
    "note": "pk",
    "entry": "pk",
    "release": "pk",
    "campaignnotice": "pk",
    "pool": "pk",
}


def record(
    origin: Origin,
    action: str,
    target: models.Model,
    *,
    collection: Collection | None = None,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> None:
    """Add one event. Call this inside the transaction of the change.

    The revisions of the collection, or of the collections that show the target, are raised.
    """
    if not transaction.get_connection().in_atomic_block:
        raise transaction.TransactionManagementError(
            f"{action} is recorded outside the transaction of its change"
        )

    model_name = target._meta.model_name or ""
    AuditEvent.objects.create(
        actor=origin.actor.username if origin.actor else "",
        actor_key=origin.actor.pk if origin.actor else None,
        token=origin.token,
        action=action,
        object_type=model_name,
        object_id=str(getattr(target, _IDS[model_name]) if model_name in _IDS else target)[:200],
        collection=collection,
        before=dict(before or {}),
        after=dict(after or {}),
        request_id=origin.request_id,
        address=origin.address,
    )

    if action not in _READINGS:
        arriving = action in (_Action.RUN_SUBMITTED, _Action.SESSION_SET_SUBMITTED)
        raise_revision(*_showing(target, collection), arriving=arriving)


def _showing(target: models.Model, collection: Collection | None) -> set[int]:
    """Return the keys of the collections that show an object in their answers."""
    if collection is not None:
        return {collection.pk}

    keys = set[int]()
    for lookup in _SHOWN_BY.get(target._meta.model_name or "", ()):
        collections = Collection.objects.filter(**{lookup: target.pk}).order_by()
        keys.update(collections.values_list("pk", flat=True).distinct())

    return keys


def changed(
    target: models.Model, changes: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fields that differ, with their values before and after."""
    fields = [name for name, value in changes.items() if getattr(target, name) != value]
    before = {name: getattr(target, name) for name in fields}
    after = {name: changes[name] for name in fields}
    return before, after
