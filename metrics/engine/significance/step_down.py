"""Holm's verdicts of many pairs from Student's |t| alone: p falls with |t|, so that no p needs to be computed."""

from __future__ import annotations

import numpy as np
from scipy import special

from metrics.engine.ranking import Flags, Floats

# Critical values are right to more digits; p itself decides on pairs that are closer to one.
_CLOSE = 1e-9


def significant_by_holm(statistic: Floats, freedom: int, alpha: float) -> Flags:
    """Return which pairs have a two-sided p below `alpha` by Holm's correction over all pairs.

    Formula: after r findings a pair is the next one if its p is below alpha / (m - r); m counts all pairs, also those
    whose statistic is NaN, which are never found. The same as adjusting every p as `holm` does, and comparing with
    alpha
    """
    size = np.abs(statistic)
    # No pair is found that is not below alpha on its own.
    ordered = np.sort(size[size > (1 - _CLOSE) * _critical(alpha, freedom)])
    found, pairs = 0, len(size)
    while found < len(ordered):
        bound = _critical(alpha / (pairs - found), freedom)
        low, high = np.searchsorted(ordered, ((1 - _CLOSE) * bound, (1 + _CLOSE) * bound))
        close = 2 * special.stdtr(freedom, -ordered[low:high]) * (pairs - found)
        passed = len(ordered) - int(high) + int(np.count_nonzero(close < alpha))
        if passed <= found:
            break
        found = passed
    if not found:
        return np.zeros(pairs, np.bool_)
    significant: Flags = size >= ordered[len(ordered) - found]
    return significant


def _critical(level: float, freedom: int) -> float:
    """Return the |t| whose two-sided p is the level."""
    return float(-special.stdtrit(freedom, level / 2))
