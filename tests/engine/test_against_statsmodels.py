"""Corrections, analysis of variance and power against statsmodels, which takes a second to load: where it is used."""

from __future__ import annotations

import numpy as np
import pytest

from metrics.engine.design.topic_set_size import (
    power_of_anova,
    power_of_non_inferiority,
    power_of_t,
    topics_for_anova,
    topics_for_non_inferiority,
    topics_for_t,
)
from metrics.engine.significance import CORRECTIONS, OMNIBUS

THEIR_NAMES = {
    "holm": "holm",
    "hochberg": "simes-hochberg",
    "bonferroni": "bonferroni",
    "benjamini_hochberg": "fdr_bh",
    "benjamini_yekutieli": "fdr_by",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(THEIR_NAMES))
@pytest.mark.parametrize("decimals", [2, 12])
def test_corrections_agree(name: str, decimals: int) -> None:
    from statsmodels.stats.multitest import multipletests

    p_values = np.round(np.random.default_rng(6).random(80) ** 4, decimals)
    expected = multipletests(p_values, method=THEIR_NAMES[name])[1]
    np.testing.assert_allclose(CORRECTIONS[name](p_values), expected, rtol=1e-12)


def test_every_correction_has_been_compared() -> None:
    assert set(THEIR_NAMES) | {"none"} == set(CORRECTIONS)


def test_the_analysis_of_variance_agrees() -> None:
    import pandas as pd
    from statsmodels.stats.anova import AnovaRM

    values = np.random.default_rng(7).random((5, 30)) + np.linspace(0, 0.2, 5)[:, None]
    rows = [(run, topic, value) for (run, topic), value in np.ndenumerate(values)]
    table = AnovaRM(
        pd.DataFrame(rows, columns=["run", "topic", "value"]), "value", "topic", within=["run"]
    ).fit()
    theirs, ours = table.anova_table.loc["run"], OMNIBUS["anova"](values)
    assert ours.statistic == pytest.approx(theirs["F Value"])
    assert ours.sphericity is not None
    assert ours.sphericity.p_uncorrected == pytest.approx(theirs["Pr > F"])
    assert ours.freedom == (theirs["Num DF"], theirs["Den DF"])


@pytest.mark.parametrize("topics", [3, 20, 150])
def test_power_agrees(topics: int) -> None:
    """Their effect size of t is d over its deviation; that of F is made from the noncentrality that it is to have."""
    from statsmodels.stats.power import TTestPower, ftest_power

    t = TTestPower().power(0.1 / np.sqrt(0.08), topics, 0.05)
    within, between = 7 * (topics - 1), 7
    one_sided = TTestPower().power(0.1 / np.sqrt(0.08), topics, 0.05, alternative="larger")
    anova = ftest_power(
        np.sqrt(topics * 0.1**2 / (2 * 0.04) / (within + between + 1)), within, between, 0.05
    )
    assert power_of_t(topics, 0.1, 0.04) == pytest.approx(t, abs=1e-7)
    assert power_of_non_inferiority(topics, 0.1, 0.04) == pytest.approx(one_sided, abs=1e-7)
    assert power_of_anova(topics, 8, 0.1, 0.04) == pytest.approx(anova, abs=1e-7)


def test_topic_set_sizes_agree() -> None:
    from statsmodels.stats.power import FTestAnovaPower, TTestPower

    t = TTestPower().solve_power(0.1 / np.sqrt(0.08), alpha=0.05, power=0.8)
    assert topics_for_t(0.1, 0.04) == np.ceil(t)
    one_sided = TTestPower().solve_power(
        0.1 / np.sqrt(0.08), alpha=0.05, power=0.8, alternative="larger"
    )
    assert topics_for_non_inferiority(0.1, 0.04) == np.ceil(one_sided)
    means = np.array([0.05, -0.05, *[0.0] * 6])
    anova = FTestAnovaPower().solve_power(
        np.sqrt((means**2).mean() / 0.04), alpha=0.05, power=0.8, k_groups=8
    )
    # Theirs is one-way, whose residual has more degrees of freedom.
    assert topics_for_anova(8, 0.1, 0.04) - np.ceil(anova / 8) in (0, 1)
