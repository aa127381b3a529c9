"""Combinations, orders of systems and how far they agree; and two systems topic by topic."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from metrics.engine.agreement.kendall import rank_correlations
from metrics.engine.agreement.standings import has_ties, standings
from metrics.engine.analysis.differences import differences
from metrics.engine.analysis.what_if import Grid
from metrics.engine.errors import MeasureError
from metrics.engine.judgement.gains import GainMap

STEEP = GainMap.parse("0-1-10-100")
MEANS = st.lists(st.lists(st.integers(0, 4), min_size=6, max_size=6), min_size=1, max_size=5)


def names(grid: Grid) -> list[str]:
    return [measure.name for measure in grid.measures()]


def test_a_grid_is_the_product_of_its_axes() -> None:
    grid = Grid(
        gains=(STEEP, GainMap.parse("exp")), discounts=("jk",), bases=(2.0, 10.0), depths=(10, None)
    )
    assert names(grid) == [
        "nDCG(gains='0-1-10-100',dis='jk')@10",
        "nDCG(gains='0-1-10-100',dis='jk')",
        "nDCG(gains='0-1-10-100',dis='jk',b=10)@10",
        "nDCG(gains='0-1-10-100',dis='jk',b=10)",
        "nDCG(gains='exp',dis='jk')@10",
        "nDCG(gains='exp',dis='jk')",
        "nDCG(gains='exp',dis='jk',b=10)@10",
        "nDCG(gains='exp',dis='jk',b=10)",
    ]


def test_what_a_measure_does_not_have_is_left_out_and_no_combination_comes_twice() -> None:
    grid = Grid(
        families=("CG", "DCG"), discounts=("log2", "session"), bases=(2.0, 4.0), depths=(5,)
    )
    assert names(grid) == ["CG@5", "DCG@5", "DCG(dis='session')@5", "DCG(dis='session',b=4)@5"]


def test_a_grid_beyond_every_measure_is_refused_before_it_is_made() -> None:
    with pytest.raises(MeasureError, match="at most 50 combinations"):
        Grid(depths=tuple(range(1, 1000)), bases=tuple(range(2, 900)), discounts=("jk",)).measures()


@given(MEANS, st.booleans())
def test_standings_are_competition_ranks(rows: list[list[int]], lower: bool) -> None:
    means = np.array(rows, np.float64)
    expected = stats.rankdata(means if lower else -means, method="min", axis=1)
    assert standings(means, np.full(len(rows), lower)).tolist() == expected.tolist()


@given(MEANS, st.booleans())
def test_one_combination_has_the_ranks_that_it_has_among_several(
    rows: list[list[int]], lower: bool
) -> None:
    # Within the tolerance, beyond it, and some without a mean.
    shifts = np.resize(np.array([0.0, 4e-13, 8e-13, 2e-12, np.nan]), len(rows[0]))
    means, lowers = np.array(rows, np.float64) + shifts, np.full(len(rows) + 1, lower)
    together = standings(np.vstack([means, means[:1]]), lowers)
    assert [standings(row[None, :], lowers[:1])[0].tolist() for row in means] == together[
        :-1
    ].tolist()


def test_systems_without_a_mean_share_the_last_place() -> None:
    ranks = standings(
        np.array([[0.5, np.nan, 0.7, np.nan], [0.5, np.nan, 0.7, 9.0]]), np.array([False, True])
    )
    assert ranks.tolist() == [[2, 3, 1, 3], [1, 4, 2, 3]]
    assert has_ties(ranks).tolist() == [True, False]


@given(MEANS)
def test_correlations_are_kendall_s_tau_b(rows: list[list[int]]) -> None:
    means = np.array(rows, np.float64)
    ours = rank_correlations(standings(means, np.zeros(len(rows), np.bool_)))
    for i, first in enumerate(means):
        for j, second in enumerate(means):
            expected = (
                stats.kendalltau(first, second).statistic
                if np.ptp(first) and np.ptp(second)
                else math.nan
            )
            assert ours[i, j] == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_opposite_orders_and_orders_of_nothing() -> None:
    means = np.array([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]])
    assert rank_correlations(standings(means, np.array([False, False]))).tolist() == [
        [1, -1],
        [-1, 1],
    ]
    assert rank_correlations(standings(means, np.array([False, True]))).tolist() == [[1, 1], [1, 1]]
    for systems in (0, 1):
        ranks = standings(means[:, :systems], np.array([False, False]))
        assert np.isnan(rank_correlations(ranks)).all()
        assert not has_ties(ranks).any()


def test_wins_ties_and_losses_are_counted_over_topics_with_both_values() -> None:
    a, b = np.array([0.5, 0.1 + 0.2, 0.0, np.nan, 1.0]), np.array([0.4, 0.3, 0.2, 0.5, np.nan])
    result = differences(a, b)
    np.testing.assert_allclose(result.values, [0.1, 0.0, -0.2, np.nan, np.nan])
    assert (result.wins, result.ties, result.losses, result.undefined) == (1, 1, 1, 2)
    turned = differences(a, b, lower_is_better=True)
    assert (turned.wins, turned.losses) == (1, 1)
    assert turned.values[0] == result.values[0]


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=20), st.booleans())
def test_every_topic_is_won_tied_or_lost(pairs: list[tuple[float, float]], lower: bool) -> None:
    a, b = np.array([x for x, _ in pairs]), np.array([y for _, y in pairs])
    result, turned = (
        differences(a, b, lower_is_better=lower),
        differences(b, a, lower_is_better=lower),
    )
    assert result.wins + result.ties + result.losses == len(pairs)
    assert (result.wins, result.ties, result.losses) == (turned.losses, turned.ties, turned.wins)
