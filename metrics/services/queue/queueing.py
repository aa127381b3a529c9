"""Queueing the evaluations of runs and session sets; from there on they live as all jobs do (lifecycle.py)."""

from __future__ import annotations

from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Now

from metrics.engine import ENGINE_VERSION
from metrics.models import EVALUATIONS, Evaluation, SubmissionEvaluation
from metrics.services.queue.lifecycle import queue_again, try_failed_again
from runs.errors import StoredFileCorrupt, StoredFileMissing
from runs.models import Qrels, Run, SessionSet

_STATE = SubmissionEvaluation.State
# The only way of judging that needs no judgements of the collection.
_OWN = SessionSet.JudgedBy.OWN


def queue_submitted(made: Run | SessionSet) -> None:
    """Queue a run or session set that this transaction has stored, where there is something to judge it by.

    It has no evaluation yet, and on SQLite every other writer waits for this one: no more is read than it takes.
    """
    kind, way = EVALUATIONS[type(made)], made.way
    active = Qrels.objects.filter(collection=made.collection_id, active=True).order_by().values_list("pk", flat=True)
    for qrels in [None] if way == _OWN else active:
        kind._default_manager.create(**{kind.OF.KEY: made, "qrels_id": qrels, kind.WAY: way})


def queue_evaluation(made: Run | SessionSet, way: str | None = None) -> Any:
    """A queued evaluation of it under what judges it now, or in another way; the existing one where there is one
    already, None where there are no judgements yet."""
    kind, way = EVALUATIONS[type(made)], way or made.way
    qrels = None if way == _OWN else made.collection.active_qrels
    if qrels is None and way != _OWN:
        return None
    identity: dict[str, Any] = {kind.OF.KEY: made, "qrels": qrels, kind.WAY: way, "engine_version": ENGINE_VERSION}
    evaluation, new = kind._default_manager.get_or_create(**identity)
    if not new and try_failed_again(kind._default_manager.filter(pk=evaluation.pk)):
        evaluation.refresh_from_db()
    return evaluation


def try_damaged_again(made: Run | SessionSet) -> int:
    """Queue again what failed as a stored file was damaged, and what waits for a missing one: whoever sends it again
    has replaced it."""
    waiting = made.evaluations.filter(state=_STATE.QUEUED, error_code=StoredFileMissing.code)
    if waiting.exists():
        queue_again(waiting)
    damaged = made.evaluations.filter(error_code=StoredFileCorrupt.code, engine_version=ENGINE_VERSION)
    # Looking costs no lock.
    return try_failed_again(damaged) if damaged.exists() else 0


def queue_evaluations(qrels: Qrels, scores: str | None = None) -> int:
    """Queue every live run that these judgements have not met yet, and those that failed; returns how many."""
    scores = scores or qrels.collection.scores
    met = Evaluation.objects.current(qrels, scores)
    again = try_failed_again(met)
    runs = Run.objects.filter(collection=qrels.collection, deleted_at=None).exclude(pk__in=met.values("run"))
    return again + _queue([Evaluation(run=run, qrels=qrels, scores=scores) for run in runs.only("pk")])


def queue_judged(qrels: Qrels) -> None:
    """Queue all that these judgements, now active, have not met yet: runs and session sets, and what failed."""
    for kind in EVALUATIONS.values():
        try_failed_again(kind.objects.counting().live().filter(qrels=qrels))
        _queue(unqueued(kind.OF.objects.filter(collection=qrels.collection)))


def queue_missing() -> int:
    """Queue what nobody has queued: runs and session sets under what counts now; returns how many."""
    return sum(_queue(unqueued(kind.OF.objects.all())) for kind in EVALUATIONS.values())


def unqueued(made: QuerySet[Any]) -> list[Any]:
    """What nobody has queued of these runs or session sets: evaluations, not yet saved, of the live ones that have
    something to judge them by."""
    kind, way = EVALUATIONS[made.model], made.model.WAY
    met = kind.objects.counting().filter(**{kind.OF.KEY: OuterRef("pk")})
    active = Qrels.objects.filter(collection=OuterRef("collection"), active=True).values("pk")
    judged = made.filter(deleted_at=None).exclude(Exists(met)).annotate(judging=Subquery(active[:1]))
    rows = judged.filter(Q(judging__isnull=False) | Q(**{way: _OWN})).values_list("pk", "judging", way)
    return [
        kind(**{f"{kind.OF.KEY}_id": pk, "qrels_id": None if way == _OWN else qrels, kind.WAY: way})
        for pk, qrels, way in rows
    ]


def cancel_evaluations(made: Run | SessionSet) -> int:
    """Cancel what is queued of a run or session set that was withdrawn; returns how many."""
    queued = made.evaluations.filter(state=_STATE.QUEUED)
    return queued.update(state=_STATE.CANCELLED, since=Now(), error_code=EVALUATIONS[type(made)].withdrawn_code())


def restore_evaluations(made: Run | SessionSet) -> None:
    """Queue again what was cancelled of a run or session set that is restored, and its evaluation that counts."""
    code = EVALUATIONS[type(made)].withdrawn_code()
    queue_again(made.evaluations.filter(state=_STATE.CANCELLED, error_code=code, engine_version=ENGINE_VERSION))
    queue_evaluation(made)


def _queue(evaluations: list[Any]) -> int:
    if evaluations:
        type(evaluations[0])._default_manager.bulk_create(evaluations, 500, ignore_conflicts=True)
    return len(evaluations)
