"""Orders of systems: how far they agree, how sure a rank is, and which systems stand together."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from metrics.engine.agreement import COEFFICIENTS
from metrics.engine.agreement.intervals import Agreements, order_agreements, rank_intervals
from metrics.engine.agreement.kendall import tau
from metrics.engine.agreement.rbo import rbo
from metrics.engine.agreement.standings import standings
from metrics.engine.agreement.tau_ap import symmetric_tau_ap, tau_ap
from metrics.engine.arrays import Ints
from metrics.engine.significance.pairs import Matrix, Options, all_pairs
from metrics.engine.significance.tiers import Tiers, tiers

MEANS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=8)
# Scores of two raters of ten items, with what the R package ircor 1.0 answers for them (its own
# tests, to 4 decimals).
PUBLISHED = [
    (
        [0.897, 0.372, 0.908, 0.898, 0.661, 0.062, 0.177, 0.384, 0.498, 0.992],
        [0.82, 0.406, 0.817, 0.953, 0.673, 0.073, 0.364, 0.547, 0.589, 0.988],
        0.8519, 0.8333, 0.7321,
    ),
    (
        [0.266, 0.573, 0.202, 0.945, 0.629, 0.206, 0.687, 0.77, 0.718, 0.38],
        [0.263, 0.843, 0.728, 0.928, 0.08, 0.114, 0.467, 0.641, 0.973, 0.644],
        0.2504, 0.2880, 0.2970,
    ),
]  # fmt: skip


def ranks(means: object) -> Ints:
    return standings(np.array(means, np.float64)[None, :], np.array([False]))


def agreement(
    first: Matrix,
    second: Matrix,
    lower: tuple[bool, bool] = (False, False),
    options: Options | None = None,
) -> Agreements:
    """Of two orders alone."""
    observed = standings(np.array([first.mean(axis=1), second.mean(axis=1)]), np.array(lower))
    options = options or Options(resamples=500)
    return order_agreements(observed, [first, second], [(0, 1)], np.array(lower), options)[0]


@pytest.mark.parametrize(("x", "y", "expected", "symmetric", "tied"), PUBLISHED)
def test_ap_correlations_agree_with_published_values(
    x: list[float], y: list[float], expected: float, symmetric: float, tied: float
) -> None:
    assert tau_ap(ranks(x), ranks(y))[0] == pytest.approx(expected, abs=5e-5)
    assert symmetric_tau_ap(ranks(x), ranks(y))[0] == pytest.approx(symmetric, abs=5e-5)
    assert symmetric_tau_ap(ranks(np.round(x, 1)), ranks(np.round(y, 1)))[0] == pytest.approx(
        tied, abs=5e-5
    )


@given(MEANS)
def test_tau_agrees_with_scipy(rows: list[tuple[int, int]]) -> None:
    x, y = (list(column) for column in zip(*rows, strict=True))
    expected = stats.kendalltau(x, y).statistic if len(set(x)) > 1 < len(set(y)) else math.nan
    assert tau(ranks(x), ranks(y))[0] == pytest.approx(expected, abs=1e-12, nan_ok=True)


def naive_rbo(x: Ints, y: Ints, p: float) -> float:
    """Webber's sum over depths with sets of systems, and its last agreement for all depths beyond."""
    size, total, agreement = len(x), 0.0, 0.0
    for depth in range(1, 2000):
        if depth <= size:
            first = {i for i in range(size) if x[i] <= depth}
            other = {i for i in range(size) if y[i] <= depth}
            agreement = 2 * len(first & other) / (len(first) + len(other))
        total += (1 - p) * p ** (depth - 1) * agreement
    return total


@given(MEANS, st.sampled_from([0.5, 0.9]))
def test_rbo_is_the_sum_over_all_depths(rows: list[tuple[int, int]], p: float) -> None:
    x, y = (ranks(column) for column in zip(*rows, strict=True))
    assert rbo(x, y, p)[0] == pytest.approx(naive_rbo(x[0], y[0], p), abs=1e-9)


@pytest.mark.parametrize("name", list(COEFFICIENTS))
def test_an_order_agrees_with_itself_and_not_with_its_reverse(name: str) -> None:
    order = np.array([[1, 2, 3, 4, 5]])
    assert COEFFICIENTS[name](order, order)[0] == pytest.approx(1.0)
    assert COEFFICIENTS[name](order, 6 - order)[0] == pytest.approx(
        -1.0 if name != "rbo" else 0.7378, abs=1e-4
    )


def test_the_top_counts_more_for_all_but_kendall() -> None:
    order, top, bottom = (
        np.array([row]) for row in ([1, 2, 3, 4, 5], [2, 1, 3, 4, 5], [1, 2, 3, 5, 4])
    )
    for name, coefficient in COEFFICIENTS.items():
        above, below = coefficient(order, top)[0], coefficient(order, bottom)[0]
        assert above < below or (name == "tau" and above == pytest.approx(below))


def test_ranks_that_no_topic_changes_are_certain() -> None:
    values = np.arange(4.0)[:, None] + np.random.default_rng(1).random(30) / 10
    intervals = rank_intervals(values)
    assert (
        intervals.rank.tolist() == intervals.low.tolist() == intervals.high.tolist() == [4, 3, 2, 1]
    )
    assert intervals.share_first.tolist() == [0, 0, 0, 1]
    assert rank_intervals(values, lower_is_better=True).rank.tolist() == [1, 2, 3, 4]


