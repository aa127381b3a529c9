"""Store vectors and curves that evaluated runs lack since the collection's measures changed.

An evaluation stays as it is: its values are added to. What depends on the judgements is not
computed again, so runs keep their ranks, and nothing is announced twice.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress

from django.db import transaction
from django.db.models.functions import Now

from metrics.engine.measures.grammar import Measure
from metrics.models import Evaluation, MetricVector, StoredCurves, VectorUpdate
from metrics.services.queue.leases import patiently, work_on
from metrics.services.queue.lifecycle import Lease, LeaseLost, count_moves, finish, note, release
from metrics.services.queue.vectors import evaluations_behind, stored_curve_sets, stored_measures
from metrics.services.values.evaluate import make_curves, make_vector
from metrics.services.values.judged_views import vectors_of, views_of
from metrics.services.values.replicates import of_replicates
from runs.errors import NotFound, StoredValueCorrupt
from runs.models import Qrels

# Evaluations that are stored in one transaction.
_TOGETHER = 10
# After this time the job goes back to the queue, so that runs that arrived meanwhile are evaluated.
_SECONDS = 1.0
# How long the job waits for evaluations under way: their workers may have read other measures.
_PAUSE_SECONDS = 2.0


def store_missing(*, qrels_id: int) -> bool:
    """Store what evaluations under a version of judgements lack, for about a second of work.

    Return whether nothing is left to do. A call for a job that is not queued does nothing.
    """
    return work_on(qrels_id, VectorUpdate, _work)


def _work(lease: Lease, lost: threading.Event) -> bool:
    qrels = Qrels.objects.select_related("collection").defer("topic_ids").get(pk=lease.pk)
    measures = stored_measures(qrels.collection, qrels)
    deadline = time.monotonic() + _SECONDS

    behind = list(evaluations_behind(qrels).order_by("pk").values_list("pk", flat=True))
    while behind:
        if lost.is_set():
            raise LeaseLost

        chunk, behind = behind[:_TOGETHER], behind[_TOGETHER:]
        _store_missing(lease, chunk, measures, stored_curve_sets(measures, qrels))
        if time.monotonic() >= deadline:
            break

    under_way = Evaluation.objects.filter(qrels=qrels, state=Evaluation.HELD)
    if behind or under_way.exists() or evaluations_behind(qrels).exists():
        pause = 0.0 if behind else _PAUSE_SECONDS
        patiently(lambda: release(lease, delay=pause, burn=False))
        return False

    def end() -> bool:
        with transaction.atomic():
            count_moves(VectorUpdate, [lease.pk])
            return finish(lease)

    return patiently(end)


def _store_missing(
    lease: Lease, pks: list[int], measures: list[Measure], sets: list[Measure]
) -> None:
    """Store the measures and sets of curves that these evaluations lack.

    Store nothing of one that was evaluated again meanwhile.
    """
    since = dict(Evaluation.objects.evaluated().filter(pk__in=pks).values_list("pk", "since"))
    stored = {
        kind: set(
            kind._default_manager.filter(evaluation__in=pks).values_list("evaluation", "measure")
        )
        for kind in (MetricVector, StoredCurves)
    }

    vectors, curves = list[MetricVector](), list[StoredCurves]()
    # Where a judged view is damaged, its run has been queued to be evaluated again.
    # The run of a replicate that waits is evaluated anew.
    with suppress(StoredValueCorrupt, NotFound):
        means = of_replicates(since)
        for pk in means:
            lacking = [m for m in measures if (pk, m.name) not in stored[MetricVector]]
            vectors += vectors_of([pk], lacking).values()

        for pk, qrels, view in views_of(pk for pk in since if pk not in means):
            vectors += [
                make_vector(pk, measure, view).seal(qrels)
                for measure in measures
                if (pk, measure.name) not in stored[MetricVector]
            ]

            curves += [
                make_curves(pk, measure, view).seal(qrels)
                for measure in sets
                if view.ranked and (pk, measure.name) not in stored[StoredCurves]
            ]

    def store() -> None:
        with transaction.atomic():
            if not note(lease, since=Now()):
                raise LeaseLost

            count_moves(VectorUpdate, [lease.pk])
            evaluations = Evaluation.objects.select_for_update().evaluated().order_by("pk")
            since_now = dict(evaluations.filter(pk__in=pks).values_list("pk", "since"))
            unchanged = {pk for pk, moment in since_now.items() if since.get(pk) == moment}
            MetricVector.objects.bulk_create(
                [row for row in vectors if row.evaluation_id in unchanged], ignore_conflicts=True
            )
            StoredCurves.objects.bulk_create(
                [row for row in curves if row.evaluation_id in unchanged], ignore_conflicts=True
            )

    patiently(store)
