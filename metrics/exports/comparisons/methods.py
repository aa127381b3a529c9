"""What two runs have beside the usual tests, in words: replicates and weighted topics."""

from __future__ import annotations

import numpy as np

from metrics.engine.significance.replicates import MethodTest
from metrics.services.comparisons.weights import WeightedPair
from metrics.tables import probability_words, signed, statistic


def method_words(test: MethodTest) -> str:
    """Return min F' with its p, and the difference with its interval."""
    if np.isnan(test.p_value):
        return "without any spread there is no test"

    p_value = probability_words(test.p_value)
    ends = f"{signed(test.low)} to {signed(test.high)}"
    if np.isnan(test.statistic):
        return f"no difference and no spread, {p_value}"
    return (
        f"min F'(1, {test.freedom:.1f}) = {statistic(test.statistic)}, {p_value}; difference "
        f"{signed(test.difference)} ({ends})"
    )


def weighted_words(pair: WeightedPair) -> str:
    """Return the weighted means, their difference, and how much the weights leave of the topics."""
    result = pair.result
    interval = "no interval"
    if not np.isnan(result.low):
        interval = (
            f"{100 * pair.confidence:g}% interval {signed(result.low)} to {signed(result.high)}"
        )

    return (
        f"Weighted by {pair.key}: {result.mean_a:.4f} and {result.mean_b:.4f}, difference "
        f"{signed(result.difference)}, {interval}, {probability_words(result.p_value)} by the "
        f"randomisation test. The weights leave as much information as "
        f"{result.effective_topics:.1f} of {pair.topics:,} topics."
    )
