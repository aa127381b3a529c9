"""Write the audit trail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db import models, transaction

from runs.models import AuditEvent, Collection, User
from runs.services.changes import mark_changed


@dataclass(frozen=True, slots=True)
class Origin:
    """The actor of a change and the way it was made: the key of a token, the id and the address of a request."""

    actor: User | None = None
    token: str = ""
    request_id: str = ""
    address: str | None = None


# The origin of commands and scripts on the server itself.
SYSTEM = Origin()
# The attribute that names an object in the trail, if its text does not.
_IDS = {
    "run": "pk", "sessionset": "pk", "comparison": "pk", "webhook": "pk", "apitoken": "key", "invitationlink": "key",
    "sharelink": "key",
    "note": "pk", "entry": "pk", "release": "pk", "campaignnotice": "pk",
}  # fmt: skip


def record(
    origin: Origin,
    action: str,
    target: models.Model,
    *,
    collection: Collection | None = None,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> None:
    """Add one event. Call this inside the transaction of the change, so that both or neither are stored.

    A collection that changed is marked, so that a worker makes the answers about it anew.
    """
    if not transaction.get_connection().in_atomic_block:
        raise transaction.TransactionManagementError(
            f"{action} is recorded outside the transaction of its change"
        )
    name = target._meta.model_name or ""
    AuditEvent.objects.create(
        actor=origin.actor.username if origin.actor else "",
        actor_key=origin.actor.pk if origin.actor else None,
        token=origin.token,
        action=action,
        object_type=name,
        object_id=str(getattr(target, _IDS[name]) if name in _IDS else target)[:200],
        collection=collection,
        before=dict(before or {}),
        after=dict(after or {}),
        request_id=origin.request_id,
        address=origin.address,
    )
    if collection is not None:
        transaction.on_commit(partial(mark_changed, collection.pk))


def changed(
    target: models.Model, changes: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fields that differ, with their values before and after."""
    fields = [name for name, value in changes.items() if getattr(target, name) != value]
    return {name: getattr(target, name) for name in fields}, {
        name: changes[name] for name in fields
    }
