"""Step functions over ranks, one per topic: the sparse form of a curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from metrics.engine.arrays import Flags, Floats, Ints
from metrics.engine.compiled.running import before, running_sum
from metrics.engine.judgement.judged import RankedGains

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Steps:
    """From the rank of a row on, its topic has the row's value; before its first row a topic has 0.

    Shapes: `topic`, `rank` (1..depth) and `value` have one entry per row, sorted by topic and rank.
    """

    topic: Ints
    rank: Ints
    value: Floats
    n_topics: int
    depth: int

    @classmethod
    def cumulated(cls, ranked: RankedGains, depth: int, worth: Floats | None = None) -> Self:
        """Return gains summed down to each rank, times the `worth` of their ranks (shape (depth,))
        if that is given."""
        top = ranked.within(depth)
        gain = top.gain if worth is None else top.gain * worth[top.rank - 1]
        return cls(top.topic, top.rank, running_sum(top.topic, gain), top.n_topics, depth)

    @classmethod
    def of_every_rank(cls, values: Matrix) -> Self:
        """Return values that change from each rank to the next; shape of `values` (topics,
        depth)."""
        n_topics, depth = values.shape
        topic = np.repeat(np.arange(n_topics), depth)
        rank = np.tile(np.arange(1, depth + 1), n_topics)

        return cls(topic, rank, values.ravel(), n_topics, depth)

    @cached_property
    def change(self) -> Floats:
        """Return by how much each row changes its topic."""
        return self.value - before(self.topic, self.value, 0.0)

    def sum(self) -> Floats:
        """Return the sum of the topics' values at every rank; shape (depth,)."""
        total: Floats = np.cumsum(np.bincount(self.rank - 1, self.change, self.depth))
        return total

    def with_value(self, value: Floats) -> Self:
        """Return the same rows with other values."""
        return replace(self, value=value)

    def of_topics(self, selected: Flags) -> Self:
        """Return the steps of the topics with a flag, which are then the only ones."""
        rows = selected[self.topic]
        place = np.cumsum(selected) - 1
        return replace(
            self,
            topic=place[self.topic[rows]],
            rank=self.rank[rows],
            value=self.value[rows],
            n_topics=int(selected.sum()),
        )

    def matrix(self) -> Matrix:
        """Return every topic's value at every rank; shape (topics, depth)."""
        dense = np.zeros((self.n_topics, self.depth))
        dense[self.topic, self.rank - 1] = self.change
        return np.cumsum(dense, axis=1, out=dense)


def mean_steps(steps: Sequence[Steps]) -> Steps:
    """Return the mean of step functions of the same topics and ranks, with a row for every rank."""
    return Steps.of_every_rank(np.mean([each.matrix() for each in steps], axis=0))


@dataclass(frozen=True)
class SameRows:
    """Rows where an actual or an ideal step function has one, sorted by topic and rank, and the
    rows of both that give the values there.

    Shapes: one entry per row in each. `actual` counts its rows from 1: 0 is none yet.
    """

    topic: Ints
    rank: Ints
    actual: Ints
    ideal: Ints

    def of(self, actual: Steps, ideal: Steps) -> tuple[Steps, Steps]:
        """Return both on these rows, whatever their values."""
        reached = np.append(0.0, actual.value)[self.actual]
        joined = Steps(self.topic, self.rank, reached, actual.n_topics, actual.depth)
        return joined, joined.with_value(ideal.value[self.ideal])


def same_rows(actual: Steps, ideal: Steps) -> SameRows:
    """Return the rows of both. The ideal's rows are at ranks 1, 2, 3, ... of a topic, without a
    gap, and every topic of actual rows has some.

    An actual row is one of these, or follows the last of its topic.
    """

    # Actual rows beyond the last ideal one of their topic are put after it.
    size = np.bincount(ideal.topic, minlength=ideal.n_topics)
    end = np.cumsum(size)
    inside = actual.rank <= size[actual.topic]
    early, late = np.flatnonzero(inside), np.flatnonzero(~inside)
    following = end[actual.topic[late]] + np.arange(len(late))
    is_ideal = np.ones(len(ideal.rank) + len(late), np.bool_)
    is_ideal[following] = False
    of_ideal = np.cumsum(is_ideal) - 1
    topic, rank = ideal.topic[of_ideal], ideal.rank[of_ideal]
    rank[following] = actual.rank[late]

    is_actual = ~is_ideal
    is_actual[
        np.flatnonzero(is_ideal)[(end - size)[actual.topic[early]] + actual.rank[early] - 1]
    ] = True
    actual_rows = np.cumsum(is_actual)
    earlier = np.searchsorted(actual.topic, np.arange(actual.n_topics))[topic]

    return SameRows(topic, rank, np.where(actual_rows > earlier, actual_rows, 0), of_ideal)
