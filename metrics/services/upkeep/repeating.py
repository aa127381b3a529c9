"""Actions of administrators: evaluate again, cancel a comparison."""

from __future__ import annotations

from django.db import transaction

from metrics.engine import ENGINE_VERSION
from metrics.models import Comparison, Evaluation, Job, SessionEvaluation
from metrics.services.queue.lifecycle import move, queue_again
from runs.errors import Conflict
from runs.models import AuditEvent, Collection
from runs.services.audit.trail import SYSTEM, Origin, record

_CANCELLED = "an administrator cancelled it"


def repeat_evaluation(
    *, evaluation: Evaluation | SessionEvaluation, origin: Origin = SYSTEM
) -> None:
    """Queue a finished, failed or cancelled evaluation again.

    Its values stay until new ones are stored.

    Raise Conflict if it is in the queue, if its run or session set was withdrawn, or if another
    engine version made it, because its values would then be those of this version under the other's
    name.
    """
    submission = evaluation.submission
    if evaluation.engine_version != ENGINE_VERSION:
        message = (
            f"{evaluation} is engine {evaluation.engine_version}'s; this is {ENGINE_VERSION}, "
            "which has its own"
        )
        raise Conflict(message)
    if submission.deleted_at:
        raise Conflict(f"{submission} was withdrawn; restore it first")

    rows = type(evaluation)._default_manager.filter(pk=evaluation.pk)
    with transaction.atomic():
        if not queue_again(rows.exclude(state__in=(Job.QUEUED, evaluation.HELD))):
            raise Conflict(f"{evaluation} is in the queue already")

        _record(
            origin,
            AuditEvent.Action.EVALUATION_REPEATED,
            evaluation,
            submission.collection,
            evaluation.state,
        )


def cancel_comparison(*, comparison: Comparison, origin: Origin = SYSTEM) -> None:
    """End a queued or running comparison: it fails, and its worker finds its lease lost.

    Raise Conflict if it has ended.
    """
    with transaction.atomic():
        reason = {"error_code": "comparison_cancelled", "error_message": _CANCELLED}
        waiting = Comparison.objects.unfinished().filter(pk=comparison.pk)
        if not move(waiting, state=Job.FAILED, lease_token=None, lease_until=None, **reason):
            raise Conflict(f"{comparison} has ended already")
        action, collection = AuditEvent.Action.COMPARISON_CANCELLED, comparison.qrels.collection
        _record(origin, action, comparison, collection, comparison.state)


def _record(
    origin: Origin, action: AuditEvent.Action, job: Job, collection: Collection, state: str
) -> None:
    record(origin, action, job, collection=collection, before={"state": state})
