"""What tests of pairs find where means are equal and shapes are not: the figures of docs/statistics.md."""

from __future__ import annotations

import numpy as np
import pytest

from metrics.engine.significance import TESTS
from metrics.engine.significance.pairs import DEFAULTS

PAIRS = 2_000
REJECTED = {
    50: {"paired_t": 0.06, "wilcoxon": 0.10, "sign": 0.16},
    200: {"paired_t": 0.05, "wilcoxon": 0.21, "sign": 0.55},
}


@pytest.mark.parametrize("topics", list(REJECTED))
def test_ranks_and_signs_find_differences_that_are_none_of_means(topics: int) -> None:
    rng = np.random.default_rng(1)
    values = np.concatenate([rng.beta(1, 4, (PAIRS, topics)), rng.beta(8, 32, (PAIRS, topics))])
    first = np.arange(PAIRS)
    for test, expected in REJECTED[topics].items():
        rejected = (
            TESTS[test].compare(values, first, first + PAIRS, DEFAULTS).p_value < 0.05
        ).mean()
        # Three standard errors, and half a per cent for the rounding of what is documented.
        margin = 3 * np.sqrt(expected * (1 - expected) / PAIRS) + 0.005
        assert rejected == pytest.approx(expected, abs=margin), test
