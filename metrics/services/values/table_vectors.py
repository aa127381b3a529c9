"""Vectors of the values of tables, in the order of the topics of each version of judgements.

The values themselves are in TableValues, by topic. Every evaluation of a run with values has a
vector of them, stored like those of computed measures, so that all that reads vectors reads both.
Vectors follow the tables in the transaction of a change; `lock_measures` puts one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from django.db.models import Q, QuerySet

from metrics.engine.arrays import Floats
from metrics.engine.measures.external import PREFIX
from metrics.engine.measures.grammar import Measure
from metrics.models import Evaluation, EvaluationQuerySet, MetricVector
from metrics.services.values.replicates import mean_over
from runs.models import ExternalMeasure, Qrels, Run, TableValues
from runs.services.submissions.replicates import live_replicates

# Evaluations with vectors that are made at a time.
_TOGETHER = 200


def lock_measures(collections: Iterable[int]) -> list[ExternalMeasure]:
    """Return the declared measures of collections by their keys, locked until the transaction ends.

    A table that arrives and an evaluation that ends then see what the other one has stored.
    """
    measures = ExternalMeasure.objects.filter(collection__in=list(collections))
    return list(measures.select_for_update().order_by("pk"))


def store_table_vectors(
    evaluations: EvaluationQuerySet, measures: list[ExternalMeasure], runs: Iterable[object] = ()
) -> None:
    """Store the vectors of measures of evaluations anew, of the named `runs` or of all.

    Call this in a transaction that has locked the measures.
    """
    if not measures:
        return

    named = list(runs)
    if named:
        replicated = Run.objects.filter(replicates__in=named)
        evaluations = evaluations.filter(Q(run__in=named) | Q(run__in=replicated))
    keys = list(evaluations.order_by("pk").values_list("pk", flat=True))
    names = [str(measure) for measure in measures]

    for start in range(0, len(keys), _TOGETHER):
        chunk = keys[start : start + _TOGETHER]
        MetricVector.objects.filter(evaluation__in=chunk, measure__in=names).delete()
        # Where values are damaged, whoever reads them is told.
        MetricVector.objects.bulk_create(_stored_vectors(chunk, measures, leave_damaged=True))


def table_vectors(missing: Mapping[int, Iterable[Measure]]) -> dict[tuple[int, str], MetricVector]:
    """Return the vectors of external measures that evaluations lack, sealed and not saved.

    There is one for each of them, without a value where the tables have none of the run.
    """
    lacking = {
        pk: names
        for pk, measures in missing.items()
        if (names := [measure.name for measure in measures if measure.is_external])
    }
    if not lacking:
        return {}

    declared = {name.removeprefix(PREFIX) for each in lacking.values() for name in each}
    evaluations = _with_topics(list(lacking))
    collections = {evaluation.qrels.collection_id for evaluation in evaluations}
    measures = ExternalMeasure.objects.filter(collection__in=collections, name__in=declared)
    stored = {
        (vector.evaluation_id, vector.measure): vector
        for vector in _stored_vectors(list(lacking), list(measures))
    }

    vectors: dict[tuple[int, str], MetricVector] = {}
    for evaluation in evaluations:
        for name in lacking[evaluation.pk]:
            nothing = np.full(evaluation.qrels.topics, np.nan)
            vectors[evaluation.pk, name] = stored.get((evaluation.pk, name)) or _vector(
                evaluation, name, nothing, None, 0
            )

    return vectors


def without_external(measures: Iterable[Measure]) -> list[Measure]:
    """Return the measures that are computed from rankings."""
    return [measure for measure in measures if not measure.is_external]


def _with_topics(keys: list[int]) -> list[Evaluation]:
    return list(Evaluation.objects.filter(pk__in=keys).select_related("qrels").order_by("pk"))


def _stored_vectors(
    keys: list[int], measures: list[ExternalMeasure], *, leave_damaged: bool = False
) -> list[MetricVector]:
    """Return the vectors of evaluations, by their keys, of runs with values.

    A run with replicates has values where all of them have.
    """
    evaluations = _with_topics(keys)
    runs_of = {evaluation.run_id: [evaluation.run_id] for evaluation in evaluations}
    for run in Run.objects.filter(pk__in=list(runs_of), sha256=""):
        runs_of[run.pk] = list(live_replicates(run).values_list("pk", flat=True))

    rows: QuerySet[TableValues] = TableValues.objects.filter(
        measure__in=measures, run__in=[run for runs in runs_of.values() for run in runs]
    )
    by_cell = {(row.measure_id, row.run_id): row for row in rows}
    places: dict[int, dict[str, int]] = {}
    vectors = []

    for evaluation in evaluations:
        qrels, runs = evaluation.qrels, runs_of[evaluation.run_id]
        for declared in measures:
            cells = [by_cell.get((declared.pk, run)) for run in runs]
            present = [row for row in cells if row]
            if (
                not present
                or len(present) < len(runs)
                or declared.collection_id != qrels.collection_id
                or (leave_damaged and not all(row.is_sound() for row in present))
            ):
                continue

            if qrels.pk not in places:
                places[qrels.pk] = _places_of(qrels)
            values = mean_over(
                [_values_in_order(row, declared, places[qrels.pk]) for row in present]
            )
            mean, topics = declared.measure.aggregate(values)
            vectors.append(_vector(evaluation, str(declared), values, mean, topics))

    return vectors


def _places_of(qrels: Qrels) -> dict[str, int]:
    return {topic_id: place for place, topic_id in enumerate(qrels.topic_ids)}


def _values_in_order(
    row: TableValues, declared: ExternalMeasure, places: Mapping[str, int]
) -> Floats:
    absent = 0.0 if declared.missing == ExternalMeasure.Missing.ZERO else np.nan
    values = np.full(len(places), absent)
    for topic, value in row.read().items():
        if topic in places:
            values[places[topic]] = value

    return values


def _vector(
    evaluation: Evaluation, name: str, values: Floats, mean: float | None, topics: int
) -> MetricVector:
    content = values.astype("<f8").tobytes()
    vector = MetricVector(
        evaluation_id=evaluation.pk, measure=name, mean=mean, topics=topics, content=content
    )
    return vector.seal(evaluation.qrels_id)
