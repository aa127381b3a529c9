"""Two runs with weights of topics: `weights=frequency`."""

from __future__ import annotations

from dataclasses import dataclass

from metrics.engine.errors import StatisticsError
from metrics.engine.significance.weighted import WeightedDifference, weighted_difference
from metrics.services.boards.topic_selection import topic_weights
from metrics.services.comparisons.comparison import Compared
from metrics.services.comparisons.shown_pairs import topics_of
from metrics.services.comparisons.stored import Answer


@dataclass(frozen=True)
class WeightedPair:
    """The two runs of a comparison with topics weighted by their values of `key`."""

    key: str
    topics: int
    result: WeightedDifference
    confidence: float


def compare_with_weights(answer: Answer, compared: Compared) -> WeightedPair | None:
    """Return the two runs of an answer with weighted topics, None if no weights were requested.

    Raise StatisticsError for more than two runs, InvalidInput for an unknown key, and for a topic
    without a positive number.
    """
    key, entrants, query = answer.query.weights, answer.entrants, answer.query
    if key is None:
        return None
    if compared.pairs.number != 1 or answer.gone:
        message = (
            f"weights={key} needs two runs; found {compared.pairs.runs:,}: name them with runs="
        )
        raise StatisticsError(message, code="too_many_runs", pointer="weights")

    topics = topics_of(answer, compared)
    weights = topic_weights(entrants.qrels, key, entrants.scores, topics)
    first, second = (int(side[0]) for side in compared.pairs.indices())
    result = weighted_difference(
        compared.values[first], compared.values[second], weights, query.options
    )

    return WeightedPair(key, len(topics), result, query.options.confidence)
