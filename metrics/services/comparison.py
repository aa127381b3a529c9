"""Comparing runs of a collection under one measure."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from metrics.engine.errors import StatisticsError
from metrics.engine.grammar import Measure
from metrics.engine.ranking import Flags, Ints
from metrics.engine.significance import CORRECTIONS, TESTS
from metrics.engine.significance.pairs import Options, PairedResult, all_pairs, baseline_pairs
from metrics.models import Evaluation
from metrics.services.judged_views import vectors_of
from metrics.services.leaderboard import active_qrels
from metrics.services.selection import select_evaluations
from runs.models import Collection, Qrels, Run

MAX_RUNS = 200


@dataclass(frozen=True)
class ComparisonQuery:
    """What a comparison is asked for: no runs means all, no baseline means all pairs."""

    measure: Measure
    runs: list[str] = field(default_factory=list)
    baseline: str | None = None
    test: str = "paired_t"
    correction: str = "holm"
    alpha: float = 0.05
    confidence: float = 0.95
    scores: str | None = None


@dataclass(frozen=True)
class Pair:
    """Two runs compared: the difference is that of `a` minus `b`."""

    a: Run
    b: Run
    difference: float
    low: float
    high: float
    statistic: float | None
    p_value: float
    p_adjusted: float
    significant: bool


@dataclass(frozen=True)
class Comparison:
    """The pairs of one family under one test and correction, best runs first."""

    query: ComparisonQuery
    qrels: Qrels
    topics: int
    runs: list[tuple[Run, float]]
    pairs: list[Pair]
    warnings: list[str]


def compare_runs(*, collection: Collection, query: ComparisonQuery) -> Comparison:
    """Compare evaluated runs on the topics where all of them have a value.

    Raises StatisticsError for fewer than two runs or topics, too many runs, an unknown run, test or correction.
    Stale runs take no part.
    """
    _check(query)
    qrels = active_qrels(collection)
    evaluations = _evaluations(collection, qrels, query)
    vectors = vectors_of([evaluation.pk for evaluation in evaluations], [query.measure])
    values = np.vstack([vectors[evaluation.pk, query.measure.name].values for evaluation in evaluations])
    common: Flags = np.logical_not(np.isnan(values).any(axis=0))
    if common.sum() < 2:
        message = f"a comparison needs 2 topics on which every run has a value, here are {common.sum()}"
        raise StatisticsError(message, code="too_few_topics")
    values = values[:, common]
    means = values.mean(axis=1)
    sign = 1 if query.measure.definition.lower_is_better else -1
    order = np.argsort(sign * means, kind="stable")
    runs, values = [evaluations[i].run for i in order.tolist()], values[order]
    first, second = _family(runs, query)
    result = TESTS[query.test].compare(values, first, second, Options(confidence=query.confidence))
    ranked = list(zip(runs, means[order].tolist(), strict=True))
    pairs = _pairs(runs, first, second, result, query)
    return Comparison(query, qrels, values.shape[1], ranked, pairs, _warnings(query, common, result))


def _check(query: ComparisonQuery) -> None:
    for name, given, known in (("test", query.test, TESTS), ("correction", query.correction, CORRECTIONS)):
        if given not in known:
            message = f"unknown {name} {given!r}; known: {', '.join(known)}"
            raise StatisticsError(message, code=f"unknown_{name}", pointer=name)


def _evaluations(collection: Collection, qrels: Qrels, query: ComparisonQuery) -> list[Evaluation]:
    named = [*query.runs, *([query.baseline] if query.runs and query.baseline else [])]
    scores = query.scores or collection.scores
    evaluations = select_evaluations(collection=collection, qrels=qrels, scores=scores, runs=named, most=MAX_RUNS)
    if len(evaluations) < 2:
        message = f"a comparison needs two evaluated runs, here are {len(evaluations)}"
        raise StatisticsError(message, code="too_few_runs")
    return evaluations


def _family(runs: list[Run], query: ComparisonQuery) -> tuple[Ints, Ints]:
    if query.baseline is None:
        return all_pairs(len(runs))
    ids = [str(run.pk) for run in runs]
    if query.baseline not in ids:
        message = f"baseline {query.baseline} is not among the compared runs"
        raise StatisticsError(message, code="unknown_run", pointer="baseline")
    return baseline_pairs(len(runs), ids.index(query.baseline))


def _pairs(runs: list[Run], first: Ints, second: Ints, result: PairedResult, query: ComparisonQuery) -> list[Pair]:
    simultaneous = TESTS[query.test].simultaneous
    adjusted = result.p_value if simultaneous else CORRECTIONS[query.correction](result.p_value)
    significant: list[bool] = (adjusted < query.alpha).tolist()
    columns = (result.difference, result.low, result.high, result.statistic, result.p_value, adjusted)
    numbers = zip(*(column.tolist() for column in columns), strict=True)
    return [
        Pair(runs[i], runs[j], d, low, high, None if np.isnan(t) else t, p, p_adjusted, mark)
        for i, j, (d, low, high, t, p, p_adjusted), mark in zip(
            first.tolist(), second.tolist(), numbers, significant, strict=True
        )
    ]


def _warnings(query: ComparisonQuery, common: Flags, result: PairedResult) -> list[str]:
    warnings = []
    if query.measure.pools:
        warnings.append("norm='average' is one ratio for all topics: compared are the topics' own, as for norm='topic'")
    left_out = np.count_nonzero(~common)
    if left_out:
        warnings.append(f"{left_out} topics left out, where a run has no value")
    if TESTS[query.test].simultaneous and query.correction != "none":
        warnings.append(f"{query.test} counts for all pairs at once: its p is not corrected again")
    return [*warnings, *(caution.message for caution in result.cautions)]
