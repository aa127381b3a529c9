"""Claims at the margin that a difference is small, and intervals of posteriors, as in docs/statistics.md but fewer."""

from __future__ import annotations

import pytest

from tests.engine.margins import COLUMNS, MARGIN, rates, simulated


@pytest.mark.parametrize(
    ("topics", "equivalent", "bootstrap"), [(10, 0.007, 0.881), (50, 0.048, 0.941)]
)
def test_claims_at_the_margin_are_wrong_in_5_per_cent_and_intervals_hold(
    topics: int, equivalent: float, bootstrap: float
) -> None:
    rates_by_column = dict(zip(COLUMNS, rates(simulated(500, topics), MARGIN, 999), strict=True))
    expected = {
        "`tost`: not worse": 0.05,
        "`tost`: equivalent": equivalent,
        "`bayes_t`: 95 % interval holds": 0.95,
        "`bayes_t`: surely better": 0.1,
        "`bayes_bootstrap`: 95 % interval holds": bootstrap,
    }
    for name, rate in expected.items():
        assert rates_by_column[name].value == pytest.approx(
            rate, abs=3 * rates_by_column[name].error
        ), name
    for name in ("`bayes_t`: surely equal", "`bayes_bootstrap`: surely equal"):
        assert rates_by_column[name].value < 0.055 + 3 * rates_by_column[name].error, name
