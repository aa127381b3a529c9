"""The distribution of the studentized range, for many values at once.

P(Q > q) = E[G(q s)], s^2 chi-square over its degrees of freedom, G(w) = P(range of k standard
normals > w) = k times the integral of phi(z) (Phi(z)^(k-1) - (Phi(z) - Phi(z - w))^(k-1)). Both
integrands are smooth and vanish at their ends, where the trapezoidal rule is exact but for
rounding. SciPy's `studentized_range` integrates for each value anew, some ten milliseconds each:
too slow for thousands of pairs.
Source: Lund and Lund, Applied Statistics 32(2), 1983 (AS 190)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy import special
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq

from metrics.engine.arrays import Floats

# A larger range of standard normals has a probability below 1e-170.
_WIDEST = 40.0
_STEP, _MARGIN, _EDGE = 0.03, 9.0, 0.2
# More values than this are read from a curve through so many.
_KNOTS = 1024
_LEAST = 1e-300


def tail(q: Floats, runs: int, freedom: float = np.inf) -> Floats:
    """Return P(Q > q) for the range of this many runs, to 1e-7; infinite `freedom` for a known
    spread."""
    curve = _log_tail_of_range(runs)
    if np.isinf(freedom):
        p_value = np.exp(curve(np.minimum(q, _WIDEST)))
    elif len(q) <= _KNOTS or np.ptp(q) == 0:
        p_value = _studentized(curve, q, freedom)
    else:
        knots = np.linspace(q.min(), min(q.max(), _WIDEST), _KNOTS)
        log_tail = np.log(np.maximum(_studentized(curve, knots, freedom), _LEAST))
        p_value = np.exp(CubicSpline(knots, log_tail)(np.minimum(q, _WIDEST)))

    return np.where(q > 0, np.minimum(p_value, 1.0), 1.0)


@lru_cache(maxsize=64)
def critical(level: float, runs: int, freedom: float = np.inf) -> float:
    """Return the q that a studentized range exceeds with probability `level`."""
    return brentq(
        lambda q: float(tail(np.array([q]), runs, freedom)[0]) - level, 1e-9, 1e4, xtol=1e-11
    )


def _studentized(curve: Callable[[Floats], Floats], q: Floats, freedom: float) -> Floats:
    # Values of s and their weights, down to the s that matter for the tail of the largest q.
    largest = float(np.max(q, initial=1.0))
    scale = 1 / np.sqrt(2 * freedom)
    low = 0.5 * np.log(freedom / (freedom + largest**2 / 2)) - 12 * scale - 40 / freedom
    log_s = np.arange(low, min(12 * scale, 3.0), scale / 8)
    log_density = np.log(2) + freedom / 2 * np.log(freedom / 2) - special.gammaln(freedom / 2)
    density = np.exp(log_density + freedom * log_s - freedom / 2 * np.exp(2 * log_s))
    spread: Floats = np.exp(log_s)

    weight: Floats = density * scale / 8

    log_tail = curve(np.minimum(q[:, None] * spread, _WIDEST))
    return np.minimum(np.exp(log_tail) @ weight, 1.0)


@lru_cache(maxsize=64)
def _log_tail_of_range(runs: int) -> Callable[[Floats], Floats]:
    """Return log G as a spline over ranges from 0 to the widest."""
    width = np.arange(0, _WIDEST + _STEP, _STEP)
    z = np.arange(-_MARGIN, _WIDEST / 2 + _MARGIN, _EDGE)[:, None]

    # Phi(z)^(k-1) - (Phi(z) - Phi(z - w))^(k-1), without a difference of two numbers near one.
    log_below = special.log_ndtr(z)
    share = np.exp(np.minimum(special.log_ndtr(z - width) - log_below, 0.0))
    with np.errstate(divide="ignore"):
        outside = -np.expm1((runs - 1) * np.log1p(-share))

    weight = np.exp(-np.square(z) / 2 + (runs - 1) * log_below) / np.sqrt(2 * np.pi)
    g = runs * _EDGE * (weight * outside).sum(axis=0)
    return CubicSpline(width, np.log(np.minimum(g, 1.0)))
