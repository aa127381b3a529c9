"""Queue the evaluations of runs and session sets, which then live as all jobs do (lifecycle.py)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery

from metrics.engine import ENGINE_VERSION
from metrics.models import EVALUATIONS, Evaluation, SubmissionEvaluation
from metrics.services.queue.lifecycle import count_moves, move, queue_again, try_failed_again
from metrics.services.queue.vectors import queue_missing_vectors, queue_vectors_if_behind
from runs.errors import StoredFileCorrupt, StoredFileMissing
from runs.models import Qrels, Run, SessionSet
from runs.services.audit.revisions import raise_revision

# Evaluations that one statement stores.
_TOGETHER = 500
_STATE = SubmissionEvaluation.State
# The only way of judging that needs no judgements of the collection.
_OWN = SessionSet.JudgedBy.OWN


def queue_submitted(submission: Run | SessionSet) -> None:
    """Queue a run or session set that this transaction has stored, if there are judgements for it.

    It has no evaluation yet, and on SQLite every other writer waits for this transaction, so
    nothing else is read.
    """
    kind, way = EVALUATIONS[type(submission)], submission.way

    active = (
        Qrels.objects.filter(collection=submission.collection_id, active=True)
        .order_by()
        .values_list("pk", flat=True)
    )
    for qrels in [None] if way == _OWN else active:
        kind._default_manager.create(**{kind.OF.KEY: submission, "qrels_id": qrels, kind.WAY: way})

    _queue_replicated_of(submission)


def queue_evaluation(
    submission: Run | SessionSet, way: str | None = None, qrels: Qrels | None = None
) -> Any:
    """Return a queued evaluation under the current judgements, or under others, or in another way.

    It is the existing one if there is one, and None if there are no judgements yet.
    """
    kind, way = EVALUATIONS[type(submission)], way or submission.way
    qrels = None if way == _OWN else qrels or submission.collection.active_qrels
    if qrels is None and way != _OWN:
        return None

    identity: dict[str, Any] = {
        kind.OF.KEY: submission,
        "qrels": qrels,
        kind.WAY: way,
        "engine_version": ENGINE_VERSION,
    }

    with transaction.atomic():
        evaluation, new = kind._default_manager.get_or_create(**identity)
        if new:
            count_moves(kind, [evaluation.pk])

    if not new and try_failed_again(kind._default_manager.filter(pk=evaluation.pk)):
        evaluation.refresh_from_db()

    return evaluation


def try_damaged_again(submission: Run | SessionSet) -> int:
    """Queue the evaluations again that failed for a damaged file, or wait for a missing one.

    The file was submitted again.
    """
    waiting = submission.evaluations.filter(state=_STATE.QUEUED, error_code=StoredFileMissing.code)
    if waiting.exists():
        queue_again(waiting)

    damaged = submission.evaluations.filter(
        error_code=StoredFileCorrupt.code, engine_version=ENGINE_VERSION
    )
    # A query takes no lock.
    return try_failed_again(damaged) if damaged.exists() else 0


def queue_evaluations(qrels: Qrels, scores: str | None = None) -> int:
    """Queue every live run without an evaluation under these judgements, and those that failed.

    Return how many.
    """
    scores = scores or qrels.collection.scores
    evaluations = Evaluation.objects.current(qrels, scores)
    retried = try_failed_again(evaluations)
    runs = Run.objects.filter(collection=qrels.collection, deleted_at=None).exclude(
        pk__in=evaluations.values("run")
    )

    return retried + _queue(
        [Evaluation(run=run, qrels=qrels, scores=scores) for run in runs.only("pk")]
    )


def queue_judged(qrels: Qrels) -> None:
    """Queue what judgements that become active need.

    These are runs and session sets without an evaluation under them, those that failed, and the
    vectors that others lack.
    """
    queue_vectors_if_behind(qrels)
    for kind in EVALUATIONS.values():
        try_failed_again(kind.objects.counting().live().filter(qrels=qrels))
        _queue(unqueued(kind.OF.objects.filter(collection=qrels.collection)))


def queue_missing() -> int:
    """Queue what lacks an evaluation under the active judgements, and return how much.

    The vectors that evaluations lack are queued, too.
    """
    return queue_missing_vectors() + sum(
        _queue(unqueued(kind.OF.objects.all())) for kind in EVALUATIONS.values()
    )


def unqueued(submissions: QuerySet[Any]) -> list[Any]:
    """Return unsaved evaluations of live runs or session sets that have judgements but none yet."""
    kind, way = EVALUATIONS[submissions.model], submissions.model.WAY
    evaluations = kind.objects.counting().filter(**{kind.OF.KEY: OuterRef("pk")})
    active = Qrels.objects.filter(collection=OuterRef("collection"), active=True).values("pk")
    judged = (
        submissions.filter(deleted_at=None)
        .exclude(Exists(evaluations))
        .annotate(judging=Subquery(active[:1]))
    )
    rows = judged.filter(Q(judging__isnull=False) | Q(**{way: _OWN})).values_list(
        "pk", "judging", way
    )

    return [
        kind(**{f"{kind.OF.KEY}_id": pk, "qrels_id": None if way == _OWN else qrels, kind.WAY: way})
        for pk, qrels, way in rows
    ]


def cancel_evaluations(submission: Run | SessionSet) -> int:
    """Cancel the queued evaluations of a withdrawn run or session set. Return how many."""
    queued = submission.evaluations.filter(state=_STATE.QUEUED)
    cancelled = move(
        queued, state=_STATE.CANCELLED, error_code=EVALUATIONS[type(submission)].withdrawn_code()
    )
    _queue_replicated_of(submission)
    return cancelled


def restore_evaluations(submission: Run | SessionSet) -> None:
    """Queue the cancelled evaluations of a restored run or session set, and its current one."""
    code = EVALUATIONS[type(submission)].withdrawn_code()
    queue_again(
        submission.evaluations.filter(
            state=_STATE.CANCELLED, error_code=code, engine_version=ENGINE_VERSION
        )
    )
    queue_evaluation(submission)
    _queue_replicated_of(submission)


def _queue_replicated_of(submission: Run | SessionSet) -> None:
    """Evaluate the run of a replicate anew: it has other replicates now."""
    if isinstance(submission, Run) and submission.replicate_of:
        queue_replicated(submission.replicate_of)


def queue_replicated(replicated: Run) -> None:
    """Evaluate a run anew that has other replicates now, unless it was withdrawn with the last one.

    The old evaluations are deleted, so that nothing that was computed from them is shown again.
    Those under other judgements are not made again: a new replicate has none.
    """
    Evaluation.objects.filter(run=replicated.pk).delete()
    raise_revision(replicated.collection_id)
    _queue(unqueued(Run.objects.filter(pk=replicated.pk)))


def queue_replicated_by(evaluations: Iterable[int]) -> None:
    """Evaluate runs anew of which a replicate's evaluation ended, in its transaction."""
    ended = Evaluation.objects.filter(
        pk__in=list(evaluations), run__replicate_of__deleted_at=None, run__deleted_at=None
    ).exclude(run__replicate_of=None)
    identities = ended.values_list("run__replicate_of", "qrels", "scores", "engine_version")
    for run, qrels, scores, engine_version in set(identities):
        identity = {
            "run_id": run,
            "qrels_id": qrels,
            "scores": scores,
            "engine_version": engine_version,
        }
        if Evaluation.objects.filter(**identity).delete()[0]:
            Evaluation.objects.bulk_create([Evaluation(**identity)], ignore_conflicts=True)


def _queue(evaluations: list[Any]) -> int:
    for start in range(0, len(evaluations), _TOGETHER):
        chunk = evaluations[start : start + _TOGETHER]
        kind = type(chunk[0])
        submissions = [getattr(evaluation, f"{kind.OF.KEY}_id") for evaluation in chunk]
        judged = kind.OF.objects.filter(pk__in=submissions).order_by()

        with transaction.atomic():
            kind._default_manager.bulk_create(chunk, ignore_conflicts=True)
            raise_revision(*judged.values_list("collection", flat=True).distinct(), arriving=True)

    return len(evaluations)
