"""What means would be on other topics, and by how much the best of many looks better than it is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from metrics.engine.numerics import special
from metrics.engine.ranking import Floats
from metrics.engine.significance.anova import two_way
from metrics.engine.significance.cautions import few_topics
from metrics.engine.significance.pairs import ROUNDING, Caution, Matrix, check

# With fewer runs the field says too little about itself.
MIN_RUNS = 10
# A best run further from the field than this, in the field's standard deviations, is of another kind.
_APART = 3.0
_GRID = np.linspace(0.0, 9.0, 4501)
# Around the largest mean, in standard deviations, and so near each other that the trapezoidal rule, whose error falls
# exponentially for such a smooth function, is exact to rounding. A run further below than the reach has no chance that
# a double shows.
_AROUND, _REACH = np.linspace(-9.0, 9.0, 361), 18.0


@dataclass(frozen=True)
class Expected:
    """The mean that each run is expected to have on other topics, shape (runs,).

    `kept` is the share of a run's distance from the mean of all runs that is expected to remain, from 0 to 1. `luck` is
    how much better than the others the best of so many equal runs looks by chance. `chances` has each run's chance to
    be the best on other topics, shape (runs,); they sum to 1.
    """

    means: Floats
    chances: Floats
    kept: float
    luck: float
    cautions: tuple[Caution, ...]


def expected_means(values: Matrix, *, lower_is_better: bool = False) -> Expected:
    """Means that are drawn together as far as chance has drawn them apart.

    Formula: e_j = m + B (m_j - m), B = max(0, 1 - (k - 3)(V / n) / sum of (m_j - m)^2), m the mean of all k runs, V the
    residual variance after runs and topics; luck = E(largest of k standard normals) sqrt(V / n);
    chances = P(t_j is the best), t_j independent and normal around e_j with the variance B V / n
    Assumes: runs that are one field: true means from one normal distribution
    Source: Efron and Morris, Journal of the American Statistical Association 70, 1975 (James and Stein's estimator
    towards the mean)
    Note: At least 10 runs. Where the best run stands apart from the field a caution says so: its own mean is the better
    guess then.
    Raises StatisticsError for fewer runs.
    """
    check(values, "an expected mean", runs=MIN_RUNS)
    runs, topics = values.shape
    means = values.mean(axis=1)
    centre = float(means.mean())
    parts = two_way(values)
    noise = parts.residual_variance / topics
    # 0 where the means are equal but for rounding.
    spread = parts.runs * parts.scale**2 / topics
    kept = max(0.0, 1 - (runs - 3) * noise / spread) if spread > 0 else 0.0
    luck = largest_of(runs) * float(np.sqrt(noise))
    expected = centre + kept * (means - centre)
    chances = chances_to_be_best(
        -expected if lower_is_better else expected, float(np.sqrt(kept * noise))
    )
    return Expected(expected, chances, kept, luck, (*few_topics(topics), *_apart(means)))


def chances_to_be_best(means: Floats, deviation: float) -> Floats:
    """Return the chance of each of some normal variables, of these means and one standard deviation, to be the largest.

    Without a deviation the largest means share the chance equally.
    """
    chances = np.zeros(len(means))
    ahead = float(means.max())
    near = np.flatnonzero(means >= ahead - max(_REACH * deviation, ROUNDING * abs(ahead)))
    # So little moves no rank: what is left of means that are equal but for rounding.
    if deviation <= ROUNDING * abs(ahead):
        chances[near] = 1 / len(near)
        return chances
    z = _AROUND[:, None] + (ahead - means[near]) / deviation
    below = special.log_ndtr(z)
    density = np.exp(below.sum(axis=1, keepdims=True) - below - z * z / 2)
    areas = np.trapezoid(density, _AROUND, axis=0)
    chances[near] = areas / areas.sum()
    return chances


def hold_the_best(chances: Floats, confidence: float) -> int:
    """Return how many runs, those of the greatest chances, hold the best with this confidence."""
    held = np.cumsum(np.sort(chances)[::-1])
    return int(np.searchsorted(held, confidence - ROUNDING)) + 1


@lru_cache(1024)
def largest_of(many: int) -> float:
    """Return the expected largest of so many standard normal values."""
    above = special.ndtr(_GRID) ** many
    below = special.ndtr(-_GRID) ** many
    return float(np.trapezoid(1 - above - below, _GRID))


def _apart(means: Floats) -> list[Caution]:
    """Return the caution of a run that lies outside the field of the others, above or below."""
    found = []
    for which in (int(means.argmax()), int(means.argmin())):
        field = np.delete(means, which)
        deviation = float(field.std(ddof=1))
        if deviation > 0 and abs(means[which] - field.mean()) > _APART * deviation:
            found.append(which)
    if not found:
        return []
    who, them = ("a run stands", "it") if len(found) == 1 else ("two runs stand", "them")
    message = (
        f"{who} apart from all others by more than {_APART:g} standard deviations: the expected means, which take all "
        f"runs for one field, draw {them} too near"
    )
    return [Caution("apart", message)]
