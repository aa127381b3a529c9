"""Intervals of means over topics, taken as a sample of those that a system could meet."""

from __future__ import annotations

import numpy as np
from scipy import special

from metrics.engine.arrays import Floats
from metrics.engine.judgement.steps import Matrix, Steps
from metrics.engine.measures.ratio import ratio

Band = tuple[Floats, Floats]
# The bounds of values that have none.
UNBOUNDED = (-np.inf, np.inf)
_FURTHEST = 700.0
# What a difference of sums of squares leaves below this share of them is rounding, not spread.
_ROUNDING = 1e-12


def column_band(values: Matrix, confidence: float) -> Band | None:
    """Student's t interval of every column's mean over its rows: lower and upper end; None with
    fewer than two rows."""
    rows = len(values)
    if rows < 2:
        return None

    return _t_interval(
        values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(rows), rows, confidence
    )


def row_intervals(
    values: Matrix, confidence: float, bounds: tuple[float, float] = UNBOUNDED
) -> Band:
    """The t interval of every row's mean over the columns where it has a value; NaN with fewer than
    two of them.

    Formula: m +- t(n - 1) e, e the standard error of the mean m. For values between finite bounds
    on the scale of the logit, log((m - low) / (high - m)) +- t(n - 1) e (high - low) / ((m - low)
    (high - m)), and taken back
    Shapes: `values` (runs, topics), NaN where there is no value; both ends (runs,).
    Source: Student (1908); on the scale of the logit by the delta method, Cramér, Mathematical
    Methods of Statistics, 1946, section 28.4
    """
    defined = np.isfinite(values)
    n = defined.sum(axis=1)

    # Each row is scaled by itself: its interval does not depend on the other rows.
    largest = np.abs(values).max(axis=1, initial=0.0, where=defined)
    largest[largest == 0] = 1.0
    scaled = np.where(defined, values, 0.0) / largest[:, None]
    mean = scaled.sum(axis=1) / np.maximum(n, 1)
    squares = np.square(np.where(defined, scaled - mean[:, None], 0.0)).sum(axis=1)
    freedom = np.where(n > 1, n - 1, np.nan)
    margin = special.stdtrit(freedom, (1 + confidence) / 2) * np.sqrt(
        squares / freedom / np.maximum(n, 1)
    )
    mean, margin = mean * largest, margin * largest

    low, high = bounds
    below, above = mean - low, high - mean

    # Every value of a mean at a bound is that bound: the interval has no width.
    inside = np.isfinite(below) & np.isfinite(above) & (below > 0) & (above > 0)
    if not inside.any():
        return mean - margin, mean + margin

    reach = np.divide(margin * (high - low), below * above, out=np.zeros_like(mean), where=inside)
    # Beyond such a reach nothing is left between the end and the bound.
    odds = np.exp(np.minimum(reach, _FURTHEST))
    return (
        np.where(inside, low + (high - low) * below / (below + above * odds), mean - margin),
        np.where(inside, low + (high - low) * below * odds / (below * odds + above), mean + margin),
    )


def within(band: Band, bounds: tuple[float, float]) -> Band:
    """Return the part of each interval within a measure's range, which Student's t ignores."""
    low, high = band
    return np.clip(low, *bounds), np.clip(high, *bounds)


def mean_band(steps: Steps, confidence: float) -> Band:
    """Student's t interval of the mean over topics at every rank; two arrays of shape (depth,), for
    2 topics or more.

    The spread comes from sums and sums of squares, so that no value per topic and rank is ever
    written down.
    """
    n = steps.n_topics
    largest = _largest(steps)
    scaled = steps.value / largest
    total, squares = steps.with_value(scaled).sum(), steps.with_value(np.square(scaled)).sum()
    spread = _spread(squares - np.square(total) / n, squares)
    low, high = _t_interval(total / n, np.sqrt(spread / (n - 1) / n), n, confidence)

    return low * largest, high * largest


def ratio_band(above: Steps, below: Steps, confidence: float) -> Band:
    """Return the band for the ratio of two means, both on the same rows: by the residuals of the
    ratio estimator.

    With r the ratio of the means, the variance is that of the mean of above - r below, over the
    square of the mean of below (Cochran, Sampling Techniques, 1977, chapter 6). Where all topics
    have one ideal it is the interval above.
    """
    n, largest = above.n_topics, _largest(below)
    actual, ideal = above.value / largest, below.value / largest
    total = below.with_value(ideal).sum()
    r = ratio(above.with_value(actual).sum(), total)
    own_squares = above.with_value(np.square(actual)).sum()
    other_squares = np.square(r) * below.with_value(np.square(ideal)).sum()
    spread = _spread(
        own_squares - 2 * r * above.with_value(actual * ideal).sum() + other_squares,
        own_squares + other_squares,
    )

    return _t_interval(r, ratio(np.sqrt(spread / (n - 1) * n), total), n, confidence)


def _largest(steps: Steps) -> float:
    """Return what to divide by first: squares of huge gains would overflow."""
    return float(steps.value.max(initial=0.0)) or 1.0


def _spread(difference: Floats, size: Floats) -> Floats:
    return np.where(difference > _ROUNDING * size, difference, 0.0)


def _t_interval(mean: Floats, error: Floats, n: int, confidence: float) -> Band:
    margin = special.stdtrit(n - 1, (1 + confidence) / 2) * error
    return mean - margin, mean + margin
