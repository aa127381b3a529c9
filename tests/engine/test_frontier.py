"""Effectiveness against cost, against pairs looked at one by one and SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from metrics.engine.analysis.frontier import Costs, frontier
from metrics.engine.significance.pairs import Matrix

NONE = math.nan


def costs_of(*values: float | tuple[float, float, float]) -> Costs:
    """Costs, some with the ends of their intervals: low, value, high."""
    rows = [(NONE, cost, NONE) if isinstance(cost, int | float) else cost for cost in values]
    low, value, high = np.array(rows, np.float64).T
    return Costs(value, low, high)


def naive(values: Matrix, costs: list[float], groups: list[int]) -> tuple[list[str], int]:
    """Statuses without intervals of costs, from every ordered pair."""
    runs, means = range(len(values)), values.mean(axis=1)
    pairs = [
        (j, i)
        for j in runs
        for i in runs
        if i != j and groups[i] == groups[j] and costs[j] <= costs[i]
    ]
    p_values = [
        stats.ttest_rel(values[j], values[i], alternative="greater").pvalue for j, i in pairs
    ]
    surely, running = set(), 0.0
    for rank, place in enumerate(np.argsort(p_values)):
        running = max(running, min(1.0, (len(pairs) - rank) * p_values[place]))
        if running < 0.05:
            surely.add(pairs[place][1])
    status = []
    for i in runs:
        beaten = any(
            to == i and means[j] >= means[i] and (means[j], -costs[j]) != (means[i], -costs[i])
            for j, to in pairs
        )
        status.append("dominated" if i in surely else "perhaps" if beaten else "frontier")
    return status, len(pairs)


@pytest.mark.parametrize("seed", range(4))
def test_statuses_are_those_of_all_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.normal(0.4, 0.08, (14, 1)) + rng.normal(0, 0.1, (14, 30))
    costs, groups = (
        rng.integers(1, 12, 14).astype(float).tolist(),
        rng.integers(2, size=14).tolist(),
    )
    result = frontier(values, costs_of(*costs), np.array(groups))
    status, pairs = naive(values, costs, groups)
    assert (result.status, result.pairs) == (status, pairs)
    assert set(status) == {"dominated", "perhaps", "frontier"}
    # A measure of which less is better.
    assert (
        frontier(-values, costs_of(*costs), np.array(groups), lower_is_better=True).status == status
    )


def test_costs_must_be_apart_where_they_have_intervals() -> None:
    rng = np.random.default_rng(3)
    base = rng.normal(0.4, 0.1, 30)
    values = np.vstack([base, base - 0.2 + rng.normal(0, 0.01, 30)])
    together = np.zeros(2, np.int64)
    sure = frontier(values, costs_of((9, 10, 11), (12, 13, 14)), together)
    assert (sure.status, sure.by.tolist(), sure.pairs) == (["frontier", "dominated"], [-1, 0], 1)
    near = frontier(values, costs_of((9, 10, 12.5), (12, 13, 14)), together)
    assert (near.status, near.by.tolist(), near.pairs) == (["frontier", "perhaps"], [-1, 0], 0)
    assert np.isnan(near.p_adjusted).all()
    # Of a cost without an interval the value counts.
    assert frontier(values, costs_of(10, (12, 13, 14)), together).status[1] == "dominated"
    assert frontier(values, costs_of(12.5, (12, 13, 14)), together).status[1] == "perhaps"
    # On other hardware nothing is compared, and few topics decide nothing.
    assert frontier(values, costs_of(1, 2), np.array([0, 1])).status == ["frontier", "frontier"]
    assert frontier(values[:, :4], costs_of(1, 2), together).status == ["frontier", "perhaps"]


def test_equal_runs_are_both_on_the_frontier_and_one_alone_is() -> None:
    values = np.tile(np.linspace(0.1, 0.9, 8), (2, 1))
    assert frontier(values, costs_of(3, 3), np.zeros(2, np.int64)).status == [
        "frontier",
        "frontier",
    ]
    assert frontier(values, costs_of(3, 4), np.zeros(2, np.int64)).status == ["frontier", "perhaps"]
    alone = frontier(values[:1], costs_of(3), np.zeros(1, np.int64))
    assert (alone.status, alone.by.tolist(), alone.pairs) == (["frontier"], [-1], 0)
