"""Values of runs with replicates: the means over these for each topic.

A mean has a value for a topic where every replicate has one. It is of all replicates that are not
withdrawn, evaluated in the same way as the mean, or it is not made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from metrics.engine.arrays import Floats
from metrics.engine.measures.definition import Aggregate
from metrics.engine.measures.grammar import Measure
from metrics.models import Evaluation, MetricVector
from runs.errors import NotFound, ReplicatesUnfinished
from runs.models import Run

_ENDED = (Evaluation.State.FAILED, Evaluation.State.CANCELLED)


@dataclass(frozen=True)
class Replicate:
    """A replicate of a run, with its evaluation under the judgements of the run's.

    Evaluation and state are None where none was requested.
    """

    run: UUID
    tag: str
    evaluation: int | None = None
    state: str | None = None
    topics_answered: int | None = None

    @property
    def is_evaluated(self) -> bool:
        return self.state == Evaluation.State.EVALUATED


def of_replicates(evaluation_ids: Iterable[int]) -> dict[int, list[int]]:
    """Return the evaluations of the replicates, in the order of submission, by that of their run.

    Evaluations of runs without replicates are left out. Raise the errors of `all_evaluated`.
    """
    return {pk: all_evaluated(rows) for pk, rows in replicates_by_run(evaluation_ids).items()}


def all_evaluated(replicates: Sequence[Replicate]) -> list[int]:
    """Return the evaluations of replicates.

    Raise NotFound if that of one failed, and ReplicatesUnfinished if it waits.
    """
    number = len(replicates)
    evaluated = [replicate.evaluation for replicate in replicates if replicate.is_evaluated]
    if number and len(evaluated) == number:
        return [pk for pk in evaluated if pk is not None]

    # There is none yet while the first one is being stored.
    progress = f"{len(evaluated)} of {number} replicates {'is' if number == 1 else 'are'} evaluated"
    failed = [replicate.tag for replicate in replicates if replicate.state in _ENDED]
    if failed:
        message = f"{progress}; {', '.join(failed[:3])} failed"
        raise NotFound(message, code="replicate_failed")
    raise ReplicatesUnfinished(progress)


def replicates_by_run(evaluation_ids: Iterable[int]) -> dict[int, list[Replicate]]:
    """Return the replicates by the evaluation of their run, with theirs in the same way.

    Evaluations of runs without replicates are left out.
    """
    identity = ("qrels_id", "scores", "engine_version")
    means = {
        (run, *way): pk
        for pk, run, *way in Evaluation.objects.filter(
            pk__in=list(evaluation_ids), run__sha256=""
        ).values_list("pk", "run_id", *identity)
    }
    if not means:
        return {}

    runs = {run for run, *_ in means}
    evaluations = Evaluation.objects.filter(
        run__replicate_of__in=runs, qrels__in={qrels for _, qrels, *_ in means}
    )
    stored = {
        (run, *way): (pk, state, topics)
        for pk, state, topics, run, *way in evaluations.values_list(
            "pk", "state", "topics_answered", "run_id", *identity
        )
    }
    live = Run.objects.filter(replicate_of__in=runs, deleted_at=None)
    rows = list(live.order_by("created_at", "pk").values_list("replicate_of", "pk", "tag"))

    replicates: dict[int, list[Replicate]] = {}
    for (run, *way), pk in means.items():
        replicates[pk] = [
            Replicate(replicate, tag, *stored.get((replicate, *way), ()))
            for replicated, replicate, tag in rows
            if replicated == run
        ]

    return replicates


def replicates_of(evaluation: Evaluation) -> list[Replicate]:
    """Return the replicates of the run of an evaluation, with theirs in the same way."""
    return replicates_by_run([evaluation.pk]).get(evaluation.pk, [])


def mean_over(vectors: Sequence[Floats]) -> Floats:
    """Return the mean of values by topic, NaN where one of the vectors has no value."""
    means: Floats = np.mean(np.vstack(vectors), axis=0)
    return means


def mean_vector(
    evaluation_id: int, measure: Measure, replicates: Sequence[MetricVector]
) -> MetricVector:
    """Return the mean over the vectors of replicates as a row, neither sealed nor saved."""
    values = mean_over([vector.values for vector in replicates])
    if measure.definition.aggregate is Aggregate.ERROR:
        # All replicates are judged by the same sample, so that their errors are not independent.
        values = np.full_like(values, np.nan)

    if measure.pools:
        # It is computed from rankings: the mean is that of the values of the replicates.
        means = [vector.mean for vector in replicates if vector.mean is not None]
        mean = float(np.mean(means)) if len(means) == len(replicates) else None
        topics = min(vector.topics for vector in replicates)
    else:
        mean, topics = measure.aggregate(values)

    return MetricVector(
        evaluation_id=evaluation_id,
        measure=measure.name,
        mean=mean,
        topics=topics,
        content=values.astype("<f8").tobytes(),
    )
