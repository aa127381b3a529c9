"""Submit, change, withdraw and restore submissions: runs and session sets alike."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from django.db import IntegrityError, transaction
from django.utils import timezone

from runs import hooks
from runs.errors import Conflict
from runs.models import AuditEvent, Collection, Run, SessionSet, Team, User
from runs.services.audit.trail import SYSTEM, Origin, changed, record
from runs.services.storage.files import keep_file, storing
from runs.services.storage.stores.chosen import the_store
from runs.services.submissions.quotas import take_quota
from runs.services.tracking.labels import drop_labels
from runs.services.webhooks.events import run_submitted

SubmissionT = TypeVar("SubmissionT", Run, SessionSet)


@dataclass(frozen=True, kw_only=True)
class Upload(Generic[SubmissionT]):
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
        """Return the files of the upload, in the order of the submission's `files`."""
        return [self.file]

    @contextlib.contextmanager
    def prepared(self) -> Iterator[Self]:
        """Yield the upload to check and store, with its file as it will be stored.

        Raise the errors of a file that cannot be prepared.
        """
        yield self

    def check(self) -> SubmissionT:
        """Read the files to their ends and return the unsaved submission, with every warning.

        Raise InvalidFile with every problem of a file.
        """
        raise NotImplementedError

    def find_existing(self, submission: SubmissionT) -> SubmissionT | None:
        """Return the existing submission that this upload repeats, or None.

        Raise the errors of `check_same`.
        """
        existing = namesake(submission)
        if existing:
            self.check_same(existing, submission)

        return existing

    def check_same(self, existing: SubmissionT, submission: SubmissionT) -> None:
        """Raise Conflict if the team's submission with this tag differs from this upload."""
        if existing.sha256 != submission.sha256:
            raise Conflict(
                f"team {self.team} already has another {submission.noun()} "
                f"with tag {submission.tag!r}; choose a new tag",
                code="tag_taken",
                pointer="/tag",
            )

    def place(self, submission: SubmissionT) -> None:
        """Set the fields that depend on other submissions, in the storing transaction."""

    def keep(self, submission: SubmissionT) -> None:
        """Store the rows that belong to the submission, in the storing transaction."""

    def count(self, submission: SubmissionT) -> None:
        """Count the submission against the limits of its collection, in the storing transaction."""
        take_quota(submission)

    def keep_again(self, existing: SubmissionT) -> None:
        """Apply the upload's other requests to a submission that existed before."""

    def columns(self) -> dict[str, Any]:
        """Return the fields that are stored as they were sent."""
        return {
            "collection": self.collection,
            "team": self.team,
            "submitted_by": self.user,
            "description": self.description,
            "metadata": self.metadata,
        }


def submit(
    *,
    upload: Upload[SubmissionT],
    enqueue: Callable[[SubmissionT], object],
    again: Callable[[SubmissionT], object] | None = None,
) -> tuple[SubmissionT, bool]:
    """Check and store a run or session set, and return it and whether it is new.

    The same files under the same tag by the same team, judged the same way, are the existing
    submission: its stored files are sound afterwards, and `again` is called with it. For a new one,
    `enqueue` is called in the storing transaction.

    Raise the errors of `prepared` and `check`, FileTooLarge, Conflict (the tag names another submission) or
    LimitReached (the team's quota of the day is used up); then nothing is stored.
    """
    with upload.prepared() as ready:
        return _store(ready, enqueue, again)


def _store(
    upload: Upload[SubmissionT],
    enqueue: Callable[[SubmissionT], object],
    again: Callable[[SubmissionT], object] | None,
) -> tuple[SubmissionT, bool]:
    submission = upload.check()
    existing = upload.find_existing(submission)

    with storing():
        # For an existing submission this repairs the store if the file was missing or damaged.
        for path, sha256 in zip(upload.paths, submission.files, strict=True):
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
                submission.collection = Collection.objects.select_for_update().get(
                    pk=upload.collection.pk
                )
                submission.created_at = timezone.now()
                upload.place(submission)
                submission.save(force_insert=True)
                upload.keep(submission)
                upload.count(submission)
                _record(submission, "submitted", upload.origin, after=_identity(submission))

                if isinstance(submission, Run):
                    run_submitted(submission, upload.origin.request_id)

                enqueue(submission)
        except IntegrityError:
            # Another request may have stored the same submission meanwhile.
            existing = upload.find_existing(submission)
            if existing is None:
                raise
            upload.keep_again(existing)
            return existing, False

    return submission, True


def change(
    *,
    submission: SubmissionT,
    changes: dict[str, Any],
    enqueue: Callable[[SubmissionT], object],
    origin: Origin = SYSTEM,
) -> None:
    """Change the fields of a run or session set.

    If the way it is judged changes, `enqueue` is called in the same transaction.
    """
    with transaction.atomic():
        before, after = changed(submission, changes)
        type(submission).objects.filter(pk=submission.pk).update(**after)
        if after:
            _record(submission, "changed", origin, before=before, after=after)

        if submission.WAY in after:
            setattr(submission, submission.WAY, after[submission.WAY])
            enqueue(submission)


def withdraw(
    *,
    submission: SubmissionT,
    cancel: Callable[[SubmissionT], object],
    without_labels: bool = False,
    origin: Origin = SYSTEM,
) -> None:
    """Withdraw a run or session set, which frees its tag.

    Its files are deleted with the last reference. `cancel` is called in the same transaction. A run
    is withdrawn together with its replicates, and with the last of them.

    Raise Conflict for a run that is entered in a phase of a campaign, and for one with labels
    unless `without_labels` is set: then they are deleted.
    """
    at = timezone.now()
    with transaction.atomic():
        for each in _together(submission, _withdrawn_with):
            if isinstance(each, Run):
                hooks.before_withdrawal.send(Run, run=each)
                drop_labels(run=each, drop=without_labels, user=origin.actor, origin=origin)

            live = type(each).objects.filter(pk=each.pk, deleted_at=None)
            if live.update(deleted_at=at):
                _record(each, "deleted", origin, before=_identity(each))

            cancel(each)


