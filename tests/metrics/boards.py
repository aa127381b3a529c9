"""Boards of chosen values, stored as evaluations leave them, without files behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from metrics.engine.measures.grammar import parse_measure
from metrics.engine.significance.pairs import Matrix
from metrics.models import Evaluation, MetricVector
from metrics.services.queue.vectors import JUDGED
from metrics.services.values.coverage import depth_of
from runs.models import Collection, Qrels, Run, Team
from runs.services.tracking.parameters import store_parameters


def make_board(team: Team, values: Mapping[str, Matrix], slug: str = "board") -> Collection:
    """A public collection whose measures are the keys; the values of each: (runs, topics), NaN where there is none."""
    collection = Collection.objects.create(slug=slug, name=slug, team=team, measures=list(values))
    shape = next(iter(values.values())).shape
    qrels = add_version(collection, 1, [str(topic) for topic in range(shape[1])])
    runs = Run.objects.bulk_create(_run(collection, f"r{index}") for index in range(shape[0]))
    add_runs(qrels, runs, values)
    return collection


def add_version(collection: Collection, version: int, topic_ids: list[str]) -> Qrels:
    """An active version of the judgements, without judgements."""
    Qrels.objects.filter(collection=collection).update(active=False)
    return Qrels.objects.create(
        collection=collection, version=version, active=True, sha256="0" * 64, size=1, lines=1, judgements=1,
        topics=len(topic_ids), topic_ids=topic_ids, levels={},
    )  # fmt: skip


def make_run(collection: Collection, tag: str) -> Run:
    run = _run(collection, tag)
    run.save()
    return run


def _run(collection: Collection, tag: str) -> Run:
    return Run(
        collection=collection, team=collection.team, tag=tag, sha256="0" * 64, size=1, lines=1, documents=1, topics=1,
        tied_documents=0, grouped=True,
    )  # fmt: skip


def add_runs(qrels: Qrels, runs: list[Run], values: Mapping[str, Matrix]) -> None:
    """Evaluations of the runs under this version."""
    done = {
        "qrels": qrels,
        "scores": "float64",
        "state": "evaluated",
        "topics_answered": qrels.topics,
    }
    rows = Evaluation.objects.bulk_create(Evaluation(run=run, **done) for run in runs)
    # There is no judged view to compute what every board and every baseline shows.
    shares = {JUDGED.name, *(f"Judged@{depth_of(parse_measure(name))}" for name in values)}
    nothing = np.full((len(runs), qrels.topics), np.nan)
    unknown = dict.fromkeys(sorted(shares - set(values)), nothing)
    MetricVector.objects.bulk_create(
        vector(row, name, matrix[index])
        for name, matrix in {**values, **unknown}.items()
        for index, row in enumerate(rows)
    )


def describe(
    collection: Collection,
    metadata: Sequence[Mapping[str, Any]],
    costs: Sequence[Mapping[str, Any]],
) -> None:
    """Say how the runs were made and what they cost, in the order of their tags' numbers."""
    runs = sorted(
        Run.objects.filter(collection=collection), key=lambda run: int(run.tag.lstrip("r"))
    )
    for run, parameters, paid in zip(runs, metadata, costs, strict=True):
        run.metadata, run.costs = dict(parameters), dict(paid)
    Run.objects.bulk_update(runs, ["metadata", "costs"])
    store_parameters(collection, runs)


def vector(row: Evaluation, name: str, values: Matrix) -> MetricVector:
    defined = values[~np.isnan(values)]
    mean = float(defined.mean()) if len(defined) else None
    content = np.ascontiguousarray(values).tobytes()
    return MetricVector(
        evaluation=row, measure=name, mean=mean, topics=len(defined), content=content
    )


def simulated(
    runs: int, topics: int, seed: int = 5, spread: float = 0.08, decimals: int = 12
) -> Matrix:
    """Values of runs that differ, on topics that differ more; with two decimals some tie."""
    rng = np.random.default_rng(seed)
    values = (
        rng.beta(2, 2, topics)
        + rng.normal(0, spread, (runs, 1))
        + rng.normal(0, 0.12, (runs, topics))
    )
    return np.round(values, decimals)
