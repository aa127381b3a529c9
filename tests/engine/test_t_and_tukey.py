"""The paired t test and Tukey's HSD, both: the larger p of SciPy and statsmodels, and an interval that agrees."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from metrics.engine.significance import TESTS
from metrics.engine.significance.families import Pairs, Rule, compare_family
from metrics.engine.significance.pairs import Matrix, Options
from tests.engine.test_real_scores import matrix

RUNS = 8


def residual(values: Matrix) -> tuple[float, int]:
    """The residual variance of a two-way layout by least squares, and its degrees of freedom."""
    runs, topics = values.shape
    run, topic = np.indices(values.shape)
    design = np.column_stack(
        [np.ones(values.size)]
        + [(run == at).ravel() for at in range(1, runs)]
        + [(topic == at).ravel() for at in range(1, topics)]
    ).astype(np.float64)
    squares = np.linalg.lstsq(design, values.ravel())[1]
    freedom = (runs - 1) * (topics - 1)
    return float(squares[0]) / freedom, freedom


def holm(p_values: Matrix) -> Matrix:
    adjusted: Matrix = multipletests(p_values, method="holm")[1]
    return adjusted


def drawn(folder: Path, name: str, topics: int) -> Matrix:
    _, values = matrix(folder, name)
    rng = np.random.default_rng(topics)
    runs = rng.choice(len(values), RUNS, replace=False)
    return values[runs][:, rng.choice(values.shape[1], topics, replace=False)]


@pytest.mark.slow
@pytest.mark.real_data
@pytest.mark.parametrize(
    ("name", "topics"), [("adhoc6_ap.csv", 10), ("web2011_err20.csv", 25), ("adhoc7_rr.csv", 50)]
)
def test_p_is_the_larger_one_of_both_tests(real_data: Path, name: str, topics: int) -> None:
    values = drawn(real_data, name, topics)
    first, second = Pairs(RUNS).indices()
    student = holm(stats.ttest_rel(values[first], values[second], axis=1).pvalue)
    variance, freedom = residual(values)
    q = np.abs((values[first] - values[second]).mean(axis=1)) / np.sqrt(variance / topics)
    tukey = stats.studentized_range.sf(q, RUNS, freedom)
    result = TESTS["t_and_tukey"].compare(values, first, second, Options())
    # Tukey's p is right to 1e-7; SciPy's integral to about as much.
    np.testing.assert_allclose(result.p_value, np.maximum(student, tukey), atol=3e-7)
    assert 0 < np.count_nonzero(student > tukey) < len(first)


@pytest.mark.slow
@pytest.mark.real_data
@pytest.mark.parametrize("topics", [10, 50])
def test_against_a_baseline_t_with_the_common_spread_takes_tukey_s_place(
    real_data: Path, topics: int
) -> None:
    values = drawn(real_data, "web2011_ndcg20.csv", topics)
    first, second = Pairs(RUNS, (3,)).indices()
    student = holm(stats.ttest_rel(values[first], values[second], axis=1).pvalue)
    variance, freedom = residual(values)
    t = (values[first] - values[second]).mean(axis=1) / np.sqrt(2 * variance / topics)
    common = holm(2 * stats.t.sf(np.abs(t), freedom))
    result = TESTS["t_and_tukey"].compare(values, first, second, Options())
    np.testing.assert_allclose(result.p_value, np.maximum(student, common), rtol=1e-9)


@pytest.mark.parametrize("baselines", [(), (0,), (5, 0)])
@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.2])
def test_the_interval_leaves_out_zero_where_the_pair_is_significant(
    baselines: tuple[int, ...], alpha: float
) -> None:
    significant = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        values = rng.random((8, 20)) * rng.random((8, 1)) + 0.4 * rng.random((8, 1))
        options = Options(confidence=1 - alpha)
        family = compare_family(
            values, Pairs(8, baselines), "t_and_tukey", Rule(alpha=alpha), options
        )
        result = family.result
        outside = (result.low > 0) | (result.high < 0)
        assert outside.tolist() == family.significant.tolist()
        significant += int(outside.sum())
    assert 40 < significant < 40 * family.size - 40


def test_of_two_runs_it_is_the_paired_t_test() -> None:
    values = np.random.default_rng(1).random((2, 12)) + np.array([[0.1], [0.0]])
    pair = Pairs(2).indices()
    both, student = (
        TESTS[name].compare(values, *pair, Options()) for name in ("t_and_tukey", "paired_t")
    )
    for name in ("statistic", "p_value", "low", "high"):
        np.testing.assert_allclose(getattr(both, name), getattr(student, name), rtol=1e-6)


def test_runs_without_spread_have_no_p_and_identical_ones_do_not_differ() -> None:
    base = np.random.default_rng(2).random(20)
    for values in (
        np.vstack([base, base, base + 0.25]),
        np.vstack([base, base, base + 0.25, base[::-1]]),
    ):
        result = TESTS["t_and_tukey"].compare(values, *Pairs(len(values)).indices(), Options())
        assert (result.p_value[0], result.low[0] <= 0 <= result.high[0]) == (1.0, True)
        assert np.isnan([result.p_value[1], result.low[1], result.statistic[1]]).all()