def test_runs_alike_share_their_interval_and_the_seed_decides() -> None:
    values = np.random.default_rng(2).random((6, 30))
    values[3] = values[0]
    intervals, again = rank_intervals(values), rank_intervals(values)
    assert intervals.low[0] == intervals.low[3] < intervals.high[0] == intervals.high[3]
    assert (intervals.low.tolist(), intervals.share_first.tolist()) == (
        again.low.tolist(),
        again.share_first.tolist(),
    )
    assert (intervals.low <= intervals.rank).all()
    assert (intervals.rank <= intervals.high).all()


def test_two_measures_that_are_one_agree_on_every_sample_of_topics() -> None:
    values = np.random.default_rng(3).random((8, 25))
    same, turned = agreement(values, values), agreement(values, -values, (False, True))
    for name in COEFFICIENTS:
        agree = getattr(same, name)
        assert (agree.value, agree.low, agree.high) == pytest.approx((1, 1, 1))
    assert turned == same
    loose = agreement(values, np.random.default_rng(4).random((8, 25))).tau
    assert -1 <= loose.low < loose.value < loose.high <= 1


def test_orders_that_are_one_tie_agree_by_nothing() -> None:
    values = np.ones((3, 10))
    assert np.isnan([agreement(values, values).tau.value, agreement(values, values).tau.low]).all()


def tiers_of(means: list[float], separated: set[tuple[int, int]]) -> Tiers:
    first, second = all_pairs(len(means))
    marks = [pair in separated for pair in zip(first.tolist(), second.tolist(), strict=True)]
    return tiers(np.array(means), first, second, np.array(marks))


def test_overlapping_groups_share_their_middle() -> None:
    """a differs from c only: a and b are one group, b and c another; c is the first below a's tier."""
    tiers = tiers_of([0.9, 0.8, 0.7], {(0, 2)})
    assert tiers.groups == ((0,), (0, 1), (1,))
    assert tiers.tier.tolist() == [1, 1, 2]
    assert tiers_of([0.7, 0.8, 0.9], {(0, 2)}).tier.tolist() == [2, 1, 1]
    assert tiers_of([0.5, 0.6], set()).groups == ((0,), (0,))


def test_groups_of_some_runs_are_without_those_of_the_others_alone() -> None:
    """a to e, of which only neighbours are alike: ab, bc, cd, de."""
    tiers = tiers_of([0.9, 0.8, 0.7, 0.6, 0.5], {(0, 2), (0, 3), (0, 4), (1, 3), (1, 4), (2, 4)})
    assert tiers.groups == ((0,), (0, 1), (1, 2), (2, 3), (3,))
    assert tiers.of(np.array([0, 1, 2])).groups == ((0,), (0, 1), (1,))
    assert tiers.of(np.array([0, 2, 4])).groups == ((0,), (1,), (2,))


@given(st.integers(2, 9), st.data())
def test_two_runs_share_a_group_exactly_when_they_are_not_separated(
    runs: int, data: st.DataObject
) -> None:
    pairs = [(i, j) for i in range(runs) for j in range(i + 1, runs)]
    separated = set(data.draw(st.lists(st.sampled_from(pairs), unique=True)))
    means = data.draw(st.lists(st.floats(0, 1), min_size=runs, max_size=runs))
    tiers = tiers_of(means, separated)
    for i, j in pairs:
        assert bool(set(tiers.groups[i]) & set(tiers.groups[j])) == ((i, j) not in separated)
    chosen = data.draw(st.lists(st.integers(0, runs - 1), unique=True, min_size=1))
    fewer = tiers.of(np.array(chosen))
    assert fewer.tier.tolist() == tiers.tier[chosen].tolist()
    for i, j in itertools.combinations(range(len(chosen)), 2):
        pair = (min(chosen[i], chosen[j]), max(chosen[i], chosen[j]))
        assert bool(set(fewer.groups[i]) & set(fewer.groups[j])) == (pair not in separated)
    numbers = {number for groups in fewer.groups for number in groups}
    assert numbers == set(range(len(numbers)))
    best = {
        number: max(np.flatnonzero(tiers.tier == number), key=lambda run: means[run])
        for number in tiers.tier
    }
    assert all(means[best[n]] >= means[best[n + 1]] for n in best if n + 1 in best)


def test_agreements_of_many_orders_are_those_of_every_two() -> None:
    rng = np.random.default_rng(4)
    values = [np.round(rng.random((6, 20)), 1) for _ in range(3)]
    lower = np.array([False, True, False])
    ranks = standings(np.array([of.mean(axis=1) for of in values]), lower)
    options = Options(resamples=200, seed=2)
    pairs = [(0, 1), (1, 2)]
    for (a, b), pair_agreement in zip(
        pairs, order_agreements(ranks, values, pairs, lower, options), strict=True
    ):
        sides = (bool(lower[a]), bool(lower[b]))
        assert pair_agreement == agreement(values[a], values[b], sides, options)
        assert (
            pair_agreement.tau_ap_reversed
            == agreement(values[b], values[a], sides[::-1], options).tau_ap
        )
        assert pair_agreement.tau.value == pytest.approx(
            stats.kendalltau(ranks[a], ranks[b]).statistic
        )


def test_too_many_groups_are_not_made() -> None:
    separated = {(0, 2), (0, 3), (0, 4), (1, 3), (1, 4), (2, 4)}
    for known in (False, True):
        tiers = tiers_of([0.9, 0.8, 0.7, 0.6, 0.5], separated)
        groups = tiers.groups if known else ((0,), (0, 1), (1, 2), (2, 3), (3,))
        assert (tiers.few_groups(3), tiers.few_groups(4)) == (None, groups)
