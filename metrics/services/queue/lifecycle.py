"""Move a job through its life: queued, in progress, finished, failed or cancelled.

Every change is one UPDATE that names the previous state and, if there is one, the lease token. A
count of 1 means that this call made the change, 0 that another one did. Times are the database's,
so that workers' clocks do not matter.

Answers show states of jobs: a change raises the revisions of their collections in its own
transaction.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import DateTimeField, ExpressionWrapper, F, Q, QuerySet
from django.db.models.functions import Now

from metrics.models import JOBS, Evaluation, Job, SubmissionEvaluation
from metrics.services.queue.notices import announce_ended
from runs.services.audit.revisions import raise_revision

# The attempt after which an error is final: the next one would meet it again.
MAX_ATTEMPTS = 3
# The attempt after which the death of its worker is final. Most jobs that it takes along are
# innocent: where workers are killed every few seconds, three of 2,000 runs were in the hands of
# three of them.
MAX_DEATHS = 5
# The longest delay of a job that is given back to the queue, in seconds.
LONGEST_DELAY = 60.0
# Jobs that one statement changes at most.
_TOGETHER = 10_000
_NO_ERROR = {"error_code": "", "error_message": "", "traceback": ""}


class LeaseLost(Exception):
    """Another worker took over a job while this one was working on it."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to finish one job, until another worker takes it."""

    pk: Any
    token: uuid.UUID
    kind: type[Job] = Evaluation

    def __str__(self) -> str:
        return f"{self.kind.NOUN} {self.pk}"


def claim(pk: Any, kind: type[Job] = Evaluation) -> Lease | None:
    """Take a queued job for one lease and return the lease, or None if the job is not available."""
    lease = Lease(pk, uuid.uuid4(), kind)
    with transaction.atomic():
        claimed = (
            _rows(kind)
            .filter(is_due(), pk=pk, state=kind.QUEUED)
            .update(
                state=kind.HELD,
                since=Now(),
                attempts=F("attempts") + 1,
                lease_token=lease.token,
                lease_until=_from_now(settings.EVALHUB_LEASE_SECONDS),
            )
        )
        if claimed:
            count_moves(kind, [pk])

    return lease if claimed else None


def claim_together(pks: Collection[Any], kind: type[Job] = Evaluation) -> list[Lease]:
    """Take those of these queued jobs that are available and were never tried, under one token.

    Return their leases, in this order.

    A job that was tried may be why its worker died: it is claimed alone, so that it takes no other
    one with it again.
    """
    token = uuid.uuid4()
    leased = {
        "attempts": 1,
        "lease_token": token,
        "lease_until": _from_now(settings.EVALHUB_LEASE_SECONDS),
    }

    queued = _rows(kind).filter(is_due(), pk__in=pks, state=kind.QUEUED, attempts=0)
    with transaction.atomic():
        if not queued.update(state=kind.HELD, since=Now(), **leased):
            return []
        claimed = set(
            _rows(kind).filter(pk__in=pks, lease_token=token).values_list("pk", flat=True)
        )
        count_moves(kind, claimed)

    return [Lease(pk, token, kind) for pk in pks if pk in claimed]


def beat(*leases: Lease) -> bool:
    """Extend leases under one token and return whether any of them was still held."""
    leased = _leased(*leases)
    until = _from_now(settings.EVALHUB_LEASE_SECONDS)
    if len(leases) == 1:
        return bool(leased.update(lease_until=until))

    with transaction.atomic():
        # Those that are being finished need no lease any more: to wait for them here could be for
        # ever.
        free = list(leased.select_for_update(skip_locked=True).values_list("pk", flat=True))
        return bool(free and leased.filter(pk__in=free).update(lease_until=until)) or bool(
            leased.exists()
        )


def note(lease: Lease, **changes: Any) -> bool:
    """Record the progress of a job and return whether its lease was still held."""
    return bool(_leased(lease).update(**changes))


def finish(lease: Lease, **results: Any) -> bool:
    """Close a job as done.

    Call this inside the transaction that stores its results, with `count_moves` for all that it
    stores.
    """
    return _leave(lease, lease.kind.DONE, **_NO_ERROR, **results)


def fail(lease: Lease, *, code: str, message: str, traceback: str = "") -> bool:
    """Close a job as failed, with the reason."""
    reason = {"error_code": code, "error_message": message[:2000], "traceback": traceback[-20_000:]}
    with transaction.atomic():
        failed = _leave(lease, lease.kind.FAILED, **reason)
        if failed:
            count_moves(lease.kind, [lease.pk])
            announce_ended(lease.kind, [lease.pk])

    return failed


