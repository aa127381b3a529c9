"""Expected means: against a plain form of the estimate, and in worlds whose true means are known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from metrics.engine.arrays import Floats
from metrics.engine.errors import StatisticsError
from metrics.engine.significance.pairs import Matrix
from metrics.engine.significance.shrinkage import chances_to_be_best, expected_means
from tests.engine.test_real_scores import matrix

World = Callable[[np.random.Generator], tuple[Matrix, Floats]]
WORLDS = 60


def test_the_estimate_is_near_the_greatest_likelihood() -> None:
    """Run to the end, EM satisfies the condition of Kiefer and Wolfowitz: no point of the grid would add likelihood.
    300 steps end a little before, where means still move by less than a tenth of the noise."""
    rng = np.random.default_rng(1)
    values = rng.normal(0, 0.3, (30, 40)) + rng.choice([0.2, 0.5], (30, 1))
    means = values.mean(axis=1)
    residuals = values - means[:, None] - values.mean(axis=0) + values.mean()
    deviation = np.sqrt((residuals**2).sum() / (29 * 39) / 40)
    grid = np.linspace(means.min(), means.max(), 80)
    likelihood = norm.pdf(means[:, None], grid, deviation)
    weights = rng.dirichlet(np.ones(80))
    for _ in range(20_000):
        shares = likelihood * weights
        weights = (shares / shares.sum(axis=1, keepdims=True)).mean(axis=0)
    assert (likelihood / (likelihood @ weights)[:, None]).mean(axis=0).max() < 1.0001
    posteriors = likelihood * weights
    posteriors /= posteriors.sum(axis=1, keepdims=True)

    estimate = expected_means(values)
    np.testing.assert_allclose(estimate.means, posteriors @ grid, atol=deviation / 10)
    np.testing.assert_allclose(estimate.chances, chances_to_be_best(posteriors), atol=0.03)
    assert estimate.chances.sum() == pytest.approx(1)


def test_equal_runs_and_few_runs() -> None:
    same = expected_means(np.random.default_rng(2).random(30) + np.zeros((10, 1)))
    np.testing.assert_allclose(same.means, same.means[0])
    np.testing.assert_allclose(same.chances, 0.1)
    with pytest.raises(StatisticsError, match="at least 10 runs"):
        expected_means(np.random.default_rng(2).random((9, 30)))


def test_runs_that_differ_alike_on_every_topic_keep_their_means() -> None:
    """There is no noise to set aside; and with very little, a run near another one keeps its mean, too."""
    topics, steps = np.random.default_rng(6).random(30), np.linspace(0, 0.3, 12)[:, None]
    exact = expected_means(topics + steps)
    np.testing.assert_allclose(exact.means, (topics + steps).mean(axis=1))
    np.testing.assert_allclose(exact.chances, np.arange(12) == 11)
    lowest = expected_means(topics + steps, lower_is_better=True)
    np.testing.assert_allclose(lowest.chances, np.arange(12) == 0)
    small = np.random.default_rng(7).normal(0, 1e-3, (12, 30))
    near = expected_means(topics + steps + small)
    # The grid has at most 1,000 points, and a mean falls on the next one.
    np.testing.assert_allclose(near.means, (topics + steps + small).mean(axis=1), atol=0.3 / 1000)


def test_chances_of_two_and_of_many() -> None:
    """Two are enumerated; the others are counted among drawn variables, ties shared."""
    two = chances_to_be_best(np.array([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3]]))
    first = 0.3 * 0.1 + 0.2 * 0.7 + (0.5 * 0.1 + 0.3 * 0.6 + 0.2 * 0.3) / 2
    np.testing.assert_allclose(two, [first, 1 - first])
    rng = np.random.default_rng(4)
    many = rng.dirichlet(np.full(30, 0.3), 40)
    drawn = np.array([rng.choice(30, 50_000, p=row) for row in many])
    best = drawn == drawn.max(axis=0)
    # Of 50,000 draws the standard error is at most 0.0017.
    np.testing.assert_allclose(
        chances_to_be_best(many), (best / best.sum(axis=0)).mean(axis=1), atol=0.006
    )
    np.testing.assert_allclose(chances_to_be_best(np.full((1000, 3), 1 / 3)), 1 / 1000)


def test_of_a_measure_that_is_better_when_lower_the_lowest_is_the_best() -> None:
    values = np.random.default_rng(5).normal(0, 0.3, (12, 40)) + np.linspace(0.2, 0.4, 12)[:, None]
    up, down = expected_means(values), expected_means(-values, lower_is_better=True)
    np.testing.assert_allclose(up.chances, down.chances)
    np.testing.assert_allclose(up.means, -down.means)
    assert up.chances.argmax() == values.mean(axis=1).argmax()


def _precisions(rng: np.random.Generator) -> tuple[Matrix, Floats]:
    """Ten runs with one chance of a relevant document at each rank of a topic, ten that find next to nothing."""
    chance = 1 / (1 + np.exp(0.6 - 1.2 * rng.normal(size=50)))
    good, failed = rng.binomial(20, chance, (10, 50)), rng.binomial(20, 0.02, (10, 50))
    return np.vstack([good, failed]) / 20, np.repeat([chance.mean(), 0.02], 10)


def _normals(*true: float, spread: float = 0.0) -> World:
    """Runs of these true means, or around them, with normal values of the deviation 0.1, as of average precision."""

    def draw(rng: np.random.Generator) -> tuple[Matrix, Floats]:
        means = np.array(true) + rng.normal(0, spread, len(true))
        return means[:, None] + rng.normal(0, 0.1, (len(true), 50)), means

    return draw


@pytest.mark.parametrize(
    ("world", "equal"),
    [
        (_precisions, 10),
        (_normals(*[0.3] * 10, *[0.02] * 10), 10),
        (_normals(*[0.3] * 10, *[0.2] * 10), 10),
        (_normals(*[0.3] * 20), 20),
        (_normals(*[0.3] * 20, spread=0.02), None),
        (_normals(*[0.3] * 30, spread=0.05), None),
    ],
    ids=["precisions", "failed", "two classes", "equal", "spread .02", "spread .05"],
)
def test_the_best_of_many_is_expected_where_it_is(world: World, equal: int | None) -> None:
    """The winner looks better than it is by up to 0.03; its expected mean is right, and equal runs have nearly equal
    chances. The standard error of the first is about 0.0013, of the last 0.013; 0.007 is the bias
    that is allowed."""
    bias, likeliest = [], []
    for draw in range(WORLDS):
        values, true = world(np.random.default_rng((38, draw)))
        estimate, winner = expected_means(values), int(values.mean(axis=1).argmax())
        bias.append(estimate.means[winner] - true[winner])
        likeliest.append(estimate.chances.max())
    assert abs(np.mean(bias)) < 0.007
    if equal:
        assert 1 / equal < np.mean(likeliest) < 1 / equal + 0.1


@pytest.mark.slow
@pytest.mark.real_data
def test_winners_lead_less_on_other_topics_and_are_expected_to(real_data: Path) -> None:
    """13 matrices of scores, their topics in two halves 20 times: the winner's lead, seen, expected and elsewhere.

    The ratios are those of this estimate; drawn together as one field the runs had 1.12.
    """
    seen, shrunk = [], []
    for number, path in enumerate(sorted((real_data / "score-matrices-urbano2019").glob("*.csv"))):
        _, values = matrix(real_data, path.name)
        leads = []
        for split in range(20):
            topics = np.random.default_rng((number, split)).permutation(values.shape[1])
            here, elsewhere = np.split(topics, [len(topics) // 2])
            means, expected = values[:, here].mean(axis=1), expected_means(values[:, here]).means
            winner = int(means.argmax())
            columns = means, expected, values[:, elsewhere].mean(axis=1)
            leads.append([column[winner] - column.mean() for column in columns])
        here_lead, expected_lead, other_lead = np.mean(leads, axis=0)
        seen.append(here_lead / other_lead)
        shrunk.append(expected_lead / other_lead)
    assert np.mean(seen) == pytest.approx(1.32, abs=0.03)
    assert np.mean(shrunk) == pytest.approx(1, abs=0.06)
