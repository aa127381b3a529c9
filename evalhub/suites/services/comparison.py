"""Two systems over the collections of a suite."""

from __future__ import annotations

import math
from collections.abc import Set
from dataclasses import dataclass, replace

import numpy as np

from evalhub.suites.models import SuiteVersion
from evalhub.suites.services.board import SYSTEMS, Interval, SuiteQuery
from evalhub.suites.services.values import MemberValues, SuiteValues, read_values
from metrics.engine.analysis.suites import (
    CollectionDifference,
    RandomEffects,
    collection_weights,
    differences_from,
    interval_of,
    on_other_collections,
    on_other_topics,
    random_effects,
)
from metrics.engine.errors import StatisticsError
from metrics.services.boards.topic_selection import TopicFilter, Topics
from metrics.services.question import parameter
from runs.errors import InvalidInput


@dataclass(frozen=True)
class SuiteComparisonQuery(SuiteQuery):
    """Two systems of a suite: what the first one is better by."""

    systems: list[str] = parameter(
        replace(SYSTEMS, text="names of two systems, as team/system,team/system")
    )
    topics: TopicFilter | None = parameter(Topics())

    def __post_init__(self) -> None:
        if len(self.systems) != 2:
            message = "name two systems of the suite, as systems=team/system,team/system"
            code = "too_few_systems" if len(self.systems) < 2 else "too_many_systems"
            raise InvalidInput(message, code=code, pointer="systems")


@dataclass(frozen=True)
class CollectionLine:
    """The difference of two systems in a collection, over the topics on which both have a value."""

    row: MemberValues
    first: float
    second: float
    topics: int
    interval: Interval
    weight: float
    effects_weight: float


@dataclass(frozen=True)
class SuiteComparison:
    """The difference of two systems: by collection, as both means, and by random effects.

    `missing` are the collections without a difference: one of the systems has no value there, or
    the results are not shown. `effects` is None where a summary has no meaning.
    """

    values: SuiteValues
    lines: list[CollectionLine]
    missing: list[MemberValues]
    other_topics: Interval
    other_collections: Interval
    effects: RandomEffects | None


def compare_systems(
    version: SuiteVersion, scored: Set[int], query: SuiteComparisonQuery
) -> SuiteComparison:
    """Return the difference of two systems over the collections that have both.

    Raise InvalidInput for an unknown system, StatisticsError if no collection has both.
    """
    values = read_values(version, scored, query.systems, query.topics)
    if len(values.systems) < 2:
        message = f"{values.systems[0]} is named twice; name two systems"
        raise InvalidInput(message, code="too_few_systems", pointer="systems")

    shared, missing, differences = [], [], []
    for row in values.members:
        (difference,) = differences_from([row.values], 1)
        if difference.topics[0]:
            shared.append(row)
            differences.append(difference)
        else:
            missing.append(row)
    if not shared:
        message = "no collection has a value of both systems on the same topic"
        raise StatisticsError(message, code="no_comparison", pointer="systems")

    weights = collection_weights([row.member.weight for row in shared])
    effects = random_effects(
        np.array([difference.mean[0] for difference in differences]),
        np.array([difference.error[0] for difference in differences]),
    )
    lines = [
        _line(row, difference, float(weights[place]), effects.weights[place] if effects else None)
        for place, (row, difference) in enumerate(zip(shared, differences, strict=True))
    ]
    return SuiteComparison(
        values=values,
        lines=lines,
        missing=missing,
        other_topics=Interval.of(on_other_topics(differences, weights), 0),
        other_collections=Interval.of(on_other_collections(differences), 0),
        effects=effects,
    )


def _line(
    row: MemberValues, difference: CollectionDifference, weight: float, effects_weight: float | None
) -> CollectionLine:
    both = np.isfinite(row.values).all(axis=0)
    first, second = row.values[:, both].mean(axis=1)
    return CollectionLine(
        row=row,
        first=float(first),
        second=float(second),
        topics=int(difference.topics[0]),
        interval=Interval.of(interval_of(difference), 0),
        weight=weight,
        effects_weight=math.nan if effects_weight is None else float(effects_weight),
    )
