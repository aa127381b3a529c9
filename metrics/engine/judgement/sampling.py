"""Sampling: how the judged documents of a topic were drawn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np

from metrics.engine.arrays import Flags, Floats, Ints

Design = Literal["strata", "probabilities"]
STRATA: Design = "strata"
PROBABILITIES: Design = "probabilities"
DESIGNS = (STRATA, PROBABILITIES)
# A judgement stands for a million documents at most.
MIN_PROBABILITY = 1e-6


@dataclass(frozen=True)
class Sampling:
    """The groups of each topic's documents that were drawn at one rate, in the order of the topics.

    With `strata` a group is a stratum: every document is listed, and those of a level from 0 on
    were drawn, a fixed number without replacement. Otherwise a group is the drawn documents of a
    topic with the same inclusion probability, each drawn independently of the others.

    Shapes: `rows` has the group of each judgement, or of each row of a judged run; `topic` and
    `probability` one entry per group; `cell_group`, `cell_level` and `cell_count` one per level
    that occurs in a group.
    """

    rows: Ints
    topic: Ints
    probability: Floats
    cell_group: Ints
    cell_level: Ints
    cell_count: Ints
    strata: bool

    @classmethod
    def of_strata(cls, topics: Ints, strata: Ints, levels: Ints) -> Self:
        """Return the sampling of judgements: topic, stratum and level of each."""
        topic, _, rows = _groups(topics, strata)
        judged = np.bincount(rows, levels >= 0, len(topic))
        probability = judged / np.bincount(rows, minlength=len(topic))
        return cls(rows, topic, probability, *_cells(rows, levels), strata=True)

    @classmethod
    def of_probabilities(cls, topics: Ints, probabilities: Floats, levels: Ints) -> Self:
        """Return the sampling of judgements: topic, inclusion probability and level of each."""
        values, numbers = np.unique(probabilities, return_inverse=True)
        topic, number, rows = _groups(topics, numbers)
        return cls(rows, topic, values[number], *_cells(rows, levels), strata=False)

    @property
    def design(self) -> Design:
        return STRATA if self.strata else PROBABILITIES

    def take(self, rows: Ints | Flags) -> Self:
        """Return the sampling of some of the rows."""
        return replace(self, rows=self.rows[rows])


def _groups(topics: Ints, numbers: Ints) -> tuple[Ints, Ints, Ints]:
    """Return topic and number of each pair that occurs, and the pair of each row."""
    width = int(numbers.max(initial=0)) + 1
    pairs, rows = np.unique(topics * width + numbers, return_inverse=True)
    return pairs // width, pairs % width, rows


def _cells(groups: Ints, levels: Ints) -> tuple[Ints, Ints, Ints]:
    """Return group, level and number of documents of each pair of group and level."""
    lowest = int(levels.min(initial=0))
    width = int(levels.max(initial=0)) - lowest + 1
    cells, counts = np.unique(groups * width + (levels - lowest), return_counts=True)
    return cells // width, cells % width + lowest, counts
