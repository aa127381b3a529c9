"""Boards of chosen values, stored as evaluations leave them, without files behind them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from metrics.engine.significance.pairs import Matrix
from metrics.models import Evaluation, MetricVector
from metrics.services.values.evaluate import JUDGED
from runs.models import Collection, Qrels, Run, Team


def make_board(team: Team, values: Mapping[str, Matrix], slug: str = "board") -> Collection:
    """A public collection whose measures are the keys; the values of each: (runs, topics), NaN where there is none."""
    collection = Collection.objects.create(slug=slug, name=slug, team=team, measures=list(values))
    shape = next(iter(values.values())).shape
    qrels = add_version(collection, 1, [str(topic) for topic in range(shape[1])])
    add_runs(qrels, [make_run(collection, f"r{index}") for index in range(shape[0])], values)
    return collection


def add_version(collection: Collection, version: int, topic_ids: list[str]) -> Qrels:
    """An active version of the judgements, without judgements."""
    Qrels.objects.filter(collection=collection).update(active=False)
    return Qrels.objects.create(
        collection=collection, version=version, active=True, sha256="0" * 64, size=1, lines=1, judgements=1,
        topics=len(topic_ids), topic_ids=topic_ids, levels={},
    )  # fmt: skip


def make_run(collection: Collection, tag: str) -> Run:
    return Run.objects.create(
        collection=collection, team=collection.team, tag=tag, sha256="0" * 64, size=1, lines=1, documents=1, topics=1,
        tied_documents=0, grouped=True,
    )  # fmt: skip


def add_runs(qrels: Qrels, runs: list[Run], values: Mapping[str, Matrix]) -> None:
    """Evaluations of the runs under this version."""
    for index, run in enumerate(runs):
        row = Evaluation.objects.create(
            run=run, qrels=qrels, scores="float64", state="evaluated", topics_answered=qrels.topics
        )
        for name, matrix in values.items():
            store(row, name, matrix[index])
        # There is no judged view to compute what every board shows.
        if JUDGED.name not in values:
            store(row, JUDGED.name, np.full(qrels.topics, np.nan))


def store(row: Evaluation, name: str, vector: Matrix) -> None:
    defined = vector[~np.isnan(vector)]
    mean = float(defined.mean()) if len(defined) else None
    MetricVector.objects.create(
        evaluation=row, measure=name, mean=mean, topics=len(defined), content=np.ascontiguousarray(vector).tobytes()
    )


def simulated(runs: int, topics: int, seed: int = 5, spread: float = 0.08, decimals: int = 12) -> Matrix:
    """Values of runs that differ, on topics that differ more; with two decimals some tie."""
    rng = np.random.default_rng(seed)
    values = rng.beta(2, 2, topics) + rng.normal(0, spread, (runs, 1)) + rng.normal(0, 0.12, (runs, topics))
    return np.round(values, decimals)
