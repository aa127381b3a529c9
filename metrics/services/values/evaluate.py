"""Evaluate one run: load, judge, compute, store."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any

import zstandard
from django.conf import settings
from django.db import transaction

from metrics.engine.curve.gain_curves import GainCurves
from metrics.engine.judgement.depth import judged_depth
from metrics.engine.judgement.judged import JudgedRun
from metrics.engine.judgement.judging import judge_nothing
from metrics.engine.judgement.known import mark_known
from metrics.engine.measures.grammar import Measure, parse_measure
from metrics.models import Evaluation, JudgedView, MetricVector, StoredCurves
from metrics.services.queue.batches import Batch
from metrics.services.queue.leases import evaluate_leased
from metrics.services.queue.lifecycle import Lease, LeaseLost, finish
from metrics.services.queue.notices import announce_ended
from metrics.services.queue.queueing import queue_evaluation, queue_replicated_by
from metrics.services.queue.vectors import stored_curve_sets, stored_measures
from metrics.services.values.replicates import all_evaluated, mean_vector, replicates_of
from metrics.services.values.storing import insert, seal_vectors
from metrics.services.values.table_vectors import lock_measures, store_table_vectors
from runs.digests import digest_of_depth
from runs.formats.trec_run import judge_run
from runs.models import Run
from runs.services.audit.revisions import raise_revision
from runs.services.collections.known_documents import load_known
from runs.services.collections.qrels import load_judgements
from runs.services.storage.files import HASH_SEED, read_stored

# Long columns that an evaluation does not need: thousands of topics, a run's metadata.
_UNREAD = (
    "traceback",
    "qrels__topic_ids",
    "qrels__levels",
    "qrels__warnings",
    "run__description",
    "run__metadata",
    "run__ir_metadata",
    "run__costs",
    "run__warnings",
    "run__known_warnings",
)


# The fastest level of zstd: its usual one saves 6 % of a view's bytes and takes 30 % longer.
_LEVEL = 1
_VIEW = ("evaluation_id", "content", "digest")
_CURVES = ("evaluation_id", "measure", "depth", "means", "content", "digest")
_VECTOR = ("evaluation_id", "measure", "mean", "topics", "content", "digest", "mean_digest")


@dataclass(frozen=True)
class Outcome:
    """The result of evaluating a run; that of one with replicates has no view."""

    collection: int
    view: JudgedView | None
    vectors: list[MetricVector]
    curves: list[StoredCurves]
    # The columns of the evaluation itself.
    columns: dict[str, int | float | str]


def evaluate(*, evaluation_id: int) -> bool:
    """Evaluate one queued run and return whether this call finished it.

    A second call does nothing.
    """
    return evaluate_leased(
        evaluation_id, Evaluation, ("run__collection", "qrels"), _compute, _store, _UNREAD
    )


def evaluate_batch(*, evaluation_ids: list[int]) -> int:
    """Evaluate queued runs that were never tried, and return how many this call finished."""
    return Batch(Evaluation, ("run__collection", "qrels"), _compute, _store_together, _UNREAD).work(
        evaluation_ids
    )


def _compute(evaluation: Evaluation, lost: threading.Event) -> Outcome:
    start = time.perf_counter()
    run = evaluation.run
    qrels = evaluation.qrels
    if run.has_replicates:
        return _compute_mean(evaluation, start)

    judgements = load_judgements(qrels)

    if run.has_ranking:
        view = read_stored(
            run.sha256,
            lambda opener: judge_run(
                opener,
                judgements,
                evaluation.scores,  # type: ignore[arg-type]
                grouped=run.grouped,
                seed=HASH_SEED,
            ),
        )
    else:
        view = judge_nothing(judgements)
    if run.known_sha256:
        view = mark_known(view, judgements, load_known(run.known_sha256))

    vectors = []
    measures = stored_measures(run.collection, qrels)
    for measure in measures:
        if lost.is_set():
            raise LeaseLost
        vectors.append(make_vector(evaluation.pk, measure, view))

    curves = [
        make_curves(evaluation.pk, measure, view).seal(evaluation.qrels_id)
        for measure in (stored_curve_sets(measures, qrels) if run.has_ranking else ())
    ]

    seal_vectors(vectors, evaluation.qrels_id)
    content = zstandard.compress(view.to_bytes(), _LEVEL)
    stored = JudgedView(evaluation_id=evaluation.pk, content=content).seal(evaluation.qrels_id)
    files, depth = "".join(run.files), judged_depth(view)

    columns: dict[str, int | float | str] = {
        "topics_answered": int((view.num_ret > 0).sum()),
        "judged_files": files,
        "judged_depth": depth,
        "depth_digest": digest_of_depth(evaluation.pk, evaluation.qrels_id, files, depth),
        "seconds": time.perf_counter() - start,
    }

    return Outcome(run.collection_id, stored, vectors, curves, columns)


def _compute_mean(evaluation: Evaluation, start: float) -> Outcome:
    """Return the means over the replicates of a run.

    Raise ReplicatesUnfinished while one of them waits; one without an evaluation is queued.
    """
    replicates, qrels = replicates_of(evaluation), evaluation.qrels
    missing = [replicate.run for replicate in replicates if replicate.evaluation is None]
    for run in Run.objects.filter(pk__in=missing).select_related("collection"):
        queue_evaluation(run, evaluation.scores, qrels)

    keys = all_evaluated(replicates)
    vectors: dict[str, list[MetricVector]] = {}
    # Those that are missing or damaged are computed by whoever reads the mean.
    for row in MetricVector.objects.filter(evaluation__in=keys).order_by("evaluation"):
        if row.is_sound(qrels.pk):
            vectors.setdefault(row.measure, []).append(row)

    means = [
        mean_vector(evaluation.pk, measure, vectors[measure.name]).seal(qrels.pk)
        for measure in stored_measures(evaluation.run.collection, qrels)
        if len(vectors.get(measure.name, ())) == len(keys)
    ]

    # Every replicate answers as many topics, and is judged as deep.
    rows = Evaluation.objects.filter(pk__in=keys)
    answered = min(replicate.topics_answered or 0 for replicate in replicates)
    depth = min(depth or 0 for depth in rows.values_list("judged_depth", flat=True))
    columns: dict[str, int | float | str] = {
        "topics_answered": answered,
        "judged_files": "",
        "judged_depth": depth,
        "depth_digest": digest_of_depth(evaluation.pk, qrels.pk, "", depth),
        "seconds": time.perf_counter() - start,
    }
    return Outcome(evaluation.run.collection_id, None, means, [], columns)


def make_vector(evaluation_id: int, measure: Measure, view: JudgedRun) -> MetricVector:
    """Return a measure's values as a row, not yet saved."""
    values = measure.compute(view)
    mean, topics = measure.aggregate(values, view)
    content = values.astype("<f8").tobytes()
    return MetricVector(
        evaluation_id=evaluation_id, measure=measure.name, mean=mean, topics=topics, content=content
    )


