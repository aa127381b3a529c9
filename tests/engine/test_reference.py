"""Figures of topics over reference runs, checked against NumPy's and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from metrics.engine.analysis.reference import ranks_among, topic_figures
from metrics.engine.judgement.depth import judged_depth
from metrics.engine.judgement.judged import JudgedRun
from metrics.engine.judgement.steps import Matrix

VALUES = st.one_of(st.just(np.nan), st.sampled_from([0.0, 0.25, 1.0]), st.floats(-1, 1, width=32))


@given(st.integers(1, 9).flatmap(lambda runs: arrays(np.float64, (runs, 4), elements=VALUES)))
def test_figures_are_those_of_numpy_without_missing_values(values: Matrix) -> None:
    figures = topic_figures(values)
    for topic, column in enumerate(values.T):
        known = np.sort(column[np.isfinite(column)])
        assert figures.n[topic] == len(known)
        every = (
            figures.low,
            figures.q1,
            figures.median,
            figures.median_upper,
            figures.q3,
            figures.high,
        )
        if not len(known):
            assert all(np.isnan(row[topic]) for row in every)
            continue
        expected = [
            known[0],
            np.quantile(known, 0.25),
            np.median(known),
            known[len(known) // 2],
            np.quantile(known, 0.75),
            known[-1],
        ]
        np.testing.assert_allclose([row[topic] for row in every], expected, rtol=1e-12, atol=1e-12)


def test_no_run_has_no_figures() -> None:
    figures = topic_figures(np.zeros((0, 2)))
    assert figures.n.tolist() == [0, 0]
    assert np.isnan(figures.median).all()


@pytest.mark.parametrize(("lower", "expected"), [(False, [1, 3, np.nan]), (True, [3, 1, np.nan])])
def test_ranks_count_the_better_ones_and_share_ties(lower: bool, expected: list[float]) -> None:
    others = np.array([[0.5, 0.2, 0.1], [0.1, 0.3, 0.1], [0.2, 0.1 + 0.2, np.nan]])
    own = np.array([0.5, 0.2, np.nan])
    np.testing.assert_array_equal(ranks_among(own, others, lower_is_better=lower), expected)
    # 0.1 + 0.2 is not more than 0.3.
    assert ranks_among(np.array([np.nan, 0.3, np.nan]), others, lower_is_better=False)[1] == 1


@pytest.mark.parametrize(
    ("rows", "retrieved", "depth"),
    [
        ([(0, 1), (0, 2), (0, 4), (1, 1)], [4, 3], 1),
        ([(0, 1), (0, 2), (1, 1), (1, 2), (1, 3)], [9, 9], 2),
        # All that the first topic has is judged; the third one is not answered.
        ([(0, 1), (1, 1), (1, 2), (1, 3)], [1, 7, 0], 3),
        ([(0, 1), (1, 1), (1, 2)], [1, 2], 2),
        ([(0, 2)], [5], 0),
        ([], [0], 0),
    ],
)
def test_the_judged_depth_ends_at_the_first_gap(
    rows: list[tuple[int, int]], retrieved: list[int], depth: int
) -> None:
    run = object.__new__(JudgedRun)
    columns = np.array(rows, np.int64).reshape(-1, 2)
    for name, value in (
        ("topic", columns[:, 0]),
        ("rank", columns[:, 1]),
        ("num_ret", np.array(retrieved)),
    ):
        object.__setattr__(run, name, value)
    assert judged_depth(run) == depth
