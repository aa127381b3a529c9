"""Tests of many runs at once, and of runs on different topics: against SciPy and against formulas written out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats

from metrics.engine.significance import OMNIBUS, TESTS
from metrics.engine.significance.pairs import Matrix, Options, PairedResult, all_pairs
from metrics.engine.significance.studentized_range import critical, tail

RANGES = [(2, 3.0), (3, 10.0), (5, 196.0), (20, 49.0), (100, 4851.0), (10, np.inf)]
# Eighths are exact in binary: values tie for SciPy exactly when they do for us.
EIGHTHS = arrays.arrays(
    np.int64, st.tuples(st.integers(3, 6), st.integers(2, 20)), elements=st.integers(0, 8)
)


def compare(name: str, values: Matrix, **options: object) -> PairedResult:
    return TESTS[name].compare(values, *all_pairs(len(values)), Options(**options))  # type: ignore[arg-type]


def pairs(runs: int) -> list[tuple[int, int, int]]:
    first, second = all_pairs(runs)
    return list(zip(range(len(first)), first.tolist(), second.tolist(), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(("runs", "freedom"), RANGES)
def test_the_studentized_range_agrees_with_scipy(runs: int, freedom: float) -> None:
    q = np.array([0.0, 0.3, 1.0, 2.5, 3.5, 4.0, 5.0, 7.0, 12.0])
    expected = stats.studentized_range.sf(q, runs, freedom)
    np.testing.assert_allclose(tail(q, runs, freedom), expected, atol=1e-7, rtol=1e-6)
    assert critical(0.05, runs, freedom) == pytest.approx(
        stats.studentized_range.isf(0.05, runs, freedom), rel=1e-6
    )


def test_many_values_of_the_studentized_range_are_those_of_each_alone() -> None:
    q = np.abs(np.random.default_rng(1).normal(4, 3, 5000))
    np.testing.assert_allclose(tail(q, 30, 500.0)[::500], tail(q[::500], 30, 500.0), rtol=1e-6)


def test_tukey_takes_its_spread_from_what_runs_and_topics_leave() -> None:
    """Values moved by any amount per topic give the same p; with no topic effect it is nearly SciPy's one-way test."""
    rng = np.random.default_rng(1)
    values = rng.normal(0, 1, (4, 300)) + np.array([[0.0], [0.1], [0.2], [0.0]])
    moved = compare("tukey_hsd", values + 50 * rng.random(300))
    np.testing.assert_allclose(moved.p_value, compare("tukey_hsd", values).p_value, rtol=1e-8)
    theirs = stats.tukey_hsd(*values)
    low = theirs.confidence_interval().low
    for index, i, j in pairs(4):
        assert moved.p_value[index] == pytest.approx(theirs.pvalue[i, j], abs=0.02)
        assert moved.low[index] == pytest.approx(low[i, j], abs=0.01)


def test_two_runs_make_tukey_the_paired_t_test() -> None:
    values = np.random.default_rng(2).random((2, 30))
    tukey, student = compare("tukey_hsd", values), compare("paired_t", values)
    assert tukey.p_value[0] == pytest.approx(student.p_value[0], abs=1e-7)
    assert (tukey.low[0], tukey.high[0]) == pytest.approx(
        (student.low[0], student.high[0]), rel=1e-6
    )


def test_two_runs_make_the_analysis_of_variance_the_squared_paired_t_test() -> None:
    values = np.random.default_rng(3).random((2, 30))
    anova, student = OMNIBUS["anova"](values), compare("paired_t", values)
    assert anova.statistic == pytest.approx(student.statistic[0] ** 2)
    assert anova.p_value == pytest.approx(student.p_value[0])


