"""Systems in the order of their means."""

from __future__ import annotations

import numpy as np

from metrics.engine.ranking import Flags, Ints
from metrics.engine.significance.pairs import Matrix


def standings(means: Matrix, lower_is_better: Flags) -> Ints:
    """Ranks 1, 2, 2, 4 of the systems under each combination, those without a mean (NaN) sharing the last.

    Shapes: `means` and the result (combinations, systems), `lower_is_better` (combinations,).
    """
    cost = np.where(lower_is_better[:, None], means, -means)
    cost = np.where(np.isnan(cost), np.inf, cost)
    return np.array([np.searchsorted(np.sort(row), row) + 1 for row in cost], np.int64)


def has_ties(ranks: Ints) -> Flags:
    """Whether two systems share a rank; shape (combinations,)."""
    ordered = np.sort(ranks, axis=1)
    ties: Flags = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    return ties
