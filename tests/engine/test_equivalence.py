"""Two one-sided tests against statsmodels, and the topics that they need against integration and simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import ttost_paired

from metrics.engine.design.topic_set_size import topics_for_equivalence, topics_for_non_inferiority
from metrics.engine.errors import StatisticsError
from metrics.engine.significance.equivalence import (
    Equivalence,
    power_of_tost,
    topics_for_tost,
    tost,
)
from metrics.engine.significance.families import Rule
from metrics.engine.significance.pairs import Matrix, all_pairs
from metrics.engine.significance.practical import Practical
from metrics.engine.significance.verdicts import REASONS

MARGIN = 0.1


def drawn(runs: int, topics: int, seed: int = 1) -> Matrix:
    rng = np.random.default_rng(seed)
    return (
        rng.beta(1, 3, topics)
        + rng.normal(0, 0.12, (runs, topics))
        + np.linspace(0, 0.1, runs)[:, None]
    )


def compared(
    values: Matrix, margin: float = MARGIN, *, lower: bool = False, **rule: object
) -> Equivalence:
    return tost(values, *all_pairs(len(values)), margin, Rule(**rule), lower_is_better=lower)  # type: ignore[arg-type]


@pytest.mark.parametrize("topics", [2, 3, 10, 50, 249])
def test_both_sides_are_those_of_statsmodels(topics: int) -> None:
    values = drawn(6, topics)
    result = compared(values, correction="none")
    for index, (i, j) in enumerate(zip(*all_pairs(6), strict=True)):
        p_value, lower, upper = ttost_paired(values[i], values[j], -MARGIN, MARGIN)
        assert result.a.p_value[index] == pytest.approx(lower[1], rel=1e-9)
        assert result.b.p_value[index] == pytest.approx(upper[1], rel=1e-9)
        assert result.both.p_value[index] == pytest.approx(p_value, rel=1e-9)
        assert result.both.adjusted[index] == result.both.p_value[index]


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.2])
def test_a_pair_is_equivalent_where_its_interval_lies_within_the_margins(alpha: float) -> None:
    values = drawn(8, 30)
    result = compared(values, alpha=alpha, correction="none")
    within = (result.low > -MARGIN) & (result.high < MARGIN)
    assert 0 < within.sum() < len(within)
    assert result.both.holds.tolist() == within.tolist()
    assert result.a.holds.tolist() == (result.low > -MARGIN).tolist()
    differences = values[0] - values[1]
    ends = stats.t.interval(1 - 2 * alpha, 29, differences.mean(), stats.sem(differences))
    assert (result.low[0], result.high[0]) == pytest.approx(ends)


@pytest.mark.slow
@pytest.mark.parametrize(("ours", "theirs"), [("holm", "holm"), ("benjamini_hochberg", "fdr_bh")])
def test_each_claim_is_corrected_over_the_family(ours: str, theirs: str) -> None:
    result = compared(drawn(7, 40), correction=ours)
    for claim in (result.a, result.b, result.both):
        np.testing.assert_allclose(
            claim.adjusted, multipletests(claim.p_value, method=theirs)[1], rtol=1e-12
        )
        assert claim.holds.tolist() == (claim.adjusted < 0.05).tolist()
    assert (result.size, result.correction) == (21, ours)


def test_where_lower_is_better_not_worse_means_not_higher() -> None:
    values = drawn(4, 20)
    up, down = compared(values), compared(values, lower=True)
    assert up.a.p_value.tolist() == down.b.p_value.tolist()
    assert up.b.p_value.tolist() == down.a.p_value.tolist()
    assert up.both.p_value.tolist() == down.both.p_value.tolist()


def test_runs_without_spread_and_too_few_topics_have_no_claim() -> None:
    base = drawn(1, 20)[0]
    result = compared(np.vstack([base, base, base + 0.01]))
    assert np.isnan(result.both.p_value).all()
    assert not result.both.holds.any()
    assert [REASONS[reason] for reason in result.withheld] == ["no_spread"] * 3
    assert [caution.code for caution in result.cautions] == ["few_topics", "no_spread"]
    few = compared(drawn(3, 4), margin=9.0)
    assert (few.both.p_value < 0.05).all()
    assert not few.both.holds.any()
    assert {REASONS[reason] for reason in few.withheld} == {"too_few_topics"}


@pytest.mark.parametrize(
    ("margins", "code", "pointer"),
    [({}, "required", "margin"), ({"margin": 0.0}, "bad_parameter", "margin"),
     ({"margin": np.inf}, "bad_parameter", "margin"), ({"margin": np.nan}, "bad_parameter", "margin")],
)  # fmt: skip
def test_a_margin_is_needed(margins: dict[str, float], code: str, pointer: str) -> None:
    with pytest.raises(StatisticsError) as refused:
        Practical(("tost",), **margins)
    assert (refused.value.code, refused.value.pointer) == (code, pointer)


def test_a_level_of_a_half_is_refused() -> None:
    with pytest.raises(StatisticsError, match=r"below 0\.5"):
        compared(drawn(2, 10), alpha=0.5)


def chance(topics: int, shift: float, alpha: float) -> float:
    """The power by adaptive integration over the density of the estimated deviation."""
    bound = stats.t.ppf(1 - alpha, topics - 1)
    density = stats.chi(topics - 1, scale=1 / np.sqrt(topics - 1)).pdf
    return float(
        integrate.quad(
            lambda u: (2 * stats.norm.cdf(shift - bound * u) - 1) * density(u),
            0,
            shift / bound,
            epsabs=1e-12,
        )[0]
    )


@pytest.mark.parametrize("alpha", [0.001, 0.05, 0.2])
@pytest.mark.parametrize("topics", [2, 3, 5, 20, 1000])
def test_power_is_the_integral(topics: int, alpha: float) -> None:
    bound = stats.t.ppf(1 - alpha, topics - 1)
    for shift in (1.2 * bound, bound + 1.28, 2 * bound):
        assert float(power_of_tost(topics, shift, alpha)) == pytest.approx(
            chance(topics, shift, alpha), abs=1e-7
        )


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.1])
def test_the_topics_needed_are_the_fewest_with_the_power(alpha: float) -> None:
    ratios = np.geomspace(0.01, 4, 9)
    sizes = topics_for_tost(np.ones(9), 1.0, alpha), topics_for_tost(1 / ratios, 1.0, alpha)
    assert len(set(sizes[0])) == 1
    for ratio, topics in zip(ratios.tolist(), sizes[1].astype(int).tolist(), strict=True):
        assert chance(topics, ratio * np.sqrt(topics), alpha) >= 0.8 - 1e-9
        assert topics == 2 or chance(topics - 1, ratio * np.sqrt(topics - 1), alpha) < 0.8


def test_the_topics_needed_by_simulation_and_at_their_ends() -> None:
    (topics,) = topics_for_tost(np.array([0.2]), 0.05).astype(int).tolist()
    rng = np.random.default_rng(2)
    differences = rng.normal(0, 0.2, (20_000, topics))
    result = tost(np.vstack([differences, np.zeros((1, topics))]), np.arange(20_000), np.full(20_000, 20_000), 0.05,
                 Rule("none"))  # fmt: skip
    assert result.both.holds.mean() == pytest.approx(0.8, abs=0.01)
    assert np.isnan(topics_for_tost(np.array([0.0, 1e6]), 0.02)).all()


def test_runs_that_differ_by_the_margin_are_called_equivalent_as_rarely_as_the_level_says() -> None:
    rng = np.random.default_rng(3)
    differences = rng.normal(MARGIN, 0.2, (20_000, 60))
    values = np.vstack([differences, np.zeros((1, 60))])
    result = tost(values, np.arange(20_000), np.full(20_000, 20_000), MARGIN, Rule("none"))
    assert result.both.holds.mean() == pytest.approx(0.05, abs=0.006)


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("power", [0.3, 0.8, 0.95])
def test_a_plan_has_the_fewest_topics_with_its_power(alpha: float, power: float) -> None:
    for margin in (0.03, 0.1, 0.5):
        topics = topics_for_equivalence(margin, 0.02, alpha, power)
        assert chance(topics, margin * np.sqrt(topics / 0.04), alpha) >= power - 1e-9
        assert (
            topics == 2 or chance(topics - 1, margin * np.sqrt((topics - 1) / 0.04), alpha) < power
        )


def test_a_plan_keeps_its_power_in_simulated_collections() -> None:
    one_sided, both = topics_for_non_inferiority(0.05, 0.02), topics_for_equivalence(0.05, 0.02)
    for topics, claim in ((one_sided, "a"), (both, "both")):
        differences = np.random.default_rng(3).normal(0, 0.2, (20_000, topics))
        values = np.vstack([differences, np.zeros((1, topics))])
        result = tost(values, np.arange(20_000), np.full(20_000, 20_000), 0.05, Rule("none"))
        assert getattr(result, claim).holds.mean() == pytest.approx(0.8, abs=0.01)
