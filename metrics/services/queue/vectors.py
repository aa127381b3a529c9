"""Which vectors and curves are stored of every run, and the queue of those that are missing.

A worker that evaluates a run stores those of its collection's measures. Where these are changed
afterwards, the evaluations stay as they are, and one job for the version of judgements adds what
they lack (metrics/services/values/missing.py).
"""

from __future__ import annotations

from contextlib import suppress

from django.conf import settings
from django.db import transaction
from django.db.models import Count, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce

from metrics.engine import ENGINE_VERSION
from metrics.engine.curve.gain_curves import curve_sets
from metrics.engine.errors import MeasureError
from metrics.engine.measures.external import computed_names
from metrics.engine.measures.grammar import Measure, parse_measure
from metrics.models import Evaluation, EvaluationQuerySet, MetricVector, StoredCurves, VectorUpdate
from metrics.services.queue.lifecycle import count_moves, queue_again
from runs.models import Collection, Qrels
from runs.models.submissions.runs import WITHOUT_RANKING

# Stored for every run, whatever the collection's measures are: every row of a leaderboard shows how
# much of the run was judged.
JUDGED = parse_measure("Judged@10")


def stored_measures(collection: Collection, qrels: Qrels) -> list[Measure]:
    """Return the measures that are stored for every run, under their names of this release.

    Under sampled judgements they are those that take the sampling into account. Raise MeasureError
    for one that this engine cannot compute.
    """
    measures = [collection.measure(name) for name in computed_names(collection.measures)]
    suited = Measure.suited([*measures, JUDGED], qrels.design)
    return list({measure.name: measure for measure in suited}.values())


def stored_curve_sets(measures: list[Measure], qrels: Qrels) -> list[Measure]:
    """Return the sets of curves that are stored with these measures, none under sampled
    judgements."""
    return curve_sets(measures) if settings.EVALHUB_CURVE_DEPTH and not qrels.design else []


def evaluations_behind(qrels: Qrels) -> EvaluationQuerySet:
    """Return evaluations of live runs that lack a vector or curves of the collection's measures.

    Raise MeasureError for a measure that this engine cannot compute.
    """
    measures = stored_measures(qrels.collection, qrels)
    needs = {
        "vectors": (MetricVector, measures),
        "curves": (StoredCurves, stored_curve_sets(measures, qrels)),
    }

    evaluations = (
        Evaluation.objects.evaluated().live().filter(qrels=qrels, engine_version=ENGINE_VERSION)
    )
    lacking = Q()
    for name, (kind, needed) in needs.items():
        stored = kind._default_manager.filter(
            evaluation=OuterRef("pk"), measure__in=[measure.name for measure in needed]
        )
        count = Subquery(stored.order_by().values("evaluation").annotate(n=Count("pk")).values("n"))
        evaluations = evaluations.alias(**{f"stored_{name}": Coalesce(count, 0)})
        lacks = Q(**{f"stored_{name}__lt": len(needed)})
        # A run without a ranking has no curves.
        no_curves = Q(run__sha256__in=WITHOUT_RANKING)
        lacking |= lacks & ~no_curves if kind is StoredCurves else lacks

    return evaluations.filter(lacking)


def queue_vectors(qrels: Qrels) -> None:
    """Queue the job that stores what evaluations under these judgements lack.

    A worker that is at it loses its lease: another one begins with the measures of now.
    """
    with transaction.atomic():
        update, new = VectorUpdate.objects.get_or_create(qrels=qrels)
        if new:
            count_moves(VectorUpdate, [update.pk])

    if not new:
        queue_again(VectorUpdate.objects.filter(pk=update.pk))


def queue_vectors_if_behind(qrels: Qrels) -> bool:
    """Queue the job if an evaluation lacks something, or may when it ends.

    Its worker may have read the measures before they were changed. Return whether it was queued.
    """
    with suppress(MeasureError):
        under_way = Evaluation.objects.filter(
            qrels=qrels, state__in=(Evaluation.State.QUEUED, Evaluation.State.EVALUATING)
        )
        if under_way.exists() or evaluations_behind(qrels).exists():
            queue_vectors(qrels)
            return True

    return False


def queue_missing_vectors() -> int:
    """Queue the jobs for active judgements under which something is lacking, as after an upgrade.

    Return how many.

    Those under way are left alone, and those that failed, which a change of the measures queues
    again.
    """
    jobs = VectorUpdate.objects.exclude(state=VectorUpdate.State.COMPUTED)
    idle = Qrels.objects.filter(active=True).exclude(pk__in=jobs.values("pk"))

    queued = 0
    for qrels in idle.select_related("collection").defer("topic_ids"):
        with suppress(MeasureError):
            if evaluations_behind(qrels).exists():
                queue_vectors(qrels)
                queued += 1

    return queued
