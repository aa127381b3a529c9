"""Two runs in groups of topics, against SciPy and arithmetic of its own."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from metrics.engine.significance.families import Rule
from metrics.engine.significance.pairs import Options
from metrics.engine.significance.topic_groups import compare_groups, interaction_of
from metrics.engine.significance.verdicts import NO_SPREAD, REASONS, TOO_FEW_TOPICS

RULE, OPTIONS = Rule("holm", 0.05), Options(confidence=0.9)


def groups_of(sizes: list[int]) -> list[np.ndarray]:
    ends = np.cumsum(sizes)
    shuffled = np.random.default_rng(5).permutation(int(ends[-1]))
    return np.split(shuffled, ends[:-1])


@pytest.mark.parametrize("sizes", [[12, 20, 7], [2, 2], [1, 30], [5, 1, 1, 40]])
def test_means_intervals_and_interaction_are_those_of_scipy(sizes: list[int]) -> None:
    rng = np.random.default_rng(sum(sizes))
    values = rng.uniform(0, 1, (2, sum(sizes)))
    groups = groups_of(sizes)
    values[0, groups[0]] += 0.4
    result = compare_groups(values, groups, RULE, OPTIONS)
    samples = [(values[0] - values[1])[group] for group in groups]

    raw = []
    for place, sample in enumerate(samples):
        assert result.difference[place] == pytest.approx(sample.mean(), abs=1e-12)
        if len(sample) == 1:
            assert math.isnan(result.low[place])
            raw.append(math.nan)
            continue
        test = stats.ttest_1samp(sample, 0)
        raw.append(test.pvalue)
        interval = test.confidence_interval(0.9)
        assert result.low[place] == pytest.approx(interval.low, abs=1e-12)
        assert result.high[place] == pytest.approx(interval.high, abs=1e-12)

    assert result.p_value == pytest.approx(raw, nan_ok=True)
    # Holm by hand: a group without p counts in the family as p = 1.
    ordered = sorted((1.0 if math.isnan(p) else p, place) for place, p in enumerate(raw))
    largest = 0.0
    for rank, (p_value, place) in enumerate(ordered):
        largest = max(largest, min(1.0, p_value * (len(raw) - rank)))
        expected = math.nan if math.isnan(raw[place]) else largest
        assert result.adjusted[place] == pytest.approx(expected, nan_ok=True)

    f_test, ranks = stats.f_oneway(*samples), stats.kruskal(*samples)
    interaction = result.interaction
    assert interaction.statistic == pytest.approx(f_test.statistic)
    assert interaction.p_value == pytest.approx(f_test.pvalue)
    assert interaction.freedom == (len(sizes) - 1, sum(sizes) - len(sizes))
    assert interaction.ranks is not None
    assert interaction.ranks.statistic == pytest.approx(ranks.statistic)
    assert interaction.ranks.p_value == pytest.approx(ranks.pvalue)


def test_two_groups_are_students_t_test_of_two_samples() -> None:
    rng = np.random.default_rng(1)
    first, second = rng.normal(0.1, 1, 9), rng.normal(0.5, 1, 14)
    interaction = interaction_of([first, second])
    test = stats.ttest_ind(first, second)
    assert interaction.statistic == pytest.approx(test.statistic**2)
    assert interaction.p_value == pytest.approx(test.pvalue)


def test_verdicts_need_five_topics_and_a_spread() -> None:
    values = np.zeros((2, 19))
    groups = groups_of([8, 4, 7])
    rng = np.random.default_rng(2)
    values[0, groups[0]] = 0.5 + rng.uniform(0, 0.1, 8)
    values[0, groups[1]] = 0.5 + rng.uniform(0, 0.1, 4)
    values[0, groups[2]] = 0.25
    result = compare_groups(values, groups, RULE, OPTIONS)
    assert result.verdicts.higher.tolist() == [1, 0, 0]
    assert [REASONS[reason] for reason in result.verdicts.withheld] == [
        "",
        TOO_FEW_TOPICS,
        NO_SPREAD,
    ]
    assert math.isnan(result.p_value[2])


@pytest.mark.parametrize(
    "samples",
    [[[0.1, 0.2]], [[0.1], [0.2], [0.3]], [[0.1, 0.1], [0.3, 0.3]], [[0.0, 0.0], [0.0, 0.0, 0.0]]],
)
def test_where_the_interaction_is_undefined(samples: list[list[float]]) -> None:
    interaction = interaction_of([np.array(sample) for sample in samples])
    assert math.isnan(interaction.statistic)
    assert math.isnan(interaction.p_value)


def test_equal_groups_differ_by_chance_in_five_of_a_hundred() -> None:
    rng = np.random.default_rng(3)
    drawn = rng.normal(0, 1, (2000, 30))
    small = [interaction_of([row[:6], row[6:16], row[16:]]).p_value < 0.05 for row in drawn]
    assert 0.035 < np.mean(small) < 0.065
