"""The state of a run or session set, which is that of its current evaluation."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce, Now

from metrics.models import EVALUATIONS, Evaluation, Job, SubmissionEvaluation
from metrics.services.queue.rounds import last_rounds
from runs.models import Qrels, Run, SessionSet, can_see_scores, scored_in
from runs.models.collections.disclosure import in_team_of


@dataclass(frozen=True, slots=True)
class Waiting:
    """The place of a queued run among those that the reader may see, 1 for the next.

    It has the seconds of waiting, and the reason why it waits.
    """

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
# How many evaluations say how long one takes.
_RECENT = 20


def statuses(made: Sequence[Run | SessionSet], viewer: Any) -> dict[str, RunStatus]:
    """Return the status of each run or session set by its id, in at most two queries.

    It is what the viewer may see.

    Without access to the scores the viewer only sees that the run was received.
    """
    blind = {one.collection for one in made if one.collection.blind}
    unseen = {collection.pk for collection in blind if not can_see_scores(viewer, collection)}
    shown = [one for one in made if one.collection_id not in unseen]

    told = {
        str(one.pk): RunStatus(RECEIVED, one.created_at)
        for one in made
        if one.collection_id in unseen
    }

    if not shown:
        return told

    kind = EVALUATIONS[type(shown[0])]
    own = kind.objects.counting().filter(**{f"{kind.OF.KEY}__in": [one.pk for one in shown]})
    rows = own.values_list(
        f"{kind.OF.KEY}_id", "state", "since", "qrels__version", "error_code", "error_message"
    )
    told |= {str(row[0]): RunStatus(*row[1:]) for row in rows}

    if unknown := [one for one in shown if str(one.pk) not in told]:
        active = Qrels.objects.filter(
            active=True, collection__in={one.collection_id for one in unknown}
        ).order_by()
        judged = set(active.values_list("collection_id", flat=True))

        for one in unknown:
            waits = one.collection_id in judged or one.way == SessionSet.JudgedBy.OWN
            why = (
                ()
                if waits
                else (None, "no_active_qrels", "the collection has no active judgements yet")
            )
            told[str(one.pk)] = RunStatus(_QUEUED, one.created_at, *why)

    return told


def detailed_statuses(made: Sequence[Run | SessionSet], viewer: Any) -> dict[str, RunStatus]:
    """Return statuses with places in the queue, which takes five more queries."""
    told = statuses(made, viewer)
    if waiting := [one for one in made if told[str(one.pk)].state == _QUEUED]:
        for pk, place in _places(waiting, viewer).items():
            told[str(pk)] = replace(told[str(pk)], queue=place)
    return told


def seconds_until_next(
    kind: type[Run | SessionSet], told: Iterable[RunStatus], viewer: Any
) -> float | None:
    """Return in how many seconds the first may be evaluated, from 1 to 60.

    It is None where none is on its way.

    It is the place in the queue times what the last evaluations took. As with the place, those
    whose scores the viewer may not see say nothing.
    """
    ahead = [status.queue.position for status in told if status.queue]
    if any(status.state == SubmissionEvaluation.State.EVALUATING for status in told):
        ahead.append(1)

    if not ahead:
        return None

    evaluations = EVALUATIONS[kind]
    done = evaluations.objects.evaluated().filter(
        scored_in(viewer, f"{evaluations.OF.KEY}__collection__")
    )
    took = [
        seconds or 0.0
        for seconds in done.order_by("-pk").values_list("seconds", flat=True)[:_RECENT]
    ]
    pace = sum(took) / len(took) if took else 0.0

    return min(60.0, max(1.0, min(ahead) * pace))


def with_states(made: QuerySet[Any]) -> QuerySet[Any]:
    """Return the same runs or session sets with the `state` of their current evaluations.

    Without an evaluation they are queued.
    """
    kind = EVALUATIONS[made.model]
    counting = kind.objects.counting().filter(**{kind.OF.KEY: OuterRef("pk")}).values("state")
    annotated: QuerySet[Any] = made.annotate(
        state=Coalesce(Subquery(counting[:1]), Value(_QUEUED.value))
    )

    return annotated


def in_state(made: QuerySet[Any], state: str) -> QuerySet[Any]:
    """Return those whose current evaluation is in a state; without one they are queued."""
    kind = EVALUATIONS[made.model]
    counting = kind.objects.counting().filter(**{kind.OF.KEY: OuterRef("pk")})
    if state == _QUEUED:
        return made.exclude(Exists(counting.exclude(state=state)))
    return made.filter(Exists(counting.filter(state=state)))


def failed_runs(user: Any) -> int:
    """Return how many runs of the user's teams failed, of those whose scores the user may see."""
    live = (
        Q(run__deleted_at=None) & in_team_of(user, "run__") & scored_in(user, "run__collection__")
    )
    return (
        Evaluation.objects.counting().filter(live, state=SubmissionEvaluation.State.FAILED).count()
    )


def _places(waiting: Sequence[Run | SessionSet], viewer: Any) -> dict[UUID, Waiting]:
    """Return places in the queue by id, in the order in which the dispatcher takes them.

    Those that are not in the queue are left out.

    Runs in collections whose scores the viewer may not see are not counted: the position would
    reveal how many runs they have, and when their judgements changed.
    """
    kind = EVALUATIONS[type(waiting[0])]
    of = f"{kind.OF.KEY}_id"
    queued = kind._default_manager.filter(state=Job.QUEUED)
    own = kind.objects.counting().filter(
        state=Job.QUEUED, **{f"{of}__in": [one.pk for one in waiting]}
    )

    rows = list(own.annotate(now=Now()).values_list(of, "created_at", "since", "not_before", "now"))
    if not rows:
        return {}

    queue = queued.filter(scored_in(viewer, f"{kind.OF.KEY}__collection__"))
    moments = [row[1] for row in rows]
    first, last = min(moments), max(moments)
    before = queue.filter(created_at__lt=first).count()
    between: list[datetime] = []

    if first < last:
        among = queue.filter(created_at__gte=first, created_at__lt=last).order_by("created_at")
        between = list(among.values_list("created_at", flat=True))

    worker = "worker" if any(one.alive for one in last_rounds()) else "no_worker_alive"

    places = {}
    for pk, created_at, since, not_before, now in rows:
        waits_for = "retry" if not_before and not_before > now else worker
        position = before + bisect_left(between, created_at) + 1
        places[pk] = Waiting(position, max(0.0, (now - since).total_seconds()), waits_for)

    return places
