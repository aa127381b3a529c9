"""The leaderboard of a suite."""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass

import numpy as np

from evalhub.suites.models import SuiteVersion
from evalhub.suites.services.values import SuiteValues, read_values
from metrics.engine.agreement.standings import standings
from metrics.engine.analysis.suites import (
    Estimate,
    Ranking,
    borda_intervals,
    combine,
    differences_from,
    on_other_collections,
    on_other_topics,
    rank_systems,
)
from metrics.engine.arrays import Floats
from metrics.engine.significance.pairs import Matrix
from metrics.services.boards.topic_selection import TopicFilter, Topics
from metrics.services.question import (
    MAX_VERSION,
    RANK_RESAMPLES,
    SEED,
    Choice,
    Integer,
    Parameter,
    Question,
    Several,
    parameter,
)
from metrics.services.values.effort import seconds_of_ranks
from metrics.services.work import begin
from runs.errors import InvalidInput

BY_MEAN, BY_GROUPS, BY_BORDA, BY_RANK = "mean", "groups", "borda", "mean_rank"
ORDERS = (BY_MEAN, BY_GROUPS, BY_BORDA, BY_RANK)
SYSTEMS = Several(
    "names of systems, as team/system, separated by commas; default: all", of=Parameter("")
)


@dataclass(frozen=True)
class SuiteQuery(Question):
    """A version of a suite."""

    version: int | None = parameter(
        Integer("of the suite; default: the newest", low=1, high=MAX_VERSION, default=None)
    )


@dataclass(frozen=True)
class SuiteBoardQuery(SuiteQuery):
    """A version of a suite, its systems, and what ranks them."""

    systems: list[str] = parameter(SYSTEMS)
    topics: TopicFilter | None = parameter(Topics())
    order: str = parameter(
        Choice(
            "what ranks the systems: the weighted mean, the mean of the means of groups, Borda's "
            "count or the mean rank",
            default=BY_MEAN,
            choices=ORDERS,
        )
    )
    resamples: int | None = parameter(
        Integer(
            "B of the bootstrap intervals of Borda's counts; default: no intervals",
            low=RANK_RESAMPLES[0],
            high=RANK_RESAMPLES[1],
            default=None,
        )
    )
    seed: int = parameter(SEED)


@dataclass(frozen=True)
class Interval:
    """A mean difference with the ends of its interval and p, each NaN where there is none."""

    difference: float
    low: float
    high: float
    p_value: float

    @classmethod
    def of(cls, estimate: Estimate, place: int) -> Interval:
        columns = (estimate.difference, estimate.low, estimate.high, estimate.p_value)
        return cls(*(float(column[place]) for column in columns))


@dataclass(frozen=True)
class SystemRow:
    """A system: its means by collection, NaN where it has none, and what it lacks.

    A system that lacks something has no rank, mean, count or difference. The first one has no
    difference from itself.
    """

    name: str
    means: list[float]
    lacks: list[str]
    rank: int | None = None
    mean: float = math.nan
    group_mean: float = math.nan
    borda: float = math.nan
    borda_low: float = math.nan
    borda_high: float = math.nan
    mean_rank: float = math.nan
    other_topics: Interval | None = None
    other_collections: Interval | None = None


@dataclass(frozen=True)
class SuiteBoard:
    """The systems of a suite, those with a rank first; `ranking` is None if there are none."""

    values: SuiteValues
    query: SuiteBoardQuery
    rows: list[SystemRow]
    ranking: Ranking | None

    @property
    def weights(self) -> Floats:
        """Return the weights of the collections in the differences, which sum to 1."""
        return _weights(self.values, self.order)

    @property
    def order(self) -> str:
        return self.query.order

    @property
    def ranked(self) -> list[SystemRow]:
        return [row for row in self.rows if row.rank is not None]


def read_board(version: SuiteVersion, scored: Set[int], query: SuiteBoardQuery) -> SuiteBoard:
    """Return the leaderboard of a version for a reader who sees these collections' results.

    A system has a rank if it has a value in every collection, on every topic on which another
    system has one. Where the results of a collection are not shown, no system has one. Raise
    InvalidInput as `read_values` does, and for an order by groups of a version without any.
    """
    if query.order == BY_GROUPS and not version.members.exclude(group="").exists():
        message = f"order=groups: {version} has no groups; order by mean, borda or mean_rank"
        raise InvalidInput(message, pointer="order")

    values = read_values(version, scored, query.systems or None, query.topics)
    lacks = [
        [text for member in values.members if (text := member.lack(place))]
        for place in range(len(values.systems))
    ]
    complete = [
        place for place, texts in enumerate(lacks) if not texts and not values.without_results
    ]
    rows = [
        SystemRow(name, values.means[place].tolist(), lacks[place])
        for place, name in enumerate(values.systems)
        if lacks[place] or values.without_results
    ]
    rows.sort(key=lambda row: (sum(map(math.isnan, row.means)), row.name))
    if not complete:
        return SuiteBoard(values, query, rows, None)

    ranked, ranking = _rank(values, complete, query)
    return SuiteBoard(values, query, [*ranked, *rows], ranking)


def _rank(
    values: SuiteValues, complete: Sequence[int], query: SuiteBoardQuery
) -> tuple[list[SystemRow], Ranking]:
    means = values.means[complete]
    mean = combine(means, values.weights)
    by_groups = values.group_weights
    group_mean = np.full(len(complete), np.nan) if by_groups is None else combine(means, by_groups)
    ranking = rank_systems(means)

    figures: dict[str, Floats] = {
        BY_MEAN: mean,
        BY_GROUPS: group_mean,
        BY_BORDA: ranking.borda,
        BY_RANK: -ranking.mean_ranks,
    }
    ranks = standings(figures[query.order][None, :], np.zeros(1, np.bool_))[0]
    first = sorted(
        range(len(complete)), key=lambda row: (ranks[row], values.systems[complete[row]])
    )

    matrices = [member.values[complete] for member in values.members]
    differences = differences_from(matrices, first[0])
    topics = on_other_topics(differences, _weights(values, query.order))
    collections = on_other_collections(differences)

    borda_low = borda_high = np.full(len(complete), np.nan)
    if query.resamples:
        borda_low, borda_high = _borda_intervals(matrices, query.resamples, query.seed)

    rows = [
        SystemRow(
            name=values.systems[complete[row]],
            means=means[row].tolist(),
            lacks=[],
            rank=int(ranks[row]),
            mean=float(mean[row]),
            group_mean=float(group_mean[row]),
            borda=float(ranking.borda[row]),
            borda_low=float(borda_low[row]),
            borda_high=float(borda_high[row]),
            mean_rank=float(ranking.mean_ranks[row]),
            other_topics=Interval.of(topics, row) if row != first[0] else None,
            other_collections=Interval.of(collections, row) if row != first[0] else None,
        )
        for row in first
    ]
    return rows, ranking


def _borda_intervals(
    matrices: Sequence[Matrix], resamples: int, seed: int
) -> tuple[Floats, Floats]:
    seconds = sum(
        seconds_of_ranks(matrix.shape[0], matrix.shape[1], resamples) for matrix in matrices
    )
    advice = "name fewer systems, or draw less often with resamples="
    begin(seconds, "the intervals of Borda's counts", advice, "resamples")
    return borda_intervals(matrices, resamples, seed)


def _weights(values: SuiteValues, order: str) -> Floats:
    by_groups = values.group_weights if order == BY_GROUPS else None
    return values.weights if by_groups is None else by_groups
