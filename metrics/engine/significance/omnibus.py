"""The result of a test of many runs at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from metrics.engine.significance.pairs import Caution, Matrix


@dataclass(frozen=True)
class Source:
    """A row of an analysis of variance; statistic and p are None for the residual, or without
    one."""

    name: str
    squares: float
    freedom: float
    mean_square: float
    statistic: float | None = None
    p_value: float | None = None


@dataclass(frozen=True)
class Sphericity:
    """How far differences of runs are from one variance, and the p that allow for it.

    Both epsilons are 1 where all differences have one variance, and 1 / (k - 1) at worst.
    """

    greenhouse_geisser: float
    huynh_feldt: float
    p_huynh_feldt: float
    p_uncorrected: float


@dataclass(frozen=True)
class OmnibusResult:
    """Whether the runs differ at all: statistic, its degrees of freedom, p and a size of effect.

    Statistic and p are None and NaN where the runs leave nothing to divide by, so that there is no
    test. With `sphericity`, p is the one of Greenhouse and Geisser's epsilon, by which both degrees
    of freedom are multiplied. `effect` is the share of the variation that the runs explain: partial
    eta squared, Kendall's W or epsilon squared.
    """

    statistic: float | None
    freedom: tuple[float, ...]
    p_value: float
    effect: float
    sources: tuple[Source, ...] = ()
    cautions: tuple[Caution, ...] = ()
    sphericity: Sphericity | None = None


OmnibusTest = Callable[[Matrix], OmnibusResult]
"""test(values (runs, topics)) -> OmnibusResult"""
