"""What holds for every test and correction, whatever it computes; and the paired t test."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from metrics.engine.errors import StatisticsError
from metrics.engine.significance import CORRECTIONS, OMNIBUS, TESTS, paired_t
from metrics.engine.significance.families import Pairs, Rule, compare_family
from metrics.engine.significance.pairs import (
    Matrix,
    Options,
    PairedResult,
    all_pairs,
    baseline_pairs,
)

FEW = Options(resamples=999, ties="rounded")
ALONE = [name for name, test in TESTS.items() if not test.simultaneous and name != "conover"]


def runs(number: int, topics: int, seed: int = 1) -> Matrix:
    """Values as a measure gives them: skewed, some equal, some 0, topics of different difficulty."""
    rng = np.random.default_rng(seed)
    ease = rng.beta(1, 2, topics)
    return np.round(np.clip(ease + rng.normal(0, 0.2, (number, topics)), 0, 1), 2)


def compare(name: str, values: Matrix, options: Options = FEW) -> PairedResult:
    return TESTS[name].compare(values, *all_pairs(len(values)), options)


def test_paired_t_agrees_with_scipy() -> None:
    values = np.random.default_rng(1).random((12, 50))
    first, second = all_pairs(12)
    ours = paired_t.compare(values, first, second)
    for index, (i, j) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        theirs = stats.ttest_rel(values[i], values[j])
        interval = theirs.confidence_interval(0.95)
        assert ours.statistic[index] == pytest.approx(theirs.statistic, abs=1e-12)
        assert ours.p_value[index] == pytest.approx(theirs.pvalue, abs=1e-12)
        assert ours.low[index] == pytest.approx(interval.low, abs=1e-12)
        assert ours.high[index] == pytest.approx(interval.high, abs=1e-12)


@pytest.mark.parametrize("name", list(TESTS))
@pytest.mark.parametrize("topics", [2, 5, 50])
def test_identical_runs_have_p_one_and_no_p_is_nan(name: str, topics: int) -> None:
    values = runs(4, topics)
    values[2] = values[0]
    result = compare(name, values)
    assert (result.difference[1], result.p_value[1]) == (0.0, 1.0)
    assert ((result.p_value > 0) & (result.p_value <= 1)).all()
    assert (result.low <= result.difference).all()
    assert (result.difference <= result.high).all()


@pytest.mark.parametrize("name", list(TESTS))
def test_nothing_but_identical_runs_is_no_difference(name: str) -> None:
    result = compare(name, np.tile(runs(1, 30), (3, 1)))
    assert result.p_value.tolist() == [1.0] * 3
    assert (result.low.tolist(), result.high.tolist()) == ([0.0] * 3, [0.0] * 3) or not TESTS[
        name
    ].paired


@pytest.mark.parametrize("name", list(TESTS))
def test_the_second_run_minus_the_first_is_the_same_turned_round(name: str) -> None:
    values = runs(5, 40)
    first, second = all_pairs(5)
    forth, back = (
        TESTS[name].compare(values, *pair, FEW) for pair in ((first, second), (second, first))
    )
    np.testing.assert_allclose(back.p_value, forth.p_value, rtol=1e-12)
    np.testing.assert_allclose(back.difference, -forth.difference, atol=1e-15)
    np.testing.assert_allclose(back.low, -forth.high, atol=1e-12 if name != "bootstrap" else 1e-3)


@pytest.mark.parametrize("name", list(TESTS))
@pytest.mark.parametrize("factor", [1e-300, 1e-6, 3.0, 1e300])
def test_the_unit_of_the_values_does_not_matter(name: str, factor: float) -> None:
    values = runs(4, 40)
    result, scaled = compare(name, values), compare(name, values * factor)
    np.testing.assert_allclose(scaled.p_value, result.p_value, rtol=1e-9)
    np.testing.assert_allclose(scaled.low / factor, result.low, rtol=1e-6, atol=1e-9)
    assert scaled.cautions == result.cautions


@pytest.mark.parametrize("name", ALONE)
def test_a_pair_does_not_depend_on_the_other_runs(name: str) -> None:
    values = runs(4, 30)
    values[2] *= 1e18
    values[3] *= 1e7
    alone, beside = compare(name, values[:2]), compare(name, values)
    assert beside.p_value[0] == alone.p_value[0]


@pytest.mark.parametrize("name", [name for name, test in TESTS.items() if not test.of_given_pairs])
def test_only_the_pairs_asked_for_are_answered_and_they_are_the_same(name: str) -> None:
    values = runs(5, 30)
    every, some = compare(name, values), TESTS[name].compare(values, *baseline_pairs(5, [0]), FEW)
    np.testing.assert_allclose(some.p_value, every.p_value[:4], rtol=1e-9)
    np.testing.assert_allclose(some.difference, -every.difference[:4])


@pytest.mark.parametrize("name", list(TESTS))
def test_a_difference_on_every_topic_is_found(name: str) -> None:
    base, size = np.random.default_rng(3).random((2, 40))
    low = base - 1.25 - size
    # Two runs that nothing separates: in one order on every topic the rank sums would leave
    # Conover's test nothing.
    beside = base + 0.01 * np.where(np.arange(40) % 2, 1, -1)
    result = compare(name, np.vstack([base, low, base, beside]))
    assert result.p_value[0] < 0.005
    assert result.difference[0] == pytest.approx((1.25 + size).mean())
    assert result.p_value[1] == 1.0


@pytest.mark.parametrize("name", ["paired_t", "bootstrap", "tukey_hsd", "conover"])
@pytest.mark.parametrize("topics", [2, 5, 20])
def test_a_difference_without_spread_has_no_statistic_to_test_it_by(name: str, topics: int) -> None:
    base = np.random.default_rng(3).random(topics)
    result = compare(name, np.vstack([base + 0.25, base, base]))
    assert np.isnan(result.p_value[:2]).all()
    assert np.isnan([result.low[:2], result.high[:2]]).all()
    assert result.difference[0] == pytest.approx(0.25)
    assert {"no_spread", "few_topics"} <= {caution.code for caution in result.cautions}
    # The exact tests need no spread.
    for exact in ("sign", "randomisation", "wilcoxon"):
        assert compare(exact, np.vstack([base + 0.25, base]), Options(resamples=2**20)).p_value[
            0
        ] >= 2.0 ** (1 - topics)


@pytest.mark.parametrize("name", list(TESTS))
def test_one_topic_is_not_enough(name: str) -> None:
    with pytest.raises(StatisticsError, match="at least 2"):
        compare(name, np.ones((2, 1)))


@pytest.mark.parametrize("name", list(OMNIBUS))
def test_all_runs_at_once_need_two_topics_and_two_runs(name: str) -> None:
    for shape in ((2, 1), (1, 2)):
        with pytest.raises(StatisticsError, match="at least 2"):
            OMNIBUS[name](np.ones(shape))
    assert OMNIBUS[name](np.ones((3, 4))).p_value == 1.0


@pytest.mark.parametrize("name", [*TESTS, *OMNIBUS])
@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_a_value_that_is_no_number_is_refused(name: str, odd: float) -> None:
    values = runs(3, 10)
    values[1, 4] = odd
    with pytest.raises(StatisticsError, match="finite"):
        compare(name, values) if name in TESTS else OMNIBUS[name](values)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("confidence", 1.0), ("resamples", 0), ("seed", -1), ("threads", 0), ("min_difference", -0.1),
        ("zeros", "keep"), ("ties", "all"),
    ],
)  # fmt: skip
def test_an_option_without_a_meaning_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(StatisticsError, match=name) as refused:
        Options(**{name: value})  # type: ignore[arg-type]
    assert refused.value.pointer == name


@pytest.mark.parametrize("name", [name for name, test in TESTS.items() if test.draws])
def test_the_seed_alone_decides_what_is_drawn(name: str) -> None:
    values = runs(6, 40)
    options = [
        Options(resamples=3000, seed=seed, threads=threads)
        for seed, threads in ((5, 1), (5, 3), (6, 1))
    ]
    same, threaded, other = (compare(name, values, option) for option in options)
    assert threaded.p_value.tolist() == same.p_value.tolist()
    assert threaded.low.tolist() == same.low.tolist()
    assert other.p_value.tolist() != same.p_value.tolist()
    np.testing.assert_allclose(other.p_value, same.p_value, atol=0.05)


def test_cautions_name_what_a_reader_must_know() -> None:
    few = compare("wilcoxon", runs(2, 12))
    tied = runs(2, 40)
    tied[1, :30] = tied[0, :30]
    uneven = np.random.default_rng(1).normal(0, 1, (4, 40)) * np.array([[0.1], [1], [1], [5]])
    for result, code in (
        (few, "few_topics"),
        (compare("tukey_hsd", uneven), "uneven_spread"),
        (compare("randomised_tukey_hsd", uneven, Options(resamples=99)), "uneven_spread"),
        (compare("welch_t", tied), "unpaired"),
        (compare("randomisation", runs(20, 30), Options(resamples=500)), "few_resamples"),
    ):
        assert code in [caution.code for caution in result.cautions]
    assert compare("paired_t", np.random.default_rng(1).normal(0, 1, (3, 60))).cautions == ()


def test_baseline_pairs_leave_the_baseline_out() -> None:
    first, second = baseline_pairs(4, [2])
    assert (first.tolist(), second.tolist()) == ([0, 1, 3], [2, 2, 2])


def test_pairs_with_several_baselines_count_two_of_them_once() -> None:
    first, second = baseline_pairs(4, [2, 0])
    assert (first.tolist(), second.tolist()) == ([0, 1, 3, 1, 3], [2, 2, 2, 0, 0])
    for baselines in ((2,), (2, 0), (2, 0, 3), (0, 1, 2, 3)):
        pairs = Pairs(4, baselines)
        assert pairs.number == len(pairs.indices()[0])
        assert pairs.are_some == (pairs.number < 6)


@pytest.mark.parametrize("name", ["wilcoxon", "t_and_tukey", "max_t"])
def test_baselines_that_leave_out_no_pair_have_the_p_of_all_pairs(name: str) -> None:
    values = np.random.default_rng(3).random((4, 12)) + np.array([[0.0], [0.1], [0.3], [0.2]])
    every, against = (
        compare_family(values, Pairs(4, some), name, Rule()) for some in ((), (3, 2, 1))
    )
    pairs = [{*pair} for pair in zip(*(side.tolist() for side in Pairs(4).indices()), strict=True)]
    first, second = Pairs(4, (3, 2, 1)).indices()
    order = [pairs.index({a, b}) for a, b in zip(first.tolist(), second.tolist(), strict=True)]
    assert against.size == every.size
    np.testing.assert_allclose(against.adjusted, every.adjusted[order], atol=1e-12)


def test_p_is_corrected_over_the_pairs_with_all_baselines() -> None:
    values = np.random.default_rng(5).random((6, 30)) + np.linspace(0, 0.2, 6)[:, None]
    family = compare_family(values, Pairs(6, (1, 4)), "paired_t", Rule())
    first, second = baseline_pairs(6, [1, 4])
    naive = stats.ttest_rel(values[first], values[second], axis=1).pvalue
    order = np.argsort(naive)
    expected = np.empty(9)
    expected[order] = np.maximum.accumulate((9 - np.arange(9)) * naive[order]).clip(max=1)
    assert family.size == 9
    np.testing.assert_allclose(family.adjusted, expected, rtol=1e-9)


def test_holm_agrees_with_a_hand_worked_family() -> None:
    """Four sorted p of .01 .02 .03 .04 become .04 .06 .06 .06."""
    adjusted = CORRECTIONS["holm"](np.array([0.03, 0.01, 0.04, 0.02]))
    assert adjusted.tolist() == pytest.approx([0.06, 0.04, 0.06, 0.06])


@pytest.mark.parametrize("name", list(CORRECTIONS))
def test_corrections_never_lower_a_p_value_and_stay_below_one(name: str) -> None:
    p_values = np.random.default_rng(4).random(40) ** 3
    adjusted = CORRECTIONS[name](p_values)
    assert (adjusted >= p_values).all()
    assert adjusted.max() <= 1
    assert CORRECTIONS[name](np.empty(0)).tolist() == []
    assert CORRECTIONS[name](p_values[:1]).tolist() == pytest.approx(p_values[:1].tolist())


@pytest.mark.parametrize(
    ("ours", "theirs"), [("benjamini_hochberg", "bh"), ("benjamini_yekutieli", "by")]
)
def test_false_discovery_rates_agree_with_scipy(ours: str, theirs: str) -> None:
    p_values = np.round(np.random.default_rng(5).random(60) ** 4, 3)
    np.testing.assert_allclose(
        CORRECTIONS[ours](p_values), stats.false_discovery_control(p_values, method=theirs)
    )