def release(
    lease: Lease,
    *,
    delay: float,
    burn: bool,
    code: str = "",
    message: str = "",
    traceback: str = "",
) -> bool:
    """Give a job back to the queue; `burn` keeps the attempt counted.

    A `delay` is at most LONGEST_DELAY.
    """
    changes: dict[str, Any] = {
        "not_before": _from_now(delay) if delay else None,
        "dispatched_at": None,
        "error_message": message[:2000],
    }
    if not burn:
        changes["attempts"] = F("attempts") - 1

    with transaction.atomic():
        count_moves(lease.kind, [lease.pk])
        return _leave(
            lease, lease.kind.QUEUED, error_code=code, traceback=traceback[-20_000:], **changes
        )


def give_back(leases: Sequence[Lease], *, begun: bool) -> int:
    """Return jobs under one token to the queue, if they are still held.

    An attempt counts where the work was `begun`. Return how many.
    """
    if not leases:
        return 0
    uncounted = {} if begun else {"attempts": F("attempts") - 1}
    return _requeue(_leased(*leases), **uncounted)


def drop(lease: Lease, code: str) -> bool:
    """Close the evaluation of a run or session set that was withdrawn meanwhile."""
    with transaction.atomic():
        count_moves(lease.kind, [lease.pk])
        return _leave(lease, SubmissionEvaluation.State.CANCELLED, error_code=code)


def reap_expired() -> int:
    """Return jobs with an expired lease to the queue, or fail them after the last attempt.

    Return how many.
    """
    return sum(_reap(kind) for kind in JOBS)


def _reap(kind: type[Job]) -> int:
    expired = _rows(kind).filter(_expired(), state=kind.HELD)
    # A query takes no lock; on SQLite every write waits for the only writer.
    if not expired.exists():
        return 0

    crashed: dict[str, Any] = {
        "state": kind.FAILED,
        "since": Now(),
        "lease_token": None,
        "lease_until": None,
        "error_code": f"{kind.NOUN}_crashed",
        "error_message": f"the worker died in attempt {MAX_DEATHS} of this {kind.NOUN}",
    }

    with transaction.atomic():
        last = expired.filter(attempts__gte=MAX_DEATHS)
        # One by one: two reapers must not both announce the same end.
        pks = list(last.order_by("pk").values_list("pk", flat=True))
        failed = [pk for pk in pks if last.filter(pk=pk).update(**crashed)]
        count_moves(kind, failed)
        announce_ended(kind, failed)

        return len(failed) + _requeue(expired)


def queue_interrupted() -> int:
    """Queue the jobs again whose worker cannot be alive any more, and return how many."""
    return sum(_requeue(_rows(kind).filter(state=kind.HELD)) for kind in JOBS)


def _requeue(jobs: QuerySet[Any], **changes: Any) -> int:
    free = {"lease_token": None, "lease_until": None, "dispatched_at": None}
    return move(jobs, state=Job.QUEUED, **free, **changes)


def due_jobs(again_after: float, kind: type[Job] = Evaluation) -> QuerySet[Any]:
    """Return the queued jobs without a message, or without an answer to it for `again_after` s."""
    return _rows(kind).filter(is_silent(again_after), is_due(), state=kind.QUEUED)


def any_due(again_after: float, kind: type[Job]) -> bool:
    """Return whether `due_jobs` would find any."""
    return bool(kinds_due(again_after, (kind,)))


def kinds_due(again_after: float, kinds: tuple[type[Job], ...] = JOBS) -> set[type[Job]]:
    """Return the kinds of jobs that `due_jobs` would find, from one query.

    Every dispatcher asks after each change.
    """
    with connection.cursor() as cursor:
        cursor.execute(*_due_statement(connection.vendor, again_after, kinds))
        return {kind for kind, due in zip(kinds, cursor.fetchone(), strict=True) if due}


@cache
def _due_statement(
    vendor: str, again_after: float, kinds: tuple[type[Job], ...]
) -> tuple[str, tuple[Any, ...]]:
    # It reads the database's clock, so it stays the same; to put it together takes ten times as
    # long as to execute it.
    statements = [
        due_jobs(again_after, kind).order_by().values("pk").query.sql_with_params()
        for kind in kinds
    ]
    sql = ", ".join(f"EXISTS ({statement})" for statement, _ in statements)

    return f"SELECT {sql}", tuple(value for _, parameters in statements for value in parameters)


