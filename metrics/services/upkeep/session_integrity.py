"""What must always be true of session sets and their evaluations."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from django.db.models import F

from metrics.models import Evaluation, SessionEvaluation
from metrics.services.queue.session_lifecycle import cancel_session_evaluations, queue_all_missing, unqueued_sessions
from metrics.services.sessions.judged_sets import load_set
from metrics.services.upkeep.findings import Finding
from runs.models import SessionSet

_STATE = Evaluation.State


def find_session_faults() -> Iterator[Finding]:
    for evaluation in SessionEvaluation.objects.evaluated().filter(view=None):
        text = f"{_name(evaluation)} is evaluated and has no judged view; --repair evaluates it again"
        yield Finding("session_view_missing", text, _again(evaluation))
    for found in SessionSet.objects.filter(evaluations__state=_STATE.QUEUED).exclude(deleted_at=None).distinct():
        text = f"session set {found.pk} was deleted and waits to be evaluated; --repair cancels that"
        yield Finding("deleted_session_set_queued", text, _cancel(found))
    for missing in unqueued_sessions():
        text = f"session set {missing.session_set_id} was never queued; --repair queues it, as workers do hourly"
        yield Finding("session_set_not_queued", text, queue_all_missing)
    foreign = SessionEvaluation.objects.exclude(qrels=None).exclude(qrels__collection=F("session_set__collection"))
    for evaluation in foreign:
        text = f"{_name(evaluation)} is by judgements of another collection; restore a backup"
        yield Finding("foreign_qrels", text)


def find_unreadable_sessions() -> Iterator[Finding]:
    for evaluation in (
        SessionEvaluation.objects.evaluated().exclude(view=None).select_related("session_set").iterator(1)
    ):
        try:
            judged = load_set(evaluation)
            whole = len(judged.sessions) == judged.view.n_sessions == evaluation.session_set.sessions
        except Exception:
            whole = False
        if not whole:
            text = f"the judged view of {_name(evaluation)} cannot be read; --repair evaluates it again"
            yield Finding("session_view_unreadable", text, _again(evaluation))


def _name(evaluation: SessionEvaluation) -> str:
    return f"evaluation {evaluation.pk} of session set {evaluation.session_set_id}"


def _cancel(session_set: SessionSet) -> Callable[[], object]:
    return lambda: cancel_session_evaluations(session_set)


def _again(evaluation: SessionEvaluation) -> Callable[[], object]:
    """Evaluate anew: the log is the truth."""
    again = {"state": _STATE.QUEUED, "attempts": 0, "dispatched_at": None}
    return lambda: SessionEvaluation.objects.filter(pk=evaluation.pk, state=_STATE.EVALUATED).update(**again)
