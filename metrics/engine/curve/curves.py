"""Curves: a measure at ranks 1..K of every topic, of their mean and of the ideal ranking."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from metrics.engine.arrays import Flags, Floats
from metrics.engine.curve.intervals import Band, mean_band, ratio_band
from metrics.engine.errors import MeasureError
from metrics.engine.judgement.gains import GainMap
from metrics.engine.judgement.judged import JudgedRun
from metrics.engine.judgement.steps import Matrix, SameRows, Steps, mean_steps, same_rows
from metrics.engine.measures.cumulated_gain import Discount, Ideal, Norm, best_gains, discount
from metrics.engine.measures.external import FROM_TABLES, is_external
from metrics.engine.measures.graded import largest_gain
from metrics.engine.measures.grammar import Measure, parse_measure, split_names
from metrics.engine.measures.ratio import ratio

MAX_DEPTH = 1000
MAX_CURVES = 20


@dataclass(frozen=True)
class Curve:
    """A measure at ranks 1..depth of each topic and its ideal ranking, times the rank's `worth`.

    Only requested parts are computed: averages and bands come from the steps, without a value per
    topic and rank. `pooled` has the raw and the ideal vectors of norm='average', whose mean is the
    ratio of their averages. `cumulates` says that no curve of a topic ever falls. `averages` are
    the means, shape (depth,), where they were stored.
    """

    actual: Steps
    best: Steps
    worth: Floats | None = None
    pooled: tuple[Steps, Steps] | None = None
    cumulates: bool = False
    averages: Floats | None = None

    @property
    def n_topics(self) -> int:
        return self.actual.n_topics

    @property
    def depth(self) -> int:
        return self.actual.depth

    @cached_property
    def topics(self) -> Matrix:
        """Return every topic's curve; shape (topics, depth)."""
        return self._times_worth(self.actual.matrix())

    @cached_property
    def ideal(self) -> Matrix:
        """Return the ideal's curve of every topic; shape (topics, depth)."""
        return self._times_worth(self.best.matrix())

    @cached_property
    def mean(self) -> Floats:
        """Return the curve averaged over topics at every rank; shape (depth,)."""
        if self.averages is not None:
            return self.averages

        if self.pooled:
            above, below = self.pooled
            return ratio(above.sum(), below.sum())
        return self._times_worth(self.actual.sum() / self.n_topics)

    @cached_property
    def ideal_mean(self) -> Floats:
        """Return the ideal's curve averaged over topics; shape (depth,)."""
        if self.pooled:
            return (self.pooled[1].sum() > 0).astype(np.float64)
        return self._times_worth(self.best.sum() / self.n_topics)

    def band(self, confidence: float) -> Band | None:
        """Return the interval of the mean at every rank, with the topics as a sample; None with
        fewer than two topics."""
        if self.n_topics < 2:
            return None
        if self.pooled:
            return ratio_band(*self.pooled, confidence)

        low, high = mean_band(self.actual, confidence)

        return self._times_worth(low), self._times_worth(high)

    def of_topics(self, selected: Flags) -> Curve:
        """Return the curve of the topics with a flag; shape of `selected` (topics,)."""
        pooled = self.pooled
        if pooled:
            above, below = pooled
            pooled = above.of_topics(selected), below.of_topics(selected)

        return replace(
            self,
            actual=self.actual.of_topics(selected),
            best=self.best.of_topics(selected),
            pooled=pooled,
            averages=None,
        )

    def _times_worth(self, values: Floats) -> Floats:
        return values if self.worth is None else values * self.worth


def curve(run: JudgedRun, measure: Measure, depth: int) -> Curve:
    """Return the measure's value at ranks 1..depth; raise MeasureError if it has no curve."""
    _check_curve(measure)
    run, parameters = measure.as_called(run)
    del parameters["cutoff"]
    return CURVES[measure.definition.name](run, depth, **parameters)


def mean_curve(curves: Sequence[Curve]) -> Curve:
    """Return the mean of several runs' curves of one measure, under the same judgements to one
    depth, for each topic.

    The mean over topics is that of the means of the runs, also of a ratio of averages.
    """
    first = curves[0]
    pooled = None
    if all(curve.pooled for curve in curves):
        above, below = zip(*(curve.pooled for curve in curves if curve.pooled), strict=True)
        pooled = mean_steps(above), mean_steps(below)

    return Curve(
        mean_steps([curve.actual for curve in curves]),
        mean_steps([curve.best for curve in curves]),
        first.worth,
        pooled,
        first.cumulates,
        np.mean([curve.mean for curve in curves], axis=0),
    )


