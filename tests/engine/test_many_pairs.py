"""What is computed for hundreds of thousands of pairs at once: what NumPy and Holm's definition give one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import special, stats

from metrics.engine.agreement.intervals import rank_intervals
from metrics.engine.agreement.standings import standings
from metrics.engine.arrays import Floats
from metrics.engine.significance.corrections import holm
from metrics.engine.significance.families import Pairs, Rule, compare_family, separate
from metrics.engine.significance.moments import means_and_errors, moments_of, ties_of
from metrics.engine.significance.pairs import Matrix, Options, all_pairs, noise_of
from metrics.engine.significance.resampling import Plan, draw_weights, resampled_sums
from metrics.engine.significance.step_down import holm_of, significant_by_holm
from metrics.engine.significance.verdicts import adjust

TENTHS = arrays.arrays(
    np.int64, st.tuples(st.integers(2, 7), st.integers(2, 20)), elements=st.integers(0, 10)
)
# Around the sizes at which NumPy adds up in another way.
TOPICS = (2, 7, 8, 9, 17, 50, 127, 128, 129, 250, 263, 1000, 2001)


def check_moments(values: Matrix) -> None:
    """Means and errors have NumPy's bits; skewness is equal to rounding."""
    first, second = all_pairs(len(values))
    largest = np.abs(values).max(axis=1)
    scale = np.maximum(largest[first], largest[second])
    scale[scale == 0] = 1.0
    differences = (values[first] - values[second]) / scale[:, None]
    mean, topics = differences.mean(axis=1), values.shape[1]
    centred = differences - mean[:, None]
    error = np.sqrt(np.square(centred).sum(axis=1) / (topics - 1) / topics)
    high, low = differences.max(axis=1), differences.min(axis=1)
    moments = moments_of(values, first, second)
    noise = 4 * np.finfo(np.float64).eps
    np.testing.assert_array_equal(moments.mean, np.where(np.abs(mean) <= 1e-12, 0, mean) * scale)
    np.testing.assert_array_equal(moments.error, np.where(high - low <= noise, 0, error) * scale)
    spread = centred.std(axis=1)
    known = spread > 1e-12
    expected = (centred[known] ** 3).mean(axis=1) / spread[known] ** 3
    np.testing.assert_allclose(moments.skewness[known], expected, atol=1e-9)
    bound = noise_of(values, first, second)[:, None]
    ties = np.count_nonzero(np.abs(values[first] - values[second]) <= bound, axis=1)
    np.testing.assert_array_equal(ties_of(values, first, second), ties)


@given(TENTHS, st.sampled_from([0.1, 1.0, 1e300, 1e-300]))
def test_moments_are_those_of_numpy(tenths: Matrix, unit: float) -> None:
    check_moments(tenths * unit)


@pytest.mark.parametrize("topics", TOPICS)
def test_moments_of_many_topics_are_those_of_numpy(topics: int) -> None:
    rng = np.random.default_rng(topics)
    values = rng.random((5, topics))
    # A run that is another one but for rounding, one with the same difference on every topic, and
    # one of huge gains.
    same = values[0] * (1 + rng.choice([-1, 0, 1], topics) * 2.0**-52)
    check_moments(np.vstack([values, same, values[1] + 0.25, 1e200 * values[2]]))


@pytest.mark.parametrize("topics", [5, 50, 1000])
def test_errors_by_a_product_of_matrices_are_those_of_the_differences(topics: int) -> None:
    """Runs that are alike, equal in the mean, huge, tiny or far from zero keep the digits of a pass over differences."""
    rng = np.random.default_rng(topics)
    values = rng.random((20, topics))
    values[1] = values[0] + 1e-7 * rng.random(topics)
    values[2] = values[0][::-1]
    values[3] = 0.25 + values[0]
    values[4] = values[0]
    values[5] = 1e6 + 1e-3 * values[5]
    values[6] = 1e6 + 1e-3 * values[6]
    for rows in (values, values * 1e-200, np.vstack([values, 1e200 * values[7:9]])):
        first, second = all_pairs(len(rows))
        exact = moments_of(rows, first, second)
        mean, error = means_and_errors(rows, first, second)
        np.testing.assert_allclose(error, exact.error, rtol=1e-12)
        assert (np.abs(mean - exact.mean) <= 1e-12 * exact.error).all()


def check_separated(values: Matrix, alpha: float) -> None:
    """Verdicts, tiers and cautions are those of the family with a p for each pair."""
    for test in ("paired_t", "t_and_tukey"):
        _check_separated(values, test, alpha)


