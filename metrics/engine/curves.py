"""Curves: a measure at every rank 1..K, for every topic, and for the ideal beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from metrics.engine.errors import MeasureError
from metrics.engine.gains import GainMap
from metrics.engine.grammar import Measure, parse_measure
from metrics.engine.judged import JudgedRun, RankedGains
from metrics.engine.measures.cumulated_gain import Discount, Ideal, discount
from metrics.engine.ranking import Floats

Matrix = npt.NDArray[np.float64]
MAX_DEPTH = 1000


@dataclass(frozen=True)
class Curve:
    """Values at ranks 1..K: `topics` and `ideal` have shape (topics, K); `ideal` is None where nothing is ideal."""

    topics: Matrix
    ideal: Matrix | None

    @property
    def mean(self) -> Floats:
        """The curve averaged over topics, rank by rank; shape (K,)."""
        mean: Floats = self.topics.mean(axis=0)
        return mean

    @property
    def ideal_mean(self) -> Floats | None:
        return None if self.ideal is None else self.ideal.mean(axis=0)


def curve(run: JudgedRun, measure: Measure, depth: int) -> Curve:
    """The measure's value at each rank down to `depth`; MeasureError for a measure without a curve."""
    draw = CURVES.get(measure.definition.name)
    if draw is None:
        known = ", ".join(CURVES)
        raise MeasureError(f"{measure} has no curve over ranks; these have: {known}", code="no_curve")
    parameters = measure.parameters
    if parameters.pop("judged_only", False):
        run = run.condensed
    return draw(run, depth, **parameters)


def curve_measure(text: str) -> Measure:
    """The measure of a curve: written without a cutoff (nDCG, P(rel=2)), for the curve has every cutoff."""
    try:
        return replace(parse_measure(text), cutoff=None)
    except MeasureError:
        if "@" in text:
            raise
        return replace(parse_measure(f"{text}@1"), cutoff=None)


def _cumulated(ranked: RankedGains, depth: int, worth: Floats) -> Matrix:
    """Gains put at their ranks, weighted and summed up; shape (topics, depth)."""
    gains = np.zeros((ranked.n_topics, depth))
    within = ranked.rank <= depth
    gains[ranked.topic[within], ranked.rank[within] - 1] = ranked.gain[within]
    gains *= worth
    return np.cumsum(gains, axis=1, out=gains)


def _raw_and_ideal(run: JudgedRun, depth: int, gains: GainMap, ideal: Ideal, worth: Floats) -> tuple[Matrix, Matrix]:
    best = run.ideal_gains(gains) if ideal == "recall_base" else run.retrieved_ideal_gains(gains)
    return _cumulated(run.gains(gains), depth, worth), _cumulated(best, depth, worth)


def _worth(depth: int, dis: Discount, b: float) -> Floats:
    return 1.0 / discount(np.arange(1, depth + 1), dis, b)


def _cg_curve(run: JudgedRun, depth: int, gains: GainMap) -> Curve:
    return Curve(*_raw_and_ideal(run, depth, gains, "recall_base", np.ones(depth)))


def _dcg_curve(run: JudgedRun, depth: int, gains: GainMap, dis: Discount, b: float) -> Curve:
    return Curve(*_raw_and_ideal(run, depth, gains, "recall_base", _worth(depth, dis, b)))


def _ncg_curve(run: JudgedRun, depth: int, gains: GainMap, ideal: Ideal) -> Curve:
    return _normalised(*_raw_and_ideal(run, depth, gains, ideal, np.ones(depth)))


def _ndcg_curve(run: JudgedRun, depth: int, gains: GainMap, dis: Discount, b: float, ideal: Ideal) -> Curve:
    return _normalised(*_raw_and_ideal(run, depth, gains, ideal, _worth(depth, dis, b)))


def _normalised(raw: Matrix, ideal: Matrix) -> Curve:
    values = np.zeros_like(raw)
    np.divide(raw, ideal, out=values, where=ideal > 0)
    return Curve(values, (ideal > 0).astype(np.float64))


def _found(run: JudgedRun, depth: int, rel: int) -> Matrix:
    relevant = run.relevant(rel)
    ones = RankedGains(relevant.topic, relevant.rank, np.ones(len(relevant.rank)), run.n_topics)
    return _cumulated(ones, depth, np.ones(depth))


def _precision_curve(run: JudgedRun, depth: int, rel: int, relative: bool) -> Curve:
    ranks = np.arange(1, depth + 1)
    most = np.minimum(run.num_rel(rel)[:, None], ranks)
    below = np.maximum(most, 1) if relative else ranks
    return Curve(_found(run, depth, rel) / below, most / below)


def _recall_curve(run: JudgedRun, depth: int, rel: int) -> Curve:
    total = np.maximum(run.num_rel(rel), 1)[:, None]
    best = np.minimum(run.num_rel(rel)[:, None], np.arange(1, depth + 1)) / total
    return Curve(_found(run, depth, rel) / total, best)


CURVES: dict[str, Callable[..., Curve]] = {
    "nDCG": _ndcg_curve,
    "DCG": _dcg_curve,
    "nCG": _ncg_curve,
    "CG": _cg_curve,
    "P": _precision_curve,
    "R": _recall_curve,
}
