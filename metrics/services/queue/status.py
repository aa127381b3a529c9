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
# How many evaluations the mean duration is of.
_RECENT = 20


def statuses(submissions: Sequence[Run | SessionSet], viewer: Any) -> dict[str, RunStatus]:
    """Return the status of each run or session set by its id, in at most two queries.

    A viewer without access to the scores only sees that the run was received.
    """
    blind = {submission.collection for submission in submissions if submission.collection.blind}
    unseen = {collection.pk for collection in blind if not can_see_scores(viewer, collection)}
    visible = [submission for submission in submissions if submission.collection_id not in unseen]

    by_id = {
        str(submission.pk): RunStatus(RECEIVED, submission.created_at)
        for submission in submissions
        if submission.collection_id in unseen
    }

    if not visible:
        return by_id

    kind = EVALUATIONS[type(visible[0])]
    current = kind.objects.counting().filter(
        **{f"{kind.OF.KEY}__in": [submission.pk for submission in visible]}
    )
    rows = current.values_list(
        f"{kind.OF.KEY}_id", "state", "since", "qrels__version", "error_code", "error_message"
    )
    by_id |= {str(row[0]): RunStatus(*row[1:]) for row in rows}

    if unknown := [submission for submission in visible if str(submission.pk) not in by_id]:
        active = Qrels.objects.filter(
            active=True, collection__in={submission.collection_id for submission in unknown}
        ).order_by()
        judged = set(active.values_list("collection_id", flat=True))

        for submission in unknown:
            status = RunStatus(_QUEUED, submission.created_at)
            waits = submission.collection_id in judged or submission.way == SessionSet.JudgedBy.OWN
            if not waits:
                reason = "the collection has no active judgements yet"
                status = replace(status, code="no_active_qrels", reason=reason)
            by_id[str(submission.pk)] = status

    return by_id


def detailed_statuses(submissions: Sequence[Run | SessionSet], viewer: Any) -> dict[str, RunStatus]:
    """Return statuses with places in the queue, which takes five more queries."""
    by_id = statuses(submissions, viewer)
    waiting = [
        submission for submission in submissions if by_id[str(submission.pk)].state == _QUEUED
    ]
    if waiting:
        for pk, place in _places(waiting, viewer).items():
            by_id[str(pk)] = replace(by_id[str(pk)], queue=place)

    return by_id


def seconds_until_next(
    kind: type[Run | SessionSet], known: Iterable[RunStatus], viewer: Any
) -> float | None:
    """Return in how many seconds the first may be evaluated, from 1 to 60, or None without any.

    This is the place in the queue times the mean duration of the last evaluations with scores that
    the viewer may see.
    """
    positions = [status.queue.position for status in known if status.queue]
    if any(status.state == SubmissionEvaluation.State.EVALUATING for status in known):
        positions.append(1)

    if not positions:
        return None

    evaluations = EVALUATIONS[kind]
    evaluated = evaluations.objects.evaluated().filter(
        scored_in(viewer, f"{evaluations.OF.KEY}__collection__")
    )
    durations = [
        seconds or 0.0
        for seconds in evaluated.order_by("-pk").values_list("seconds", flat=True)[:_RECENT]
    ]
    mean_duration = sum(durations) / len(durations) if durations else 0.0

    return min(60.0, max(1.0, min(positions) * mean_duration))


def with_states(submissions: QuerySet[Any]) -> QuerySet[Any]:
    """Return the same runs or session sets with the `state` of their current evaluations.

    Without an evaluation they are queued.
    """
    kind = EVALUATIONS[submissions.model]
    counting = kind.objects.counting().filter(**{kind.OF.KEY: OuterRef("pk")}).values("state")
    annotated: QuerySet[Any] = submissions.annotate(
        state=Coalesce(Subquery(counting[:1]), Value(_QUEUED.value))
    )

    return annotated


def in_state(submissions: QuerySet[Any], state: str) -> QuerySet[Any]:
    """Return those whose current evaluation is in a state; without one they are queued."""
    kind = EVALUATIONS[submissions.model]
    counting = kind.objects.counting().filter(**{kind.OF.KEY: OuterRef("pk")})
    if state == _QUEUED:
        return submissions.exclude(Exists(counting.exclude(state=state)))
    return submissions.filter(Exists(counting.filter(state=state)))


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

    Submissions that are not in the queue are left out. Runs in collections whose scores the viewer
    may not see are not counted: the position would reveal how many runs they have, and when their
    judgements changed.
    """
    kind = EVALUATIONS[type(waiting[0])]
    of = f"{kind.OF.KEY}_id"
    queued = kind._default_manager.filter(state=Job.QUEUED)
    current = kind.objects.counting().filter(
        state=Job.QUEUED, **{f"{of}__in": [submission.pk for submission in waiting]}
    )

    rows = list(
        current.annotate(now=Now()).values_list(of, "created_at", "since", "not_before", "now")
    )
    if not rows:
        return {}

    queue = queued.filter(scored_in(viewer, f"{kind.OF.KEY}__collection__"))
    submission_times = [created_at for _, created_at, *_ in rows]
    earliest, latest = min(submission_times), max(submission_times)
    # Those before all of these are only counted; the times of the others are read.
    before = queue.filter(created_at__lt=earliest).count()
    between: list[datetime] = []
    if earliest < latest:
        submitted_between = queue.filter(created_at__gte=earliest, created_at__lt=latest).order_by(
            "created_at"
        )
        between = list(submitted_between.values_list("created_at", flat=True))

    has_worker = any(entry.alive for entry in last_rounds())
    worker = "worker" if has_worker else "no_worker_alive"

    places = {}
    for pk, created_at, since, not_before, now in rows:
        waits_for = "retry" if not_before and not_before > now else worker
        position = before + bisect_left(between, created_at) + 1
        places[pk] = Waiting(position, max(0.0, (now - since).total_seconds()), waits_for)

    return places
