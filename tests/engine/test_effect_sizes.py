"""Effect sizes against their definitions, and their intervals against the distributions that they invert."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, special, stats

from metrics.engine.errors import StatisticsError
from metrics.engine.significance.effect_sizes import (
    READINGS,
    EffectSizes,
    effect_sizes,
    noncentrality,
    reading_of,
    relative_difference,
)
from metrics.engine.significance.pairs import Matrix, Options, all_pairs


def sizes_of(values: Matrix, **options: object) -> EffectSizes:
    return effect_sizes(values, *all_pairs(len(values)), Options(**options))  # type: ignore[arg-type]


def test_effect_sizes_are_what_their_formulas_say() -> None:
    values = np.random.default_rng(1).random((4, 20))
    sizes = sizes_of(values)
    # The residual by subtracting what runs and topics explain; Hedges's factor by its approximation 1 - 3 / (4 m - 1).
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
def test_the_ends_of_an_interval_are_the_noncentralities_that_the_statistic_just_allows(freedom: int) -> None:
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
        integrate.quad(lambda s: special.ndtr(t * s - noncentral) * density(s), a, b, epsabs=1e-12, limit=200)[0]
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
    t = np.concatenate([np.random.default_rng(2).normal(0, 3, 3000), [-2000.0, -900.0, 31.0, 600.0, 999.0, 1001.0]])
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
