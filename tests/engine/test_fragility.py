"""How few topics carry a verdict: against trying every set of topics, and leaving them out one after the other."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import stats

from metrics.engine.significance.fragility import fragility

ONE, OTHER = np.array([0]), np.array([1])
EIGHTHS = arrays.arrays(
    np.int64, st.tuples(st.just(2), st.integers(2, 8)), elements=st.integers(0, 8)
)


@given(EIGHTHS)
def test_no_fewer_topics_of_any_kind_turn_the_sign(eighths: np.ndarray) -> None:
    difference = eighths[0] - eighths[1]
    total = abs(int(difference.sum()))
    towards = difference if difference.sum() >= 0 else -difference
    least = next(
        (
            many
            for many in range(len(towards))
            if any(
                total - sum(gone) <= 0 for gone in itertools.combinations(towards.tolist(), many)
            )
        ),
        -1,
    )
    result = fragility(eighths / 8, ONE, OTHER, np.ones(1), 0.05)
    assert result.sign[0] == least
    assert result.significance[0] == -1
    gone = result.order[0, : max(least, 0)]
    assert total - towards[gone].sum() <= 0 or least <= 0


@pytest.mark.parametrize(("factor", "lower"), [(1.0, False), (3.0, True)])
def test_topics_that_favour_the_winner_are_left_out_until_p_is_no_longer_small(
    factor: float, lower: bool
) -> None:
    values = np.random.default_rng(3).normal(0, 1, (2, 40))
    values[int(lower)] += 1.2
    differences = np.sort((values[0] - values[1]) * (-1 if lower else 1))[::-1]
    p_value = [float(stats.ttest_1samp(differences[many:], 0).pvalue) for many in range(36)]
    expected = next(many for many in range(36) if factor * p_value[many] >= 0.05)
    result = fragility(values, ONE, OTHER, np.array([factor * p_value[0]]), 0.05)
    assert result.significance[0] == expected > 0
    assert (
        result.order[0].tolist()
        == np.argsort(-(values[0] - values[1]) * (-1 if lower else 1)).tolist()
    )


@given(
    arrays.arrays(np.int64, st.tuples(st.just(2), st.integers(5, 12)), elements=st.integers(0, 8))
)
def test_significance_is_lost_where_the_topics_that_remain_do_not_show_it(
    eighths: np.ndarray,
) -> None:
    differences = eighths[0] - eighths[1]
    if len(set(differences.tolist())) == 1:
        return
    p_value = float(stats.ttest_rel(*eighths).pvalue)
    for_winner = sorted((differences * np.sign(differences.sum())).tolist(), reverse=True)
    expected = -1
    for many in range(len(for_winner) - 4 if p_value < 0.05 else 0):
        remaining = for_winner[many:]
        varies = len(set(remaining)) > 1
        if sum(remaining) <= 0 or (varies and stats.ttest_1samp(remaining, 0).pvalue >= 0.05):
            expected = many
            break
    result = fragility(eighths / 8, ONE, OTHER, np.array([p_value]), 0.05)
    assert result.significance[0] == expected


def test_what_every_topic_shows_no_number_of_them_carries() -> None:
    values = np.array([np.linspace(0.5, 0.6, 20), np.linspace(0.1, 0.15, 20)])
    p_value = np.array([stats.ttest_rel(*values).pvalue])
    result = fragility(values, ONE, OTHER, p_value, 0.05)
    assert (result.sign[0], result.significance[0]) == (-1, -1)
