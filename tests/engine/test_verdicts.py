"""What may be said of a pair: never without a test, never against the way that the test points."""

from __future__ import annotations

import numpy as np
import pytest

from metrics.engine.significance import CORRECTIONS, TESTS
from metrics.engine.significance.families import Family, Pairs, Rule, compare_family, disagreements
from metrics.engine.significance.pairs import Matrix, Options
from metrics.engine.significance.verdicts import MIN_TOPICS, REASONS, adjust

FEW = Options(resamples=2_000)
RANKS = [name for name, test in TESTS.items() if test.ranks]


def family_of(name: str, values: Matrix, baselines: tuple[int, ...] = (), **rule: object) -> Family:
    return compare_family(values, Pairs(len(values), baselines), name, Rule(**rule), FEW)  # type: ignore[arg-type]


def codes(family: Family) -> set[str]:
    return {caution.code for caution in family.result.cautions}


def reasons(family: Family) -> list[str]:
    return [REASONS[reason] for reason in family.verdicts.withheld.tolist()]


def against_the_mean(topics: int = 50) -> Matrix:
    """The first run is a little worse on most topics and much better on a few: its mean is the higher one."""
    base = np.random.default_rng(5).random(topics) / 2
    few = topics * 8 // 50
    return np.vstack([base + np.where(np.arange(topics) < few, 0.08, -0.01), base])


@pytest.mark.parametrize("name", list(TESTS))
@pytest.mark.parametrize("topics", range(2, MIN_TOPICS))
def test_fewer_than_five_topics_have_no_verdict_and_no_tier(name: str, topics: int) -> None:
    rng = np.random.default_rng(topics)
    apart = np.array([[0.9], [0.5], [0.1]]) + rng.normal(0, 1e-6, (3, topics))
    constant = np.array([[0.5], [0.4], [0.1]]) + rng.random(topics)
    for values in (apart, constant):
        for baselines in ((), (1,)):
            family = family_of(name, values, baselines, alpha=0.9, correction="none")
            assert not family.significant.any()
            assert set(reasons(family)) == {"too_few_topics"}
            assert family.tiers is None
            assert "no_verdict" in codes(family)
            assert not (family.result.p_value == 0).any()
    assert family_of(name, np.vstack([apart, apart[:1]])).tiers is None


@pytest.mark.parametrize("name", ["paired_t", "bootstrap", "tukey_hsd", "conover"])
def test_differences_without_spread_have_no_verdict_and_no_tier(name: str) -> None:
    values = np.array([[0.5], [0.4], [0.1]]) + np.random.default_rng(1).random(30)
    family = family_of(name, values)
    assert np.isnan(family.adjusted).all()
    assert reasons(family) == ["no_spread"] * 3
    assert (family.tiers, bool(family.significant.any())) == (None, False)
    assert "no_spread" in codes(family)


def test_the_exact_tests_of_a_constant_difference_keep_their_verdict() -> None:
    base = np.random.default_rng(1).random(8)
    for name in ("sign", "randomisation", "wilcoxon"):
        family = compare_family(np.vstack([base + 0.25, base]), Pairs(2), name, Rule(), Options())
        assert (family.result.p_value[0], bool(family.significant[0])) == (2.0**-7, True)


@pytest.mark.parametrize("correction", list(CORRECTIONS))
def test_a_pair_that_cannot_be_tested_counts_in_the_family_as_one_with_p_one(
    correction: str,
) -> None:
    p_values = np.array([0.01, np.nan, 0.02, np.nan])
    adjusted = adjust(p_values, CORRECTIONS[correction])
    assert np.isnan(adjusted[[1, 3]]).all()
    assert (
        adjusted[[0, 2]].tolist()
        == CORRECTIONS[correction](np.array([0.01, 1.0, 0.02, 1.0]))[[0, 2]].tolist()
    )


@pytest.mark.parametrize("name", RANKS)
def test_a_test_of_ranks_that_points_another_way_has_no_verdict(name: str) -> None:
    values = against_the_mean(400)
    family = family_of(name, values)
    assert family.result.difference[0] > 0
    if name == "mann_whitney":  # As if on other topics, so much is no difference at all.
        assert not family.significant[0]
        return
    assert (family.result.leaning[0], bool(family.adjusted[0] < 0.05)) == (-1.0, True)
    assert (reasons(family), bool(family.significant[0])) == (["other_direction"], False)
    assert family.tiers is not None
    assert family.tiers.tier.tolist() == [1, 1]
    assert "other_direction" in codes(family)
    assert disagreements([family_of("paired_t", values), family]).tolist() == [0]


def test_the_u_test_that_points_another_way_has_no_verdict() -> None:
    values = np.zeros((2, 100))
    values[0, :20], values[1] = 10.0, 1.0
    family = family_of("mann_whitney", values)
    assert (family.result.difference[0] > 0, family.result.leaning[0], reasons(family)) == (
        True,
        -1,
        ["other_direction"],
    )


