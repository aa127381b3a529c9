"""Submit, change, withdraw and restore submissions: runs and session sets alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from django.db import IntegrityError, transaction
from django.utils import timezone

from runs.errors import Conflict
from runs.models import AuditEvent, Collection, Run, SessionSet, Team, User
from runs.services.audit.trail import SYSTEM, Origin, changed, record
from runs.services.campaigns.guards import check_not_entered, check_removable
from runs.services.storage.files import keep_file, storing
from runs.services.storage.stores.chosen import the_store
from runs.services.submissions.quotas import take_quota
from runs.services.tracking.labels import drop_labels
from runs.services.webhooks.events import run_submitted

Made = TypeVar("Made", Run, SessionSet)


@dataclass(frozen=True, kw_only=True)
class Upload(Generic[Made]):
    """An upload: a file for a collection, in the name of a team."""

    collection: Collection
    team: Team
    user: User
    file: Path
    tag: str | None = None
    description: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    origin: Origin = SYSTEM

    @property
    def paths(self) -> list[Path]:
        """Return its files, in the order of the `files` of the object made from it."""
        return [self.file]

    def check(self) -> Made:
        """Read the files to their ends and return the object to store, not yet saved, with every warning.

        Raise InvalidFile with every problem of a file.
        """
        raise NotImplementedError

    def find_existing(self, made: Made) -> Made | None:
        """Return the object that this upload repeats, if there is one; raise the errors of `check_same`."""
        there = namesake(made)
        if there:
            self.check_same(there, made)
        return there

    def check_same(self, there: Made, made: Made) -> None:
        """Raise Conflict if the team's object with this tag differs from this upload."""
        if there.sha256 != made.sha256:
            message = f"team {self.team} already has another {made.noun()} with tag {made.tag!r}; choose a new tag"
            raise Conflict(message, code="tag_taken", pointer="/tag")

    def place(self, made: Made) -> None:
        """Give the object what depends on others that are stored, in the transaction that stores it."""

    def keep(self, made: Made) -> None:
        """Store what belongs to the object beside its row, in the transaction that stores it."""

    def count(self, made: Made) -> None:
        """Count the object against the limits of its collection, in the transaction that stores it."""
        take_quota(made)

    def keep_again(self, there: Made) -> None:
        """Do what the upload asks for beside storing, where the object was there already."""

    def columns(self) -> dict[str, Any]:
        """Return the values that are stored as they were sent."""
        return {
            "collection": self.collection,
            "team": self.team,
            "submitted_by": self.user,
            "description": self.description,
            "metadata": self.metadata,
        }


def submit(
    *,
    upload: Upload[Made],
    enqueue: Callable[[Made], object],
    again: Callable[[Made], object] | None = None,
) -> tuple[Made, bool]:
    """Check and store a run or session set; `enqueue` is called in the same transaction.

    Return it and whether it is new: the same files under the same tag by the same team, judged the
    same way, are the existing object. `again` is called with an existing object, whose stored files
    are now sound. Raise the errors of `check`, FileTooLarge, Conflict (the tag names another
    object) or LimitReached (the team's quota of the day is used up); then nothing is stored.
    """
    made = upload.check()
    existing = upload.find_existing(made)
    with storing():
        # For an existing object this repairs the store if the file was missing or damaged.
        for path, sha256 in zip(upload.paths, made.files, strict=True):
            keep_file(path, sha256)
        if existing:
            if again:
                again(existing)
            upload.keep_again(existing)
            return existing, False
        try:
            with transaction.atomic():
                # Lock against a simultaneous activation or change of the collection: the second one
                # sees the first one's effect.
                made.collection = Collection.objects.select_for_update().get(
                    pk=upload.collection.pk
                )
                made.created_at = timezone.now()
                upload.place(made)
                made.save(force_insert=True)
                upload.keep(made)
                upload.count(made)
                _record(made, "submitted", upload.origin, after=_identity(made))
                if isinstance(made, Run):
                    run_submitted(made, upload.origin.request_id)
                enqueue(made)
        except IntegrityError:
            # Possibly another request has stored the same object meanwhile.
            existing = upload.find_existing(made)
            if existing is None:
                raise
            upload.keep_again(existing)
            return existing, False
    return made, True


