"""Collections whose runs have any values we like, written as rows: to compare numbers, and for many runs at once."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import numpy as np

from metrics.engine.judgement.steps import Matrix
from metrics.engine.measures.grammar import parse_measure
from metrics.models import Evaluation, MetricVector
from metrics.services.queue.vectors import JUDGED
from metrics.services.values.coverage import depth_of
from runs.models import Collection, Qrels, Run, Team


def make_scored(
    slug: str, team: Team, values: Matrix, measures: Sequence[str] = ("AP",)
) -> list[str]:
    """A public collection with evaluated runs r0, r1 ... and their values under the measures, shape (measures, runs,
    topics) or (runs, topics) for one; returns the ids of the runs."""
    values = np.atleast_3d(values) if values.ndim == 3 else values[None]
    _, runs, topics = values.shape
    collection = Collection.objects.create(
        slug=slug, name=f"Collection {slug}", team=team, measures=list(measures)
    )
    qrels = Qrels.objects.create(
        collection=collection, version=1, active=True, sha256="0" * 64, size=1, lines=1, judgements=1, topics=topics,
        topic_ids=[str(number) for number in range(1, topics + 1)], levels={"1": topics},
    )  # fmt: skip
    return [str(run.pk) for run in _evaluated(collection, qrels, values, measures, runs)]


def _evaluated(
    collection: Collection, qrels: Qrels, values: Matrix, measures: Sequence[str], runs: int
) -> list[Run]:
    rows = Run.objects.bulk_create(
        Run(id=uuid.UUID(int=(collection.pk << 64) + number), collection=collection, team=collection.team,
            tag=f"r{number}", sha256="0" * 64, size=1, lines=1, documents=1, topics=qrels.topics, tied_documents=0,
            grouped=True)
        for number in range(runs)
    )  # fmt: skip
    done = {
        "qrels": qrels,
        "scores": "float64",
        "state": "evaluated",
        "topics_answered": qrels.topics,
    }
    evaluations = Evaluation.objects.bulk_create(Evaluation(run=run, **done) for run in rows)
    # There is no judged view to compute what every board and every comparison shows.
    shares = {JUDGED.name, *(f"Judged@{depth_of(parse_measure(name))}" for name in measures)}
    unknown = np.full(qrels.topics, np.nan).astype("<f8").tobytes()
    MetricVector.objects.bulk_create(
        MetricVector(evaluation=evaluation, measure=name, mean=None, topics=0, content=unknown)
        for evaluation in evaluations
        for name in shares - set(measures)
    )
    MetricVector.objects.bulk_create(
        (
            MetricVector(evaluation=evaluation, measure=measure, mean=float(np.nanmean(row)),
                         topics=int(np.count_nonzero(~np.isnan(row))), content=row.astype("<f8").tobytes())
            for evaluation, by_measure in zip(evaluations, values.transpose(1, 0, 2), strict=True)
            for measure, row in zip(measures, by_measure, strict=True)
        ),
        500,
    )  # fmt: skip
    return rows


def simulated(runs: int, topics: int, seed: int = 7) -> Matrix:
    """Values between 0 and 1, to six digits: hard and easy topics, better and worse runs."""
    rng = np.random.default_rng(seed)
    ease = rng.beta(1, 2, topics)
    noise = rng.normal(0, 0.1, (runs, topics)) + rng.normal(0, 0.05, (runs, 1))
    drawn: Matrix = np.clip(ease + noise, 0, 1).round(6)
    return drawn
