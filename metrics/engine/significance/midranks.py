"""Ranks of sorted rows with ties: each member of a tie has the middle of the tie's places."""

from __future__ import annotations

import numpy as np

from metrics.engine.arrays import Flags, Floats
from metrics.engine.significance.pairs import Matrix


def midranks(tied: Flags) -> tuple[Matrix, Floats]:
    """Return ranks by place and, for each row, the sum of t^3 - t over its ties of size t.

    Shapes: `tied` (rows, n - 1) says whether a place ties with the next one; the ranks are (rows,
    n).
    """
    rows, n = len(tied), tied.shape[1] + 1
    places = np.broadcast_to(np.arange(n), (rows, n))
    edge = np.ones((rows, 1), np.bool_)
    begin = np.maximum.accumulate(np.where(np.hstack([edge, ~tied]), places, 0), axis=1)
    end = np.minimum.accumulate(np.where(np.hstack([~tied, edge]), places, n)[:, ::-1], axis=1)[
        :, ::-1
    ]
    sizes = (end - begin + 1).astype(np.float64)

    # Every member adds its share: t (t^2 - 1) / t.
    return (begin + end) / 2 + 1, (np.square(sizes) - 1).sum(axis=1)


def rank_rows(values: Matrix, noise: Floats) -> tuple[Matrix, Floats]:
    """Return the midranks of the values of each row, and its tie term; values within `noise`
    tie."""
    order = np.argsort(values, axis=1, kind="stable")
    ordered = np.take_along_axis(values, order, axis=1)
    ranks, ties = midranks(np.diff(ordered, axis=1) <= noise[:, None])
    unsorted_ranks = np.empty_like(ranks)
    np.put_along_axis(unsorted_ranks, order, ranks, axis=1)

    return unsorted_ranks, ties
