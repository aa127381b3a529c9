"""The life of an evaluation: queued, evaluating, evaluated, failed or cancelled.

Every move is one UPDATE that names the state it leaves, and the lease token where there is one: a count of 1 means
the move is ours, 0 that somebody else made it. Times are the database's, so that workers' clocks do not matter.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import DateTimeField, Exists, ExpressionWrapper, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Now

from metrics.engine import ENGINE_VERSION
from metrics.models import Evaluation
from runs.models import Qrels, Run

MAX_ATTEMPTS = 3
_STATE = Evaluation.State
_RUN_DELETED = "run_deleted"


class LeaseLost(Exception):
    """Another worker took an evaluation over while this one was computing it."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to finish one evaluation, until another one takes it."""

    evaluation_id: int
    token: uuid.UUID


def queue_evaluation(run: Run, scores: str | None = None) -> Evaluation | None:
    """A queued evaluation of the run under the active judgements; the existing one where there is one already."""
    qrels = run.collection.active_qrels
    if qrels is None:
        return None
    identity: dict[str, Any] = {"run": run, "qrels": qrels, "scores": scores or run.collection.scores}
    _try_failed_again(Evaluation.objects.filter(**identity, engine_version=ENGINE_VERSION))
    return Evaluation.objects.get_or_create(**identity, engine_version=ENGINE_VERSION)[0]


def queue_evaluations(qrels: Qrels, scores: str | None = None) -> int:
    """Queue every live run that these judgements have not met yet, and those that failed; returns how many."""
    scores = scores or qrels.collection.scores
    met = Evaluation.objects.current(qrels, scores)
    again = _try_failed_again(met)
    runs = Run.objects.filter(collection=qrels.collection, deleted_at=None).exclude(pk__in=met.values("run"))
    rows = [Evaluation(run=run, qrels=qrels, scores=scores) for run in runs.only("pk")]
    Evaluation.objects.bulk_create(rows, 500, ignore_conflicts=True)
    return again + len(rows)


def _try_failed_again(evaluations: QuerySet[Evaluation]) -> int:
    """Whoever asks for an evaluation that failed asks to try it again, with all its attempts."""
    return evaluations.filter(state=_STATE.FAILED).update(
        state=_STATE.QUEUED, since=Now(), attempts=0, dispatched_at=None, not_before=None, error_code="",
        error_message="", traceback="",
    )  # fmt: skip


def queue_missing() -> int:
    """Queue what nobody has queued: live runs under active judgements and this engine version; returns how many."""
    met = Evaluation.objects.filter(
        run=OuterRef("pk"), qrels=OuterRef("qrels"), scores=OuterRef("collection__scores"),
        engine_version=ENGINE_VERSION,
    )  # fmt: skip
    active = Qrels.objects.filter(collection=OuterRef("collection"), active=True)
    runs = Run.objects.filter(deleted_at=None).annotate(qrels=Subquery(active.values("pk")[:1])).exclude(qrels=None)
    missing = runs.exclude(Exists(met)).values_list("pk", "qrels", "collection__scores")
    rows = [Evaluation(run_id=run, qrels_id=qrels, scores=scores) for run, qrels, scores in missing]
    Evaluation.objects.bulk_create(rows, 500, ignore_conflicts=True)
    return len(rows)


def claim(evaluation_id: int) -> Lease | None:
    """Take a queued evaluation for one lease; None where it is not to be had."""
    lease = Lease(evaluation_id, uuid.uuid4())
    taken = Evaluation.objects.filter(_due(), pk=evaluation_id, state=_STATE.QUEUED).update(
        state=_STATE.EVALUATING,
        since=Now(),
        attempts=F("attempts") + 1,
        lease_token=lease.token,
        lease_until=_from_now(settings.EVALHUB_LEASE_SECONDS),
    )
    return lease if taken else None


def beat(lease: Lease) -> bool:
    """Make a held lease last; False where it was lost."""
    return bool(_held(lease).update(lease_until=_from_now(settings.EVALHUB_LEASE_SECONDS)))


def finish(lease: Lease, **results: Any) -> bool:
    """Close an evaluation as evaluated; call inside the transaction that stores its vectors."""
    return _leave(lease, _STATE.EVALUATED, error_code="", error_message="", traceback="", **results)


