"""Least squares on factors: the part of session values that topics or systems explain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from metrics.engine.arrays import Floats, Ints
from metrics.engine.errors import StatisticsError
from metrics.engine.significance.pairs import Matrix

# Equations of this many unknowns take a second or two.
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
        """Return the span of `factors`: levels from 0, one entry per session in each."""
        sizes = [int(factor.max()) + 1 for factor in factors]
        starts = np.cumsum([0, *sizes])
        total = int(starts[-1])
        columns = [
            factor + start for factor, start in zip(factors, starts[:-1].tolist(), strict=True)
        ]

        product = np.zeros((total, total))
        for row in columns:
            for column in columns:
                counts = np.bincount(row * total + column, minlength=total * total)
                product += counts.reshape(total, total)

        eigenvalues, vectors = np.linalg.eigh(product)
        used = eigenvalues > eigenvalues[-1] * total * np.finfo(np.float64).eps * 16
        return cls(columns, vectors[:, used] / np.sqrt(eigenvalues[used]))

    @property
    def rank(self) -> int:
        return int(self.half.shape[1])

    def rest(self, values: Floats) -> Floats:
        """Return the residuals of values, one per session."""
        sums = np.sum(
            [np.bincount(column, values, len(self.half)) for column in self.columns], axis=0
        )
        effects = self.half @ (self.half.T @ sums)
        residuals: Floats = values - np.sum([effects[column] for column in self.columns], axis=0)

        return residuals

    def by_unit(self, values: Floats, unit: Ints, units: int, sessions: Ints) -> Matrix:
        """Return the coordinates of the values of each unit's sessions; shape (rank, units).

        `values` and `unit` have one entry for each of the given sessions; all others are 0.
        """
        size = len(self.half) * units
        cells = [column[sessions] * units + unit for column in self.columns]
        sums = np.sum([np.bincount(place, values, size) for place in cells], axis=0)
        coordinates: Matrix = self.half.T @ sums.reshape(len(self.half), units)
        return coordinates


def check_values(values: Floats) -> None:
    """Raise StatisticsError for no values, or one that is not finite."""
    if not len(values) or not np.isfinite(values).all():
        raise StatisticsError("an analysis of variance needs values, and no session without one")


def levels_of(*factors: Ints) -> list[Ints]:
    """Return the factors, systems first, with levels from 0. Raise StatisticsError for a single
    system or too many levels."""
    levels = [np.unique(factor, return_inverse=True)[1].ravel() for factor in factors]
    if levels[0].max() < 1:
        raise StatisticsError("an analysis of variance compares two systems or more")

    n_levels = sum(int(factor.max()) + 1 for factor in levels)
    if n_levels > MAX_LEVELS:
        message = (
            f"{n_levels} systems, topics and searchers; an analysis of variance takes at most "
            f"{MAX_LEVELS:,}"
        )
        raise StatisticsError(message)

    return levels


def scaled(values: Floats) -> tuple[Floats, float]:
    """Return the values divided by the largest, less their mean, and that largest size: squares of
    huge gains would overflow."""
    scale = float(np.abs(values).max()) or 1.0
    centred: Floats = values / scale - np.mean(values / scale)
    return centred, scale
