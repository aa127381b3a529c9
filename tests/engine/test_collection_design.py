"""What a collection can tell apart: power, topic set sizes, swap rates."""

from __future__ import annotations

import numpy as np
import pytest

from metrics.engine.design.discriminative_power import discriminative_power
from metrics.engine.design.swap_rates import swap_rates
from metrics.engine.design.topic_set_size import (
    detectable_difference,
    half_width,
    power_of_anova,
    power_of_t,
    topics_for_anova,
    topics_for_interval,
    topics_for_t,
    variance_of,
)
from metrics.engine.errors import StatisticsError
from metrics.engine.significance import TESTS
from metrics.engine.significance.pairs import Matrix, Options, all_pairs


def simulated(
    runs: int, topics: int, gaps: list[float], seed: int = 1, spread: float = 0.1
) -> Matrix:
    rng = np.random.default_rng(seed)
    return np.array(gaps)[:runs, None] + rng.random(topics) + rng.normal(0, spread, (runs, topics))


def test_the_power_of_the_t_test_is_how_often_it_finds_the_difference() -> None:
    pairs = np.vstack([simulated(2, 30, [0.06, 0.0], seed) for seed in range(3000)])
    first = np.arange(0, 6000, 2)
    power = (TESTS["paired_t"].compare(pairs, first, first + 1, Options()).p_value < 0.05).mean()
    assert power_of_t(30, 0.06, 0.01) == pytest.approx(
        power, abs=4 * np.sqrt(power * (1 - power) / 3000)
    )


@pytest.mark.parametrize("topics", [3, 10, 60])
def test_two_runs_make_both_designs_one(topics: int) -> None:
    """F of two runs on the same topics is the square of t."""
    assert power_of_anova(topics, 2, 0.05, 0.01) == pytest.approx(
        power_of_t(topics, 0.05, 0.01), rel=1e-9
    )


def test_the_fewest_topics_are_enough_and_one_less_is_not() -> None:
    t, anova, interval = (
        topics_for_t(0.1, 0.05),
        topics_for_anova(10, 0.1, 0.05),
        topics_for_interval(0.1, 0.05),
    )
    assert power_of_t(t, 0.1, 0.05) >= 0.8 > power_of_t(t - 1, 0.1, 0.05)
    assert power_of_anova(anova, 10, 0.1, 0.05) >= 0.8 > power_of_anova(anova - 1, 10, 0.1, 0.05)
    assert half_width(interval, 0.05) <= 0.05 < half_width(interval - 1, 0.05)
    assert power_of_t(t, detectable_difference(t, 0.05), 0.05) == pytest.approx(0.8)
    assert topics_for_t(9.0, 0.05) == 2 + (power_of_t(2, 9.0, 0.05) < 0.8) * (
        topics_for_t(9.0, 0.05) - 2
    )


def test_intervals_are_as_wide_as_expected() -> None:
    values = np.vstack([simulated(2, 12, [0.0, 0.0], seed) for seed in range(4000)])
    first = np.arange(0, 8000, 2)
    result = TESTS["paired_t"].compare(values, first, first + 1, Options())
    assert ((result.high - result.low) / 2).mean() == pytest.approx(half_width(12, 0.01), rel=0.02)


def test_the_variance_is_what_runs_and_topics_leave() -> None:
    assert variance_of(simulated(40, 400, [0.0] * 40)) == pytest.approx(0.01, rel=0.03)


def test_sizes_that_have_no_answer_are_refused() -> None:
    for call, field in (
        (lambda: topics_for_t(1e-9, 1.0), "difference"),
        (lambda: topics_for_t(0.0, 1.0), "difference"),
        (lambda: power_of_t(10, 0.1, -1.0), "variance"),
        (lambda: swap_rates(np.ones((3, 10)), [6]), "sizes"),
    ):
        with pytest.raises(StatisticsError) as refused:
            call()
        assert refused.value.pointer == field
    with pytest.raises(StatisticsError, match="at least 2 topics"):
        power_of_t(1, 0.1, 1.0)
    assert power_of_t(10**6, 5.0, 1e-6) == power_of_anova(10**6, 5, 5.0, 1e-6) == 1.0


def test_discriminative_power_is_the_share_below_alpha_and_the_difference_that_any_pair_needs() -> (
    None
):
    values = simulated(5, 40, [0.0, 0.0, 0.0, 0.5, 0.5])
    power = discriminative_power(values, "paired_t")
    result = TESTS["paired_t"].compare(values, *all_pairs(5), Options())
    assert power.curve.tolist() == sorted(result.p_value, reverse=True)
    assert power.share == np.mean(result.p_value < 0.05) >= 0.6
    # A pair is significant exactly when its difference is beyond half its own interval: the largest
    # of these.
    assert power.needed == pytest.approx(((result.high - result.low) / 2).max())
    assert power.typical == pytest.approx(np.median((result.high - result.low) / 2))
    assert 0.6 <= discriminative_power(values, options=Options(resamples=2000)).share <= power.share


def test_swaps_are_counted_by_the_first_difference() -> None:
    """Two runs far apart never swap; two alike swap in about half of the trials, all in the lowest bins."""
    rates = swap_rates(simulated(2, 60, [0.5, 0.0]), [5, 30], trials=40)
    assert rates.swapped.sum() == 0
    assert rates.compared.sum(axis=1).tolist() == [40, 40]
    assert rates.needed().tolist() == [0, 0]
    alike = swap_rates(simulated(6, 400, [0.0] * 6), [5, 100, 200], trials=60)
    assert alike.swapped.sum(axis=1) / alike.compared.sum(axis=1) == pytest.approx(
        [0.5, 0.5, 0.5], abs=0.2
    )
    assert alike.needed()[0] > alike.needed()[2] > 0
    # Values of tables have any unit.
    large = swap_rates(1e100 * simulated(2, 60, [0.5, 0.0]), [5, 30], trials=40)
    assert large.compared[:, -1].tolist() == [40, 40]


def naive_swap_rates(values: Matrix, size: int, trials: int, seed: int) -> list[tuple[float, bool]]:
    """Every comparison, pair by pair: its difference on the first set, and whether the second turned it round."""
    pairs_seen = []
    for trial in range(trials):
        order = np.random.default_rng((seed, trial)).permutation(values.shape[1])
        first, other = (
            values[:, order[:size]].mean(axis=1),
            values[:, order[size : 2 * size]].mean(axis=1),
        )
        pairs = [
            (first[i] - first[j], other[i] - other[j])
            for i in range(len(values))
            for j in range(i + 1, len(values))
        ]
        pairs_seen += [(abs(before), before * after < 0) for before, after in pairs]
    return pairs_seen


def test_swap_rates_are_those_of_counting_one_by_one() -> None:
    values = simulated(4, 24, [0.0, 0.02, 0.04, 0.1])
    rates = swap_rates(values, [6, 12], trials=15, seed=3)
    for row, size in enumerate((6, 12)):
        swaps = naive_swap_rates(values, size, 15, 3)
        for column in range(21):
            inside = [
                swap for difference, swap in swaps if min(int(difference / 0.01), 20) == column
            ]
            assert (rates.compared[row, column], rates.swapped[row, column]) == (
                len(inside),
                sum(inside),
            )
    assert np.isnan(rates.rates[rates.compared == 0]).all()
