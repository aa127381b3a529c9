"""What the submissions of runs and of session sets have in common: stored once, counted, written down, buried."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from django.db import IntegrityError, transaction
from django.utils import timezone

from runs.models import AuditEvent, Collection, Run, SessionSet, Team
from runs.services.audit import Origin, record
from runs.services.quotas import take_quota

Made = TypeVar("Made", Run, SessionSet)


class Submitted(Protocol):
    """What is known of every submission."""

    @property
    def collection(self) -> Collection: ...
    @property
    def team(self) -> Team: ...
    @property
    def origin(self) -> Origin: ...


def live_namesake(model: type[Made], submission: Submitted, tag: str) -> Made | None:
    """What the team already has under this tag in the collection."""
    named = model.objects.filter(collection=submission.collection, team=submission.team, tag=tag, deleted_at=None)
    return named.first()


def store_once(
    submission: Submitted,
    action: AuditEvent.Action,
    *,
    make: Callable[[Collection], Made],
    find: Callable[[], Made | None],
    enqueue: Callable[[Made], object],
) -> tuple[Made, bool]:
    """What `make` stores, in one transaction with its quota, its audit entry and what `enqueue` does, and True; or
    what another request stored in this moment, which `find` finds, and False."""
    try:
        with transaction.atomic():
            # Against an activation or a change of the collection in this moment: whoever comes second sees the other.
            collection = Collection.objects.select_for_update().get(pk=submission.collection.pk)
            made = make(collection)
            take_quota(made)
            record(submission.origin, action, made, collection=collection, after=_identity(made))
            enqueue(made)
    except IntegrityError:
        existing = find()
        if existing is None:
            raise
        return existing, False
    return made, True


def bury(made: Made, action: AuditEvent.Action, origin: Origin) -> None:
    """Leave a tombstone of what was submitted: its tag becomes free, its file goes with the last reference."""
    with transaction.atomic():
        if type(made).objects.filter(pk=made.pk, deleted_at=None).update(deleted_at=timezone.now()):
            record(origin, action, made, collection=made.collection, before=_identity(made))


def _identity(made: Run | SessionSet) -> dict[str, str]:
    return {"team": made.team.slug, "tag": made.tag, "sha256": made.sha256}
