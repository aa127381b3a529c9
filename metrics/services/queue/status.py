"""What to say of a run's state: that of its evaluation under the judgements that count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from django.db.models import F, OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce, Now

from metrics.engine import ENGINE_VERSION
from metrics.models import Evaluation, Job
from metrics.services.queue.rounds import last_rounds
from runs.models import Qrels, Run, SessionSet, can_see_scores

Submitted = TypeVar("Submitted", Run, SessionSet)


@dataclass(frozen=True, slots=True)
class Waiting:
    """Where a queued run stands: its position (1 is next), the seconds it has waited, and what it waits for."""

    position: int
    seconds: float
    waits_for: str


@dataclass(frozen=True, slots=True)
class RunStatus:
    """A run's state, since when, and the reason where it failed or cannot be evaluated yet."""

    state: str
    since: datetime
    qrels_version: int | None = None
    code: str = ""
    reason: str = ""
    queue: Waiting | None = None


def detailed_statuses(run: Run, viewer: Any) -> dict[str, RunStatus]:
    """The status of one run, with its place in the queue while it waits there: three queries more."""
    status = statuses([run], viewer)[str(run.pk)]
    if status.state == Evaluation.State.QUEUED:
        status = replace(status, queue=_place(run))
    return {str(run.pk): status}


# All that a submitter learns of a run while the judgements are blind.
RECEIVED = "received"
RUN_STATES = (RECEIVED, *Evaluation.State.values)


def statuses(runs: list[Run], viewer: Any) -> dict[str, RunStatus]:
    """The status of each run by its id, as the viewer may know it, in at most two queries."""
    return as_known_to(viewer, runs, _true_statuses)


def as_known_to(
    viewer: Any, submitted: list[Submitted], ask: Callable[[list[Submitted]], dict[str, RunStatus]]
) -> dict[str, RunStatus]:
    """What `ask` says of those whose scores the viewer may see; of the others no more than that they were received."""
    blind = {one.collection for one in submitted if one.collection.blind}
    unseen = {collection.pk for collection in blind if not can_see_scores(viewer, collection)}
    hidden = {str(one.pk): RunStatus(RECEIVED, one.created_at) for one in submitted if one.collection_id in unseen}
    shown = [one for one in submitted if one.collection_id not in unseen]
    return {**hidden, **(ask(shown) if shown else {})}


def _true_statuses(runs: list[Run]) -> dict[str, RunStatus]:
    rows = Evaluation.objects.filter(
        run__in=[run.pk for run in runs],
        qrels__active=True,
        scores=F("run__collection__scores"),
        engine_version=ENGINE_VERSION,
    ).values_list("run_id", "state", "since", "qrels__version", "error_code", "error_message")
    known = {str(row[0]): RunStatus(*row[1:]) for row in rows}
    unknown = [run for run in runs if str(run.pk) not in known]
    judged = judged_collections(unknown) if unknown else set()
    return {**known, **{str(run.pk): waiting(run, run.collection_id in judged) for run in unknown}}


def judged_collections(submitted: list[Run] | list[SessionSet]) -> set[int]:
    """Which of the collections they were submitted to have active judgements."""
    active = Qrels.objects.filter(active=True, collection__in={one.collection_id for one in submitted}).order_by()
    return set(active.values_list("collection_id", flat=True))


def with_states(runs: QuerySet[Run]) -> QuerySet[Run]:
    """The same runs, each with the `state` of its evaluation under what counts; one that has none is queued."""
    counting = Evaluation.objects.filter(run=OuterRef("pk"), qrels__active=True, engine_version=ENGINE_VERSION)
    current = counting.filter(scores=OuterRef("collection__scores")).values("state")
    return runs.annotate(state=Coalesce(Subquery(current[:1]), Value(Evaluation.State.QUEUED.value)))


def waiting(submitted: Run | SessionSet, judged: bool) -> RunStatus:
    """Of what has no evaluation yet."""
    if judged:
        return RunStatus(Evaluation.State.QUEUED, submitted.created_at)
    reason = "the collection has no active judgements yet"
    return RunStatus(Evaluation.State.QUEUED, submitted.created_at, None, "no_active_qrels", reason)


def _place(run: Run) -> Waiting | None:
    current = {"qrels__active": True, "scores": F("run__collection__scores"), "engine_version": ENGINE_VERSION}
    return place(Evaluation.objects.filter(run=run, **current))


def place(evaluations: QuerySet[Any]) -> Waiting | None:
    """Position among its kind by the time of queueing, as the dispatcher takes them; None where none of these is in the
    queue."""
    queued = evaluations.filter(state=Job.QUEUED).annotate(now=Now())
    own = queued.values_list("created_at", "since", "not_before", "now").first()
    if own is None:
        return None
    created_at, since, not_before, now = own
    before = evaluations.model._default_manager.filter(state=Job.QUEUED, created_at__lt=created_at)
    if not_before and not_before > now:
        waits_for = "retry"
    else:
        waits_for = "worker" if any(last.alive for last in last_rounds()) else "no_worker_alive"
    return Waiting(before.count() + 1, max(0.0, (now - since).total_seconds()), waits_for)
