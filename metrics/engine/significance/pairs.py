"""What every paired test takes and gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from metrics.engine.ranking import Floats, Ints

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True)
class PairedResult:
    """One entry per pair: mean difference, bounds of its interval, test statistic (NaN where infinite), p value."""

    difference: Floats
    low: Floats
    high: Floats
    statistic: Floats
    p_value: Floats


PairedTest = Callable[[Matrix, Ints, Ints, float], PairedResult]
"""test(values (runs, topics), first run of each pair, second run of each pair, confidence) -> PairedResult"""

Correction = Callable[[Floats], Floats]
"""correction(p values of one family) -> adjusted p values, same order"""


def all_pairs(runs: int) -> tuple[Ints, Ints]:
    """Every pair (i, j) with i before j."""
    first, second = np.triu_indices(runs, 1)
    return first.astype(np.int64), second.astype(np.int64)


def baseline_pairs(runs: int, baseline: int) -> tuple[Ints, Ints]:
    """Every other run against the baseline."""
    others = np.delete(np.arange(runs), baseline)
    return others, np.full(len(others), baseline)
