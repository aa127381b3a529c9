"""Runs that other judgements favour: against statsmodels, and against every division of the runs."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from metrics.engine.agreement.run_bias import (
    group_difference,
    standardised_residuals,
    verdict_changes,
)


def test_verdicts_are_counted() -> None:
    reference, others = np.array([1, 1, -1, -1, 0, 0, 1]), np.array([1, -1, -1, 0, 0, 1, 0])
    changes = verdict_changes(reference, others)
    assert (changes.same, changes.reversed, changes.lost, changes.gained) == (2, 1, 2, 1)
    assert (changes.significant, changes.pairs) == (5, 7)


def test_residuals_are_those_of_statsmodels() -> None:
    import statsmodels.api as sm

    rng = np.random.default_rng(5)
    values = rng.random(12)
    differences = 0.1 - 0.2 * values + rng.normal(0, 0.02, 12)
    differences[3] += 0.2
    fit = sm.OLS(differences, sm.add_constant(values)).fit()
    expected = fit.get_influence().resid_studentized_internal
    residuals = standardised_residuals(values, differences)
    np.testing.assert_allclose(residuals, expected, rtol=1e-9)
    assert np.argmax(np.abs(residuals)) == 3
    assert residuals[3] > 2


@pytest.mark.parametrize(
    ("values", "differences"),
    [
        ([0.1, 0.2, 0.3], [0.0, 0.1, 0.0]),
        ([0.2] * 5, [0.1, 0.2, 0.3, 0.1, 0.0]),
        ([0.1, 0.2, 0.3, 0.4], [0.1, 0.2, 0.3, 0.4]),
    ],
)
def test_residuals_without_a_spread_are_undefined(
    values: list[float], differences: list[float]
) -> None:
    assert np.isnan(standardised_residuals(np.array(values), np.array(differences))).all()


def test_the_permutation_test_tries_every_division() -> None:
    differences = np.array([0.11, 0.09, 0.12, 0.01, -0.02, 0.03, 0.0, 0.02])
    group = np.array([True, True, True, False, False, False, False, False])
    answer = group_difference(differences, group, resamples=9_999, seed=0)

    statistics = []
    for chosen in combinations(range(8), 3):
        inside = np.isin(np.arange(8), chosen)
        statistics.append(differences[inside].mean() - differences[~inside].mean())
    above = np.mean(np.array(statistics) >= answer.difference - 1e-12)
    below = np.mean(np.array(statistics) <= answer.difference + 1e-12)

    assert answer.exact
    assert (answer.runs, answer.others) == (3, 5)
    assert answer.p_value == pytest.approx(min(1, 2 * min(above, below)), rel=1e-12)
    assert answer.p_value == pytest.approx(2 / 56)

    random = group_difference(np.tile(differences, 4), np.tile(group, 4), resamples=999, seed=1)
    assert not random.exact
    assert random.p_value <= 0.01
    nobody = group_difference(differences, np.zeros(8, bool), resamples=99, seed=0)
    assert math.isnan(nobody.p_value)