def make_curves(evaluation_id: int, measure: Measure, view: JudgedRun) -> StoredCurves:
    """Return a set of curves as a row, neither sealed nor saved."""
    computed = GainCurves.of(view, measure, settings.EVALHUB_CURVE_DEPTH)
    return StoredCurves(
        evaluation_id=evaluation_id,
        measure=measure.name,
        depth=computed.depth,
        means=computed.means.astype("<f8").tobytes(),
        content=zstandard.compress(computed.to_bytes(), _LEVEL),
    )


def unpack_curves(row: StoredCurves) -> GainCurves:
    """Return the curves of a row that is sound."""
    content = zstandard.decompress(bytes(row.content))
    return GainCurves.from_bytes(content, bytes(row.means), parse_measure(row.measure), row.depth)


def _store(lease: Lease, outcome: Outcome) -> bool:
    """Save the results in one transaction. A worker that lost its lease writes nothing."""
    if not _store_together([(lease, outcome)]):
        raise LeaseLost
    return True


def _store_together(outcomes: list[tuple[Lease, Outcome]]) -> list[Lease]:
    """Save several results in one transaction, except where the lease was lost.

    Return the leases of the others.
    """
    with transaction.atomic():
        # In one order everywhere, so that two workers never wait for each other's rows.
        ordered = sorted(outcomes, key=lambda item: item[0].pk)
        saved = [(lease, outcome) for lease, outcome in ordered if finish(lease, **outcome.columns)]
        if not saved:
            return []

        pks = [lease.pk for lease, _ in saved]
        for rows in (
            MetricVector.objects.filter(evaluation_id__in=pks),
            StoredCurves.objects.filter(evaluation_id__in=pks),
            JudgedView.objects.filter(pk__in=pks),
        ):
            # Of an earlier time that it was evaluated, which few were.
            rows.delete()

        views = [outcome.view for _, outcome in saved if outcome.view]
        insert(JudgedView, _VIEW, [_values(view, _VIEW) for view in views])
        vectors = [_values(row, _VECTOR) for _, outcome in saved for row in outcome.vectors]
        insert(MetricVector, _VECTOR, vectors)
        curves = [_values(row, _CURVES) for _, outcome in saved for row in outcome.curves]
        insert(StoredCurves, _CURVES, curves)

        measures = lock_measures({outcome.collection for _, outcome in saved})
        store_table_vectors(Evaluation.objects.filter(pk__in=pks), measures)
        queue_replicated_by(pks)
        raise_revision(*{outcome.collection for _, outcome in saved}, arriving=True)
        announce_ended(Evaluation, pks)

    return [lease for lease, _ in saved]


def _values(row: JudgedView | MetricVector | StoredCurves, columns: tuple[str, ...]) -> list[Any]:
    return [getattr(row, name) for name in columns]
