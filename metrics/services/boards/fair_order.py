"""Order runs by a measure, and say which runs have no rank and why.

A measure may have no value for a topic, such as a search length where nothing is found. The means of two runs over
different topics cannot be compared: a run that fails everywhere except on one easy topic would win.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from metrics.engine.agreement.standings import comparable, standings
from metrics.services.values.judged_views import Mean

Covered = Callable[[list[int]], Mapping[int, bytes]]
"""covered(evaluations) -> for each of them which topics have a value, as text that is equal for equal topics"""


@dataclass(frozen=True)
class FairOrder:
    """Hold evaluations ordered by their means.

    The `ranked` evaluations are those whose means cover the same topics, as many as the mean of any run covers:
    `topics`. They come best first, with their `ranks`. The evaluations `below` come with their number of topics,
    ordered by that number and then by their means.
    """

    topics: int
    ranked: list[tuple[int, float]]
    ranks: list[int]
    below: list[tuple[int, int]]

    @property
    def rank_of(self) -> dict[int, int]:
        return {pk: rank for (pk, _), rank in zip(self.ranked, self.ranks, strict=True)}

    def why_below(self, topics: int) -> tuple[str, str]:
        """Return the code and reason of an unranked run whose mean covers this many topics."""
        if not topics:
            return "no_value", "no topic has a value"
        if topics == self.topics:
            return "other_topics", f"mean of {topics} topics that are not those of the ranked runs"
        return "fewer_topics", f"mean of {topics} of {self.topics} topics"


def fair_order(means: Mapping[int, Mean], judged: int, covered: Covered, *, lower_first: bool) -> FairOrder:
    """Return evaluations in the order of their means on `judged` topics. Equal means keep their order and share a
    rank."""
    ids = list(means)
    values = np.array([np.nan if mean is None else mean for mean, _ in means.values()], np.float64)
    counts = np.where(np.isnan(values), 0, [topics for _, topics in means.values()]).tolist()

    def sets(places: list[int]) -> list[bytes]:
        found = covered([ids[place] for place in places])
        return [found[ids[place]] for place in places]

    fair = np.array(comparable(counts, judged, sets), np.bool_)
    ranks = standings(np.where(fair, values, np.nan)[None, :], np.array([lower_first]))[0].tolist()
    best_first = sorted(np.flatnonzero(fair).tolist(), key=lambda place: ranks[place])
    cost = np.where(np.isnan(values), np.inf, values if lower_first else -values).tolist()
    rest = sorted(np.flatnonzero(~fair).tolist(), key=lambda place: (-counts[place], cost[place]))
    return FairOrder(
        max(counts, default=0),
        [(ids[place], float(values[place])) for place in best_first],
        [ranks[place] for place in best_first],
        [(ids[place], counts[place]) for place in rest],
    )
