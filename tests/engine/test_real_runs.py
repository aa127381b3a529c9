"""What docs/statistics.md says of real runs, on one track: findings where means are equal, and intervals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from metrics.engine.agreement.intervals import order_agreements
from metrics.engine.significance import TESTS
from metrics.engine.significance.pairs import Matrix, Options, all_pairs
from tests.engine.order_intervals import held, intervals_of, order_of
from tests.engine.real_runs import RUNS, intervals, null
from tests.engine.test_real_scores import matrix


@pytest.mark.real_data
def test_tests_of_ranks_and_signs_find_what_is_no_difference_of_means(real_data: Path) -> None:
    _, values = matrix(real_data, "adhoc6_ap.csv")
    drawn = [null(np.random.default_rng((3, 3, at)), values) for at in range(40)]
    assert np.ptp([one.mean(axis=1).mean() for one in drawn]) < 0.2
    shares = {
        name: np.mean(
            [TESTS[name].compare(one, *all_pairs(RUNS), Options()).p_value < 0.05 for one in drawn]
        )
        for name in ("paired_t", "wilcoxon", "sign")
    }
    assert shares["paired_t"] < 0.08, shares
    assert 0.1 < shares["wilcoxon"] < shares["sign"], shares


@pytest.mark.real_data
def test_intervals_of_agreement_hold_where_percentiles_do_not(real_data: Path) -> None:
    one, other = (matrix(real_data, f"adhoc6_{name}.csv")[1] for name in ("ap", "p10"))
    found = held(one, other, 60, 20, 3)
    for name in ("tau", "symmetric_tau_ap"):
        assert found[name, "percentiles"].value < 0.87 < found[name, "given"].value, found


def test_intervals_of_agreement_are_the_hull_of_two() -> None:
    rng = np.random.default_rng(2)
    one: Matrix = rng.random((12, 30)) + np.linspace(0, 0.3, 12)[:, None]
    other: Matrix = one + rng.normal(0, 0.3, (12, 30))
    ranks = np.concatenate([order_of(values.mean(axis=1)) for values in (one, other)])
    options = Options(resamples=300, seed=4)
    (found,) = order_agreements(ranks, [one, other], [(0, 1)], np.array([False, False]), options)
    for (name, kind), ends in intervals_of(one, other, 300, 4).items():
        ours = getattr(found, name)
        assert (ours.low, ours.high) == pytest.approx(ends) or kind != "given"
        assert ours.low <= ends[0] < ends[1] <= ours.high


def test_wide_intervals_hold_what_all_topics_have_and_others_do_not() -> None:
    """The measuring itself: of runs whose topics are all drawn, each interval holds; of other runs, none of a mean."""
    rng = np.random.default_rng(3)
    values = rng.normal(0, 1, (RUNS, 30)) + np.arange(RUNS)[:, None]
    delta = np.array(
        [np.sign(one[:, None] - values[:, None, :]).mean(axis=(1, 2)) for one in values]
    )
    options = Options(resamples=200)
    same = intervals(values, values, delta, options)
    assert {name: np.nanmin(held) for name, held in same.items()} == dict.fromkeys(same, 1.0)
    away = intervals(values + 9 * np.arange(RUNS)[:, None], values, delta, options)
    assert np.nanmax(away["a mean"][1:]) == np.nanmax(away["a difference, `paired_t`"]) == 0
