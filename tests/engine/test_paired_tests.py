"""Wilcoxon, sign, randomisation and bootstrap: against SciPy, and against what is tried out one by one."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from metrics.engine.significance import TESTS
from metrics.engine.significance.pair_pass import draw
from metrics.engine.significance.pairs import Matrix, Options, PairedResult, all_pairs

# Quarters are exact in binary: differences tie for SciPy exactly when they do for us.
# Below 14 topics SciPy tries every sign, slowly.
QUARTERS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=14, max_size=60)


def compare(name: str, values: Matrix, **options: object) -> PairedResult:
    return TESTS[name].compare(values, *all_pairs(len(values)), Options(**options))  # type: ignore[arg-type]


def quarters(rows: list[tuple[int, int]]) -> Matrix:
    return np.array(rows, np.float64).T / 4


def exact_wilcoxon(differences: Matrix, zeros: str = "drop") -> float:
    """p by counting the sign patterns with each sum of ranks, one rank after another; ranks are doubled to be whole."""
    counted = differences if zeros == "pratt" else differences[differences != 0]
    ranks = (2 * stats.rankdata(np.abs(counted))).astype(int)[counted != 0]
    signs = counted[counted != 0]
    least = min(ranks[signs > 0].sum(), ranks[signs < 0].sum())
    ways = Counter([0])
    for rank in ranks.tolist():
        ways = ways + Counter({total + rank: number for total, number in ways.items()})
    below = sum(number for total, number in ways.items() if total <= least)
    return float(min(1.0, 2 * below / 2 ** len(ranks)))


@pytest.mark.slow
@pytest.mark.parametrize("topics", [4, 13, 14, 50, 51, 120])
@pytest.mark.parametrize("zeros", ["drop", "pratt"])
def test_wilcoxon_agrees_with_scipy(topics: int, zeros: str) -> None:
    """Topics on both sides of every change of method; continuous values, and values with ties and zeros."""
    rng = np.random.default_rng(topics)
    for values in (rng.random((8, topics)), rng.integers(0, 9, (8, topics)) / 8):
        ours = compare("wilcoxon", values, zeros=zeros)
        for index, (i, j) in enumerate(zip(*(pair.tolist() for pair in all_pairs(8)), strict=True)):
            method = {"drop": "wilcox", "pratt": "pratt"}[zeros]
            differences = values[i] - values[j]
            # Of so few differences other than zero p is exact here; SciPy takes a second for 13
            # topics that tie.
            few = np.count_nonzero(differences) <= 13 <= topics
            how = "asymptotic" if few else "auto"
            theirs = stats.wilcoxon(values[i], values[j], zero_method=method, method=how)
            expected = exact_wilcoxon(differences, zeros) if few else theirs.pvalue
            assert ours.p_value[index] == pytest.approx(expected, abs=1e-12)
            assert ours.statistic[index] == theirs.statistic


@given(QUARTERS)
def test_wilcoxon_agrees_with_scipy_on_values_that_tie(rows: list[tuple[int, int]]) -> None:
    values = quarters(rows)
    ours = compare("wilcoxon", values)
    if (values[0] == values[1]).all():
        assert ours.p_value[0] == 1.0
        return
    differences = values[0] - values[1]
    few = np.count_nonzero(differences) <= 13
    expected = exact_wilcoxon(differences) if few else stats.wilcoxon(values[0], values[1]).pvalue
    assert ours.p_value[0] == pytest.approx(expected, abs=1e-12)
    assert ours.exact[0] == few


@pytest.mark.parametrize(("nonzero", "expected"), [(5, 0.0625), (6, 0.03125), (1, 1.0)])
def test_few_differences_among_many_topics_have_an_exact_p(nonzero: int, expected: float) -> None:
    values = np.tile(np.random.default_rng(1).random(50), (2, 1))
    values[0, :nonzero] += np.linspace(0.1, 0.2, nonzero)
    ours = compare("wilcoxon", values)
    assert (ours.p_value[0], ours.exact[0], ours.leaning[0]) == (expected, True, 1.0)


def test_differences_that_tie_but_for_rounding_tie() -> None:
    """0.3 - 0.2 and 0.4 - 0.3 differ in their last bits."""
    rng = np.random.default_rng(2)
    tenths = rng.integers(0, 10, (2, 40))
    rounded, exact = (
        compare("wilcoxon", tenths / 10, ties="rounded"),
        compare("wilcoxon", tenths.astype(np.float64)),
    )
    assert rounded.p_value.tolist() == exact.p_value.tolist()
    as_given = compare("wilcoxon", tenths / 10)
    assert as_given.p_value[0] == pytest.approx(stats.wilcoxon(*(tenths / 10)).pvalue, abs=1e-12)
    assert [caution.code for caution in as_given.cautions] == ["ties_lost_to_rounding"]
    assert compare("sign", tenths / 10, min_difference=0.1).p_value.tolist() == pytest.approx(
        compare("sign", tenths.astype(np.float64), min_difference=1).p_value.tolist()
    )


@given(QUARTERS, st.integers(0, 2))
def test_the_sign_test_agrees_with_scipy(rows: list[tuple[int, int]], least: int) -> None:
    values = quarters(rows)
    differences = values[0] - values[1]
    wins, losses = (differences > least / 4).sum(), (differences < -least / 4).sum()
    expected = stats.binomtest(int(wins), int(wins + losses)).pvalue if wins + losses else 1.0
    ours = compare("sign", values, min_difference=least / 4)
    assert ours.p_value[0] == pytest.approx(expected, abs=1e-12)
    assert ours.statistic[0] == wins


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=9))
def test_few_topics_are_randomised_in_every_way(rows: list[tuple[int, int]]) -> None:
    differences = np.array([a - b for a, b in rows])
    every = [abs(int(np.dot(signs, differences))) for signs in product((-1, 1), repeat=len(rows))]
    expected = np.mean(np.array(every) >= abs(differences.sum()))
    ours = compare("randomisation", np.array(rows, np.float64).T / 10, resamples=1000)
    assert ours.exact.all()
    assert ours.p_value[0] == pytest.approx(expected, abs=1e-15)


def test_every_pattern_is_tried_where_they_are_no_more_than_the_resamples() -> None:
    values = np.random.default_rng(1).random((3, 12))
    assert compare("randomisation", values, resamples=4096).exact.all()
    assert not compare("randomisation", values, resamples=4095).exact.any()
    exact = compare("randomisation", values, resamples=4096)
    for index, (i, j) in enumerate([(0, 1), (0, 2), (1, 2)]):
        theirs = stats.permutation_test(
            (values[i] - values[j],), np.mean, permutation_type="samples", n_resamples=4096, axis=-1
        )
        assert exact.p_value[index] == pytest.approx(theirs.pvalue, abs=1e-12)


@pytest.mark.parametrize("decimals", [1, 4])
def test_drawn_flips_come_near_to_the_exact_p_ties_included(decimals: int) -> None:
    """With one decimal most sums tie: a tie missed or invented would move p by more than the draws do."""
    values = np.round(np.random.default_rng(7).random((6, 15)), decimals)
    exact, drawn = (
        compare("randomisation", values, resamples=resamples) for resamples in (2**15, 2**15 - 1)
    )
    error = np.sqrt(exact.p_value * (1 - exact.p_value) / 2**15)
    assert (np.abs(drawn.p_value - exact.p_value) < 4 * error + 2**-14).all()


def test_the_bootstrap_counts_as_one_that_is_spelled_out() -> None:
    """Its p is that of n draws with replacement from the centred differences, by a generator of its own."""
    values = np.random.default_rng(3).beta(1, 3, (2, 30))
    rng, difference = np.random.default_rng(9), values[0] - values[1]
    drawn = rng.choice(difference - difference.mean(), (60_000, 30)).mean(axis=1)
    expected = (np.abs(drawn) >= abs(difference.mean())).mean()
    assert compare("bootstrap", values).p_value[0] == pytest.approx(expected, abs=0.008)


def test_bca_intervals_agree_with_scipy() -> None:
    values = np.random.default_rng(4).gamma(0.5, 1.0, (4, 40))
    ours = compare("bootstrap", values, resamples=10_000)
    for index, (i, j) in enumerate(zip(*(pair.tolist() for pair in all_pairs(4)), strict=True)):
        difference = values[i] - values[j]
        theirs = stats.bootstrap(
            (difference,), np.mean, n_resamples=10_000, rng=1
        ).confidence_interval
        # Both ends are drawn: ten thousand resamples leave about 3 per cent of a standard error.
        unit = difference.std() / np.sqrt(40)
        assert ours.low[index] == pytest.approx(theirs.low, abs=0.12 * unit)
        assert ours.high[index] == pytest.approx(theirs.high, abs=0.12 * unit)


def test_drawn_bits_are_those_of_numpy() -> None:
    theirs, words = np.random.SFC64(5), np.empty(1000, np.uint64)
    draw(theirs.state["state"]["state"].copy(), words)
    assert words.tolist() == theirs.random_raw(1000).tolist()


@settings(max_examples=20)
@given(st.integers(2, 12), st.integers(2, 5))
def test_randomised_tukey_with_two_runs_is_the_randomisation_test(topics: int, places: int) -> None:
    values = np.round(np.random.default_rng(topics).random((2, topics)), places)
    exact = compare("randomisation", values, resamples=5000)
    drawn = compare("randomised_tukey_hsd", values, resamples=5000)
    assert drawn.p_value[0] == pytest.approx(exact.p_value[0], abs=0.03)
