"""Samples of unequal sizes against SciPy, statsmodels, a published example and counting every pair."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.formula.api import ols

from metrics.engine.arrays import Floats
from metrics.engine.errors import StatisticsError
from metrics.engine.significance import kruskal_wallis, latin_square, mann_whitney
from metrics.engine.significance.effect_sizes import cliff_delta

ONE = np.array([0]), np.array([1])
SIZES = [(2, 2), (3, 9), (8, 300), (1000, 8), (9, 12), (30, 7)]


def two_samples(n: int, m: int, digits: int) -> list[Floats]:
    rng = np.random.default_rng(n + m)
    return [rng.normal(size=n).round(digits), rng.normal(0.3, size=m).round(digits)]


@pytest.mark.parametrize("digits", [1, 12])
@pytest.mark.parametrize(("n", "m"), SIZES)
def test_the_u_test_agrees_with_scipy(n: int, m: int, digits: int) -> None:
    samples = two_samples(n, m, digits)
    ours, theirs = mann_whitney.compare_samples(samples, *ONE), stats.mannwhitneyu(*samples)
    assert (ours.statistic[0], ours.p_value[0]) == pytest.approx(
        (theirs.statistic, theirs.pvalue), rel=1e-11
    )
    turned = mann_whitney.compare_samples(samples, *ONE[::-1])
    assert (turned.p_value[0], turned.leaning[0]) == (ours.p_value[0], -ours.leaning[0])


def test_p_is_exact_by_trying_every_way_to_share_the_ranks() -> None:
    ranks = np.arange(1, 10)
    sums = np.array([sum(taken) for taken in combinations(ranks.tolist(), 3)])
    for taken in combinations(range(9), 3):
        parts = [ranks[list(taken)].astype(float), np.delete(ranks, taken).astype(float)]
        ours = mann_whitney.compare_samples(parts, *ONE)
        share = 2 * min((sums <= parts[0].sum()).mean(), (sums >= parts[0].sum()).mean())
        assert ours.exact[0]
        assert ours.p_value[0] == pytest.approx(min(share, 1.0))


def test_what_ties_throughout_is_no_difference() -> None:
    flat = [np.full(4, 0.3), np.full(6, 0.1 + 0.2)]
    ours = mann_whitney.compare_samples(flat, *ONE)
    assert (ours.p_value[0], ours.leaning[0], cliff_delta(flat, *ONE, 0.95).value[0]) == (
        1.0,
        0.0,
        0.0,
    )
    assert kruskal_wallis.analyse_samples(flat).p_value == 1.0


@pytest.mark.parametrize("digits", [1, 12])
def test_the_test_of_many_samples_agrees_with_scipy(digits: int) -> None:
    rng = np.random.default_rng(4)
    samples = [
        rng.normal(shift, size=size).round(digits)
        for shift, size in ((0, 7), (0.5, 12), (1, 30), (0, 3))
    ]
    ours, theirs = kruskal_wallis.analyse_samples(samples), stats.kruskal(*samples)
    assert (ours.statistic, ours.p_value) == pytest.approx((theirs.statistic, theirs.pvalue))
    assert ours.effect == pytest.approx(theirs.statistic / (52 - 1))
    with pytest.raises(StatisticsError, match="values in each"):
        kruskal_wallis.analyse_samples([samples[0], np.zeros(0)])


@pytest.mark.parametrize(("n", "m"), SIZES[1:])
def test_cliffs_delta_counts_every_pair(n: int, m: int) -> None:
    a, b = two_samples(n, m, 1)
    deltas = cliff_delta([a, b], *ONE, 0.9)
    signs = np.sign(a[:, None] - b[None, :])
    delta = signs.mean()
    assert deltas.value[0] == pytest.approx(delta)
    assert delta == pytest.approx(2 * stats.mannwhitneyu(a, b).statistic / (n * m) - 1)
    rows, columns = signs.mean(axis=1) - delta, signs.mean(axis=0) - delta
    parts = m**2 * (rows**2).sum() + n**2 * (columns**2).sum() - ((signs - delta) ** 2).sum()
    s, t = np.sqrt(parts / (n * m * (n - 1) * (m - 1))), stats.t.ppf(0.95, n + m - 2)
    spread = t * s * np.sqrt((1 - delta**2) ** 2 + t**2 * s**2)
    ends = [(delta - delta**3 + sign * spread) / (1 - delta**2 + t**2 * s**2) for sign in (-1, 1)]
    assert [deltas.low[0], deltas.high[0]] == pytest.approx(ends)


def test_cliffs_delta_of_a_published_example() -> None:
    """The example of the R package effsize, cliff.delta."""
    treatment = np.array([10, 10, 20, 20, 20, 30, 30, 30, 40, 50.0])
    delta = cliff_delta([treatment, np.array([10, 20, 30, 40, 40, 50.0])], *ONE, 0.95)
    assert [float(part[0].round(7)) for part in (delta.value, delta.low, delta.high)] == [
        -0.25,
        -0.7265846,
        0.3890062,
    ]


def test_samples_apart_have_a_delta_without_an_interval() -> None:
    delta = cliff_delta([np.arange(3.0), np.arange(5.0, 9.0)], *ONE, 0.95)
    assert (delta.value[0], np.isnan(delta.low[0]), np.isnan(delta.high[0])) == (-1.0, True, True)


@pytest.mark.parametrize("rows", [16, 13])
def test_the_contrast_of_a_latin_square_agrees_with_statsmodels(rows: int) -> None:
    rng = np.random.default_rng(8)
    topic, searcher = np.divmod(rng.permutation(16)[:rows], 4)
    system = (topic + searcher) % 2
    values = rng.random(rows) + 0.2 * system + 0.5 * topic
    contrast = latin_square.contrast(values, system, topic, searcher, 0.9)
    frame = pd.DataFrame({"y": values, "a": 1 - system, "t": topic, "u": searcher})
    fit = ols("y ~ a + C(t) + C(u)", frame).fit()
    assert (contrast.difference, contrast.low, contrast.high) == pytest.approx(
        (fit.params["a"], *fit.conf_int(0.1).loc["a"])
    )
    assert (contrast.analysis.statistic, contrast.analysis.p_value) == pytest.approx(
        (fit.tvalues["a"] ** 2, fit.pvalues["a"])
    )
    if rows == 16:
        assert contrast.difference == pytest.approx(
            values[system == 0].mean() - values[system == 1].mean()
        )


def test_a_contrast_without_spread_has_no_interval() -> None:
    topic, searcher = np.divmod(np.arange(16), 4)
    system = (topic + searcher) % 2
    perfect = latin_square.contrast(system.astype(float), system, topic, searcher, 0.95)
    assert perfect.difference == pytest.approx(-1)
    assert np.isnan([perfect.low, perfect.high]).all()
    flat = latin_square.contrast(np.full(16, 0.3), system, topic, searcher, 0.95)
    assert (flat.difference, flat.low, flat.high) == (0.0, 0.0, 0.0)