@pytest.mark.parametrize(("runs", "topics"), [(3, 12), (6, 40), (40, 8), (3, 2)])
def test_epsilons_are_those_of_the_covariances_of_the_runs(runs: int, topics: int) -> None:
    """By the eigenvalues of the covariances between orthonormal contrasts, as Greenhouse and Geisser define epsilon."""
    rng = np.random.default_rng((5, runs))
    values = rng.normal(0, 1, (runs, topics)) * rng.uniform(0.2, 3, (runs, 1)) + rng.normal(
        0, 2, topics
    )
    contrasts = np.linalg.svd(np.eye(runs) - 1 / runs)[0][:, : runs - 1].T
    roots = np.linalg.eigvalsh(contrasts @ np.cov(values) @ contrasts.T)
    epsilon = roots.sum() ** 2 / ((runs - 1) * (roots**2).sum())
    result = OMNIBUS["anova"](values)
    assert result.sphericity is not None
    assert result.sphericity.greenhouse_geisser == pytest.approx(epsilon)
    by_epsilon = {
        name: stats.f.sf(result.statistic, e * (runs - 1), e * (runs - 1) * (topics - 1))
        for name, e in (
            ("corrected", epsilon),
            ("plain", 1.0),
            ("theirs", result.sphericity.huynh_feldt),
        )
    }
    assert result.p_value == pytest.approx(by_epsilon["corrected"])
    assert result.sphericity.p_uncorrected == pytest.approx(by_epsilon["plain"])
    assert result.sphericity.p_huynh_feldt == pytest.approx(by_epsilon["theirs"])
    rest = (runs - 1) * (topics - 1 - (runs - 1) * epsilon)
    if rest > 1e-9:
        larger = (topics * (runs - 1) * epsilon - 2) / rest
        assert result.sphericity.huynh_feldt == pytest.approx(min(max(larger, 1 / (runs - 1)), 1.0))
    assert 1 / (runs - 1) <= result.sphericity.huynh_feldt <= 1


def test_runs_of_unequal_spread_keep_the_level_of_the_analysis_of_variance() -> None:
    """Equal means: with epsilon 5 per cent are found to differ, without it more."""
    collections, spread = 1000, np.array([5.0, 1.0, 1.0, 1.0, 1.0] * 2)[:, None]
    p_value, plain = np.empty(collections), np.empty(collections)
    for number in range(collections):
        result = OMNIBUS["anova"](
            np.random.default_rng((6, number)).normal(0, 1, (10, 50)) * spread
        )
        assert result.sphericity is not None
        p_value[number], plain[number] = result.p_value, result.sphericity.p_uncorrected
    error = np.sqrt(0.05 * 0.95 / collections)
    assert abs(np.mean(p_value < 0.05) - 0.05) < 3 * error
    assert np.mean(plain < 0.05) > 0.05 + 5 * error


def test_sums_of_squares_add_up_to_the_whole_variation() -> None:
    values = np.random.default_rng(4).random((6, 30)) * 40
    anova = OMNIBUS["anova"](values)
    assert sum(source.squares for source in anova.sources) == pytest.approx(
        values.var() * values.size
    )
    assert sum(source.freedom for source in anova.sources) == values.size - 1


def test_differences_without_a_residual_are_not_tested() -> None:
    values = np.arange(5.0)[:, None] + np.arange(10.0)
    anova, tukey = OMNIBUS["anova"](values), compare("tukey_hsd", values)
    assert (anova.statistic, np.isnan(anova.p_value), anova.effect) == (None, True, 1.0)
    assert np.isnan([tukey.p_value, tukey.statistic, tukey.low, tukey.high]).all()


def naive_randomised_tukey(values: Matrix, resamples: int) -> Matrix:
    """The ranges of the means, every topic shuffled on its own by NumPy."""
    rng = np.random.default_rng(77)
    shuffled = (rng.permuted(values, axis=0).mean(axis=1) for _ in range(resamples))
    return np.array([means.max() - means.min() for means in shuffled])


@pytest.mark.parametrize("decimals", [1, 4])
def test_randomised_tukey_agrees_with_shuffling_by_numpy(decimals: int) -> None:
    rng = np.random.default_rng(5)
    values = np.round(
        np.clip(rng.random((6, 20)) + np.linspace(0, 0.3, 6)[:, None], 0, 1), decimals
    )
    ours, ranges = (
        compare("randomised_tukey_hsd", values, resamples=20_000),
        naive_randomised_tukey(values, 5_000),
    )
    for index, difference in enumerate(np.abs(ours.difference)):
        expected = (ranges >= difference - 1e-9).mean()
        assert ours.p_value[index] == pytest.approx(expected, abs=0.03)
    half_width = (ours.high[0] - ours.low[0]) / 2
    assert half_width == pytest.approx(np.quantile(ranges, 0.95), rel=0.03)


