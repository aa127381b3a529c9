"""Expected means: against the formula, and against what real runs had on topics that were not looked at."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from metrics.engine.errors import StatisticsError
from metrics.engine.significance.shrinkage import (
    chances_to_be_best,
    expected_means,
    hold_the_best,
    largest_of,
)
from tests.engine.test_real_scores import matrix

LARGEST = [(1, 0.0), (2, np.pi**-0.5), (3, 1.5 * np.pi**-0.5), (10, 1.53875), (100, 2.50759)]


@pytest.mark.parametrize(("many", "expected"), LARGEST)
def test_the_largest_of_so_many_normals(many: int, expected: float) -> None:
    """Two and three have closed forms; the others are of Tippett's table (Biometrika 17, 1925)."""
    assert largest_of(many) == pytest.approx(expected, abs=6e-6)


def test_means_are_drawn_together_as_james_and_stein_do() -> None:
    values = np.random.default_rng(1).normal(0, 0.3, (12, 40)) + np.linspace(0.2, 0.4, 12)[:, None]
    found, means = expected_means(values), values.mean(axis=1)
    residuals = values - means[:, None] - values.mean(axis=0) + values.mean()
    noise = (residuals**2).sum() / (11 * 39) / 40
    kept = 1 - 9 * noise / ((means - means.mean()) ** 2).sum()
    assert 0 < kept < 1
    assert found.kept == pytest.approx(kept)
    np.testing.assert_allclose(found.means, means.mean() + kept * (means - means.mean()))
    assert found.luck == pytest.approx(1.62923 * noise**0.5, rel=1e-5)
    assert found.cautions == ()


def test_equal_runs_and_few_runs() -> None:
    same = expected_means(np.random.default_rng(2).random(30) + np.zeros((10, 1)))
    assert (same.kept, same.luck) == (0.0, 0.0)
    np.testing.assert_allclose(same.chances, 0.1)
    assert hold_the_best(same.chances, 0.95) == 10
    with pytest.raises(StatisticsError, match="at least 10 runs"):
        expected_means(np.random.default_rng(2).random((9, 30)))


def test_chances_of_two_and_of_many() -> None:
    """Two have a closed form; the others are counted among drawn normals."""
    assert chances_to_be_best(np.array([1.0, 0.0]), 1.0).tolist() == pytest.approx(
        [0.760249939, 0.239750061]
    )
    rng = np.random.default_rng(4)
    means = rng.normal(0.3, 0.02, 40)
    drawn = (means + rng.normal(0, 0.015, (100_000, 40))).argmax(axis=1)
    chances = chances_to_be_best(means, 0.015)
    np.testing.assert_allclose(chances, np.bincount(drawn, minlength=40) / 100_000, atol=0.006)
    assert chances.sum() == pytest.approx(1)
    held = np.sort(chances)[::-1].cumsum()
    holding = hold_the_best(chances, 0.95)
    assert held[holding - 1] >= 0.95 > held[holding - 2]


def test_a_far_run_has_no_chance_and_a_scale_changes_nothing() -> None:
    means = np.array([0.9, 0.31, 0.3, 0.29])
    assert chances_to_be_best(means, 0.01).tolist() == pytest.approx([1, 0, 0, 0])
    near = chances_to_be_best(means, 0.2)
    np.testing.assert_allclose(chances_to_be_best(1e9 * means - 5e9, 2e8), near, atol=1e-12)
    np.testing.assert_allclose(chances_to_be_best(np.array([0.5, 0.5, 0.2]), 0.0), [0.5, 0.5, 0])


def test_of_a_measure_that_is_better_when_lower_the_lowest_is_the_best() -> None:
    values = np.random.default_rng(5).normal(0, 0.3, (12, 40)) + np.linspace(0.2, 0.4, 12)[:, None]
    up, down = expected_means(values), expected_means(-values, lower_is_better=True)
    np.testing.assert_allclose(up.chances, down.chances)
    assert up.chances.argmax() == values.mean(axis=1).argmax()


def test_a_run_of_another_kind_has_a_caution() -> None:
    values = np.random.default_rng(3).normal(0.3, 0.1, (20, 40))
    assert expected_means(values).cautions == ()
    values[4] += 0.6
    assert [caution.code for caution in expected_means(values).cautions] == ["apart"]


@pytest.mark.real_data
def test_winners_lead_less_on_other_topics_and_are_expected_to(real_data: Path) -> None:
    """13 matrices of scores, their topics in two halves 400 times: the winner's lead, seen, expected and elsewhere."""
    seen, shrunk = [], []
    for number, path in enumerate(sorted((real_data / "score-matrices-urbano2019").glob("*.csv"))):
        _, values = matrix(real_data, path.name)
        leads = []
        for split in range(400):
            topics = np.random.default_rng((number, split)).permutation(values.shape[1])
            here, there = topics[: len(topics) // 2], topics[len(topics) // 2 :]
            means, found = values[:, here].mean(axis=1), expected_means(values[:, here])
            winner = int(means.argmax())
            elsewhere = values[:, there].mean(axis=1)
            leads.append([one[winner] - one.mean() for one in (means, found.means, elsewhere)])
        mine, expected, other = np.mean(leads, axis=0)
        seen.append(mine / other)
        shrunk.append(expected / other)
    assert np.mean(seen) == pytest.approx(1.32, abs=0.02)
    assert np.mean(shrunk) == pytest.approx(1.12, abs=0.02)


@pytest.mark.real_data
def test_the_best_is_among_the_runs_that_hold_it(real_data: Path) -> None:
    """Each of 13 matrices taken for all topics that there are, with as many drawn from them 100 times."""
    chance, hit, held = [], [], []
    for number, path in enumerate(sorted((real_data / "score-matrices-urbano2019").glob("*.csv"))):
        _, values = matrix(real_data, path.name)
        best = int(values.mean(axis=1).argmax())
        for draw in range(100):
            rng = np.random.default_rng((number, draw))
            chances = expected_means(
                values[:, rng.integers(0, values.shape[1], values.shape[1])]
            ).chances
            likeliest = np.argsort(-chances, kind="stable")
            chance.append(chances.max())
            hit.append(likeliest[0] == best)
            held.append(best in likeliest[: hold_the_best(chances, 0.95)])
    assert np.mean(chance) == pytest.approx(np.mean(hit), abs=0.08)
    assert 0.93 < np.mean(held) < 0.99