def fail(lease: Lease, *, code: str, message: str, traceback: str = "") -> bool:
    """Close an evaluation as failed, with the reason."""
    return _leave(lease, _STATE.FAILED, error_code=code, error_message=message[:2000], traceback=traceback[-20_000:])


def release(lease: Lease, *, delay: float, burn: bool, code: str = "", traceback: str = "") -> bool:
    """Give an evaluation back to the queue; `burn` keeps the attempt counted."""
    changes: dict[str, Any] = {"not_before": _from_now(delay) if delay else None, "dispatched_at": None}
    if not burn:
        changes["attempts"] = F("attempts") - 1
    return _leave(lease, _STATE.QUEUED, error_code=code, traceback=traceback[-20_000:], **changes)


def drop(lease: Lease) -> bool:
    """Close the evaluation of a run that was taken away while it waited."""
    return _leave(lease, _STATE.CANCELLED, error_code=_RUN_DELETED)


def cancel_evaluations(run: Run) -> int:
    """Cancel what is queued of a run that was taken away; returns how many."""
    queued = Evaluation.objects.filter(run=run, state=_STATE.QUEUED)
    return queued.update(state=_STATE.CANCELLED, since=Now(), error_code=_RUN_DELETED)


def reap_expired() -> int:
    """Return evaluations whose lease ran out to the queue, or fail them at the attempt cap; returns how many."""
    expired = Evaluation.objects.filter(state=_STATE.EVALUATING, lease_until__lt=Now())
    # Looking costs no lock; on SQLite every write waits for the only writer there may be.
    if not expired.exists():
        return 0
    with transaction.atomic():
        failed = expired.filter(attempts__gte=MAX_ATTEMPTS).update(
            state=_STATE.FAILED,
            since=Now(),
            lease_token=None,
            lease_until=None,
            error_code="evaluation_crashed",
            error_message=f"the worker died {MAX_ATTEMPTS} times while it evaluated this run",
        )
        requeued = expired.update(
            state=_STATE.QUEUED, since=Now(), lease_token=None, lease_until=None, dispatched_at=None
        )
    return failed + requeued


def queue_interrupted() -> int:
    """Queue again what was being evaluated, where its worker cannot be alive any more; returns how many."""
    held = Evaluation.objects.filter(state=_STATE.EVALUATING)
    return held.update(state=_STATE.QUEUED, since=Now(), lease_token=None, lease_until=None, dispatched_at=None)


def due_evaluations(again_after: float) -> QuerySet[Evaluation]:
    """Queued evaluations that no message is under way for, or one that `again_after` seconds left unanswered."""
    return Evaluation.objects.filter(_silent(again_after), _due(), state=_STATE.QUEUED)


def take_due(limit: int, again_after: float) -> list[int]:
    """The oldest due evaluations, marked as dispatched."""
    waiting = due_evaluations(again_after).order_by("created_at", "pk")
    candidates = list(waiting.values_list("pk", flat=True)[:limit])
    return [
        pk
        for pk in candidates
        if Evaluation.objects.filter(_silent(again_after), pk=pk, state=_STATE.QUEUED).update(dispatched_at=Now())
    ]


def forget_dispatch(evaluation_ids: list[int]) -> None:
    """Undo `take_due` where the message could not be sent."""
    Evaluation.objects.filter(pk__in=evaluation_ids, state=_STATE.QUEUED).update(dispatched_at=None)


def _due() -> Q:
    return Q(not_before=None) | Q(not_before__lte=Now())


def _silent(again_after: float) -> Q:
    return Q(dispatched_at=None) | Q(dispatched_at__lt=_from_now(-again_after))


def _held(lease: Lease) -> Any:
    return Evaluation.objects.filter(pk=lease.evaluation_id, state=_STATE.EVALUATING, lease_token=lease.token)


def _leave(lease: Lease, state: str, **changes: Any) -> bool:
    return bool(_held(lease).update(state=state, since=Now(), lease_token=None, lease_until=None, **changes))


def _from_now(seconds: float) -> ExpressionWrapper[Any]:
    return ExpressionWrapper(Now() + timedelta(seconds=seconds), output_field=DateTimeField())
