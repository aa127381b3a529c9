"""The crossed analysis of sessions: F by searchers, F by topics, and min F', which allows for both."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from metrics.engine.errors import StatisticsError
from metrics.engine.ranking import Floats, Ints
from metrics.engine.significance.cautions import few_degrees
from metrics.engine.significance.latin_square import Contrast
from metrics.engine.significance.omnibus import OmnibusResult, Source
from metrics.engine.significance.pairs import ROUNDING, Matrix
from metrics.engine.significance.spans import Span, levels_of, scaled

# Numbers that are held at once.
_HELD = 10_000_000


@dataclass(frozen=True)
class _Error:
    """How much the searchers, or the topics, move what systems explain: a mean square and its degrees of freedom."""

    mean_square: float
    freedom: float


def analyse(values: Floats, system: Ints, topic: Ints, searcher: Ints) -> OmnibusResult:
    """Do the systems differ, for other searchers and other topics alike?

    Shapes: one entry per session in each; `values` without NaN, the others count from 0.
    Formula: min F' = F1 F2 / (F1 + F2), with k - 1 and (F1 + F2)^2 / (F1^2 / n2 + F2^2 / n1) degrees of freedom; F1 =
    MS(systems) / MS(systems by searchers) with k - 1 and n1, F2 the same by topics, with n2. Where each searcher used
    every system, F1 is that of repeated measures on the means of searchers; where each used one, Brown and Forsythe's
    F* of these means, for two systems the square of Welch's t; F2 likewise
    Assumes: searchers and topics drawn at random; normal means; for three systems or more, differences of one spread
    Source: Clark, Journal of Verbal Learning and Verbal Behavior 12, 1973; topics and searchers set aside in a Latin
    square: Pollatsek and Well, Journal of Experimental Psychology: LMC 21(3), 1995; sums over searchers and topics of
    sessions in any number: Cameron, Gelbach and Miller, Journal of Business & Economic Statistics 29(2), 2011; n1 and
    n2 there: Bell and McCaffrey, Survey Methodology 28(2), 2002; F*: Brown and Forsythe, Technometrics 16(1), 1974
    Note: x = mean + system + topic + searcher + residual by least squares, without a factor whose levels have one
    system each. MS(systems by searchers) sums the squares of what the sessions of each searcher add to the systems'
    part of the residuals, over what independent residuals of one spread would give; with equal numbers of sessions
    these are the figures of the means. min F' finds less than 5 % by chance. The effect is partial eta squared,
    SS(systems) / (SS(systems) + SS(residual)). StatisticsError where the sessions do not tell the systems from the
    searchers or topics, or there are too few of either.
    """
    factors = levels_of(values, system, topic, searcher)
    centred, scale = scaled(values)
    of_system, of_topic, of_searcher = factors
    systems, noise = int(of_system.max()) + 1, len(values) * ROUNDING**2
    aside = [factor for factor in factors[1:] if _crosses(factor, of_system)]
    directions = _directions(of_system, Span.of(aside or [np.zeros_like(of_system)]), systems)
    whole = Span.of([of_system, *aside])
    rest = whole.rest(centred)
    residual, explained = float(np.square(rest).sum()), float(np.square(directions.T @ centred).sum())
    residual, explained = (part if part > noise else 0.0 for part in (residual, explained))
    errors = [
        _error(directions, rest, unit, None if _crosses(unit, of_system) else of_system, whole, name)
        for unit, name in ((of_searcher, "searchers"), (of_topic, "topics"))
    ]
    mean_square, both = explained / (systems - 1), errors[0].mean_square + errors[1].mean_square
    freedom = both**2 / sum(error.mean_square**2 / error.freedom for error in errors) if both else errors[0].freedom
    statistic, p_value = _ratio(mean_square, both, systems - 1, freedom)
    sources = [Source("systems", explained * scale**2, systems - 1, mean_square * scale**2, statistic, p_value)]
    for name, error in zip(("by searchers", "by topics"), errors, strict=True):
        size = error.mean_square * scale**2
        found = _ratio(mean_square, error.mean_square, systems - 1, error.freedom)
        sources.append(Source(name, size * error.freedom, error.freedom, size, *found))
    return OmnibusResult(
        statistic,
        (systems - 1, freedom),
        float("nan") if p_value is None else p_value,
        explained / (explained + residual) if explained else 0.0,
        tuple(sources),
        tuple(few_degrees(round(freedom))),
    )


def contrast(values: Floats, system: Ints, topic: Ints, searcher: Ints, confidence: float) -> Contrast:
    """Return the crossed analysis of the sessions of two systems with the difference that it tests, and its interval.

    Formula: d +- t sqrt(V1 + V2), d as for Latin squares, V1 = d^2 / F1, V2 = d^2 / F2, t with the degrees of freedom
    of min F' = d^2 / (V1 + V2)
    Note: Where every searcher searched every topic with both systems, d is the difference of the means. Without any
    spread there is no interval.
    """
    found = analyse(values, system, topic, searcher)
    factors = levels_of(values, system, topic, searcher)
    aside = [factor for factor in factors[1:] if _crosses(factor, factors[0])]
    difference, squares = Span.of(aside or [np.zeros_like(system)]).difference(values, system)
    error = float(np.sqrt(sum(source.mean_square for source in found.sources[1:]) / squares))
    margin = float(special.stdtrit(found.freedom[1], (1 + confidence) / 2)) * error
    margin = margin if error or not difference else np.nan
    return Contrast(found, difference, difference - margin, difference + margin)


def _crosses(unit: Ints, system: Ints) -> bool:
    """Return whether any searcher, or topic, has sessions with several systems."""
    return len(np.unique(unit * (system.max() + 1) + system)) > int(unit.max()) + 1


def _directions(system: Ints, aside: Span, systems: int) -> Matrix:
    """Return orthogonal columns of length 1 that span what other factors leave of the systems: shape (sessions, k - 1).

    Raise StatisticsError if they leave less.
    """
    left = np.stack([aside.rest((system == one).astype(np.float64)) for one in range(systems)], axis=1)
    sizes, vectors = np.linalg.eigh(left.T @ left)
    if sizes[1] <= len(system) * 1e-9:
        raise StatisticsError("the systems cannot be told apart from the searchers or the topics of their sessions")
    found: Matrix = (left @ vectors[:, 1:]) / np.sqrt(sizes[1:])
    return found


def _error(directions: Matrix, rest: Floats, unit: Ints, strata: Ints | None, whole: Span, name: str) -> _Error:
    """Return the mean square by searchers or by topics.

    `strata` are the systems where each unit has one: the spread of each is then estimated from its own units, and
    weighted by its share.
    """
    wide = directions.shape[1]
    parts = []
    for stratum in range(1 if strata is None else int(strata.max()) + 1):
        sessions = np.arange(len(unit)) if strata is None else np.flatnonzero(strata == stratum)
        names, own = np.unique(unit[sessions], return_inverse=True)
        if whole.rank * len(names) * wide > _HELD:
            raise StatisticsError(f"{len(names):,} {name} and {wide + 1} systems are too many for a crossed analysis")
        weights, units = directions[sessions], len(names)
        scores = [np.bincount(own, column * rest[sessions], units) for column in weights.T]
        # What independent residuals of variance 1 give: the trace of G (units times k - 1, twice), the products of the
        # units' weights less what the model takes from them. G squared has the degrees of freedom.
        taken = np.stack([whole.by_unit(column, own, units, sessions) for column in weights.T], axis=2)
        products = np.empty((units, wide, wide))
        for i, one in enumerate(weights.T):
            for j, other in enumerate(weights.T):
                products[:, i, j] = np.bincount(own, one * other, units)
        trace = float(np.square(weights).sum() - np.square(taken).sum())
        flat = taken.reshape(len(taken), -1)
        small = flat @ flat.T if len(flat) < flat.shape[1] else flat.T @ flat
        within = np.einsum("rua,rub->uab", taken, taken)
        squares = float(np.square(products).sum() - 2 * (products * within).sum() + np.square(small).sum())
        if units < 2 or trace <= 1e-9:
            raise StatisticsError(f"too few {name}: what the systems explain cannot be held against their spread")
        sum_of_squares = float(np.square(scores).sum())
        size = sum_of_squares if sum_of_squares > len(rest) * ROUNDING**2 else 0.0
        # Rounded, because whole numbers are whole in balanced designs.
        parts.append((float(np.square(weights).sum()) / wide * size / trace, round(trace**2 / squares, 10)))
    mean_square = sum(size for size, _ in parts)
    if not mean_square:
        return _Error(0.0, sum(freedom for _, freedom in parts))
    return _Error(mean_square, mean_square**2 / sum(size**2 / freedom for size, freedom in parts))


def _ratio(explained: float, error: float, between: int, within: float) -> tuple[float | None, float | None]:
    """Return F and its p; None for both where there is nothing to divide by, 0 and 1 where nothing is explained."""
    if not error:
        return (None, None) if explained else (0.0, 1.0)
    return explained / error, float(special.fdtrc(between, within, explained / error))
