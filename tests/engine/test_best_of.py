"""The best of several versions: what chance alone reaches, and what the best has where it was not chosen."""

from __future__ import annotations

import math

import numpy as np
import pytest

from metrics.engine.analysis.best_of import best_so_far, expected_best, reach_of_equals


def histories(count: int, versions: int, topics: int, seed: int = 11) -> np.ndarray:
    """Equal versions: hard and easy topics, and noise that is each version's own."""
    rng = np.random.default_rng(seed)
    ease = rng.beta(1, 2, (count, 1, topics))
    return np.clip(ease + rng.normal(0, 0.1, (count, versions, topics)), 0, 1)


@pytest.mark.slow
@pytest.mark.parametrize("topics", [25, 50])
def test_equal_versions_seldom_lie_beyond_the_band(topics: int) -> None:
    """Of 400 histories of ten equal versions, 5 % end above it, or 20: their standard deviation is
    4.4, of which three are allowed."""
    above = 0
    for values in histories(400, 10, topics):
        above += values.mean(axis=1).max() > reach_of_equals(values)[-1]
    assert 7 <= above <= 33


def test_a_better_version_lies_beyond_the_band_in_either_direction() -> None:
    (values,) = histories(1, 10, 50)
    better = values.copy()
    better[6] += 0.06
    assert best_so_far(better.mean(axis=1))[-1] > reach_of_equals(better)[-1]
    worse = 1 - better
    reach = reach_of_equals(worse, lower_is_better=True)
    np.testing.assert_allclose(reach, 1 - reach_of_equals(better))
    assert best_so_far(worse.mean(axis=1), lower_is_better=True)[-1] < reach[-1]
    # The first version has nothing to reach, and the band never narrows.
    assert reach[0] == pytest.approx(worse[0].mean())
    assert (np.diff(reach) <= 1e-12).all()
    assert list(best_so_far(np.array([0.2, 0.1, 0.3]))) == [0.2, 0.2, 0.3]


def test_the_band_is_the_same_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    (values,) = histories(1, 4, 30)
    whole = reach_of_equals(values)
    monkeypatch.setattr("metrics.engine.analysis.best_of._PIECE", 300)
    np.testing.assert_allclose(reach_of_equals(values), whole, atol=1e-12)


def test_what_is_expected_of_the_best_is_less_than_what_is_seen() -> None:
    """Equal versions: the best looks better than all of them are, and is expected to be like the others."""
    seen, expected = [], []
    for values in histories(200, 10, 50):
        seen.append(values.mean(axis=1).max() - values.mean())
        expected.append(expected_best(values) - values.mean())
    assert np.mean(seen) > 0.015
    assert abs(np.mean(expected)) < 0.002
    (values,) = histories(1, 3, 40)
    assert expected_best(1 - values, lower_is_better=True) == pytest.approx(
        1 - expected_best(values)
    )
    assert expected_best(values[:1]) == pytest.approx(values[0].mean(), abs=0.02)
    assert math.isnan(expected_best(values[:, :1]))