def _check_curve(measure: Measure) -> None:
    if measure.definition.name not in CURVES:
        message = f"{measure} has no curve over ranks; these have: {', '.join(CURVES)}"
        raise MeasureError(message, code="no_curve")


def curve_measure(text: str) -> Measure:
    """Return the measure of a curve, which is written without a cutoff: nDCG, P(rel=2)."""
    if is_external(text):
        raise MeasureError(f"{text[:80]} has no curve: {FROM_TABLES}", code="no_curve")

    try:
        return replace(parse_measure(text), cutoff=None)
    except MeasureError:
        if "@" in text:
            raise
        return replace(parse_measure(f"{text}@1"), cutoff=None)


def curve_measures(text: str) -> list[Measure]:
    """Return the measures of a list of curves, each once. Raise MeasureError for an invalid name
    and for too many curves."""
    measures = list(dict.fromkeys(curve_measure(name) for name in split_names(text)))
    if len(measures) > MAX_CURVES:
        message = f"{len(measures)} curves requested; the limit is {MAX_CURVES}"
        raise MeasureError(message, code="too_many_measures")

    for measure in measures:
        _check_curve(measure)
    return measures


def _raw_and_ideal(
    run: JudgedRun,
    depth: int,
    gains: GainMap,
    ideal: Ideal = "recall_base",
    by: tuple[Discount, float] | None = None,
) -> tuple[Steps, Steps]:
    """Return the steps that a curve and its normalised form share, computed once for a run."""
    return run.once(
        ("steps", depth, gains, ideal, by), lambda: _cumulated(run, depth, gains, ideal, by)
    )


def _cumulated(
    run: JudgedRun, depth: int, gains: GainMap, ideal: Ideal, by: tuple[Discount, float] | None
) -> tuple[Steps, Steps]:
    worth = 1.0 / discount(np.arange(1, depth + 1), *by) if by else None
    actual = Steps.cumulated(run.gains(gains), depth, worth)
    return actual, ideal_steps(run, depth, gains, ideal, by)


def ideal_steps(
    run: JudgedRun,
    depth: int,
    gains: GainMap,
    ideal: Ideal,
    by: tuple[Discount, float] | None,
) -> Steps:
    """Return the gains of the ideal rankings, summed down to each rank."""

    def compute() -> Steps:
        worth = 1.0 / discount(np.arange(1, depth + 1), *by) if by else None
        return Steps.cumulated(best_gains(run, gains, ideal), depth, worth)

    if ideal != "recall_base":
        return compute()
    return run.recall_base.once(("ideal steps", depth, gains, by), compute)


def _cg_curve(run: JudgedRun, depth: int, gains: GainMap) -> Curve:
    return Curve(*_raw_and_ideal(run, depth, gains), cumulates=True)


def _dcg_curve(run: JudgedRun, depth: int, gains: GainMap, dis: Discount, b: float) -> Curve:
    return Curve(*_raw_and_ideal(run, depth, gains, by=(dis, b)), cumulates=True)


def _ideal_dcg_curve(
    run: JudgedRun, depth: int, gains: GainMap, dis: Discount, b: float, ideal: Ideal
) -> Curve:
    return _ideal_cg_curve(run, depth, gains, ideal, (dis, b))


def _ideal_cg_curve(
    run: JudgedRun,
    depth: int,
    gains: GainMap,
    ideal: Ideal,
    by: tuple[Discount, float] | None = None,
) -> Curve:
    """Return the curve of an ideal ranking; its own ideal is that of the recall base."""
    _, actual = _raw_and_ideal(run, depth, gains, ideal, by)
    _, best = _raw_and_ideal(run, depth, gains, by=by)
    return Curve(actual, best, cumulates=True)


def _ndcg_curve(
    run: JudgedRun, depth: int, gains: GainMap, dis: Discount, b: float, ideal: Ideal, norm: Norm
) -> Curve:
    return _ncg_curve(run, depth, gains, ideal, norm, (dis, b))


def _ncg_curve(
    run: JudgedRun,
    depth: int,
    gains: GainMap,
    ideal: Ideal,
    norm: Norm,
    by: tuple[Discount, float] | None = None,
) -> Curve:
    raw, best = _raw_and_ideal(run, depth, gains, ideal, by)
    # A discount changes values, and not the ranks at which they change.
    rows = run.once(("same rows", depth, gains, ideal), lambda: same_rows(raw, best))
    return normalised(raw, best, rows, norm)


