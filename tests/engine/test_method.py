"""min F' of two systems with replicates, against the crossed analysis of sessions and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from metrics.engine.errors import StatisticsError
from metrics.engine.significance.crossed import contrast
from metrics.engine.significance.replicates import min_f


@pytest.mark.parametrize(("a", "b", "topics"), [(3, 3, 30), (2, 5, 12), (4, 2, 50)])
def test_min_f(a: int, b: int, topics: int) -> None:
    rng = np.random.default_rng(a * topics + b)
    topic = rng.normal(size=topics)
    first, second = (
        topic + rng.normal(size=(n, topics)) * 0.5 + rng.normal(size=(n, 1)) * 0.2 + shift
        for n, shift in ((a, 0.4), (b, 0.0))
    )
    result = min_f(first, second, 0.95)

    # Replicates nested in systems are as searchers who used one system each.
    sessions = contrast(
        np.concatenate([first.ravel(), second.ravel()]),
        np.repeat([0, 1], [a * topics, b * topics]),
        np.tile(np.arange(topics), a + b),
        np.repeat(np.arange(a + b), topics),
        0.95,
    )
    analysis = sessions.analysis
    assert result.statistic == pytest.approx(analysis.statistic)
    assert result.freedom == pytest.approx(analysis.freedom[1])
    assert result.p_value == pytest.approx(analysis.p_value)
    assert (result.low, result.high) == pytest.approx((sessions.low, sessions.high))

    paired = stats.ttest_rel(first.mean(axis=0), second.mean(axis=0))
    welch = stats.ttest_ind(first.mean(axis=1), second.mean(axis=1), equal_var=False)
    assert result.by_topics == pytest.approx(paired.statistic**2)
    assert result.by_replicates == pytest.approx(welch.statistic**2)


def test_without_spread() -> None:
    equal = min_f(np.full((2, 3), 0.5), np.full((2, 3), 0.5), 0.95)
    assert (equal.difference, equal.low, equal.high, equal.p_value) == (0.0, 0.0, 0.0, 1.0)
    constant = min_f(np.full((2, 3), 0.5), np.full((3, 3), 0.4), 0.95)
    assert constant.difference == pytest.approx(0.1)
    assert np.isnan([constant.low, constant.p_value]).all()

    # Replicates that do not differ leave the paired t test.
    rng = np.random.default_rng(5)
    one, other = rng.random(20), rng.random(20)
    same = min_f(np.tile(one, (3, 1)), np.tile(other, (2, 1)), 0.95)
    assert same.p_value == pytest.approx(stats.ttest_rel(one, other).pvalue)
    with pytest.raises(StatisticsError, match="at least 2 replicates"):
        min_f(np.ones((1, 3)), np.ones((2, 3)), 0.95)
