"""Least squares on factors: what the levels of topics, searchers or systems explain of the values
of sessions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from metrics.engine.arrays import Floats, Ints
from metrics.engine.errors import StatisticsError
from metrics.engine.significance.pairs import Matrix

# Equations of so many unknowns are solved in a second or two.
MAX_LEVELS = 2000


@dataclass(frozen=True)
class Span:
    """The sums of numbers that belong to the levels of some factors.

    Each level is a column of zeros and ones, one entry per session. `columns` has for each factor
    the column of every session; `half` (columns, rank) has half @ half.T as the pseudo-inverse of
    the columns' products, which are counts.
    """

    columns: list[Ints]
    half: Matrix

    @classmethod
    def of(cls, factors: list[Ints]) -> Self:
        """`factors` count their levels from 0, one entry per session in each."""
        sizes = [int(factor.max()) + 1 for factor in factors]
        starts = np.cumsum([0, *sizes])
        total = int(starts[-1])
        columns = [
            factor + start for factor, start in zip(factors, starts[:-1].tolist(), strict=True)
        ]

        product = np.zeros((total, total))
        for one in columns:
            for other in columns:
                product += np.bincount(one * total + other, minlength=total * total).reshape(
                    total, total
                )

        eigenvalues, vectors = np.linalg.eigh(product)
        used = eigenvalues > eigenvalues[-1] * total * np.finfo(np.float64).eps * 16
        return cls(columns, vectors[:, used] / np.sqrt(eigenvalues[used]))

    @property
    def rank(self) -> int:
        return int(self.half.shape[1])

    def rest(self, values: Floats) -> Floats:
        """Return what the factors leave of values, one per session."""
        sums = np.sum(
            [np.bincount(column, values, len(self.half)) for column in self.columns], axis=0
        )
        effects = self.half @ (self.half.T @ sums)
        left: Floats = values - np.sum([effects[column] for column in self.columns], axis=0)

        return left

    def by_unit(self, values: Floats, unit: Ints, units: int, sessions: Ints) -> Matrix:
        """Return the coordinates, of length 1 each, of the values of each unit's sessions: shape
        (rank, units).

        `values` and `unit` have one entry for each of the given sessions; all others are 0.
        """
        size = len(self.half) * units
        places = [column[sessions] * units + unit for column in self.columns]
        sums = np.sum([np.bincount(place, values, size) for place in places], axis=0)
        found: Matrix = self.half.T @ sums.reshape(len(self.half), units)
        return found


def check_values(values: Floats) -> None:
    """StatisticsError for no values, or one that is not a number."""
    if not len(values) or not np.isfinite(values).all():
        raise StatisticsError("an analysis of variance needs values, and no session without one")


def levels_of(*factors: Ints) -> list[Ints]:
    """Return the factors with their levels counted from 0, the systems first; StatisticsError for a
    single system or too many levels."""
    found = [np.unique(factor, return_inverse=True)[1].ravel() for factor in factors]
    if found[0].max() < 1:
        raise StatisticsError("an analysis of variance compares two systems or more")

    levels = sum(int(factor.max()) + 1 for factor in found)
    if levels > MAX_LEVELS:
        message = (
            f"{levels} systems, topics and searchers; an analysis of variance takes at most "
            f"{MAX_LEVELS:,}"
        )
        raise StatisticsError(message)

    return found


def scaled(values: Floats) -> tuple[Floats, float]:
    """Return the values less their mean, divided by the largest first, as squares of huge gains
    would overflow; and what they were divided by."""
    scale = float(np.abs(values).max()) or 1.0
    found: Floats = values / scale - np.mean(values / scale)
    return found, scale