@pytest.mark.parametrize("name", list(TESTS))
def test_a_test_that_points_the_way_of_the_mean_has_its_verdict_either_way_round(name: str) -> None:
    rng = np.random.default_rng(2)
    base = rng.random(60)
    values = np.vstack([base, base + 1.0 + rng.normal(0, 0.05, 60), base + rng.normal(0, 0.3, 60)])
    family = family_of(name, values)
    assert family.verdicts.better(False).tolist()[0] == -1
    assert family.verdicts.better(True).tolist()[0] == 1
    assert set(reasons(family)) == {""}
    assert family.tiers is not None
    assert family.tiers.tier[1] == 1 < family.tiers.tier[0]


def test_the_wilcoxon_statistic_has_a_direction_with_pratt_s_zeros_too() -> None:
    values = np.vstack([np.r_[np.zeros(5), np.linspace(0.1, 1, 15)], np.zeros(20)])
    for zeros in ("drop", "pratt"):
        result = TESTS["wilcoxon"].compare(
            values, np.array([0, 1]), np.array([1, 0]), Options(zeros=zeros)
        )
        assert result.leaning.tolist() == [1.0, -1.0]


@pytest.mark.parametrize("name", [name for name, test in TESTS.items() if test.paired])
def test_every_paired_test_tells_of_many_ties_where_it_finds_something(name: str) -> None:
    values = np.tile(np.random.default_rng(3).random(50), (2, 1))
    values[0, :12] += np.linspace(0.1, 0.2, 12)
    family = family_of(name, values)
    assert ("heavy_ties" in codes(family)) == bool(family.significant[0])
    values[0, 12:] += 0.1 + np.random.default_rng(4).random(38)
    clear = family_of(name, values)
    assert "heavy_ties" not in codes(clear)
    # Where every topic ranks the two runs the same way Conover's test has no spread.
    assert clear.significant[0] or name == "conover"


def test_a_caution_counts_the_significant_pairs_that_it_concerns_and_no_others() -> None:
    """Run 3 is far better, by a little on most topics and by much on two; runs 0, 1 and 2 do not differ, and skewed."""
    rng = np.random.default_rng(5)
    values = rng.normal(0, 0.01, (4, 40)) + rng.random(40)
    values[3] += 0.5
    values[0, 0] += 3.0
    message = {
        caution.code: caution.message for caution in family_of("paired_t", values).result.cautions
    }
    assert message["skewed_differences"] == (
        "1 of the 3 significant pairs has skewed differences for 40 topics: p is approximate"
    )
    values[3] -= 0.5
    equal = family_of("paired_t", values)
    assert not equal.significant.any()
    assert "skewed_differences" not in codes(equal)


def test_all_pairs_of_few_topics_have_verdicts_and_no_tiers() -> None:
    values = np.random.default_rng(6).normal(0, 0.1, (3, 9)) + np.array([[0.0], [1.0], [2.0]])
    family = family_of("t_and_tukey", values)
    assert (family.significant.all(), family.tiers, "no_tiers" in codes(family)) == (
        True,
        None,
        True,
    )
    # A single pair needs no more than its test does, and ten topics are enough.
    assert family_of("t_and_tukey", values[:2]).tiers is not None
    enough = family_of("t_and_tukey", np.hstack([values, values[:, :1]]))
    assert (enough.tiers is not None, "no_tiers" in codes(enough)) == (True, False)


def test_conover_without_friedman_s_finding_is_told() -> None:
    rng = np.random.default_rng(1)
    noise = rng.random((3, 12))
    assert "omnibus_not_significant" in codes(family_of("conover", noise))
    clear = noise + np.array([[0.0], [1.0], [2.0]])
    clear[:, 0] = 0.5
    assert "omnibus_not_significant" not in codes(family_of("conover", clear))


def test_a_simultaneous_test_counts_for_all_pairs_of_a_baseline_too_unless_it_steps_down() -> None:
    values = np.random.default_rng(1).random((12, 20))
    for name, test in TESTS.items():
        family = family_of(name, values, baselines=(3,))
        of_given_pairs = not test.simultaneous or name in ("max_t", "t_and_tukey")
        assert family.size == (11 if of_given_pairs else 66)
        assert family.correction == (None if test.simultaneous else "holm")


def test_the_interval_of_the_randomised_tukey_test_ties_where_its_p_does() -> None:
    """With few values many sums tie with the end of the range: rounding must not put them outside."""
    for seed, runs, topics, steps in (
        (26, 40, 6, 7),
        (84, 12, 20, 7),
        (125, 10, 7, 3),
        (145, 12, 20, 7),
    ):
        values = np.random.default_rng(seed).integers(0, steps + 1, (runs, topics)) / steps
        result = TESTS["randomised_tukey_hsd"].compare(
            values, *Pairs(runs).indices(), Options(resamples=1_000)
        )
        outside = (result.low > 0) | (result.high < 0)
        assert outside.tolist() == (result.p_value <= 0.05).tolist()
