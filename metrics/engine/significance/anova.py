"""Two-way analysis of variance: runs and topics, one value each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from metrics.engine.arrays import Floats
from metrics.engine.significance.cautions import few_topics
from metrics.engine.significance.omnibus import OmnibusResult, Source, Sphericity
from metrics.engine.significance.pairs import ROUNDING, Matrix, check


@dataclass(frozen=True)
class TwoWay:
    """Sums of squares of runs, topics and residual, of the values divided by `scale`."""

    runs: float
    topics: float
    residual: float
    residuals: Matrix
    scale: float

    @property
    def freedom(self) -> int:
        """Return the degrees of freedom of the residual."""
        runs, topics = self.residuals.shape
        return int((runs - 1) * (topics - 1))

    @property
    def residual_variance(self) -> float:
        """Return V_E2 in the units of the values."""
        return self.residual / self.freedom * self.scale**2


def analyse(values: Matrix) -> OmnibusResult:
    """Two-way analysis of variance without replication: do the runs differ, topics set aside?

    Formula: F = MS(runs) / MS(residual), x[i,t] = mean + run i + topic t + residual; e (k - 1) and
    e (k - 1)(n - 1) degrees of freedom, e = tr(S)^2 / ((k - 1) tr(S^2)), S the covariances of the
    residuals of the runs
    Assumes: normal residuals; runs and topics that do not interact
    Source: Fisher (1925); for retrieval Tague-Sutcliffe and Blustein, TREC-3, 1995; e: Greenhouse
    and Geisser, Psychometrika 24(2), 1959; Huynh and Feldt, Journal of Educational Statistics 1(1),
    1976
    Note: The effect is partial eta squared, SS(runs) / (SS(runs) + SS(residual)). Without e, p
    assumes that the differences of all pairs of runs have one variance; it is given as well, and so
    is p with Huynh and Feldt's e.
    """
    check(values, "an analysis of variance", runs=2)
    parts = two_way(values)
    runs, topics = values.shape
    by_run = _source("runs", parts.runs, runs - 1, parts)
    by_topic = _source("topics", parts.topics, topics - 1, parts)
    residual = parts.residual * parts.scale**2
    residual_source = Source("residual", residual, parts.freedom, parts.residual_variance)
    sources = (by_run, by_topic, residual_source)
    sphericity = _sphericity(by_run.statistic, parts)

    explained = parts.runs + parts.residual
    epsilon = sphericity.greenhouse_geisser if sphericity else 1.0
    return OmnibusResult(
        statistic=by_run.statistic,
        freedom=(runs - 1, parts.freedom),
        p_value=_p_value(by_run.statistic, runs - 1, parts.freedom, epsilon),
        effect=parts.runs / explained if explained else 0.0,
        sources=sources,
        cautions=tuple(few_topics(topics)),
        sphericity=sphericity,
    )


def _sphericity(statistic: float | None, parts: TwoWay) -> Sphericity | None:
    """Return both epsilons with their p of F, or None if there is nothing to test."""
    if statistic is None or parts.residual == 0:
        return None

    runs, topics = parts.residuals.shape
    # The traces of S and S^2, times n - 1 and its square, from the smaller of two products with
    # the same squares.
    smaller = parts.residuals if runs <= topics else parts.residuals.T
    within = _squares(smaller) ** 2 / _squares(smaller @ smaller.T)
    greenhouse_geisser = min(within / (runs - 1), 1.0)
    denominator = (runs - 1) * (topics - 1 - within)
    huynh_feldt = min((topics * within - 2) / denominator, 1.0) if denominator > 0 else 1.0

    # With two topics the estimate can be below the least possible value.
    huynh_feldt = max(huynh_feldt, 1 / (runs - 1))
    p_huynh_feldt, plain = (
        _p_value(statistic, runs - 1, parts.freedom, e) for e in (huynh_feldt, 1.0)
    )

    return Sphericity(greenhouse_geisser, huynh_feldt, p_huynh_feldt, plain)


def _p_value(statistic: float | None, between: int, within: int, epsilon: float) -> float:
    if statistic is None:
        return float("nan")
    return float(special.fdtrc(epsilon * between, epsilon * within, statistic))


def two_way(values: Matrix) -> TwoWay:
    """Return the parts of the variation; parts that are rounding errors are 0."""
    # Values are divided by the largest first: squares of huge gains would overflow.
    scale = float(np.abs(values).max()) or 1.0
    scaled = values / scale
    centred = scaled - scaled.mean()
    run, topic = centred.mean(axis=1), centred.mean(axis=0)
    residuals = centred - run[:, None] - topic
    runs, topics = values.shape
    sizes = (topics * _squares(run), runs * _squares(topic), _squares(residuals))

    noise = values.size * ROUNDING**2
    by_run, by_topic, residual = (size if size > noise else 0.0 for size in sizes)
    return TwoWay(by_run, by_topic, residual, residuals, scale)


def _squares(values: Floats | Matrix) -> float:
    return float(np.square(values).sum())


def _source(name: str, squares: float, freedom: int, parts: TwoWay) -> Source:
    size = squares * parts.scale**2
    if parts.residual == 0:
        return Source(
            name, size, freedom, size / freedom, None if squares else 0.0, None if squares else 1.0
        )

    statistic = squares / freedom / (parts.residual / parts.freedom)
    return Source(
        name,
        size,
        freedom,
        size / freedom,
        statistic,
        float(special.fdtrc(freedom, parts.freedom, statistic)),
    )
