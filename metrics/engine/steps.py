"""Step functions over ranks, one per topic: the sparse form of a curve."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from metrics.engine.judged import RankedGains
from metrics.engine.ranking import Floats, Ints
from metrics.engine.records import frozen
from metrics.engine.running import before, running_sum

Matrix = npt.NDArray[np.float64]


@frozen
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
        """Return gains summed down to each rank, times the `worth` of their ranks (shape (depth,)) if that is given."""
        seen = ranked.within(depth)
        gain = seen.gain if worth is None else seen.gain * worth[seen.rank - 1]
        return cls(seen.topic, seen.rank, running_sum(seen.topic, gain), seen.n_topics, depth)

    @classmethod
    def of_every_rank(cls, values: Matrix) -> Self:
        """Return values that change from each rank to the next; shape of `values` (topics, depth)."""
        n_topics, depth = values.shape
        topic, rank = np.repeat(np.arange(n_topics), depth), np.tile(np.arange(1, depth + 1), n_topics)
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

    def matrix(self) -> Matrix:
        """Return every topic's value at every rank; shape (topics, depth)."""
        dense = np.zeros((self.n_topics, self.depth))
        dense[self.topic, self.rank - 1] = self.change
        return np.cumsum(dense, axis=1, out=dense)


def on_the_same_rows(actual: Steps, ideal: Steps) -> tuple[Steps, Steps]:
    """Return both with a row where either has one. The ideal's rows are at ranks 1, 2, 3, ... of a topic, without a
    gap.

    The actual rows at these ranks change the value reached there; the later ones follow, topic by topic.
    """
    size = np.bincount(ideal.topic, minlength=ideal.n_topics)
    end = np.cumsum(size)
    inside = actual.rank <= size[actual.topic]
    early, late = np.flatnonzero(inside), np.flatnonzero(~inside)
    moved = np.zeros(len(ideal.rank))
    moved[(end - size)[actual.topic[early]] + actual.rank[early] - 1] = actual.change[early]
    order = _interleaved(len(ideal.rank), end[actual.topic[late]])
    topic = np.concatenate([ideal.topic, actual.topic[late]])[order]
    rank = np.concatenate([ideal.rank, actual.rank[late]])[order]
    reached = np.concatenate([running_sum(ideal.topic, moved), actual.value[late]])[order]
    best = np.concatenate([ideal.value, ideal.value[end[actual.topic[late]] - 1]])[order]
    joined = Steps(topic, rank, reached, actual.n_topics, actual.depth)
    return joined, joined.with_value(best)


def _interleaved(length: int, after: Ints) -> Ints:
    """Return the order that puts new rows, numbered from `length` on, each after the given number of old ones; `after`
    ascends."""
    place = after + np.arange(len(after))
    order = np.empty(length + len(after), np.int64)
    old = np.ones(len(order), np.bool_)
    old[place] = False
    order[place] = np.arange(length, len(order))
    order[old] = np.arange(length)
    return order
