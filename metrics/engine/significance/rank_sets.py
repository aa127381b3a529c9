"""Simultaneous confidence sets of ranks, and the set of the best, from the pairs of a family."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metrics.engine.arrays import Flags, Ints
from metrics.engine.significance import CORRECTIONS, TESTS
from metrics.engine.significance.corrections import (
    benjamini_hochberg,
    benjamini_yekutieli,
    uncorrected,
)


@dataclass(frozen=True)
class RankSets:
    """The lowest and highest rank of each run that no significant pair excludes; shape (runs,)."""

    low: Ints
    high: Ints

    @property
    def best(self) -> Flags:
        """Return the set of the best: the runs that no other run is significantly better than."""
        best: Flags = self.low == 1
        return best


def rank_sets(runs: int, first: Ints, second: Ints, better: Ints) -> RankSets:
    """Rank sets from the verdicts of all pairs: `better` is 1 where the first run is better, -1
    where it is worse, 0 without a verdict.

    Formula: from 1 + the number of runs that are significantly better, to k - the number that are
    significantly worse
    Controls: the chance that the true rank of any run is outside its set, or that the truly best
    run is not among the best: that of any wrong finding in the family
    Source: Mogstad, Romano, Shaikh and Wilhelm, Review of Economic Studies 91(1), 2024; the best:
    Hsu, Multiple
    Comparisons: Theory and Methods, 1996, chapter 4
    """
    above = np.bincount(second[better > 0], minlength=runs) + np.bincount(
        first[better < 0], minlength=runs
    )
    below = np.bincount(first[better > 0], minlength=runs) + np.bincount(
        second[better < 0], minlength=runs
    )

    return RankSets(1 + above, runs - below)


def holds_for_ranks(test: str, correction: str) -> bool:
    """Return whether a family limits the chance of any wrong finding about means, as rank sets
    do."""
    entry = TESTS[test]
    loose = (benjamini_hochberg, benjamini_yekutieli, uncorrected)
    return not entry.ranks and (entry.simultaneous or CORRECTIONS[correction] not in loose)
