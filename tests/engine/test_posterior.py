"""The chances of a mean difference against the posterior in closed form, another bootstrap, and how often they hold."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from metrics.engine.arrays import Floats
from metrics.engine.errors import StatisticsError
from metrics.engine.significance.paired_t import compare as paired_t
from metrics.engine.significance.pairs import Matrix, Options, all_pairs
from metrics.engine.significance.posterior import POSTERIORS, Chances, bayes_bootstrap, bayes_t
from metrics.engine.significance.practical import Practical


def drawn(runs: int = 6, topics: int = 40) -> Matrix:
    rng = np.random.default_rng(1)
    return (
        rng.beta(1, 3, topics)
        + rng.normal(0, 0.1, (runs, topics))
        + np.linspace(0, 0.1, runs)[:, None]
    )


def rows(chances: Chances) -> Floats:
    return np.array([chances.lower, chances.equal, chances.higher])


@pytest.mark.parametrize("rope", [0.0, 0.01, 0.1])
@pytest.mark.parametrize("topics", [2, 5, 40])
def test_students_posterior_in_closed_form(topics: int, rope: float) -> None:
    values = drawn(topics=topics)
    chances = bayes_t(values, *all_pairs(6), rope)
    for index, (i, j) in enumerate(zip(*all_pairs(6), strict=True)):
        d = values[i] - values[j]
        posterior = stats.t(topics - 1, d.mean(), d.std(ddof=1) / np.sqrt(topics))
        assert chances.lower[index] == pytest.approx(posterior.cdf(-rope), rel=1e-9)
        assert chances.higher[index] == pytest.approx(posterior.sf(rope), rel=1e-9)
        assert chances.equal[index] == pytest.approx(
            posterior.cdf(rope) - posterior.cdf(-rope), abs=1e-12
        )


def test_without_a_region_the_chance_is_one_minus_the_one_sided_p() -> None:
    values = drawn()
    chances, tested = bayes_t(values, *all_pairs(6), 0.0), paired_t(values, *all_pairs(6))
    one_sided = np.where(tested.difference > 0, tested.p_value / 2, 1 - tested.p_value / 2)
    np.testing.assert_allclose(chances.higher, 1 - one_sided, rtol=1e-9)
    np.testing.assert_allclose(chances.equal, 0, atol=1e-12)


def test_the_bayesian_bootstrap_against_weights_from_a_dirichlet_distribution() -> None:
    values, draws = drawn(), 40_000
    chances = bayes_bootstrap(values, *all_pairs(6), 0.02, Options(resamples=10_000, seed=4))
    weights = np.random.default_rng(9).dirichlet(np.ones(40), draws)
    for index, (i, j) in enumerate(zip(*all_pairs(6), strict=True)):
        means = weights @ (values[i] - values[j])
        expected = [np.mean(means < -0.02), np.mean(np.abs(means) <= 0.02), np.mean(means > 0.02)]
        # Five standard errors of both samples.
        error = 5 * np.sqrt(0.25 * (1 / 10_000 + 1 / draws))
        np.testing.assert_allclose(rows(chances)[:, index], expected, atol=error)


def test_the_bayesian_bootstrap_repeats_by_its_seed_and_whatever_the_pairs() -> None:
    values, (first, second) = drawn(), all_pairs(6)
    options = Options(resamples=3_000, seed=7)
    whole = rows(bayes_bootstrap(values, first, second, 0.02, options))
    np.testing.assert_array_equal(
        whole, rows(bayes_bootstrap(values, first, second, 0.02, options))
    )
    some = rows(bayes_bootstrap(values, first[4:7], second[4:7], 0.02, options))
    np.testing.assert_array_equal(whole[:, 4:7], some)
    other = rows(bayes_bootstrap(values, first, second, 0.02, Options(resamples=3_000, seed=8)))
    assert (whole != other).any()
    most = [
        rows(bayes_bootstrap(values, first, second, 0.02, Options(resamples=b)))
        for b in (10_000, 100_000)
    ]
    np.testing.assert_array_equal(*most)


@pytest.mark.parametrize("name", list(POSTERIORS))
def test_chances_sum_to_one_turn_round_and_have_ends(name: str) -> None:
    posterior, values = POSTERIORS[name], drawn()
    first, second = all_pairs(6)
    chances, turned = (
        posterior(values, first, second, 0.03, Options()),
        posterior(values, second, first, 0.03, Options()),
    )
    np.testing.assert_allclose(rows(chances).sum(axis=0), 1)
    np.testing.assert_allclose(rows(chances), rows(turned)[::-1], atol=1e-12)
    base = values[0]
    flat = posterior(np.vstack([base, base, base + 0.5]), *all_pairs(3), 0.0, Options())
    assert rows(flat)[:, 0].tolist() == [0, 1, 0]
    assert np.isnan(rows(flat)[:, 1:]).all()
    with pytest.raises(StatisticsError):
        posterior(values[:, :1], first, second, 0.0, Options())


def test_a_difference_at_the_end_of_the_region_lies_in_it() -> None:
    values = np.array([[0.3, 0.3, 0.1 + 0.2, 0.3], [0.2, 0.2, 0.2, 0.3]])
    chances = bayes_bootstrap(values, *all_pairs(2), 0.1)
    assert (chances.equal[0], chances.higher[0]) == (1.0, 0.0)


@pytest.mark.parametrize("name", list(POSTERIORS))
def test_of_differences_drawn_with_their_means_so_many_are_positive_as_was_said(name: str) -> None:
    """Means from a wide prior: among pairs with a chance near c, the share c truly has the higher mean."""
    rng, pairs = np.random.default_rng(3), 4_000
    means = rng.uniform(-1, 1, pairs)
    values = np.vstack([means[:, None] + rng.normal(0, 1, (pairs, 30)), np.zeros((1, 30))])
    options = Options(resamples=1_000)
    chances = POSTERIORS[name](values, np.arange(pairs), np.full(pairs, pairs), 0.0, options).higher
    for low, high in ((0.0, 0.2), (0.2, 0.5), (0.5, 0.8), (0.8, 1.0)):
        some = (chances >= low) & (chances <= high)
        assert np.mean(means[some] > 0) == pytest.approx(chances[some].mean(), abs=0.06)


@pytest.mark.parametrize("rope", [-0.1, np.inf, np.nan])
def test_a_region_has_a_width(rope: float) -> None:
    with pytest.raises(StatisticsError, match="rope must be 0 or above"):
        Practical(("bayes_t",), rope=rope)
