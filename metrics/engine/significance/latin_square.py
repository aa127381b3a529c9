"""Analysis of variance for Latin squares: each value has a system, a topic and a searcher."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from metrics.engine.arrays import Floats, Ints
from metrics.engine.errors import StatisticsError
from metrics.engine.significance.cautions import few_degrees
from metrics.engine.significance.omnibus import OmnibusResult, Source
from metrics.engine.significance.pairs import ROUNDING
from metrics.engine.significance.spans import Span, check_values, levels_of, scaled

_NAMES = ("systems", "topics", "searchers")


@dataclass(frozen=True)
class Contrast:
    """The analysis of two systems, and by how much the first one is higher, with its interval.

    Topics and searchers are set aside. Both ends are NaN where the analysis leaves no spread.
    """

    analysis: OmnibusResult
    difference: float
    low: float
    high: float


@dataclass(frozen=True)
class _Fit:
    """The residual of the values without some factors, and the rank of these.

    `residual` is a sum of squares, 0 where it is a rounding error.
    """

    residual: float
    rank: int


def analyse(values: Floats, system: Ints, topic: Ints, searcher: Ints) -> OmnibusResult:
    """Analysis of variance without interactions: do the systems differ, topics and searchers set
    aside?

    Shapes: one entry per session in each; `values` without NaN, the others count from 0.
    Formula: F = MS(systems) / MS(residual), x = mean + system + topic + searcher + residual by
    least squares; the squares of a factor are those that it explains beyond the two others, which
    in a Latin square is what it explains
    Assumes: normal residuals of one spread; systems, topics and searchers that do not interact
    Source: Fisher, The Design of Experiments, 1935; for interactive retrieval Lagergren and Over,
    SIGIR 1998
    Note: The effect is partial eta squared, SS(systems) / (SS(systems) + SS(residual)).
    StatisticsError where the sessions do not tell the systems from the searchers or topics, or
    leave no residual.
    """
    check_values(values)
    factors = levels_of(system, topic, searcher)
    centred, scale = scaled(values)
    full = _fit(centred, factors)
    freedom = len(values) - full.rank
    if freedom < 1:
        raise StatisticsError("too few sessions: the factors leave no residual to compare with")

    without = [_fit(centred, factors[:place] + factors[place + 1 :]) for place in range(3)]
    sources = tuple(
        _source(name, fit, full, freedom, len(values), scale)
        for name, fit in zip(_NAMES, without, strict=True)
    )
    systems, residual = sources[0], full.residual * scale**2
    if systems.freedom < 1:
        raise StatisticsError(
            "the systems cannot be told apart from the searchers or the topics of their sessions"
        )

    explained = systems.squares + residual
    return OmnibusResult(
        statistic=systems.statistic,
        freedom=(systems.freedom, freedom),
        p_value=float("nan") if systems.p_value is None else systems.p_value,
        effect=systems.squares / explained if explained else 0.0,
        sources=(*sources, Source("residual", residual, freedom, residual / freedom)),
        cautions=tuple(few_degrees(freedom)),
    )


def contrast(
    values: Floats, system: Ints, topic: Ints, searcher: Ints, confidence: float
) -> Contrast:
    """Return the analysis of the sessions of two systems with the difference that it tests, and its
    t interval.

    Formula: d = z x / z z, z what topics and searchers leave of +1/2 for the lower index of the two
    systems and -1/2 for the other; d +- t sqrt(MS(residual) / z z), so that F = (d / error)^2
    Note: Where every searcher searched every topic with either system in balance, d is the
    difference of the means.
    """
    analysis = analyse(values, system, topic, searcher)
    span = Span.of(
        [np.unique(factor, return_inverse=True)[1].ravel() for factor in (topic, searcher)]
    )
    directions = span.rest(np.where(system == system.min(), 0.5, -0.5))
    scale, squares = float(np.abs(values).max()) or 1.0, float(directions @ directions)
    difference = float(directions @ (values / scale)) / squares * scale
    difference = difference if abs(difference) > ROUNDING * scale else 0.0

    residual = analysis.sources[-1]
    error = float(np.sqrt(residual.mean_square / squares))
    margin = float(special.stdtrit(residual.freedom, (1 + confidence) / 2)) * error
    margin = margin if error or not difference else np.nan
    return Contrast(analysis, difference, difference - margin, difference + margin)


def _fit(values: Floats, factors: list[Ints]) -> _Fit:
    span = Span.of(factors)
    residuals = span.rest(values)
    residual = float(np.square(residuals).sum())
    return _Fit(residual if residual > len(values) * ROUNDING**2 else 0.0, span.rank)


def _source(
    name: str, without: _Fit, full: _Fit, freedom: int, sessions: int, scale: float
) -> Source:
    squares, degrees = max(without.residual - full.residual, 0.0), full.rank - without.rank
    squares = squares if squares > sessions * ROUNDING**2 else 0.0
    size = squares * scale**2
    if degrees < 1:
        return Source(name, size, degrees, 0.0)
    if full.residual == 0:
        return Source(
            name, size, degrees, size / degrees, None if squares else 0.0, None if squares else 1.0
        )

    statistic = squares / degrees / (full.residual / freedom)
    p_value = float(special.fdtrc(degrees, freedom, statistic))
    return Source(name, size, degrees, size / degrees, statistic, p_value)
