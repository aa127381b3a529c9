"""The crossed analysis of sessions: F by searchers, F by topics, and min F' for both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import special

from metrics.engine.arrays import Floats, Ints
from metrics.engine.errors import StatisticsError
from metrics.engine.significance.cautions import few_degrees
from metrics.engine.significance.latin_square import Contrast
from metrics.engine.significance.omnibus import OmnibusResult, Source
from metrics.engine.significance.pairs import ROUNDING, Matrix
from metrics.engine.significance.spans import Span, check_values, levels_of, scaled

# Numbers in memory at once.
_NUMBERS_AT_ONCE = 10_000_000


@dataclass(frozen=True)
class _Stratum:
    """Searchers, or topics, with one estimate of their spread: their `sessions`, each with its
    `unit`.

    `trace` is the sum of squares that independent residuals of variance 1 have in expectation,
    `share` the part of the systems' directions that these sessions make.
    """

    sessions: Ints
    unit: Ints
    share: float
    trace: float
    freedom: float


@dataclass(frozen=True)
class Model:
    """The part of the analysis that depends on the design of the sessions, not on the values.

    `directions` (sessions, k - 1) are orthogonal columns of length 1 that span what the other
    factors leave of the systems, `whole` what all factors explain; `strata` those of the searchers
    and those of the topics. `contrast` is what the others leave of +1/2 for sessions of the first
    system and -1/2 for all others.
    """

    directions: Matrix
    whole: Span
    contrast: Floats
    strata: tuple[list[_Stratum], list[_Stratum]]

    @classmethod
    def of(cls, system: Ints, topic: Ints, searcher: Ints) -> Self:
        """Return the model; shapes: one entry per session in each. Raise StatisticsError if the
        systems are confounded with searchers or topics, or there are too few of either."""
        of_system, of_topic, of_searcher = levels_of(system, topic, searcher)
        systems = int(of_system.max()) + 1
        # A factor is crossed with the systems if some of its levels have several of them.
        units = (of_searcher, of_topic)
        crossing = [len(np.unique(unit * systems + of_system)) > unit.max() + 1 for unit in units]
        crossed = [unit for unit, crosses in zip(units, crossing, strict=True) if crosses]
        others = Span.of(crossed or [np.zeros_like(of_system)])
        whole = Span.of([of_system, *crossed])

        # The directions of the systems that the other factors do not explain.
        remaining = np.stack(
            [others.rest((of_system == index).astype(np.float64)) for index in range(systems)],
            axis=1,
        )
        sizes, vectors = np.linalg.eigh(remaining.T @ remaining)
        if sizes[1] <= len(system) * 1e-9:
            raise StatisticsError(
                "the systems cannot be told apart from the searchers or the topics of their "
                "sessions"
            )

        directions = (remaining @ vectors[:, 1:]) / np.sqrt(sizes[1:])
        strata = []
        for unit, crosses, name in zip(units, crossing, ("searchers", "topics"), strict=True):
            stratum = np.zeros_like(of_system) if crosses else of_system
            strata.append(_strata(directions, unit, stratum, whole, name))

        return cls(directions, whole, remaining[:, 0], (strata[0], strata[1]))

    def analyse(self, values: Floats) -> OmnibusResult:
        """Return the analysis of `values`, one per session, without NaN."""
        centred, scale = scaled(values)
        between, noise = self.directions.shape[1], len(values) * ROUNDING**2
        residuals = self.whole.rest(centred)
        residual = float(np.square(residuals).sum())
        explained = float(np.square(self.directions.T @ centred).sum())
        residual, explained = (part if part > noise else 0.0 for part in (residual, explained))

        # A mean square by searchers and one by topics, each with its degrees of freedom.
        errors = [_error(self.directions, residuals, strata) for strata in self.strata]
        mean_square, total_error = explained / between, sum(error for error, _ in errors)
        freedom = errors[0][1]
        if total_error:
            freedom = total_error**2 / sum(error**2 / n for error, n in errors)
        statistic, p_value = _ratio(mean_square, total_error, between, freedom)
        sources = [
            Source(
                "systems", explained * scale**2, between, mean_square * scale**2, statistic, p_value
            )
        ]

        for name, (error, n) in zip(("by searchers", "by topics"), errors, strict=True):
            size = error * scale**2
            sources.append(Source(name, size * n, n, size, *_ratio(mean_square, error, between, n)))

        return OmnibusResult(
            statistic=statistic,
            freedom=(between, freedom),
            p_value=float("nan") if p_value is None else p_value,
            effect=explained / (explained + residual) if explained else 0.0,
            sources=tuple(sources),
            cautions=tuple(few_degrees(round(freedom))),
        )

    def compare(self, values: Floats, confidence: float) -> Contrast:
        """Return the analysis of two systems, and by how much the first one is higher."""
        analysis = self.analyse(values)
        scale, squares = float(np.abs(values).max()) or 1.0, float(self.contrast @ self.contrast)
        difference = float(self.contrast @ (values / scale)) / squares * scale
        difference = difference if abs(difference) > ROUNDING * scale else 0.0
        error = float(np.sqrt(sum(source.mean_square for source in analysis.sources[1:]) / squares))
        margin = float(special.stdtrit(analysis.freedom[1], (1 + confidence) / 2)) * error
        margin = margin if error or not difference else np.nan

        return Contrast(analysis, difference, difference - margin, difference + margin)


def analyse(values: Floats, system: Ints, topic: Ints, searcher: Ints) -> OmnibusResult:
    """Do the systems differ, for other searchers and other topics alike?

    Shapes: one entry per session in each; `values` without NaN, the others count from 0.
    Formula: min F' = F1 F2 / (F1 + F2), with k - 1 and (F1 + F2)^2 / (F1^2 / n2 + F2^2 / n1)
    degrees of freedom; F1 = MS(systems) / MS(systems by searchers) with k - 1 and n1, F2 the same
    by topics, with n2. Where each searcher used every system, F1 is that of repeated measures on
    the means of searchers; where each used one, Brown and Forsythe's F* of these means, for two
    systems the square of Welch's t; F2 likewise
    Assumes: searchers and topics drawn at random; normal means; for three systems or more,
    differences of one spread
    Source: Clark, Journal of Verbal Learning and Verbal Behavior 12, 1973; topics and searchers set
    aside in a Latin square: Pollatsek and Well, Journal of Experimental Psychology: LMC 21(3),
    1995; sums over searchers and topics of sessions in any number: Cameron, Gelbach and Miller,
    Journal of Business & Economic Statistics 29(2), 2011; n1 and n2 there: Bell and McCaffrey,
    Survey Methodology 28(2), 2002; F*: Brown and Forsythe, Technometrics 16(1), 1974
    Note: x = mean + system + topic + searcher + residual by least squares, without a factor whose
    levels have one system each. MS(systems by searchers) sums the squares of what the sessions of
    each searcher add to the systems' part of the residuals, over what independent residuals of one
    spread would give; with equal numbers of sessions these are the figures of the means. min F'
    finds less than 5 % by chance. The effect is partial eta squared, SS(systems) / (SS(systems) +
    SS(residual)). StatisticsError where the sessions do not tell the systems from the searchers or
    topics, or there are too few of either.
    """
    check_values(values)
    return Model.of(system, topic, searcher).analyse(values)


def contrast(
    values: Floats, system: Ints, topic: Ints, searcher: Ints, confidence: float
) -> Contrast:
    """Return the crossed analysis of the sessions of two systems with the difference that it tests,
    and its interval.

    Formula: d +- t sqrt(V1 + V2), d as for Latin squares, V1 = d^2 / F1, V2 = d^2 / F2, t with the
    degrees of freedom of min F' = d^2 / (V1 + V2)
    Note: Where every searcher searched every topic with both systems, d is the difference of the
    means. Without any spread there is no interval.
    """
    check_values(values)
    return Model.of(system, topic, searcher).compare(values, confidence)


def mean_interval(
    values: Floats, topic: Ints, searcher: Ints, confidence: float
) -> tuple[float, float]:
    """Return the interval of the mean of one system's sessions, for other searchers and other
    topics.

    Formula: mean +- t sqrt(V1 + V2), V1 of the means of searchers and V2 of those of topics, with
    the degrees of freedom of min F'. A factor takes part if its levels recur, unless all sessions
    have the same one; without such a factor it is Student's interval of the sessions
    Source: as `analyse`, of the mean of all sessions in place of a difference
    Shapes: one entry per session in each; NaN where there is no value, and -1 where topic or
    searcher are unknown, each of which is one of its own. Both ends are NaN with fewer than two
    values.
    """
    defined = ~np.isnan(values)
    sessions = int(defined.sum())
    if sessions < 2:
        return float("nan"), float("nan")

    mean, (centred, scale) = float(values[defined].mean()), scaled(values[defined])

    every_session = np.arange(sessions)
    factors = []
    for factor in (searcher[defined], topic[defined]):
        _, unit = np.unique(np.where(factor < 0, -1 - every_session, factor), return_inverse=True)
        if 0 < unit.max() < sessions - 1:
            factors.append(unit)

    variances = []
    for unit in factors or [every_session]:
        # Trace and squares of the products of the units' sums, less the part of the mean.
        sizes = np.bincount(unit).astype(np.float64)
        share = np.square(sizes).sum() / sessions
        trace = sessions - share
        squares = share * sessions - 2 * (sizes**3).sum() / sessions + share**2
        variance = float(np.square(np.bincount(unit, centred)).sum() / trace / sessions)
        variances.append((variance, trace**2 / squares))

    total = sum(variance for variance, _ in variances)
    if total <= ROUNDING**2:
        return mean, mean

    freedom = total**2 / sum(variance**2 / n for variance, n in variances)
    margin = float(special.stdtrit(freedom, (1 + confidence) / 2)) * total**0.5 * scale
    return mean - margin, mean + margin


def _strata(
    directions: Matrix, unit: Ints, stratum: Ints, whole: Span, name: str
) -> list[_Stratum]:
    """Return the searchers, or topics, in one stratum. Where they have one system each, return a
    stratum for each system, with a spread of its own."""
    width, strata = directions.shape[1], []
    for index in range(int(stratum.max()) + 1):
        sessions = np.flatnonzero(stratum == index)
        names, unit_of = np.unique(unit[sessions], return_inverse=True)
        units, weights = len(names), directions[sessions]
        if whole.rank * units * width > _NUMBERS_AT_ONCE:
            raise StatisticsError(
                f"{units:,} {name} and {width + 1} systems are too many for a crossed analysis"
            )

        # The traces of G and of G squared. G (units times k - 1, twice) has the products of the
        # units' weights, less the part that the model explains.
        explained = np.stack(
            [whole.by_unit(column, unit_of, units, sessions) for column in weights.T], axis=2
        )
        order = np.argsort(unit_of, kind="stable")
        of_units = np.split(weights[order], np.searchsorted(unit_of[order], np.arange(1, units)))
        products = np.stack([of_unit.T @ of_unit for of_unit in of_units])

        trace = float(np.square(weights).sum() - np.square(explained).sum())
        if units < 2 or trace <= 1e-9:
            raise StatisticsError(
                f"too few {name}: what the systems explain cannot be held against their spread"
            )

        flat = explained.reshape(len(explained), -1)
        small = flat @ flat.T if len(flat) < flat.shape[1] else flat.T @ flat
        within = np.einsum("rua,rub->uab", explained, explained)
        squares = float(
            np.square(products).sum() - 2 * (products * within).sum() + np.square(small).sum()
        )

        # Rounded, because whole numbers are whole in balanced designs.
        freedom = round(trace**2 / squares, 10)
        strata.append(
            _Stratum(sessions, unit_of, float(np.square(weights).sum()) / width, trace, freedom)
        )

    return strata


def _error(directions: Matrix, residuals: Floats, strata: list[_Stratum]) -> tuple[float, float]:
    """Return the mean square by searchers or by topics, and its degrees of freedom."""
    sizes = []
    for stratum in strata:
        scores_of_sessions = directions[stratum.sessions] * residuals[stratum.sessions, None]
        scores = [np.bincount(stratum.unit, column) for column in scores_of_sessions.T]
        squares = float(np.square(scores).sum())
        sizes.append(
            stratum.share * squares / stratum.trace
            if squares > len(residuals) * ROUNDING**2
            else 0.0
        )

    mean_square = sum(sizes)
    if not mean_square:
        return 0.0, sum(stratum.freedom for stratum in strata)
    spread = sum(size**2 / stratum.freedom for size, stratum in zip(sizes, strata, strict=True))
    return mean_square, mean_square**2 / spread


def _ratio(
    explained: float, error: float, between: int, within: float
) -> tuple[float | None, float | None]:
    """Return F and its p: both None without an error, 0 and 1 if nothing is explained."""
    if not error:
        return (None, None) if explained else (0.0, 1.0)
    return explained / error, float(special.fdtrc(between, within, explained / error))
