"""How few topics carry a verdict: whether it remains without those that favour the winner most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from metrics.engine.arrays import Floats, Ints
from metrics.engine.significance.pairs import Matrix, noise_of
from metrics.engine.significance.verdicts import MIN_TOPICS


@dataclass(frozen=True)
class Fragility:
    """One entry per pair: after how many left-out topics the lead, or its significance, is lost.

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

    # Sums of the topics after the first k, added from the end, so that no sum is subtracted.
    remaining = np.arange(topics, 0, -1)
    mean = np.cumsum(ordered[:, ::-1], axis=1)[:, ::-1] / remaining
    no_lead = mean <= noise_of(values, first, second)[:, None]
    carried = np.where(no_lead.any(axis=1), no_lead.argmax(axis=1), -1)
    squares = np.cumsum(np.square(ordered[:, ::-1]), axis=1)[:, ::-1] - remaining * np.square(mean)

    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.sqrt(np.maximum(squares, 0) / np.maximum(remaining - 1, 1) / remaining)
        p_value = 2 * special.stdtr(np.maximum(remaining - 1, 1), -np.abs(mean / error))
        corrected = p_value * np.where(
            p_value[:, :1] > 0, p_adjusted[:, None] / p_value[:, :1], 1.0
        )

    # Without spread there is no p: all remaining topics say the same.
    not_significant = ((corrected >= alpha) | no_lead) & (remaining >= MIN_TOPICS)
    not_significant[:, 0] = False
    fragile = (p_adjusted < alpha) & not_significant.any(axis=1)
    significance = np.where(fragile, not_significant.argmax(axis=1), -1)

    return Fragility(carried.astype(np.int64), significance.astype(np.int64), order)
