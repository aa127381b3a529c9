"""Disagreement of a topic's order with the overall one, against pairs counted one by one."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from metrics.engine.agreement.discordance import discordance
from metrics.engine.significance.pairs import Matrix

VALUES = st.one_of(st.integers(0, 4).map(float), st.just(math.nan))


def counted(values: Matrix, ranks: Matrix, topic: int) -> float:
    """Goodman and Kruskal's definition."""
    same = other = 0
    for a, b in itertools.combinations(range(len(ranks)), 2):
        product = (values[a, topic] - values[b, topic]) * (ranks[b] - ranks[a])
        same += product > 0
        other += product < 0
    return other / (same + other) if same + other else math.nan


@given(st.integers(1, 9).flatmap(lambda n: st.tuples(
    st.lists(st.lists(VALUES, min_size=3, max_size=3), min_size=n, max_size=n),
    st.lists(VALUES, min_size=n, max_size=n),
)))  # fmt: skip
def test_it_counts_pairs(example: tuple[list[list[float]], list[float]]) -> None:
    values, ranks = np.array(example[0]), np.array(example[1])
    result = discordance(values, ranks)
    np.testing.assert_allclose(result, [counted(values, ranks, topic) for topic in range(3)])


def test_without_ties_it_is_kendalls_tau() -> None:
    rng = np.random.default_rng(1)
    values, ranks = rng.random((133, 7)), rng.permutation(133) + 1.0
    expected = [(1 - stats.kendalltau(-column, ranks).statistic) / 2 for column in values.T]
    np.testing.assert_allclose(discordance(values, ranks), expected)


def test_values_that_differ_by_rounding_tie() -> None:
    values = np.array([[0.1 + 0.2], [0.3], [0.1]])
    assert discordance(values, np.array([2.0, 1.0, 3.0]))[0] == 0.0


@pytest.mark.parametrize(("systems", "topics"), [(0, 3), (1, 3), (4, 0)])
def test_nothing_to_compare(systems: int, topics: int) -> None:
    result = discordance(np.zeros((systems, topics)), np.arange(1.0, systems + 1))
    assert result.shape == (topics,)
    assert np.isnan(result).all()