@given(EIGHTHS)
def test_friedman_agrees_with_scipy(eighths: Matrix) -> None:
    values = eighths / 8
    ours = OMNIBUS["friedman"](values)
    if (values == values[0]).all():
        assert ours.p_value == 1.0
    else:
        theirs = stats.friedmanchisquare(*values)
        assert ours.statistic == pytest.approx(theirs.statistic, abs=1e-9)
        assert ours.p_value == pytest.approx(theirs.pvalue, abs=1e-12)


def test_runs_in_one_order_on_every_topic_have_a_concordance_of_one() -> None:
    values = np.arange(10.0)[:, None] * np.ones(7) + np.linspace(0, 0.5, 7)
    assert OMNIBUS["friedman"](values).effect == pytest.approx(1.0)


@given(EIGHTHS)
def test_kruskal_wallis_agrees_with_scipy(eighths: Matrix) -> None:
    values = eighths / 8
    ours = OMNIBUS["kruskal_wallis"](values)
    if np.ptp(values) == 0:
        assert ours.p_value == 1.0
    else:
        theirs = stats.kruskal(*values)
        assert ours.statistic == pytest.approx(theirs.statistic, abs=1e-9)
        assert ours.p_value == pytest.approx(theirs.pvalue, abs=1e-12)


@given(EIGHTHS)
def test_post_hoc_tests_of_friedman_follow_their_formulas(eighths: Matrix) -> None:
    """Rank sums by SciPy; the critical values of the two tests written out as in Demsar (2006) and Conover (1999)."""
    values = eighths / 8
    runs, topics = values.shape
    ranks = stats.rankdata(values, axis=0)
    sums, freedom = ranks.sum(axis=1), (topics - 1) * (runs - 1)
    spread = 2 * (topics * (ranks**2).sum() - (sums**2).sum()) / freedom
    nemenyi, conover = compare("nemenyi", values), compare("conover", values)
    for index, i, j in pairs(runs):
        apart = abs(sums[i] - sums[j])
        if spread > 1e-9:
            assert conover.p_value[index] == pytest.approx(
                2 * stats.t.sf(apart / np.sqrt(spread), freedom), abs=1e-9
            )
        q = apart / topics / np.sqrt(runs * (runs + 1) / (6 * topics)) * np.sqrt(2)
        assert nemenyi.statistic[index] == pytest.approx(np.sign(sums[i] - sums[j]) * q, abs=1e-9)


def test_nemenyi_s_critical_difference_is_the_published_one() -> None:
    """Demsar, JMLR 7, 2006, table 5a: q(0.05) of the Nemenyi test is 2.569 for 4 and 3.164 for 10 classifiers."""
    assert critical(0.05, 4) / np.sqrt(2) == pytest.approx(2.569, abs=5e-4)
    assert critical(0.05, 10) / np.sqrt(2) == pytest.approx(3.164, abs=5e-4)


@pytest.mark.parametrize("topics", [3, 8, 9, 40])
def test_unpaired_tests_agree_with_scipy(topics: int) -> None:
    rng = np.random.default_rng(topics)
    for values in (rng.random((5, topics)), rng.integers(0, 9, (5, topics)) / 8):
        welch, whitney = compare("welch_t", values), compare("mann_whitney", values)
        for index, i, j in pairs(5):
            theirs = stats.ttest_ind(values[i], values[j], equal_var=False)
            assert welch.p_value[index] == pytest.approx(theirs.pvalue, abs=1e-12)
            assert welch.low[index] == pytest.approx(theirs.confidence_interval().low, abs=1e-12)
            u = stats.mannwhitneyu(values[i], values[j])
            assert whitney.p_value[index] == pytest.approx(u.pvalue, abs=1e-12)
            assert whitney.statistic[index] == u.statistic
