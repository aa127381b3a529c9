"""What the submissions of runs and of session sets have in common: stored once, counted, written down, buried."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from django.db import IntegrityError, transaction
from django.utils import timezone

from runs.errors import Conflict
from runs.models import AuditEvent, Collection, Run, SessionSet, Team
from runs.services.audit import Origin, record
from runs.services.files import stored_path, storing
from runs.services.quotas import take_quota

Made = TypeVar("Made", Run, SessionSet)


class Placed(Protocol):
    """What belongs to a team in a collection."""

    @property
    def collection(self) -> Collection: ...
    @property
    def team(self) -> Team: ...


class Submitted(Placed, Protocol):
    """What is known of every submission."""

    @property
    def origin(self) -> Origin: ...


def live_namesake(model: type[Made], submission: Placed, tag: str) -> Made | None:
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


def unbury(
    made: Made, files: list[str], action: AuditEvent.Action, enqueue: Callable[[Made], object], origin: Origin
) -> None:
    """Take a tombstone back, with what `enqueue` does. Conflict where it is none, where one of its files is gone, or
    where its team has given the tag to another since."""
    with storing():
        _check_files(made, files)
        try:
            with transaction.atomic():
                if not type(made).objects.filter(pk=made.pk).exclude(deleted_at=None).update(deleted_at=None):
                    raise Conflict(f"{made} was not withdrawn")
                made.deleted_at = None
                record(origin, action, made, collection=made.collection, after=_identity(made))
                enqueue(made)
        except IntegrityError as error:
            if live_namesake(type(made), made, made.tag) is None:
                raise
            message = f"team {made.team} has another {made.tag!r} in {made.collection} now; withdraw that one first"
            raise Conflict(message, code="tag_taken") from error


def _check_files(made: Run | SessionSet, files: list[str]) -> None:
    if missing := [sha256 for sha256 in files if sha256 and not stored_path(sha256).exists()]:
        message = f"the file of {made} ({missing[0][:12]}) is not in the store any more; submit it again"
        raise Conflict(message)


def _identity(made: Run | SessionSet) -> dict[str, str]:
    return {"team": made.team.slug, "tag": made.tag, "sha256": made.sha256}
