"""How far the judgements of a pool reach: runs without what they alone brought to it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from metrics.engine.agreement.kendall import tau
from metrics.engine.agreement.standings import standings
from metrics.engine.agreement.tau_ap import tau_ap
from metrics.engine.arrays import Flags, Floats, Ints
from metrics.engine.judgement.judged import RecallBase
from metrics.engine.judgement.judging import Judgements
from metrics.engine.significance.pairs import Matrix

# The group of a run that was not pooled.
NOT_POOLED = -1


@dataclass(frozen=True)
class LeftOut:
    """Judgements that one group of pooled runs alone brought, and the recall base without them."""

    judgements: Flags
    base: RecallBase


@dataclass(frozen=True)
class BiasCorrection:
    """The mean loss of pooled runs without their own judgements, and its leave-one-out error."""

    bias: float
    error: float


@dataclass(frozen=True)
class LeftOutOrder:
    """Ranks of runs by their official means, each rank with the run's own left-out mean among the
    official ones of the others, and the correlations of both orders."""

    ranks: Ints
    left_out_ranks: Ints
    tau: float
    tau_ap: float


def leave_out(
    judgements: Judgements, contributed: Sequence[Flags], groups: Ints, added: Flags
) -> dict[int, LeftOut]:
    """Return the judgements that each group of pooled runs alone brought.

    `contributed` has the contributions of each run, `groups` its group, `added` the judgements of
    documents that organisers added: none of those is left out. A judgement that no run contributed
    stays, too.

    Source: Zobel, SIGIR 1998; groups by Voorhees and Harman, TREC-8
    """
    by_group: dict[int, Flags] = {}
    for flags, group in zip(contributed, groups.tolist(), strict=True):
        if group != NOT_POOLED:
            by_group[group] = by_group[group] | flags if group in by_group else flags

    brought: Ints = np.zeros(len(judgements.levels), np.int64)
    for flags in by_group.values():
        brought += flags

    once = (brought == 1) & np.logical_not(added)
    own_judgements = {}
    for group, flags in by_group.items():
        alone = flags & once
        rest = np.logical_not(alone)
        base = RecallBase.of(
            judgements.topics[rest], judgements.levels[rest], len(judgements.topic_ids)
        )
        own_judgements[group] = LeftOut(alone, base)
    return own_judgements


def order_without(means: Floats, left_out: Floats, *, lower_is_better: bool) -> LeftOutOrder:
    """Return the official order of runs and that of their left-out means.

    Shapes: `means` and `left_out` (runs,); NaN where a run has no mean. The rank of a run by its
    left-out mean is that among the official means of all other runs.
    """
    official = _ranks(means, lower_is_better)
    alone = np.empty(len(means), np.int64)
    for run in range(len(means)):
        moved = means.copy()
        moved[run] = left_out[run]
        alone[run] = _ranks(moved, lower_is_better)[run]

    together = _ranks(left_out, lower_is_better)
    return LeftOutOrder(
        ranks=official,
        left_out_ranks=alone,
        tau=float(tau(official[None], together[None])[0]),
        tau_ap=float(tau_ap(official[None], together[None])[0]),
    )


def _ranks(means: Floats, lower_is_better: bool) -> Ints:
    ranks: Ints = standings(means[None], np.array([lower_is_better]))[0]
    return ranks


def correct_bias(means: Floats, left_out: Floats) -> BiasCorrection:
    """Return what to add to the mean of a run that was not pooled.

    Formula: b = mean of b_j = x_j - x_j without the judgements that it alone brought, over the
    pooled runs j; error = sqrt(mean of (b_(-j) - b_j)^2), b_(-j) the mean over the others
    Source: Webber and Park, SIGIR 2009
    Shapes: `means` and `left_out` (pooled runs,); NaN where fewer than two runs have both.
    """
    loss = means - left_out
    loss = loss[np.isfinite(loss)]
    if len(loss) < 2:
        return BiasCorrection(math.nan, math.nan)

    others = (loss.sum() - loss) / (len(loss) - 1)
    return BiasCorrection(float(loss.mean()), float(np.sqrt(np.square(others - loss).mean())))


def pool_depth(depths: Sequence[int], least: int) -> int | None:
    """Return the depth of an unrecorded pool: the most frequent judged depth of `least` or more,
    the larger one of two; None where no run is judged so deep."""
    deep = np.array([depth for depth in depths if depth >= least], np.int64)
    if not len(deep):
        return None

    unique, counts = np.unique(deep, return_counts=True)
    return int(unique[counts == counts.max()][-1])


def relative_changes(means: Matrix, left_out: Matrix) -> Matrix:
    """Return the changes as shares of the official means, NaN where that is 0 or missing."""
    changes: Matrix = np.full(np.shape(means), np.nan)
    np.divide(left_out - means, means, out=changes, where=means != 0)
    return changes
