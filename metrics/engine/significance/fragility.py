"""How few topics carry a verdict: what remains of it when those that favour the winner most are
left out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from metrics.engine.arrays import Floats, Ints
from metrics.engine.significance.pairs import Matrix, noise_of
from metrics.engine.significance.verdicts import MIN_TOPICS


@dataclass(frozen=True)
class Fragility:
    """One entry per pair: how many topics to leave out until the winner's lead, or its
    significance, is gone.

    `sign` is 0 where there is no lead, and -1 where every topic favours the winner. `significance`
    is -1 where the pair is not significant at first, and where it still is with five topics left.
    `order` has all topics by how much they favour the winner, most first; shape (pairs, topics).
    """

    sign: Ints
    significance: Ints
    order: Ints


def fragility(
    values: Matrix, first: Ints, second: Ints, p_adjusted: Floats, alpha: float
) -> Fragility:
    """How many topics carry the verdict of each pair.

    Formula: with d in descending order, the winner's as positive: the smallest k with mean(d[k:])
    <= 0, which is the smallest number of any topics; and the smallest k at which p of the t test of
    d[k:], times p adjusted / p of all topics, is alpha or more, as long as 5 topics remain
    Note: With other topics than these, fewer could be enough for the second. The factor by which
    the family corrects p is that of all topics. Differences that are all the same count as
    significant.
    Source: the fragility index of Walsh et al., Journal of Clinical Epidemiology 67(6), 2014, with
    topics for patients
    """
    differences = values[first] - values[second]
    sign = np.sign(differences.mean(axis=1))
    for_winner = differences * np.where(sign == 0, 1, sign)[:, None]
    order = np.argsort(-for_winner, axis=1, kind="stable")
    ordered = np.take_along_axis(for_winner, order, axis=1)
    topics = values.shape[1]

    # Sums of what remains after the first k topics, from the end, so that nothing is taken from a
    # larger sum.
    left = np.arange(topics, 0, -1)
    mean = np.cumsum(ordered[:, ::-1], axis=1)[:, ::-1] / left
    gone = mean <= noise_of(values, first, second)[:, None]
    carried = np.where(gone.any(axis=1), gone.argmax(axis=1), -1)
    squares = np.cumsum(np.square(ordered[:, ::-1]), axis=1)[:, ::-1] - left * np.square(mean)

    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt(np.maximum(squares, 0) / np.maximum(left - 1, 1) / left)
        p_value = 2 * special.stdtr(np.maximum(left - 1, 1), -np.abs(mean / error))
        corrected = p_value * np.where(
            p_value[:, :1] > 0, p_adjusted[:, None] / p_value[:, :1], 1.0
        )

    # Without spread there is no p: what remains says the same on every topic.
    lost = ((corrected >= alpha) | gone) & (left >= MIN_TOPICS)
    lost[:, 0] = False
    fragile = (p_adjusted < alpha) & lost.any(axis=1)
    significance = np.where(fragile, lost.argmax(axis=1), -1)

    return Fragility(carried.astype(np.int64), significance.astype(np.int64), order)
