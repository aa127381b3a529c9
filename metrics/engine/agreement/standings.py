"""Systems in the order of their means."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from metrics.engine.arrays import Flags, Ints
from metrics.engine.compiled.machine_code import Kernel
from metrics.engine.significance.pairs import Matrix

# The sum of the same values in another order differs by less: a difference of so small a share says
# nothing.
TIE = 1e-12
_ARRAYS = "float64[:, ::1], int64[:, ::1], float64, int64[:, ::1]"
_count_ranks = Kernel(
    "metrics.engine.compiled.kernels.standings", "count_ranks", f"void({_ARRAYS})"
)
KERNELS = (_count_ranks,)


def standings(means: Matrix, lower_is_better: Flags) -> Ints:
    """Return ranks 1, 2, 2, 4 of the systems under each combination; those without a mean are last.

    A mean ties with the first of a rank where it is within TIE of it, as a share of it or in all.
    Held against the first, not the one before: a long row of ever so little lower means does not
    become one rank.

    Shapes: `means` and the result (combinations, systems), `lower_is_better` (combinations,).
    """
    cost = np.where(lower_is_better[:, None], means, -means)
    cost = np.where(np.isnan(cost), np.inf, cost)
    order = np.argsort(cost, axis=1)
    if len(cost) == 1:
        # One leaderboard of a thousand runs: arrays of one number take fifty times as long as
        # numbers.
        ranks = np.empty(order.shape, np.int64)
        ranks[0, order[0]] = _ranks_in_order(cost[0, order[0]].tolist())
        return ranks

    ordered = np.ascontiguousarray(np.take_along_axis(cost, order, axis=1).T)
    places = _places_of_one(ordered) if ordered.shape[1] == 1 else _places_of_many(ordered)
    ranks = np.empty(order.shape, np.int64)
    np.put_along_axis(ranks, order, places.T, axis=1)
    return ranks


def _places_of_one(ordered: Matrix) -> Ints:
    """Return the ranks of one combination, in a loop: arrays of one number each would be slower."""
    ends = _end_of_tie(ordered[:, 0]).tolist()
    first, places = 0, []
    for place, cost in enumerate(ordered[:, 0].tolist()):
        if cost > ends[first]:
            first = place
        places.append(first + 1)

    return np.array(places, np.int64).reshape(ordered.shape)


def _places_of_many(ordered: Matrix) -> Ints:
    places = np.ones(ordered.shape, np.int64)
    if len(ordered):
        end = _end_of_tie(ordered[0])
    for place in range(1, len(ordered)):
        opens = ordered[place] > end
        end = np.where(opens, _end_of_tie(ordered[place]), end)
        places[place] = np.where(opens, place + 1, places[place - 1])

    return places


def _ranks_in_order(costs: Sequence[float]) -> list[int]:
    """Return the ranks of ascending costs."""
    ranks, rank, end = list[int](), 1, -math.inf
    for place, cost in enumerate(costs, 1):
        if place == 1 or cost > end:
            rank, end = place, cost + TIE * max(1.0, abs(cost))
        ranks.append(rank)

    return ranks


def add_ranks(means: Matrix, counts: Ints, *, lower_is_better: bool) -> None:
    """Add to `counts` in how many combinations each system has each rank of the `standings`.

    Shapes: `means` (combinations, systems), all of them numbers; `counts` (systems, ranks), where
    ranks count from 0.
    """
    cost = np.ascontiguousarray(means if lower_is_better else -means)
    _count_ranks(cost, np.argsort(cost, axis=1), TIE, counts)


def count_first(means: Matrix, *, lower_is_better: bool) -> Ints:
    """Return in how many combinations each system is first; `means` as for `add_ranks`."""
    cost = means if lower_is_better else -means
    first: Ints = np.count_nonzero(cost <= _end_of_tie(cost.min(axis=1, keepdims=True)), axis=0)
    return first


def _end_of_tie(first: Matrix) -> Matrix:
    end: Matrix = first + TIE * np.maximum(1.0, np.abs(first))
    return end


def has_ties(ranks: Ints) -> Flags:
    """Return whether two systems share a rank; shape (combinations,)."""
    ordered = np.sort(ranks, axis=1)
    ties: Flags = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    return ties


def comparable(
    topics: Sequence[int], judged: int, topics_of: Callable[[list[int]], Sequence[bytes]]
) -> list[bool]:
    """Return which systems have comparable means: over the same topics, and over the most.

    `topics` counts the topics of each system's mean, out of those `judged`. Where none has them
    all, `topics_of` says for some systems which topics they are. Among several sets of that
    size the one of most systems counts, or that of the first system.
    """
    largest = max(topics, default=0)
    widest = [place for place, number in enumerate(topics) if number == largest > 0]
    if largest < judged and len(widest) > 1:
        sets = topics_of(widest)
        usual, _ = Counter(sets).most_common(1)[0]
        widest = [
            place for place, topic_set in zip(widest, sets, strict=True) if topic_set == usual
        ]

    chosen = set(widest)
    return [place in chosen for place in range(len(topics))]