def under_way(again_after: float, kind: type[Job]) -> int:
    """Return how many jobs are held by a worker or were just sent to one."""
    dispatched = Q(state=kind.QUEUED) & ~is_silent(again_after)
    return _rows(kind).filter(Q(state=kind.HELD) | dispatched).count()


def take_due(limit: int, again_after: float, kind: type[Job] = Evaluation) -> list[Any]:
    """Return the oldest due jobs, marked as dispatched."""
    waiting = due_jobs(again_after, kind).order_by("created_at", "pk")
    with transaction.atomic():
        # Those that another dispatcher is taking are its own: none waits for the other.
        pks = list(waiting.select_for_update(skip_locked=True).values_list("pk", flat=True)[:limit])
        if pks:
            _rows(kind).filter(pk__in=pks).update(dispatched_at=Now())

    return pks


def forget_dispatch(pks: list[Any], kind: type[Job] = Evaluation) -> None:
    """Undo `take_due` if the message could not be sent."""
    _rows(kind).filter(pk__in=pks, state=kind.QUEUED).update(dispatched_at=None)


def try_failed_again(jobs: QuerySet[Any]) -> int:
    """Queue a failed job again, with all its attempts, because a user requested it."""
    return queue_again(jobs.filter(state=Job.FAILED))


def queue_again(jobs: QuerySet[Any]) -> int:
    """Return jobs to the queue, with all their attempts, and return how many.

    A worker that still holds one loses its lease.
    """
    return move(
        jobs,
        state=Job.QUEUED,
        attempts=0,
        lease_token=None,
        lease_until=None,
        dispatched_at=None,
        not_before=None,
        **_NO_ERROR,
    )


def move(jobs: QuerySet[Any], **changes: Any) -> int:
    """Change the jobs that a condition selects, as of now. Return how many."""
    kind, moved = jobs.model, 0
    with transaction.atomic():
        # What the condition selects does not change any more: the collections of all that move are
        # known.
        locked = jobs.select_for_update(of=("self",)).order_by("pk")
        pks = list(locked.values_list("pk", flat=True))
        for start in range(0, len(pks), _TOGETHER):
            chunk = pks[start : start + _TOGETHER]
            moved += _rows(kind).filter(pk__in=chunk).update(since=Now(), **changes)
            count_moves(kind, chunk)

    return moved


def count_moves(kind: type[Job], pks: Iterable[Any]) -> None:
    """Raise the revisions of the collections of these jobs, in the transaction that moves them."""
    jobs = _rows(kind).filter(pk__in=list(pks)).order_by()
    raise_revision(*jobs.values_list(kind.COLLECTION, flat=True).distinct(), arriving=True)


def is_due() -> Q:
    """Return the condition of jobs that are due.

    Jobs delayed for longer than the longest delay are due too: their time was written before
    the clock was set back.
    """
    return (
        Q(not_before=None)
        | Q(not_before__lte=Now())
        | Q(not_before__gt=_from_now(2 * LONGEST_DELAY))
    )


def is_silent(again_after: float) -> Q:
    """Return the condition of jobs without a message, or with one that was not answered.

    A message also counts as missing if it is dated in the future by more than simultaneous
    statements differ.
    """
    past = Q(dispatched_at__lt=_from_now(-again_after))
    future = Q(dispatched_at__gt=_from_now(again_after))

    return Q(dispatched_at=None) | past | future


def _expired() -> Q:
    """Return the condition of expired leases.

    These include leases that are longer than any that a worker takes.
    """
    return Q(lease_until__lt=Now()) | Q(
        lease_until__gt=_from_now(2 * settings.EVALHUB_LEASE_SECONDS)
    )


def _rows(kind: type[Job]) -> QuerySet[Any]:
    return kind._default_manager.all()


def _leased(lease: Lease, *others: Lease) -> Any:
    pks = {"pk__in": [lease.pk, *(other.pk for other in others)]} if others else {"pk": lease.pk}
    return _rows(lease.kind).filter(**pks, state=lease.kind.HELD, lease_token=lease.token)


def _leave(lease: Lease, state: str, **changes: Any) -> bool:
    return bool(
        _leased(lease).update(
            state=state, since=Now(), lease_token=None, lease_until=None, **changes
        )
    )


def _from_now(seconds: float) -> ExpressionWrapper[Any]:
    return ExpressionWrapper(Now() + timedelta(seconds=seconds), output_field=DateTimeField())
