"""The step-down test of the largest |t|: against its definition written out with t itself, and its level."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats

from metrics.engine.arrays import Ints
from metrics.engine.significance import TESTS, max_t
from metrics.engine.significance.families import Pairs, Rule, compare_family
from metrics.engine.significance.pairs import (
    Matrix,
    Options,
    PairedResult,
    all_pairs,
    baseline_pairs,
)
from metrics.engine.significance.randomisation import draw_flips

EIGHTHS = arrays.arrays(
    np.int64, st.tuples(st.integers(2, 5), st.integers(2, 7)), elements=st.integers(0, 8)
)


def compare(
    values: Matrix, pairs: tuple[Ints, Ints] | None = None, **options: object
) -> PairedResult:
    pairs = pairs or all_pairs(len(values))
    return TESTS["max_t"].compare(values, *pairs, Options(**options))  # type: ignore[arg-type]


def t_of(differences: Matrix) -> Matrix:
    """|t| along the last axis: infinite without spread, 0 where nothing differs."""
    mean, error = (
        differences.mean(axis=-1),
        differences.std(axis=-1, ddof=1) / np.sqrt(differences.shape[-1]),
    )
    spread = error > 1e-12
    return np.where(
        spread,
        np.abs(mean) / np.where(spread, error, 1),
        np.where(np.abs(mean) > 1e-12, np.inf, 0.0),
    )


def by_definition(differences: Matrix, signs: Matrix, *, drawn: bool) -> tuple[Matrix, Matrix]:
    """p of each pair and the largest |t| in each resample; `differences` (pairs, topics), `signs` (resamples,
    topics)."""
    observed = t_of(differences)
    resampled = t_of(signs[:, None, :] * differences)
    order = np.argsort(-observed, kind="stable")
    p_value = np.empty(len(order))
    before = 0.0
    for place, pair in enumerate(order):
        largest = resampled[:, order[place:]].max(axis=1)
        many = np.count_nonzero(largest >= observed[pair] * (1 - 1e-9))
        before = max(before, (many + drawn) / (len(signs) + drawn))
        p_value[pair] = before
    return p_value, resampled.max(axis=1)


@given(EIGHTHS)
def test_with_few_topics_all_sign_patterns_are_tried(eighths: Matrix) -> None:
    values = eighths / 8
    first, second = all_pairs(len(values))
    differences = values[first] - values[second]
    result = compare(values)
    # A difference without spread has no t, and others are not held against it.
    tested = t_of(differences) < np.inf
    assert np.isnan(result.p_value[~tested]).all()
    if tested.any():
        signs = np.array(list(itertools.product([1.0, -1.0], repeat=values.shape[1])))
        p_value, _ = by_definition(differences[tested], signs, drawn=False)
        np.testing.assert_allclose(result.p_value[tested], p_value, rtol=1e-12)
    assert result.exact.all()


@pytest.mark.parametrize("baseline", [None, 3])
def test_drawn_flips_give_the_p_of_the_definition(baseline: int | None) -> None:
    rng = np.random.default_rng(5)
    values = rng.normal(0, 1, (8, 30)) * rng.uniform(0.2, 3, (8, 1)) + rng.normal(0, 0.3, (8, 1))
    pairs = all_pairs(8) if baseline is None else baseline_pairs(8, [baseline])
    signs = np.concatenate(
        [draw_flips(7, block, 30).transpose(0, 2, 1).reshape(-1, 30) for block in range(3)]
    )[:3000]
    differences = values[pairs[0]] - values[pairs[1]]
    result = compare(values, pairs, resamples=3000, seed=7, threads=2)
    p_value, largest = by_definition(differences, signs, drawn=True)
    np.testing.assert_allclose(result.p_value, p_value, rtol=1e-12)
    assert not result.exact.any()
    np.testing.assert_allclose(
        result.statistic, stats.ttest_rel(values[pairs[0]], values[pairs[1]], axis=1).statistic
    )
    reach = np.quantile(largest, 0.95, method="higher")
    margin = reach * differences.std(axis=1, ddof=1) / np.sqrt(30)
    np.testing.assert_allclose(result.high - result.difference, margin, rtol=1e-9)
    np.testing.assert_allclose(result.difference - result.low, margin, rtol=1e-9)


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize(
    "kind", ["alike", "skilled", "twins", "shifted", "coarse", "few topics", "tiny", "huge"]
)
def test_pairs_that_are_not_looked_at_change_nothing(
    monkeypatch: pytest.MonkeyPatch, kind: str, step: int
) -> None:
    rng = np.random.default_rng(8)
    values = np.clip(rng.beta(1, 2, 40) + rng.normal(0, 0.15, (70, 40)), 0, 1)
    if kind == "skilled":
        values += rng.normal(0, 0.1, (70, 1))
        values[:20] += rng.normal(0, 1, (20, 40))
    elif kind == "twins":
        values[1::2] = values[::2] + rng.integers(0, 2, (35, 40)) * 1e-3
        values[10:20] = values[9]
    elif kind == "shifted":
        values += np.arange(70)[:, None]
        values[5] = values[4] + 1
    elif kind == "coarse":
        values = np.round(5 * values) / 5
    elif kind == "few topics":
        values = values[:, :12]
    elif kind in ("tiny", "huge"):
        values = values * 2.0 ** (-500 if kind == "tiny" else 400)
    first, second = all_pairs(70)
    pairs = first[::step].copy(), second[::step].copy()
    every = compare(values, pairs, resamples=2500, threads=2)
    monkeypatch.setattr(max_t, "_MANY", 0)
    some = compare(values, pairs, resamples=2500, threads=2)
    for name in ("p_value", "low", "high", "statistic"):
        np.testing.assert_array_equal(getattr(some, name), getattr(every, name))


@given(EIGHTHS)
def test_two_runs_have_the_p_of_the_randomisation_test(eighths: Matrix) -> None:
    values = eighths[:2] / 8
    result, alone = (
        compare(values),
        TESTS["randomisation"].compare(values, *all_pairs(2), Options()),
    )
    tested = ~np.isnan(result.p_value)
    np.testing.assert_array_equal(result.p_value[tested], alone.p_value[tested])


def test_a_family_of_fewer_pairs_finds_no_less() -> None:
    values = np.random.default_rng(2).random((12, 40)) + np.linspace(0, 0.3, 12)[:, None]
    every, few = (
        compare(values, resamples=2000),
        compare(values, baseline_pairs(12, [0]), resamples=2000),
    )
    of_first = all_pairs(12)[0] == 0
    assert (few.p_value <= every.p_value[of_first]).all()
    assert (few.p_value < every.p_value[of_first]).any()
    family = compare_family(values, Pairs(12, (0,)), "max_t", Rule(), Options(resamples=2000))
    assert (family.size, family.correction) == (11, None)


def test_neither_threads_nor_units_change_an_answer() -> None:
    values = np.random.default_rng(3).random((6, 30))
    alone = compare(values, resamples=5000)
    np.testing.assert_array_equal(alone.p_value, compare(values, resamples=5000, threads=3).p_value)
    for unit in (2.0**-500, 2.0**400):
        np.testing.assert_array_equal(alone.p_value, compare(values * unit, resamples=5000).p_value)


def test_identical_runs_and_one_that_is_better_by_the_same_everywhere() -> None:
    values = np.random.default_rng(4).random((1, 30)).repeat(3, axis=0)
    values[2] += 0.25
    result = compare(values, resamples=1000)
    assert (result.p_value[0], result.statistic[0], result.low[0], result.high[0]) == (
        1.0,
        0.0,
        0.0,
        0.0,
    )
    assert np.isnan(
        [result.p_value[1:], result.statistic[1:], result.low[1:], result.high[1:]]
    ).all()
    assert "no_spread" in {caution.code for caution in result.cautions}


def test_runs_of_unequal_spread_keep_the_level_that_tukey_does_not() -> None:
    """Equal means; one run in five scatters five times as much: two of these differ, for the others' spread."""
    wrong = {"max_t": 0, "randomised_tukey_hsd": 0}
    collections, spread = 300, np.array([5.0, 1.0, 1.0, 1.0, 1.0] * 2)[:, None]
    for number in range(collections):
        values = np.random.default_rng((6, number)).normal(0, 1, (10, 50)) * spread
        for name in wrong:
            result = TESTS[name].compare(
                values, *all_pairs(10), Options(resamples=499, seed=number)
            )
            wrong[name] += bool((result.p_value < 0.05).any())
    error = np.sqrt(0.05 * 0.95 / collections)
    assert abs(wrong["max_t"] / collections - 0.05) < 3 * error, wrong
    assert wrong["randomised_tukey_hsd"] / collections > 0.05 + 5 * error, wrong