def change(
    *,
    made: Made,
    changes: dict[str, Any],
    enqueue: Callable[[Made], object],
    origin: Origin = SYSTEM,
) -> None:
    """Change the description of a run or session set; if the way it is judged changes, `enqueue` is called in the same
    transaction."""
    with transaction.atomic():
        before, after = changed(made, changes)
        type(made).objects.filter(pk=made.pk).update(**after)
        if after:
            _record(made, "changed", origin, before=before, after=after)
        if made.WAY in after:
            setattr(made, made.WAY, after[made.WAY])
            enqueue(made)


def withdraw(
    *,
    made: Made,
    cancel: Callable[[Made], object],
    without_labels: bool = False,
    origin: Origin = SYSTEM,
) -> None:
    """Withdraw a run or session set: its tag becomes free, and its files are deleted with the last reference. `cancel`
    is called in the same transaction.

    Raise Conflict for a run that is entered in a phase of a campaign, and for one with labels,
    unless it is to be `without_labels`: then they are deleted.
    """
    with transaction.atomic():
        if isinstance(made, Run):
            check_not_entered(made)
            drop_labels(run=made, drop=without_labels, user=origin.actor, origin=origin)
        if type(made).objects.filter(pk=made.pk, deleted_at=None).update(deleted_at=timezone.now()):
            _record(made, "deleted", origin, before=_identity(made))
        cancel(made)


def remove(
    *, run: Run, reason: str, cancel: Callable[[Run], object], origin: Origin = SYSTEM
) -> None:
    """Take a run out of its collection, as its organisers: it is withdrawn with its labels, its file stays, and they
    alone restore it. `cancel` is called in the same transaction.

    Raise Conflict for a run that is entered in a phase of a campaign.
    """
    with transaction.atomic():
        check_removable(run)
        drop_labels(run=run, drop=True, user=origin.actor, origin=origin)
        gone = {"deleted_at": timezone.now(), "removal_reason": reason}
        if Run.objects.filter(pk=run.pk, deleted_at=None).update(**gone):
            _record(run, "deleted", origin, before=_identity(run), after={"reason": reason})
        cancel(run)


def restore(*, made: Made, enqueue: Callable[[Made], object], origin: Origin = SYSTEM) -> None:
    """Restore a withdrawn run or session set; `enqueue` is called in the same transaction.

    Raise Conflict if it was not withdrawn, if one of its files is missing, or if its team has used
    the tag for another one.
    """
    with storing():
        if missing := [sha256 for sha256 in made.files if not the_store().has(sha256)]:
            raise Conflict(
                f"the file of {made} ({missing[0][:12]}) is no longer stored; submit it again"
            )
        try:
            with transaction.atomic():
                if (
                    not type(made)
                    .objects.filter(pk=made.pk)
                    .exclude(deleted_at=None)
                    .update(deleted_at=None)
                ):
                    raise Conflict(f"{made} was not withdrawn")
                made.deleted_at = None
                if isinstance(made, Run):
                    Run.objects.filter(pk=made.pk).update(removal_reason="")
                _record(made, "restored", origin, after=_identity(made))
                enqueue(made)
        except IntegrityError as error:
            if namesake(made) is None:
                raise
            message = f"team {made.team} has another {made.tag!r} in {made.collection} now; withdraw it first"
            raise Conflict(message, code="tag_taken") from error


def namesake(made: Made) -> Made | None:
    """Return the team's existing object with this tag in the collection."""
    named = type(made).objects.filter(
        collection=made.collection_id, team=made.team_id, tag=made.tag, deleted_at=None
    )
    return named.first()


def _record(made: Run | SessionSet, what: str, origin: Origin, **told: Any) -> None:
    record(
        origin, AuditEvent.Action(f"{made.KEY}.{what}"), made, collection=made.collection, **told
    )


def _identity(made: Run | SessionSet) -> dict[str, Any]:
    version = (
        {"system": str(made.system), "version": made.version}
        if isinstance(made, Run) and made.system
        else {}
    )
    return {"team": made.team.slug, "tag": made.tag, "sha256": made.sha256, **version}
