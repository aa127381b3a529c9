"""Evaluate one run: load, judge, compute, store."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

import zstandard
from django.db import transaction

from metrics.engine.depth import judged_depth
from metrics.engine.grammar import Measure, parse_measure
from metrics.engine.judged import JudgedRun
from metrics.engine.known import mark_known
from metrics.models import Evaluation, JudgedView, MetricVector
from metrics.services.queue.leases import evaluate_leased
from metrics.services.queue.lifecycle import Lease, LeaseLost, finish
from metrics.services.queue.notices import announce_ended
from runs.digests import digest_of_depth
from runs.formats.trec_run import judge_run
from runs.services.changes import mark_changed
from runs.services.files import HASH_SEED, read_stored
from runs.services.known_documents import load_known
from runs.services.qrels import load_judgements

# Stored for every run, whatever the collection's measures are: every row of a leaderboard shows how much of the run was
# judged.
JUDGED = parse_measure("Judged@10")
# Long columns that an evaluation does not need: thousands of topics, a run's metadata.
_UNREAD = (
    "traceback", "qrels__topic_ids", "qrels__levels", "qrels__warnings",
    *(f"run__{name}" for name in ("description", "metadata", "ir_metadata", "costs", "warnings", "known_warnings")),
)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """The result of evaluating a run."""

    evaluation: Evaluation
    view: JudgedRun
    stored: JudgedView
    vectors: list[MetricVector]
    files: str
    seconds: float


def evaluate(*, evaluation_id: int) -> bool:
    """Evaluate one queued run and return whether this call finished it. A second call does nothing."""
    return evaluate_leased(evaluation_id, Evaluation, ("run__collection", "qrels"), _compute, _store, _UNREAD)


def _compute(evaluation: Evaluation, lost: threading.Event) -> Outcome:
    start = time.perf_counter()
    run = evaluation.run
    qrels = evaluation.qrels
    judgements = load_judgements(qrels.sha256, qrels.keyed_by, qrels.iteration)
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
    if run.known_sha256:
        view = mark_known(view, judgements, load_known(run.known_sha256))
    vectors = []
    for name in dict.fromkeys([*run.collection.measures, JUDGED.name]):
        if lost.is_set():
            raise LeaseLost
        vector = make_vector(evaluation.pk, parse_measure(name, run.collection.documents), view)
        vectors.append(vector.seal(evaluation.qrels_id))
    content = zstandard.compress(view.to_bytes())
    stored = JudgedView(evaluation_id=evaluation.pk, content=content).seal(evaluation.qrels_id)
    return Outcome(evaluation, view, stored, vectors, "".join(run.files), time.perf_counter() - start)


def make_vector(evaluation_id: int, measure: Measure, view: JudgedRun) -> MetricVector:
    """Return a measure's values as a row, not yet saved."""
    values = measure.compute(view)
    mean, topics = measure.aggregate(values, view)
    content = values.astype("<f8").tobytes()
    return MetricVector(evaluation_id=evaluation_id, measure=measure.name, mean=mean, topics=topics, content=content)


def _store(lease: Lease, outcome: Outcome) -> bool:
    """Save the results in one transaction. A worker that lost its lease writes nothing."""
    depth = judged_depth(outcome.view)
    told = {
        "topics_answered": int((outcome.view.num_ret > 0).sum()),
        "judged_files": outcome.files,
        "judged_depth": depth,
        "depth_digest": digest_of_depth(lease.pk, outcome.evaluation.qrels_id, outcome.files, depth),
    }
    with transaction.atomic():
        if not finish(lease, seconds=outcome.seconds, **told):
            raise LeaseLost
        stored = MetricVector.objects.filter(evaluation_id=lease.pk)
        stored._raw_delete(stored.db)
        JudgedView.objects.bulk_create(
            [outcome.stored], update_conflicts=True, unique_fields=["evaluation"], update_fields=["content", "digest"]
        )
        MetricVector.objects.bulk_create(outcome.vectors)
        announce_ended(Evaluation, [lease.pk])
    mark_changed(outcome.evaluation.run.collection_id)
    return True
