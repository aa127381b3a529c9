"""The test of two methods with replicates, in words."""

from __future__ import annotations

import numpy as np

from metrics.engine.significance.replicates import MethodTest
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