def remove(
    *, run: Run, reason: str, cancel: Callable[[Run], object], origin: Origin = SYSTEM
) -> None:
    """Take a run out of its collection, in the name of the organisers, who alone can restore it.

    It is withdrawn with its labels, and its file stays. `cancel` is called in the same transaction.
    It is removed together with its replicates, and with the last of them.

    Raise Conflict for a run that is entered in a phase of a campaign.
    """
    removal = {"deleted_at": timezone.now(), "removal_reason": reason}
    with transaction.atomic():
        for each in _withdrawn_with(run):
            hooks.before_removal.send(Run, run=each)
            drop_labels(run=each, drop=True, user=origin.actor, origin=origin)
            if Run.objects.filter(pk=each.pk, deleted_at=None).update(**removal):
                _record(each, "deleted", origin, before=_identity(each), after={"reason": reason})

            cancel(each)


def _together(submission: SubmissionT, of_run: Callable[[Run], list[Run]]) -> list[SubmissionT]:
    """Return what changes with a submission, itself included."""
    if isinstance(submission, Run):
        return of_run(submission)
    return [submission]


def _withdrawn_with(run: Run) -> list[Run]:
    """Return what is withdrawn with a run: its live replicates, or its run with the last one."""
    replicated = run if run.has_replicates else run.replicate_of
    if replicated is None:
        return [run]

    # Of two replicates that are withdrawn at the same time, the later one finds itself the last.
    Run.objects.select_for_update(no_key=True).filter(pk=replicated.pk).values_list("pk").first()
    replicates = Run.objects.filter(replicate_of=replicated, deleted_at=None)
    live = list(replicates.select_related("collection", "team").order_by("created_at", "pk"))
    if run.has_replicates:
        return [*live, run]
    return [run, *([] if any(other.pk != run.pk for other in live) else [replicated])]


def _restored_with(run: Run) -> list[Run]:
    """Return what is restored with a withdrawn run: its run, or the replicates that went with it.

    Raise Conflict if the organisers took its run out of the collection, and for a run without
    replicates: the last one is a single run, or of another name, since.
    """
    if run.has_replicates:
        rows = Run.objects.filter(replicate_of=run, deleted_at=run.deleted_at)
        replicates = list(rows.select_related("collection", "team").order_by("created_at", "pk"))
        if not replicates and not run.replicates.filter(deleted_at=None).exists():
            raise Conflict(
                f"{run} has no replicates any more; make runs replicates of {run.tag} instead",
                code="conflict",
            )
        return [run, *replicates]

    replicated = run.replicate_of
    if replicated is None or replicated.deleted_at is None:
        return [run]
    if replicated.removal_reason and not run.removal_reason:
        raise Conflict(
            f"the organisers took its run {replicated} out of collection "
            f"{replicated.collection}: {replicated.removal_reason}",
            code="run_removed",
        )
    return [replicated, run]


def restore(
    *, submission: SubmissionT, enqueue: Callable[[SubmissionT], object], origin: Origin = SYSTEM
) -> None:
    """Restore a withdrawn run or session set; `enqueue` is called in the same transaction.

    A replicate brings its run back, and a run the replicates that were withdrawn with it. Raise
    Conflict if it was not withdrawn, if a file is missing, or if the team has another submission
    with its tag by now.
    """
    restored = _together(submission, _restored_with)
    with storing():
        for each in restored:
            for sha256 in each.files:
                if not the_store().has(sha256):
                    raise Conflict(
                        f"the file of {each} ({sha256[:12]}) is no longer stored; submit it again"
                    )

        try:
            with transaction.atomic():
                for each in restored:
                    rows = type(each).objects.filter(pk=each.pk)
                    if not rows.exclude(deleted_at=None).update(deleted_at=None):
                        raise Conflict(f"{each} was not withdrawn")

                    each.deleted_at = None
                    if isinstance(each, Run):
                        Run.objects.filter(pk=each.pk).update(removal_reason="")

                    _record(each, "restored", origin, after=_identity(each))
                    enqueue(each)
        except IntegrityError as error:
            taken = [each for each in restored if namesake(each)]
            if not taken:
                raise

            raise Conflict(
                f"team {taken[0].team} has another {taken[0].tag!r} "
                f"in {taken[0].collection} now; withdraw it first",
                code="tag_taken",
            ) from error


def namesake(submission: SubmissionT) -> SubmissionT | None:
    """Return the team's stored submission of this kind with this tag in the collection, or None."""
    rows = type(submission).objects.filter(
        collection=submission.collection_id,
        team=submission.team_id,
        tag=submission.tag,
        deleted_at=None,
    )
    return rows.first()


def _record(submission: Run | SessionSet, verb: str, origin: Origin, **details: Any) -> None:
    action = AuditEvent.Action(f"{submission.KEY}.{verb}")
    record(origin, action, submission, collection=submission.collection, **details)


def _identity(submission: Run | SessionSet) -> dict[str, Any]:
    identity: dict[str, Any] = {
        "team": submission.team.slug,
        "tag": submission.tag,
        "sha256": submission.sha256,
    }
    if isinstance(submission, Run) and submission.system:
        identity |= {"system": str(submission.system), "version": submission.version}

    return identity
