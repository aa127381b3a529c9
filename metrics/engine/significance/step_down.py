"""Holm's correction of many pairs when few are shown: only a few p are computed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import special

from metrics.engine.arrays import Flags, Floats, Ints

# Critical values are more exact than this; pairs closer to one are decided by p itself.
_CLOSE = 1e-9
# Pairs whose products are bounded together.
_STRETCH = 256


def significant_by_holm(statistic: Floats, freedom: int, alpha: float) -> Flags:
    """Return which pairs have a two-sided p below `alpha` by Holm's correction over all pairs.

    Formula: after r findings a pair is the next one if its p is below alpha / (m - r); m counts all
    pairs, also those whose statistic is NaN, which are never found. The same as adjusting every p
    as `holm` does, and comparing with alpha
    """
    size = np.abs(statistic)
    # A pair that is not below alpha on its own is never significant.
    ordered = np.sort(size[size > (1 - _CLOSE) * _critical(alpha, freedom)])
    n_found, pairs = 0, len(size)
    while n_found < len(ordered):
        bound = _critical(alpha / (pairs - n_found), freedom)
        low, high = np.searchsorted(ordered, ((1 - _CLOSE) * bound, (1 + _CLOSE) * bound))
        close = 2 * special.stdtr(freedom, -ordered[low:high]) * (pairs - n_found)
        passed = len(ordered) - int(high) + int(np.count_nonzero(close < alpha))
        if passed <= n_found:
            break
        n_found = passed

    if not n_found:
        return np.zeros(pairs, np.bool_)
    significant: Flags = size >= ordered[len(ordered) - n_found]
    return significant


def critical_by_holm(significant: Flags, freedom: int, alpha: float) -> float:
    """Return the |t| that the pairs found by `significant_by_holm` exceed and no other pair does.

    Formula: the two-sided critical value of alpha / (m - r) after r findings among m pairs, at
    which Holm's procedure ends
    """
    n_left = len(significant) - int(np.count_nonzero(significant))
    return _critical(alpha / max(n_left, 1), freedom)


def holm_of(statistic: Floats, chosen: Ints, tail: Callable[[Floats], Floats]) -> Floats:
    """Return the p that `holm` gives some of the pairs of a family; `tail` is p, which falls with
    the statistic.

    A pair with the statistic NaN counts as one with p = 1, and stays NaN. As the adjusted p is the
    largest product up to a pair's place, p is computed for the chosen pairs, and for others in
    their order only where their product may be larger.
    """
    pairs, chosen_statistic = len(statistic), statistic[chosen]
    ascending = np.sort(statistic[~np.isnan(statistic)])
    descending, has_p = ascending[::-1], np.flatnonzero(~np.isnan(chosen_statistic))

    # The first place of pairs that are equal: their products fall from it on.
    places = len(descending) - np.searchsorted(ascending, chosen_statistic[has_p], side="right")
    products = tail(chosen_statistic[has_p]) * (pairs - places)
    begins = np.arange(0, len(descending), _STRETCH)
    upper = tail(descending[np.minimum(begins + _STRETCH, len(descending)) - 1]) * (pairs - begins)
    lower = np.full(len(begins), np.inf)
    below = products < 1
    np.minimum.at(lower, places[below] // _STRETCH, products[below])

    # Compute p in the stretches with products that may exceed a later one of a chosen pair.
    needed = upper > np.minimum.accumulate(lower[::-1])[::-1]
    computed = np.flatnonzero(np.repeat(needed, _STRETCH)[: len(descending)])
    largest = np.zeros(len(descending))
    largest[computed] = tail(descending[computed]) * (pairs - computed)
    largest = np.maximum.accumulate(largest)
    adjusted = np.full(len(chosen), np.nan)
    adjusted[has_p] = np.minimum(np.maximum(products, largest[places]), 1.0)

    return adjusted


def _critical(level: float, freedom: int) -> float:
    """Return the |t| with this level as its two-sided p."""
    return float(-special.stdtrit(freedom, level / 2))
