"""Order runs by a measure, and say which runs have no rank and why.

A measure may have no value for a topic, such as a search length where nothing is found. The means
of two runs over different topics cannot be compared: a run that fails everywhere except on one easy
topic would win.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from metrics.engine.agreement.standings import comparable, standings
from metrics.engine.arrays import Floats, Ints
from metrics.services.values.judged_views import Mean

# covered(evaluations) -> for each of them which topics have a value, equal for equal topics
Covered = Callable[[list[int]], Mapping[int, bytes]]


@dataclass(frozen=True)
class FairOrder:
    """Evaluations ordered by their means.

    The `ranked` evaluations are those whose means cover the same topics, as many as the mean of any
    run covers: `topics`. They come best first, with their `ranks`. The evaluations `below` come
    with their number of topics, ordered by that number and then by their means. `keys` and `means`
    have the ranked ones as arrays: there may be ten thousand, and a page shows fifty.
    """

    topics: int
    keys: Ints
    means: Floats
    ranks_of_keys: Ints
    below: list[tuple[int, int]]

    @cached_property
    def ranked(self) -> list[tuple[int, float]]:
        return list(zip(self.keys.tolist(), self.means.tolist(), strict=True))

    @cached_property
    def ranks(self) -> list[int]:
        ranks: list[int] = self.ranks_of_keys.tolist()
        return ranks

    @property
    def rank_of(self) -> dict[int, int]:
        return dict(zip(self.keys.tolist(), self.ranks, strict=True))

    def why_below(self, topics: int) -> tuple[str, str]:
        """Return the code and reason of an unranked run whose mean covers this many topics."""
        if not topics:
            return "no_value", "no topic has a value"
        if topics == self.topics:
            return "other_topics", f"mean of {topics} topics that are not those of the ranked runs"
        return "fewer_topics", f"mean of {topics} of {self.topics} topics"


def fair_order(
    means: Mapping[int, Mean], judged: int, covered_topics: Covered, *, lower_first: bool
) -> FairOrder:
    """Return evaluations in the order of their means on `judged` topics.

    Equal means keep their order and share a rank.
    """
    values = np.array([np.nan if mean is None else mean for mean, _ in means.values()], np.float64)
    counts = np.array([topics for _, topics in means.values()], np.int64)
    return order_fairly(
        np.array(list(means), np.int64),
        values,
        counts,
        judged,
        covered_topics,
        lower_first=lower_first,
    )


def order_fairly(
    keys: Ints,
    means: Floats,
    topics: Ints,
    judged: int,
    covered_topics: Covered,
    *,
    lower_first: bool,
) -> FairOrder:
    """Return evaluations in the order of means that are an array.

    A mean is NaN where there is none; `topics` has their numbers of topics.
    """
    counts = np.where(np.isnan(means), 0, topics).tolist()

    def sets(places: list[int]) -> list[bytes]:
        evaluations = keys[places].tolist()
        covered = covered_topics(evaluations)
        return [covered[pk] for pk in evaluations]

    fair = np.array(comparable(counts, judged, sets), np.bool_)
    ranks = standings(np.where(fair, means, np.nan)[None, :], np.array([lower_first]))[0]
    ranked = np.flatnonzero(fair)
    best_first = ranked[np.argsort(ranks[ranked], kind="stable")]
    cost = np.where(np.isnan(means), np.inf, means if lower_first else -means).tolist()
    below = sorted(np.flatnonzero(~fair).tolist(), key=lambda place: (-counts[place], cost[place]))

    return FairOrder(
        max(counts, default=0),
        keys[best_first],
        means[best_first],
        ranks[best_first],
        [(int(keys[place]), counts[place]) for place in below],
    )
