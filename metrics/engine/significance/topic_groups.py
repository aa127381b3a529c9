"""The difference of two runs in groups of topics, and whether it depends on the group at all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from metrics.engine.arrays import Floats, Ints
from metrics.engine.significance import kruskal_wallis, paired_t
from metrics.engine.significance.corrections import holm
from metrics.engine.significance.families import Rule
from metrics.engine.significance.omnibus import OmnibusResult
from metrics.engine.significance.pairs import ROUNDING, Matrix, Options
from metrics.engine.significance.verdicts import (
    MIN_TOPICS,
    TOO_FEW_TOPICS,
    Verdicts,
    adjust,
    verdicts_of,
)

_A, _B = np.array([0]), np.array([1])


@dataclass(frozen=True)
class Interaction:
    """Whether the difference is the same in all groups.

    `statistic` is F with `freedom` between and within groups, NaN with its p where there is no
    test; `ranks` is the test of Kruskal and Wallis on the same differences, None without one.
    """

    statistic: float
    freedom: tuple[int, int]
    p_value: float
    ranks: OmnibusResult | None


@dataclass(frozen=True)
class GroupDifferences:
    """One entry for each group; a group of fewer than two topics has a mean alone.

    `adjusted` is p corrected by Holm over all groups.
    """

    topics: Ints
    difference: Floats
    low: Floats
    high: Floats
    p_value: Floats
    adjusted: Floats
    verdicts: Verdicts
    interaction: Interaction


def compare_groups(
    values: Matrix, groups: Sequence[Ints], rule: Rule, options: Options
) -> GroupDifferences:
    """Return the mean difference a - b in each group of topics, and the test of their interaction.

    `values` has shape (2, topics); `groups` has the places of the topics of each group, which share
    none.

    Formula: of each group the paired t test and Student's interval, p corrected by Holm over the
    groups; interaction: F = (sum of n_g (mean_g - mean)^2 / (G - 1)) / (sum over groups of
    (d - mean_g)^2 / (n - G)), with G - 1 and n - G degrees of freedom, over the topics in groups
    Assumes: for F, differences from normal distributions of one variance
    Source: Fisher, Statistical Methods for Research Workers, 1925
    Undefined: the interaction of one group, of as many groups as topics, and of differences that do
    not vary within groups; p of a group whose differences are all the same
    """
    number = len(groups)
    difference, low, high, p_value = (np.full(number, np.nan) for _ in range(4))
    for place, group in enumerate(groups):
        if len(group) == 1:
            difference[place] = values[0, group[0]] - values[1, group[0]]
        elif len(group) > 1:
            result = paired_t.compare(values[:, group], _A, _B, options)
            difference[place], low[place] = result.difference[0], result.low[0]
            high[place], p_value[place] = result.high[0], result.p_value[0]

    topics = np.array([len(group) for group in groups], np.int64)
    adjusted = adjust(p_value, holm)
    signs = np.sign(difference)
    verdicts = verdicts_of(
        adjusted < rule.alpha, np.isnan(adjusted), signs, signs, MIN_TOPICS
    ).withhold(topics < MIN_TOPICS, TOO_FEW_TOPICS)

    samples = [values[0, group] - values[1, group] for group in groups if len(group)]
    return GroupDifferences(
        topics, difference, low, high, p_value, adjusted, verdicts, interaction_of(samples)
    )


def interaction_of(samples: Sequence[Floats]) -> Interaction:
    """Return the test of whether the differences of groups have one mean; each has one or more."""
    total, number = sum(len(sample) for sample in samples), len(samples)
    freedom = max(number - 1, 0), max(total - number, 0)
    if number < 2:
        return Interaction(math.nan, freedom, math.nan, None)

    ranks = kruskal_wallis.analyse_samples(list(samples))
    if not freedom[1]:
        return Interaction(math.nan, freedom, math.nan, ranks)

    everything = np.concatenate(samples)
    mean = everything.mean()
    between = sum(len(sample) * (sample.mean() - mean) ** 2 for sample in samples)
    within = sum(float(np.square(sample - sample.mean()).sum()) for sample in samples)
    if within <= ROUNDING * float(np.square(everything).sum()):
        return Interaction(math.nan, freedom, math.nan, ranks)

    statistic = float(between / freedom[0] / (within / freedom[1]))
    return Interaction(statistic, freedom, float(special.fdtrc(*freedom, statistic)), ranks)
