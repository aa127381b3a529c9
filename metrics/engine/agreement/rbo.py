"""Rank-biased overlap between orders of systems."""

from __future__ import annotations

import numpy as np

from metrics.engine.arrays import Floats, Ints

PERSISTENCE = 0.9


def rbo(first: Ints, second: Ints, p: float = PERSISTENCE) -> Floats:
    """Rank-biased overlap of each row of the one with the same row of the other, extrapolated.

    Formula: A(k) p^k + (1 - p) / p * sum of A(d) p^d for d = 1..k, A(d) = 2 |S(d) and T(d)| /
    (|S(d)| + |T(d)|), S(d) and T(d) the systems of rank d or better; k is the number of systems
    Range: 0 to 1
    Source: Webber, Moffat and Zobel, TOIS 28(4), 2010 (RBO_EXT, systems that tie sharing the rank
    of their first)
    Shapes: `first` and `second` (orders, systems), ranks 1, 2, 2, 4; the result (orders,).
    """
    total, agreement = np.zeros(len(first)), np.ones(len(first))
    for depth in range(1, first.shape[1] + 1):
        a, b = first <= depth, second <= depth
        agreement = 2 * (a & b).sum(axis=1) / (a.sum(axis=1) + b.sum(axis=1))
        total += agreement * p ** (depth - 1)

    overlap: Floats = agreement * p ** first.shape[1] + (1 - p) * total
    return overlap