def normalised(raw: Steps, ideal: Steps, rows: SameRows, norm: Norm = "topic") -> Curve:
    """Return the curve of `raw` as a share of `ideal`, both on these rows."""
    above, below = rows.of(raw, ideal)
    topics = ideal.topic[ideal.rank == 1]
    ones = np.ones(len(topics))
    perfect = replace(ideal, topic=topics, rank=np.ones(len(topics), np.int64), value=ones)
    values = above.with_value(above.value / below.value)

    return Curve(values, perfect, pooled=(above, below) if norm == "average" else None)


def _graded_precision_curve(run: JudgedRun, depth: int, gains: GainMap) -> Curve:
    ranks = np.arange(1, depth + 1, dtype=np.float64)
    worth = 1.0 / (ranks * largest_gain(run, gains))
    return Curve(*_raw_and_ideal(run, depth, gains), worth)


def _graded_recall_curve(run: JudgedRun, depth: int, gains: GainMap) -> Curve:
    total = run.ideal_gains(gains).sum()
    shares, best = (
        steps.with_value(steps.value / total[steps.topic])
        for steps in _raw_and_ideal(run, depth, gains)
    )

    return Curve(shares, best, cumulates=True)


def _relevant_steps(run: JudgedRun, depth: int, rel: int) -> tuple[Steps, Steps]:
    """Return the number of relevant documents down to each rank, and the largest possible number:
    min(R, rank)."""
    relevant = run.relevant(rel)
    rows = np.flatnonzero(relevant.rank <= depth)
    ordinals = relevant.ordinal[rows].astype(np.float64)
    size = np.minimum(run.num_rel(rel), depth)
    topic = np.repeat(np.arange(run.n_topics), size)
    rank = np.arange(len(topic)) - (np.cumsum(size) - size)[topic] + 1
    actual = Steps(relevant.topic[rows], relevant.rank[rows], ordinals, run.n_topics, depth)

    return actual, Steps(topic, rank, rank.astype(np.float64), run.n_topics, depth)


def _precision_curve(run: JudgedRun, depth: int, rel: int, relative: bool) -> Curve:
    retrieved, ideal = _relevant_steps(run, depth, rel)
    if relative:
        return normalised(retrieved, ideal, same_rows(retrieved, ideal))
    return Curve(retrieved, ideal, worth=1.0 / np.arange(1, depth + 1))


def _recall_curve(run: JudgedRun, depth: int, rel: int) -> Curve:
    retrieved, ideal = _relevant_steps(run, depth, rel)
    total = run.num_rel(rel)
    shares, best = (
        steps.with_value(steps.value / total[steps.topic]) for steps in (retrieved, ideal)
    )

    return Curve(shares, best, cumulates=True)


def _f_curve(run: JudgedRun, depth: int, rel: int) -> Curve:
    actual, best = _weighted_means(run, depth, rel, 1.0)
    return Curve(Steps.of_every_rank(actual), Steps.of_every_rank(best))


def _e_curve(run: JudgedRun, depth: int, rel: int, beta: float) -> Curve:
    actual, best = _weighted_means(run, depth, rel, beta)
    return Curve(Steps.of_every_rank(1 - actual), Steps.of_every_rank(1 - best))


def _weighted_means(run: JudgedRun, depth: int, rel: int, beta: float) -> tuple[Matrix, Matrix]:
    """Return 1 - E at every rank, of the run and of the best ranking; each rank has its own value,
    because R is part of it."""
    square = beta * beta
    share = (1 + square) / (square * run.num_rel(rel)[:, None] + np.arange(1, depth + 1))
    retrieved, ideal = _relevant_steps(run, depth, rel)
    return retrieved.matrix() * share, ideal.matrix() * share


CURVES: dict[str, Callable[..., Curve]] = {
    "nDCG": _ndcg_curve,
    "DCG": _dcg_curve,
    "nCG": _ncg_curve,
    "CG": _cg_curve,
    "IdealDCG": _ideal_dcg_curve,
    "IdealCG": _ideal_cg_curve,
    "P": _precision_curve,
    "R": _recall_curve,
    "GP": _graded_precision_curve,
    "GR": _graded_recall_curve,
    "F": _f_curve,
    "E": _e_curve,
}
# The others are kept as the ranks at which they change.
CHANGE_AT_EVERY_RANK = ("F", "E")
