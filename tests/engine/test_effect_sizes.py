"""Effect sizes against their definitions, and their intervals against the distributions that they invert."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, special, stats
from statsmodels.stats.proportion import proportion_confint

from metrics.engine.errors import StatisticsError
from metrics.engine.significance.effect_sizes import (
    READINGS,
    EffectSizes,
    effect_sizes,
    noncentrality,
    probability_better,
    reading_of,
    relative_difference,
)
from metrics.engine.significance.pairs import Matrix, Options, all_pairs


def sizes_of(values: Matrix, **options: object) -> EffectSizes:
    return effect_sizes(values, *all_pairs(len(values)), Options(**options))  # type: ignore[arg-type]


def test_effect_sizes_are_what_their_formulas_say() -> None:
    values = np.random.default_rng(1).random((4, 20))
    sizes = sizes_of(values)
    # The residual by subtracting what runs and topics explain; Hedges's factor by its approximation
    # 1 - 3 / (4 m - 1).
    residual = values - values.mean(axis=1, keepdims=True) - values.mean(axis=0) + values.mean()
    spread = np.sqrt((residual**2).sum() / (3 * 19))
    for index, (i, j) in enumerate(zip(*(pair.tolist() for pair in all_pairs(4)), strict=True)):
        difference = values[i] - values[j]
        d = difference.mean() / difference.std(ddof=1)
        assert sizes.cohen_d.value[index] == pytest.approx(d)
        assert sizes.hedges_g.value[index] == pytest.approx(d * (1 - 3 / (4 * 19 - 1)), rel=2e-4)
        assert sizes.standardised.value[index] == pytest.approx(difference.mean() / spread)
        assert sizes.relative[index] == pytest.approx(values[i].mean() / values[j].mean() - 1)


@pytest.mark.parametrize("freedom", [3, 49, 4851])
def test_the_ends_of_an_interval_are_the_noncentralities_that_the_statistic_just_allows(
    freedom: int,
) -> None:
    t = np.array([-12.0, -1.5, 0.0, 0.3, 2.0, 8.0, 25.0])
    low, high = noncentrality(t, freedom, 0.9)
    np.testing.assert_allclose(stats.nct.sf(t, freedom, low), 0.05, atol=1e-5)
    np.testing.assert_allclose(stats.nct.cdf(t, freedom, high), 0.05, atol=1e-5)


def test_intervals_of_many_pairs_are_those_of_each_alone() -> None:
    t = np.random.default_rng(2).normal(0, 6, 3000)
    many, few = noncentrality(t, 49, 0.95), noncentrality(t[:40], 49, 0.95)
    np.testing.assert_allclose(np.array(many)[:, :40], few, atol=1e-5)


def chance_below(t: float, freedom: int, noncentral: float) -> float:
    """P(T <= t) by integration: of Phi(t s - nc) over s, whose square is chi-square over its degrees of freedom."""
    density = stats.chi(freedom, scale=1 / np.sqrt(freedom)).pdf
    turn, width = noncentral / t, 9 / t
    ends = [0.0, max(0.0, turn - width), turn + width, np.inf]
    parts = [
        integrate.quad(
            lambda s: special.ndtr(t * s - noncentral) * density(s), a, b, epsabs=1e-12, limit=200
        )[0]
        for a, b in pairwise(ends)
    ]
    return float(sum(parts))


@pytest.mark.slow
@pytest.mark.parametrize("freedom", [1, 2, 4, 9, 49, 999])
@pytest.mark.parametrize("t", [30.1, 60.0, 200.0, 5000.0])
def test_a_huge_statistic_has_the_interval_that_it_just_allows(freedom: int, t: float) -> None:
    (low,), (high,) = noncentrality(np.array([t]), freedom, 0.95)
    assert chance_below(t, freedom, low) == pytest.approx(0.975, abs=2e-4)
    assert chance_below(t, freedom, high) == pytest.approx(0.025, abs=2e-4)


def test_intervals_of_many_pairs_with_huge_statistics_are_those_of_each_alone() -> None:
    t = np.concatenate(
        [np.random.default_rng(2).normal(0, 3, 3000), [-2000.0, -900.0, 31.0, 600.0, 999.0, 1001.0]]
    )
    for freedom in (1, 49):
        many, few = noncentrality(t, freedom, 0.95), noncentrality(t[-30:], freedom, 0.95)
        np.testing.assert_allclose(np.array(many)[:, -30:], few, rtol=1e-4, atol=1e-4)


def test_two_topics_have_no_hedges_g() -> None:
    sizes = sizes_of(np.array([[0.5, 0.9], [0.1, 0.2]]))
    assert np.isnan([sizes.hedges_g.value[0], sizes.hedges_g.low[0], sizes.hedges_g.high[0]]).all()
    assert sizes.cohen_d.value[0] > 0


@pytest.mark.parametrize(
    ("relative", "reading"),
    [
        (0.0, "none"), (0.049, "marginal"), (-0.049, "marginal"), (0.05, "noticeable"), (0.1, "noticeable"),
        (1.1 - 1, "noticeable"), (0.101, "material"), (-0.5, "material"), (np.nan, "none"),
    ],
)  # fmt: skip
def test_relative_differences_are_read_as_sparck_jones_does(relative: float, reading: str) -> None:
    assert READINGS[reading_of(np.array([relative]))[0]] == reading


def test_nothing_is_relative_to_zero() -> None:
    assert np.isnan(relative_difference(np.array([0.2]), np.array([0.0]))[0])


def test_wins_are_topics_on_which_the_first_run_is_better() -> None:
    values = np.array([[0.5, 0.2, 0.3 + 1e-17, 0.1], [0.4, 0.4, 0.1 + 0.2, 0.0]])
    up = effect_sizes(values, *all_pairs(2))
    down = effect_sizes(values, *all_pairs(2), lower_is_better=True)
    assert [int(count[0]) for count in (up.wins, up.ties, up.losses)] == [2, 1, 1]
    assert [int(count[0]) for count in (down.wins, down.ties, down.losses)] == [1, 1, 2]
    least = sizes_of(values, min_difference=0.1)
    assert [int(count[0]) for count in (least.wins, least.ties, least.losses)] == [0, 3, 1]


def test_runs_that_do_not_differ_or_differ_by_a_constant() -> None:
    base = np.random.default_rng(3).random(20)
    sizes = sizes_of(np.vstack([base, base, base + 1]))
    assert (sizes.cohen_d.value[0], sizes.cohen_d.low[0], sizes.hedges_g.high[0]) == (0, 0, 0)
    assert np.isnan([sizes.cohen_d.value[1], sizes.cohen_d.low[1], sizes.hedges_g.value[1]]).all()
    with pytest.raises(StatisticsError, match="at least 2"):
        sizes_of(np.ones((2, 1)))


@pytest.mark.parametrize(
    ("topics", "t", "low", "high"),
    [
        (2, 30.1, 0.8297, 67.504),
        (3, 30.1, 4.6891, 57.867),
        (5, 30.1, 10.3551, 50.320),
        (50, 30.1, 23.8244, 36.335),
    ],
)
def test_intervals_do_not_jump_where_statistics_are_large(
    topics: int, t: float, low: float, high: float
) -> None:
    """The ends are by integration: `chance_below` of each is 0.975 and 0.025 to nine digits."""
    interval = noncentrality(np.array([t]), topics - 1, 0.95)
    np.testing.assert_allclose(np.ravel(interval), [low, high], atol=0.02, rtol=1e-4)
    before, after = (
        np.array(noncentrality(np.array([at]), topics - 1, 0.95)) for at in (999.9, 1000.1)
    )
    np.testing.assert_allclose(before, after, rtol=1e-3)


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_the_chance_to_be_better_on_a_topic_is_a_proportion_with_wilsons_interval(
    confidence: float,
) -> None:
    rng = np.random.default_rng(4)
    values = rng.integers(0, 4, (6, 30)) / 4
    sizes = sizes_of(values, confidence=confidence)
    for index, (i, j) in enumerate(zip(*all_pairs(6), strict=True)):
        counted = (
            np.count_nonzero(values[i] > values[j]) + np.count_nonzero(values[i] == values[j]) / 2
        )
        low, high = proportion_confint(counted, 30, 1 - confidence, "wilson")
        chance = sizes.probability_better
        assert (chance.value[index], chance.low[index], chance.high[index]) == pytest.approx(
            (counted / 30, low, high)
        )


def test_the_chance_to_be_better_at_its_ends_and_where_lower_is_better() -> None:
    values = np.array([np.arange(1.0, 6.0), np.arange(0.0, 5.0)])
    for lower, expected in ((False, 1.0), (True, 0.0)):
        chance = effect_sizes(values, *all_pairs(2), lower_is_better=lower).probability_better
        assert chance.value[0] == expected
        assert 0 <= chance.low[0] < chance.high[0] <= 1
    same = sizes_of(np.vstack([values[0], values[0]])).probability_better
    assert (same.value[0], same.low[0] + same.high[0]) == pytest.approx((0.5, 1.0))


def test_wilsons_interval_holds_the_chance_with_and_without_ties() -> None:
    rng = np.random.default_rng(5)
    for ties in (0.0, 0.4):
        outcomes = rng.choice(
            [1, 0, -1], p=[0.6 * (1 - ties), ties, 0.4 * (1 - ties)], size=(4000, 40)
        )
        wins, level = (outcomes == 1).sum(axis=1), (outcomes == 0).sum(axis=1)
        chance = probability_better(wins, level, 40, 0.95)
        truth = 0.6 * (1 - ties) + ties / 2
        covered = np.mean((chance.low <= truth) & (truth <= chance.high))
        assert (
            covered >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 4000)
            if ties
            else covered == pytest.approx(0.95, abs=0.02)
        )


def cliff(x: Matrix, y: Matrix) -> float:
    return float(np.sign(x[:, None] - y[None, :]).mean())


def test_cliffs_delta_of_runs_by_every_pair_of_values_with_the_jackknife_by_leaving_topics_out() -> (
    None
):
    values = np.random.default_rng(6).integers(0, 9, (4, 17)) / 8
    deltas = sizes_of(values, confidence=0.9).cliff_delta
    for index, (i, j) in enumerate(zip(*all_pairs(4), strict=True)):
        delta = cliff(values[i], values[j])
        assert deltas.value[index] == pytest.approx(delta, abs=1e-12)
        without = [cliff(np.delete(values[i], at), np.delete(values[j], at)) for at in range(17)]
        variance, t = 16 * np.var(without), stats.t.ppf(0.95, 16)
        margin = t * np.sqrt(variance * ((1 - delta**2) ** 2 + t**2 * variance))
        ends = (delta - delta**3 + np.array([-margin, margin])) / (1 - delta**2 + t**2 * variance)
        assert (deltas.low[index], deltas.high[index]) == pytest.approx(tuple(ends))


def test_cliffs_delta_of_runs_holds_what_it_estimates() -> None:
    """Two runs of one topic effect: their values are correlated, which the interval of two samples would ignore."""
    rng, hits, trials = np.random.default_rng(7), 0, 600
    truth = 2 * stats.norm.cdf(0.5 / np.sqrt(2 * (1 + 0.25))) - 1
    for _ in range(trials):
        topics = rng.normal(size=50)
        values = np.array([topics + rng.normal(0.5, 0.5, 50), topics + rng.normal(0, 0.5, 50)])
        delta = sizes_of(values).cliff_delta
        hits += bool(delta.low[0] <= truth <= delta.high[0])
    assert hits / trials == pytest.approx(0.95, abs=0.03)


def test_cliffs_delta_at_its_ends_and_of_equal_runs() -> None:
    values = np.vstack([np.arange(5.0), np.arange(5.0), np.arange(5.0) + 9])
    delta = sizes_of(values).cliff_delta
    assert delta.value.tolist() == [0.0, -1.0, -1.0]
    assert (delta.low[0], delta.high[0]) == (0.0, 0.0)
    assert np.isnan(delta.low[1:]).all()
