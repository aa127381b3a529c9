"""The state of a run or session set, which is that of its current evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce, Now

from metrics.models import EVALUATIONS, Job, SubmissionEvaluation
from metrics.services.queue.rounds import last_rounds
from runs.models import Collection, Qrels, Run, SessionSet, can_see_scores


@dataclass(frozen=True, slots=True)
class Waiting:
    """The place of a queued run among the runs that the reader may see (1 is next), the seconds it has waited, and the
    reason why it waits."""

    position: int
    seconds: float
    waits_for: str


@dataclass(frozen=True, slots=True)
class RunStatus:
    """The state of a run, since when, and the reason if it failed or cannot be evaluated yet."""

    state: str
    since: datetime
    qrels_version: int | None = None
    code: str = ""
    reason: str = ""
    queue: Waiting | None = None


# The only state that a submitter sees while the judgements are blind.
RECEIVED = "received"
RUN_STATES = (RECEIVED, *SubmissionEvaluation.State.values)
_QUEUED = SubmissionEvaluation.State.QUEUED


def statuses(made: Sequence[Run | SessionSet], viewer: Any) -> dict[str, RunStatus]:
    """Return the status of each run, or of each session set, by its id, as the viewer may see it, in at most two
    queries.

    Without access to the scores the viewer only sees that the run was received.
    """
    blind = {one.collection for one in made if one.collection.blind}
    unseen = {collection.pk for collection in blind if not can_see_scores(viewer, collection)}
    shown = [one for one in made if one.collection_id not in unseen]
    told = {str(one.pk): RunStatus(RECEIVED, one.created_at) for one in made if one.collection_id in unseen}
    if not shown:
        return told
    kind = EVALUATIONS[type(shown[0])]
    own = kind.objects.counting().filter(**{f"{kind.OF.KEY}__in": [one.pk for one in shown]})
    rows = own.values_list(f"{kind.OF.KEY}_id", "state", "since", "qrels__version", "error_code", "error_message")
    told |= {str(row[0]): RunStatus(*row[1:]) for row in rows}
    if unknown := [one for one in shown if str(one.pk) not in told]:
        active = Qrels.objects.filter(active=True, collection__in={one.collection_id for one in unknown}).order_by()
        judged = set(active.values_list("collection_id", flat=True))
        for one in unknown:
            waits = one.collection_id in judged or one.way == SessionSet.JudgedBy.OWN
            why = () if waits else (None, "no_active_qrels", "the collection has no active judgements yet")
            told[str(one.pk)] = RunStatus(_QUEUED, one.created_at, *why)
    return told


def detailed_statuses(made: Run | SessionSet, viewer: Any) -> dict[str, RunStatus]:
    """Return the status of one run or session set with its place in the queue, which takes three more queries."""
    status = statuses([made], viewer)[str(made.pk)]
    if status.state == _QUEUED:
        status = replace(status, queue=_place(made.evaluations.counting(), viewer))
    return {str(made.pk): status}


def with_states(made: QuerySet[Any]) -> QuerySet[Any]:
    """Return the same runs or session sets, each with the `state` of its current evaluation, or queued without one."""
    kind = EVALUATIONS[made.model]
    counting = kind.objects.counting().filter(**{kind.OF.KEY: OuterRef("pk")}).values("state")
    annotated: QuerySet[Any] = made.annotate(state=Coalesce(Subquery(counting[:1]), Value(_QUEUED.value)))
    return annotated


def in_state(made: QuerySet[Any], state: str) -> QuerySet[Any]:
    """Return those whose current evaluation is in a state; without an evaluation they are queued."""
    kind = EVALUATIONS[made.model]
    counting = kind.objects.counting().filter(**{kind.OF.KEY: OuterRef("pk")})
    if state == _QUEUED:
        return made.exclude(Exists(counting.exclude(state=state)))
    return made.filter(Exists(counting.filter(state=state)))


def _place(evaluations: QuerySet[Any], viewer: Any) -> Waiting | None:
    """Return the position among its kind by the time of queueing, as the dispatcher takes them, or None if none of
    these is in the queue.

    Runs in collections whose scores the viewer may not see are not counted: the position would reveal how many runs
    they have, and when their judgements changed.
    """
    queued = evaluations.filter(state=Job.QUEUED).annotate(now=Now())
    own = queued.values_list("created_at", "since", "not_before", "now").first()
    if own is None:
        return None
    created_at, since, not_before, now = own
    kind, seen = evaluations.model, Collection.objects.visible_to(viewer).scored_for(viewer)
    waiting = kind._default_manager.filter(state=Job.QUEUED, **{f"{kind.OF.KEY}__collection__in": seen})
    before = waiting.filter(created_at__lt=created_at)
    if not_before and not_before > now:
        waits_for = "retry"
    else:
        waits_for = "worker" if any(last.alive for last in last_rounds()) else "no_worker_alive"
    return Waiting(before.count() + 1, max(0.0, (now - since).total_seconds()), waits_for)
