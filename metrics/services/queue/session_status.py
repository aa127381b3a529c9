"""What to say of a session set's state: that of its evaluation under what it is judged by."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from metrics.models import Evaluation, SessionEvaluation
from metrics.services.queue.status import RunStatus, as_known_to, judged_collections, place, waiting
from runs.models import SessionSet


def session_statuses(sets: list[SessionSet], viewer: Any) -> dict[str, RunStatus]:
    """The status of each set by its id, as the viewer may know it, in two queries."""
    return as_known_to(viewer, sets, _true_statuses)


def detailed_session_statuses(session_set: SessionSet, viewer: Any) -> dict[str, RunStatus]:
    """The status of one set, with its place in the queue of session sets while it waits there."""
    status = session_statuses([session_set], viewer)[str(session_set.pk)]
    if status.state == Evaluation.State.QUEUED:
        status = replace(status, queue=place(SessionEvaluation.objects.current().filter(session_set=session_set)))
    return {str(session_set.pk): status}


def _true_statuses(sets: list[SessionSet]) -> dict[str, RunStatus]:
    rows = SessionEvaluation.objects.current().filter(session_set__in=[one.pk for one in sets])
    told = rows.values_list("session_set_id", "state", "since", "qrels__version", "error_code", "error_message")
    known = {str(row[0]): RunStatus(*row[1:]) for row in told}
    judged = judged_collections(sets)
    return {
        str(one.pk): known.get(str(one.pk))
        or waiting(one, one.collection_id in judged or one.judged_by == SessionSet.JudgedBy.OWN)
        for one in sets
    }


def with_session_states(sets: QuerySet[SessionSet]) -> QuerySet[SessionSet]:
    """The same sets, each with the `state` of its evaluation under what counts; one that has none is queued."""
    current = SessionEvaluation.objects.current().filter(session_set=OuterRef("pk")).values("state")
    return sets.annotate(state=Coalesce(Subquery(current[:1]), Value(Evaluation.State.QUEUED.value)))


def sets_in_state(sets: QuerySet[SessionSet], state: str) -> QuerySet[SessionSet]:
    """Those whose evaluation is in a state; one that has none is queued."""
    current = SessionEvaluation.objects.current()
    if state == Evaluation.State.QUEUED:
        return sets.exclude(pk__in=current.exclude(state=state).values("session_set"))
    return sets.filter(pk__in=current.filter(state=state).values("session_set"))