def _check_separated(values: Matrix, test: str, alpha: float) -> None:
    family = compare_family(values, Pairs(len(values)), test, Rule(alpha=alpha))
    result = separate(values, test, Rule(alpha=alpha))
    np.testing.assert_array_equal(result.verdicts.higher, family.verdicts.higher)
    np.testing.assert_array_equal(result.verdicts.withheld, family.verdicts.withheld)
    assert (result.size, result.cautions) == (family.size, family.result.cautions)
    assert (result.tiers is None) == (family.tiers is None)
    if result.tiers and family.tiers:
        assert result.tiers.tier.tolist() == family.tiers.tier.tolist()
        assert result.tiers.groups == family.tiers.groups


@given(TENTHS, st.sampled_from([0.001, 0.05, 0.3, 0.9]))
def test_separated_pairs_of_values_that_tie_are_those_of_the_family(
    tenths: Matrix, alpha: float
) -> None:
    check_separated(tenths / 10, alpha)


@given(
    st.integers(0, 2**32),
    st.integers(2, 40),
    st.integers(2, 60),
    st.floats(0, 0.5),
    st.floats(0.001, 0.9),
)
def test_separated_pairs_are_those_of_the_family(
    seed: int, runs: int, topics: int, apart: float, alpha: float
) -> None:
    rng = np.random.default_rng(seed)
    check_separated(rng.random((runs, topics)) + apart * rng.random((runs, 1)), alpha)


@given(
    st.integers(0, 2**32),
    st.integers(1, 60),
    st.integers(1, 300),
    st.floats(0, 8),
    st.floats(0.001, 0.9),
)
def test_holm_by_critical_values_is_holm_by_p(
    seed: int, freedom: int, pairs: int, largest: float, alpha: float
) -> None:
    rng = np.random.default_rng(seed)
    statistic = np.round(rng.normal(0, 1, pairs) * largest, rng.integers(1, 4))
    statistic[rng.random(pairs) < 0.05] = np.nan
    adjusted = adjust(2 * special.stdtr(freedom, -np.abs(statistic)), holm)
    np.testing.assert_array_equal(significant_by_holm(statistic, freedom, alpha), adjusted < alpha)


def test_p_that_meets_the_level_exactly_is_not_below_it() -> None:
    """The level is that of a pair itself: by its p alone it is not significant, whatever the rounding of the bound."""
    statistic = np.array([3.0, -2.0, 1.0, 0.5])
    p_value = 2 * special.stdtr(9, -np.abs(statistic))
    for alpha in (4 * p_value[0], 3 * p_value[1], 2 * p_value[2]):
        for level in (alpha, np.nextafter(alpha, 1)):
            np.testing.assert_array_equal(
                significant_by_holm(statistic, 9, level), holm(p_value) < level
            )


@given(
    TENTHS,
    st.sampled_from([0.5, 0.9, 0.95, 0.999]),
    st.sampled_from([1, 40, 1000, 1500]),
    st.booleans(),
)
def test_rank_intervals_are_percentiles_of_the_standings(
    tenths: Matrix, confidence: float, resamples: int, lower: bool
) -> None:
    values = tenths / 10
    intervals = rank_intervals(
        values, Options(confidence, resamples, seed=3), lower_is_better=lower
    )
    sums = resampled_sums(values, Plan(draw_weights, resamples, 3))
    ranks = standings(sums.T, np.full(resamples, lower))
    np.testing.assert_array_equal(intervals.share_first, (ranks == 1).mean(axis=0))

    topics, level = values.shape[1], (1 + confidence) / 2
    stretch = (
        stats.t.ppf(level, topics - 1) / stats.norm.ppf(level) * (topics / (topics - 1)) ** 0.5
    )
    total = values.sum(axis=1, keepdims=True)
    ranks = standings((total + stretch * (sums - total)).T, np.full(resamples, lower))
    low, high = np.quantile(ranks, [1 - level, level], axis=0, method="inverted_cdf")
    np.testing.assert_array_equal((intervals.low, intervals.high), (low, high))


@given(st.integers(0, 2**32), st.integers(1, 60), st.integers(1, 2000), st.floats(0, 8), st.data())
def test_holm_of_some_pairs_is_holm_of_all(
    seed: int, freedom: int, pairs: int, largest: float, data: st.DataObject
) -> None:
    rng = np.random.default_rng(seed)
    statistic = np.abs(np.round(rng.normal(0, 1, pairs) * largest, rng.integers(1, 9)))
    statistic[rng.random(pairs) < 0.05] = np.nan

    def tail(size: Floats) -> Floats:
        p_value: Floats = 2 * special.stdtr(freedom, -size)
        return p_value

    chosen = rng.choice(pairs, data.draw(st.integers(0, min(pairs, 30))), replace=False)
    np.testing.assert_array_equal(
        holm_of(statistic, chosen, tail), adjust(tail(statistic), holm)[chosen]
    )
