"""Tests and corrections against SciPy, and where SciPy has no answer."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from metrics.engine.errors import StatisticsError
from metrics.engine.significance import CORRECTIONS, paired_t
from metrics.engine.significance.pairs import all_pairs, baseline_pairs


def test_paired_t_agrees_with_scipy() -> None:
    values = np.random.default_rng(1).random((12, 50))
    first, second = all_pairs(12)
    ours = paired_t.compare(values, first, second)
    for index, (i, j) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        theirs = stats.ttest_rel(values[i], values[j])
        interval = theirs.confidence_interval(0.95)
        assert ours.statistic[index] == pytest.approx(theirs.statistic, abs=1e-12)
        assert ours.p_value[index] == pytest.approx(theirs.pvalue, abs=1e-12)
        assert ours.low[index] == pytest.approx(interval.low, abs=1e-12)
        assert ours.high[index] == pytest.approx(interval.high, abs=1e-12)


def test_identical_runs_have_p_one() -> None:
    values = np.tile(np.random.default_rng(2).random(20), (2, 1))
    result = paired_t.compare(values, *all_pairs(2))
    assert (result.p_value[0], result.difference[0], result.statistic[0]) == (1.0, 0.0, 0.0)


def test_a_constant_difference_has_p_zero_and_no_statistic() -> None:
    base = np.random.default_rng(3).random(20)
    result = paired_t.compare(np.vstack([base + 0.25, base]), *all_pairs(2))
    assert result.p_value[0] == 0.0
    assert np.isnan(result.statistic[0])
    assert result.low[0] == pytest.approx(0.25)


def test_a_pair_does_not_depend_on_the_other_runs() -> None:
    values = np.array([[1.0, 2, 3, 4], [2.0, 2, 5, 9], [1e18, 0, 0, 0]])
    alone = paired_t.compare(values[:2], *all_pairs(2))
    beside = paired_t.compare(values, *all_pairs(3))
    assert beside.p_value[0] == alone.p_value[0]
    assert alone.p_value[0] == pytest.approx(stats.ttest_rel(values[0], values[1]).pvalue)


def test_huge_values_do_not_overflow() -> None:
    values = np.array([[1e300, 2e300, 1e300], [3e300, 1e300, 2e300]])
    result = paired_t.compare(values, *all_pairs(2))
    assert np.isfinite([result.difference, result.low, result.high, result.p_value]).all()


def test_one_topic_is_not_enough() -> None:
    with pytest.raises(StatisticsError, match="at least 2"):
        paired_t.compare(np.ones((2, 1)), *all_pairs(2))


def test_baseline_pairs_leave_the_baseline_out() -> None:
    first, second = baseline_pairs(4, 2)
    assert (first.tolist(), second.tolist()) == ([0, 1, 3], [2, 2, 2])


def test_holm_agrees_with_a_hand_worked_family() -> None:
    """Four sorted p of .01 .02 .03 .04 become .04 .06 .06 .06."""
    adjusted = CORRECTIONS["holm"](np.array([0.03, 0.01, 0.04, 0.02]))
    assert adjusted.tolist() == pytest.approx([0.06, 0.04, 0.06, 0.06])


@pytest.mark.parametrize("name", list(CORRECTIONS))
def test_corrections_never_lower_a_p_value_and_stay_below_one(name: str) -> None:
    p_values = np.random.default_rng(4).random(40) ** 3
    adjusted = CORRECTIONS[name](p_values)
    assert (adjusted >= p_values).all()
    assert adjusted.max() <= 1
