"""What a test of many runs at once gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from metrics.engine.significance.pairs import Caution, Matrix


@dataclass(frozen=True)
class Source:
    """A row of an analysis of variance; statistic and p are None where there is nothing to divide by, or for a rest."""

    name: str
    squares: float
    freedom: float
    mean_square: float
    statistic: float | None = None
    p_value: float | None = None


@dataclass(frozen=True)
class OmnibusResult:
    """Whether the runs differ at all: statistic, its degrees of freedom, p and a size of effect.

    Statistic and p are None and NaN where the runs leave nothing to divide by, so that there is no test.
    `effect` is the share of the variation that the runs explain: partial eta squared, Kendall's W or epsilon squared.
    """

    statistic: float | None
    freedom: tuple[float, ...]
    p_value: float
    effect: float
    sources: tuple[Source, ...] = ()
    cautions: tuple[Caution, ...] = ()


OmnibusTest = Callable[[Matrix], OmnibusResult]
"""test(values (runs, topics)) -> OmnibusResult"""
