"""How far the order of systems on a topic differs from their order over all topics."""

from __future__ import annotations

import numpy as np

from metrics.engine.arrays import Flags, Floats, Ints
from metrics.engine.significance.pairs import Matrix

# Values that are equal but for the order in which they were added differ by less.
_DIGITS = 12


def discordance(values: Matrix, ranks: Floats) -> Floats:
    """Return for each topic the share of pairs of systems in another order than in `ranks`.

    A pair counts where both systems have a value (NaN is none) and a rank (NaN is none), and where
    neither ties. NaN where no pair counts.

    Formula: D / (C + D), C and D being the pairs in the same and in the other order; 1 - 2 D / (C +
    D) is gamma
    Range: 0 to 1; 0.5 where the topic's order has nothing to do with the other one
    Source: Goodman and Kruskal, Journal of the American Statistical Association 49(268), 1954
    Shapes: `values` (systems, topics), higher is better; `ranks` (systems,), 1 is the best; the
    result (topics,).
    """
    ranked = np.flatnonzero(~np.isnan(ranks))
    cost = np.round(-values[ranked].T, _DIGITS)
    topics, systems = cost.shape
    shares = np.full(topics, np.nan)
    if systems < 2 or not topics:
        return shares

    has_value = ~np.isnan(cost)
    place = _dense(np.where(has_value, cost, np.inf))
    overall = np.unique(ranks[ranked], return_inverse=True)[1].reshape(1, -1)

    # Systems in the order of their ranks; within a tie in the order of the topic; those without a
    # value come last.

    # One number for both orders of a system: its overall rank, then its place on the topic.
    base = systems + 1
    keys = np.sort(np.where(has_value, overall * base + place, systems * base + systems), axis=1)
    is_counted = np.arange(systems) < has_value.sum(axis=1, keepdims=True)
    topic_places = np.sort(np.where(has_value, place, systems), axis=1)
    number = has_value.sum(axis=1)
    pairs = number * (number - 1) // 2

    pairs += (
        _tied(keys, is_counted) - _tied(keys // base, is_counted) - _tied(topic_places, is_counted)
    )
    np.divide(_descents(keys % base), pairs, out=shares, where=pairs > 0)
    return shares


def _dense(rows: Matrix) -> Ints:
    """Return the place of each value in its row from 0 on, equal ones sharing a place."""
    order = np.argsort(rows, axis=1)
    ordered = np.take_along_axis(rows, order, axis=1)
    places = np.zeros(rows.shape, np.int64)
    places[:, 1:] = np.cumsum(ordered[:, 1:] > ordered[:, :-1], axis=1)
    dense = np.empty_like(places)
    np.put_along_axis(dense, order, places, axis=1)

    return dense


def _tied(ordered: Ints, is_counted: Flags) -> Ints:
    """Return the number of tied pairs in each ordered row, among the columns that are counted."""
    index = np.arange(ordered.shape[1])
    is_first = np.ones(ordered.shape, np.bool_)
    is_first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    first = np.maximum.accumulate(np.where(is_first, index, 0), axis=1)
    pairs: Ints = ((index - first) * is_counted).sum(axis=1)

    return pairs


def _descents(rows: Ints) -> Ints:
    """Return how many pairs of each row have the larger number first.

    Two numbers differ first in one bit: for each bit from the highest on, the rows are cut into
    blocks of numbers that are equal above it, and in each block the ones before each zero are
    counted.
    """
    count, length = rows.shape
    size = 1 << (length - 1).bit_length()

    # Each number as its place in the order, equal ones from left to right; the places after the
    # last fill up.
    blocks = np.tile(np.arange(size, dtype=np.int32), (count, 1))

    # Numbers of two bytes are sorted stably in linear time.
    order = np.argsort(
        rows.astype(np.uint16 if length < 1 << 16 else np.int64), axis=1, kind="stable"
    )
    np.put_along_axis(blocks[:, :length], order, np.arange(length, dtype=np.int32)[None, :], axis=1)

    descents = np.zeros(count, np.int64)
    while size > 1:
        size //= 2
        high = (blocks & size) > 0
        before = np.cumsum(high, axis=1, dtype=np.int32)
        before[high] = 0
        descents += before.sum(axis=1, dtype=np.int64).reshape(count, -1).sum(axis=1)
        # Every block has all numbers of its range, and thus as many with the bit as without it.
        halves = (blocks[~high].reshape(-1, size), blocks[high].reshape(-1, size))
        blocks = np.stack(halves, axis=1).reshape(-1, size)

    return descents
