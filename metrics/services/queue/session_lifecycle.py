"""Queueing the evaluations of session sets; from there on they live as those of runs do (lifecycle.py)."""

from __future__ import annotations

from typing import Any

from django.db.models import Exists, OuterRef, QuerySet, Subquery
from django.db.models.functions import Now

from metrics.engine import ENGINE_VERSION
from metrics.models import Evaluation, SessionEvaluation
from metrics.services.queue.lifecycle import queue_again, queue_evaluations, queue_missing, try_failed_again
from runs.models import Qrels, SessionSet

SET_DELETED = "session_set_deleted"
_OWN = SessionSet.JudgedBy.OWN
_STATE = Evaluation.State


def queue_session_evaluation(session_set: SessionSet) -> SessionEvaluation | None:
    """A queued evaluation of the set under what it is judged by; the existing one where there is one already, None
    where there are no judgements yet."""
    qrels = None if session_set.judged_by == _OWN else session_set.collection.active_qrels
    if qrels is None and session_set.judged_by != _OWN:
        return None
    identity: dict[str, Any] = {"session_set": session_set, "qrels": qrels, "judged_by": session_set.judged_by}
    try_failed_again(SessionEvaluation.objects.filter(**identity, engine_version=ENGINE_VERSION))
    made: SessionEvaluation = SessionEvaluation.objects.get_or_create(**identity, engine_version=ENGINE_VERSION)[0]
    return made


def queue_judged(qrels: Qrels) -> None:
    """Queue all that these judgements, now active, have not met yet: runs and session sets, and what failed."""
    queue_evaluations(qrels)
    try_failed_again(SessionEvaluation.objects.filter(qrels=qrels, engine_version=ENGINE_VERSION))
    _queue(_unqueued(SessionSet.objects.filter(collection=qrels.collection)))


def queue_all_missing() -> int:
    """Queue what nobody has queued: runs and session sets under what counts now; returns how many."""
    return queue_missing() + _queue(unqueued_sessions())


def unqueued_sessions() -> list[SessionEvaluation]:
    """What nobody has queued: evaluations, not yet saved, of live sets that have judgements."""
    return _unqueued(SessionSet.objects.all())


def cancel_session_evaluations(session_set: SessionSet) -> int:
    """Cancel what is queued of a set that was taken away; returns how many."""
    queued = SessionEvaluation.objects.filter(session_set=session_set, state=_STATE.QUEUED)
    return queued.update(state=_STATE.CANCELLED, since=Now(), error_code=SET_DELETED)


def restore_session_evaluations(session_set: SessionSet) -> None:
    """Queue again what was cancelled of a set that was brought back, and its evaluation under what counts now."""
    cancelled = {"state": _STATE.CANCELLED, "error_code": SET_DELETED, "engine_version": ENGINE_VERSION}
    queue_again(SessionEvaluation.objects.filter(session_set=session_set, **cancelled))
    queue_session_evaluation(session_set)


def _unqueued(sets: QuerySet[SessionSet]) -> list[SessionEvaluation]:
    live, active = sets.filter(deleted_at=None), Qrels.objects.filter(collection=OuterRef("collection"), active=True)
    met = SessionEvaluation.objects.filter(
        session_set=OuterRef("pk"), judged_by=OuterRef("judged_by"), engine_version=ENGINE_VERSION
    )
    own = live.filter(judged_by=_OWN).exclude(Exists(met)).values_list("pk", flat=True)
    judged = live.exclude(judged_by=_OWN).annotate(judging=Subquery(active.values("pk")[:1])).exclude(judging=None)
    others = judged.exclude(Exists(met.filter(qrels=OuterRef("judging")))).values_list("pk", "judging", "judged_by")
    return [
        *(SessionEvaluation(session_set_id=pk, qrels_id=qrels, judged_by=by) for pk, qrels, by in others),
        *(SessionEvaluation(session_set_id=pk, judged_by=_OWN) for pk in own),
    ]


def _queue(evaluations: list[SessionEvaluation]) -> int:
    SessionEvaluation.objects.bulk_create(evaluations, 500, ignore_conflicts=True)
    return len(evaluations)
