"""Two runs with weights of topics, against NumPy, statsmodels and all sign patterns."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats
from statsmodels.api import WLS

from metrics.engine.errors import StatisticsError
from metrics.engine.significance.pairs import Options
from metrics.engine.significance.weighted import weighted_difference
from tests.engine.weighted_intervals import rate

RNG = np.random.default_rng(7)
A, B = RNG.random(40) + 0.1, RNG.random(40)
WEIGHTS = RNG.lognormal(0, 1, 40)


def test_means_and_interval_agree_with_numpy_and_statsmodels() -> None:
    result = weighted_difference(A, B, WEIGHTS, Options(confidence=0.9, resamples=500))
    assert result.mean_a == pytest.approx(np.average(A, weights=WEIGHTS))
    assert result.mean_b == pytest.approx(np.average(B, weights=WEIGHTS))
    assert result.difference == pytest.approx(np.average(A - B, weights=WEIGHTS))
    effective = WEIGHTS.sum() ** 2 / (WEIGHTS**2).sum()
    assert result.effective_topics == pytest.approx(effective)
    fit = WLS(A - B, np.ones(40), weights=WEIGHTS).fit(cov_type="HC3")
    margin = stats.t.ppf(0.95, effective - 1) * fit.bse[0]
    assert result.low == pytest.approx(fit.params[0] - margin)
    assert result.high == pytest.approx(fit.params[0] + margin)


def test_p_is_the_share_of_all_sign_patterns() -> None:
    a, b, weights = A[:9], B[:9], WEIGHTS[:9]
    weighted = weights * (a - b)
    sums = [abs(np.dot(signs, weighted)) for signs in product((1, -1), repeat=9)]
    expected = np.mean(np.array(sums) >= abs(weighted.sum()) - 1e-12)
    result = weighted_difference(a, b, weights)
    assert (result.p_value, result.exact) == (pytest.approx(expected), True)
    assert weighted_difference(a, a, weights).p_value == 1


@pytest.mark.parametrize("factor", [1e-300, 1e300])
def test_only_the_ratios_of_weights_count(factor: float) -> None:
    options = Options(resamples=500)
    scaled = weighted_difference(A, B, WEIGHTS * factor, options)
    plain = weighted_difference(A, B, WEIGHTS, options)
    assert scaled.difference == pytest.approx(plain.difference)
    assert (scaled.low, scaled.p_value) == (pytest.approx(plain.low), plain.p_value)


def test_too_few_effective_topics_have_no_interval() -> None:
    result = weighted_difference(A[:5], B[:5], np.array([1e6, 1, 1, 1, 1]))
    assert np.isnan([result.low, result.high]).all()
    assert result.effective_topics == pytest.approx(1, abs=1e-4)
    with pytest.raises(StatisticsError, match="at least 2 common topics"):
        weighted_difference(A[:1], B[:1], WEIGHTS[:1])


@pytest.mark.parametrize("power", [0.0, 1.0])
def test_intervals_hold_the_true_difference(power: float) -> None:
    # 500 collections have a standard error of 0.01.
    assert 0.925 < rate(500, 30, power) < 0.975
