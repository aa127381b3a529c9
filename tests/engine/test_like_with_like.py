"""Ranks compare like with like: equal means tie, and only means over the same topics are ranked."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.engine.agreement.intervals import rank_intervals
from metrics.engine.agreement.kendall import rank_correlations
from metrics.engine.agreement.standings import TIE, comparable, standings
from metrics.services.boards.fair_order import fair_order
from metrics.services.values.judged_views import Mean

UP = np.array([False])


@given(
    st.lists(st.floats(0, 1), min_size=2, max_size=60),
    st.randoms(use_true_random=False),
    st.booleans(),
)
def test_the_same_values_in_another_order_tie(
    values: list[float], random: object, lower: bool
) -> None:
    rng = np.random.default_rng(len(values))
    means = np.array([[rng.permutation(values).mean() for _ in range(8)]])
    assert set(standings(means, np.array([lower]))[0].tolist()) == {1}


def test_a_long_row_of_small_steps_is_not_one_tie() -> None:
    means = 0.5 - np.arange(40) * TIE * 0.4
    ranks = standings(means[None, :], UP)[0].tolist()
    assert ranks[:4] == [1, 1, 1, 4]
    for first, last in pairwise(sorted({ranks.index(rank) for rank in ranks})):
        assert means[first] - means[last] > TIE >= means[first] - means[last - 1]


@given(
    st.lists(
        st.sampled_from([0.5, 0.5 - TIE / 2, 0.5 - TIE, 0.5 - 2 * TIE, 0.25, np.nan]), max_size=9
    ),
    st.booleans(),
)
def test_one_combination_has_the_ranks_that_it_has_among_others(
    values: list[float], lower: bool
) -> None:
    means = np.array(values, np.float64).reshape(1, -1)
    alone = standings(means, np.array([lower]))
    assert (
        standings(np.vstack([means, means]), np.array([lower, lower])).tolist()
        == [alone[0].tolist()] * 2
    )


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e6])
def test_differences_that_mean_something_never_tie(size: float) -> None:
    means = size * np.array([[1.0, 1.0 + 1e-2, 1.0 - 1e-2]])
    assert standings(means, UP).tolist() == [[2, 1, 3]]


def test_rank_intervals_of_equal_values_are_one_rank() -> None:
    rng = np.random.default_rng(3)
    values = np.tile(rng.random(50), (5, 1))
    values[4] *= 0.5
    intervals = rank_intervals(values + np.array([0, 1e-16, 2e-16, 0, 0])[:, None])
    assert (intervals.rank.tolist(), intervals.low.tolist(), intervals.high.tolist()) == (
        [1, 1, 1, 1, 5],
    ) * 3


def no_sets(places: list[int]) -> list[bytes]:
    raise AssertionError("nobody has to look which topics it is")


def test_the_largest_number_of_topics_is_ranked() -> None:
    assert comparable([10, 1, 10, 0], 10, no_sets) == [True, False, True, False]
    assert comparable([0, 0], 10, no_sets) == [False, False]
    assert comparable([3], 10, no_sets) == [True]
    assert comparable([], 10, no_sets) == []


def test_as_many_topics_are_not_the_same_topics() -> None:
    sets = [b"x", b"y", b"y", b"x", b"y"]
    result = comparable([9, 9, 9, 9, 9], 10, lambda places: [sets[place] for place in places])
    assert result == [False, True, True, False, True]
    first = comparable([9, 9, 2], 10, lambda places: [sets[place] for place in places])
    assert first == [True, False, False]


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 4)), min_size=1, max_size=12),
    st.booleans(),
)
def test_no_mean_over_fewer_topics_stands_above_one_over_more(
    entries: list[tuple[int, int]], lower: bool
) -> None:
    means: dict[int, Mean] = {
        pk: (value / 20 if topics else None, topics) for pk, (value, topics) in enumerate(entries)
    }
    order = fair_order(means, 4, lambda ids: dict.fromkeys(ids, b""), lower_first=lower)
    listed = [*(pk for pk, _ in order.ranked), *(pk for pk, _ in order.below)]
    assert sorted(listed) == list(means)
    assert [means[pk][1] for pk in listed] == sorted(
        (topics for _, topics in means.values()), reverse=True
    )
    ranked = [mean for _, mean in order.ranked]
    assert ranked == sorted(ranked, reverse=not lower)
    assert {means[pk][1] for pk, _ in order.ranked} <= {order.topics}
    expected = [
        1 + sum(other < mean if lower else other > mean for other in ranked) for mean in ranked
    ]
    assert order.ranks == expected


def test_correlations_take_the_runs_that_both_orders_rank() -> None:
    ranks = np.array([[1, 2, 3, np.nan], [1, 2, np.nan, 3], [2, 1, 3, 4]])
    tau = rank_correlations(ranks)
    assert tau[0, 1] == 1.0
    assert tau[0, 2] == pytest.approx(1 / 3)
    assert tau[1, 2] == pytest.approx(1 / 3)
    alone = rank_correlations(np.array([[1, np.nan, np.nan], [1, 2, 3]]))
    assert np.isnan(alone[0, 1])
    assert alone[1, 1] == 1.0
