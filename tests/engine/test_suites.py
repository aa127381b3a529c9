"""Systems over several collections, against SciPy, statsmodels, published figures and simulation."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from metrics.engine.analysis.suites import (
    borda_intervals,
    collection_means,
    collection_weights,
    combine,
    differences_from,
    interval_of,
    on_other_collections,
    on_other_topics,
    random_effects,
    rank_systems,
)
from metrics.engine.errors import StatisticsError

# Thirteen trials of the BCG vaccine (Colditz et al., JAMA 1994): cases and others, vaccinated and
# not.
BCG = [
    (4, 119, 11, 128), (6, 300, 29, 274), (3, 228, 11, 209), (62, 13536, 248, 12619),
    (33, 5036, 47, 5761), (180, 1361, 372, 1079), (8, 2537, 10, 619), (505, 87886, 499, 87892),
    (29, 7470, 45, 7232), (17, 1699, 65, 1600), (186, 50448, 141, 27197), (5, 2493, 3, 2338),
    (27, 16886, 29, 17825),
]  # fmt: skip


def _drawn(seed: int, systems: int, sizes: list[int]) -> list[Any]:
    random = np.random.default_rng(seed)
    return [random.random((systems, size)) for size in sizes]


def test_weights_sum_to_1_over_collections_and_over_groups() -> None:
    assert collection_weights([1, 1, 2]).tolist() == [0.25, 0.25, 0.5]
    by_group = collection_weights([1, 1, 1, 1], ["news", "news", "news", "web"])
    assert by_group.tolist() == pytest.approx([1 / 6, 1 / 6, 1 / 6, 1 / 2])

    means = np.array([[0.1, 0.2, 0.6, 0.9], [0.5, math.nan, 0.5, 0.5]])
    assert combine(means, by_group)[0] == pytest.approx((0.3 + 0.9) / 2)
    assert math.isnan(combine(means, by_group)[1])
    for wrong in ([], [1, 0], [1, math.nan]):
        with pytest.raises(StatisticsError, match="positive weight"):
            collection_weights(wrong)


def test_means_are_over_defined_topics() -> None:
    values = [np.array([[0.2, math.nan, 0.4], [math.nan] * 3]), np.array([[1.0], [0.5]])]
    means = collection_means(values)
    assert means[0].tolist() == pytest.approx([0.3, 1.0])
    assert math.isnan(means[1, 0])
    assert means[1, 1] == 0.5


def test_two_collections_are_a_welch_test_of_their_differences() -> None:
    """Half of d1 less half of d2 is half of Welch's difference of two samples."""
    first, second = _drawn(1, 1, [12, 31])
    values = [np.vstack([first, np.zeros(12)]), np.vstack([-(second**3), np.zeros(31)])]
    estimate = on_other_topics(differences_from(values, 1), np.array([0.5, 0.5]))

    oracle = stats.ttest_ind(first[0], second[0] ** 3, equal_var=False)
    assert estimate.freedom[0] == pytest.approx(oracle.df, rel=1e-12)
    assert estimate.p_value[0] == pytest.approx(oracle.pvalue, rel=1e-9)
    ends = oracle.confidence_interval(0.95)
    assert estimate.low[0] * 2 == pytest.approx(ends.low)
    assert estimate.high[0] * 2 == pytest.approx(ends.high)


def test_intervals_for_other_topics_hold_the_true_difference_as_often_as_they_say() -> None:
    random = np.random.default_rng(7)
    weights, sizes = collection_weights([1, 2, 1]), (6, 15, 40)
    true, spreads = np.array([0.05, -0.1, 0.2]), (0.3, 0.05, 0.6)
    systems = 4000
    # Each row is a system in a world of its own; the last one is the reference.
    values = [
        np.vstack([random.normal(mean, spread, (systems, size)), np.zeros(size)])
        for mean, spread, size in zip(true, spreads, sizes, strict=True)
    ]
    estimate = on_other_topics(differences_from(values, systems), weights)
    inside = (estimate.low <= weights @ true) & (weights @ true <= estimate.high)
    # Four standard errors of the share are .014.
    assert inside[:-1].mean() == pytest.approx(0.95, abs=0.014)


def test_other_collections_are_students_t_of_the_differences() -> None:
    values = _drawn(3, 2, [5, 9, 7, 20])
    estimate = on_other_collections(differences_from(values, 1))
    d = [float((matrix[0] - matrix[1]).mean()) for matrix in values]
    oracle = stats.ttest_1samp(d, 0)
    assert estimate.difference[0] == pytest.approx(np.mean(d))
    assert estimate.p_value[0] == pytest.approx(oracle.pvalue)
    ends = oracle.confidence_interval(0.95)
    assert (estimate.low[0], estimate.high[0]) == pytest.approx((ends.low, ends.high))


def test_one_collection_is_a_paired_t_test_and_no_sample_of_collections() -> None:
    values = _drawn(4, 2, [11])
    differences = differences_from(values, 1)
    estimate = on_other_topics(differences, np.ones(1))
    oracle = stats.ttest_rel(*values[0])
    assert estimate.p_value[0] == pytest.approx(oracle.pvalue)
    assert estimate.freedom[0] == pytest.approx(10)
    assert interval_of(differences[0]).low[0] == pytest.approx(estimate.low[0])
    assert np.isnan(on_other_collections(differences).low).all()
    assert random_effects(np.array([0.1]), np.array([0.1])) is None


def test_what_has_no_spread_has_no_interval_unless_both_systems_are_equal() -> None:
    same, shifted = np.tile([0.1, 0.3, 0.2], (2, 1)), np.array([[0.2, 0.4, 0.3], [0.1, 0.3, 0.2]])
    equal = on_other_topics(differences_from([same, same], 1), np.array([0.5, 0.5]))
    assert (equal.low[0], equal.high[0], equal.p_value[0]) == (0, 0, 1)
    constant = on_other_topics(differences_from([shifted, shifted], 1), np.array([0.5, 0.5]))
    assert constant.difference[0] == pytest.approx(0.1)
    assert np.isnan([constant.low[0], constant.high[0], constant.p_value[0]]).all()

    one_topic = on_other_topics(differences_from([same[:, :1], shifted], 1), np.array([0.5, 0.5]))
    assert np.isnan(one_topic.low[0])
    lacking = np.array([[math.nan] * 3, [0.1, 0.3, 0.2]])
    for estimate in (
        on_other_topics(differences_from([same, lacking], 1), np.array([0.5, 0.5])),
        on_other_collections(differences_from([same, lacking], 1)),
    ):
        assert np.isnan([estimate.difference[0], estimate.low[0], estimate.p_value[0]]).all()


def test_ranks_agree_with_scipy_and_a_count_by_hand() -> None:
    means = np.array([[0.9, 0.5, 0.7], [0.8, 0.5, 0.9], [0.1, 0.4, 0.2], [0.3, 0.2, 0.1]])
    ranking = rank_systems(means)
    assert ranking.borda.tolist() == [3 + 2.5 + 2, 2 + 2.5 + 3, 0 + 1 + 1, 1]
    ranks = stats.rankdata(-means, axis=0).mean(axis=1)
    assert ranking.mean_ranks.tolist() == pytest.approx(ranks.tolist())
    oracle = stats.friedmanchisquare(*means)
    assert ranking.friedman == pytest.approx(oracle.statistic)
    assert ranking.p_value == pytest.approx(oracle.pvalue)
    q = stats.studentized_range.ppf(0.95, 4, np.inf) / math.sqrt(2)
    assert ranking.critical_difference == pytest.approx(q * math.sqrt(4 * 5 / (6 * 3)), rel=1e-6)


def test_the_published_critical_difference() -> None:
    """Demsar (2006, page 11): 4 classifiers on 14 data sets, critical difference 1.25."""
    means = np.random.default_rng(1).random((4, 14))
    assert rank_systems(means).critical_difference == pytest.approx(1.25, abs=0.005)


def test_one_system_or_collection_has_no_critical_difference() -> None:
    for means in (np.array([[0.5, 0.6]]), np.array([[0.5], [0.6]])):
        ranking = rank_systems(means)
        assert ranking.friedman is None
        assert np.isnan([ranking.p_value, ranking.critical_difference]).all()
        assert not ranking.others_decide
    assert rank_systems(np.array([[0.5], [0.6]])).mean_ranks.tolist() == [2, 1]


@pytest.mark.parametrize("seed", range(12))
def test_others_decide_where_a_recount_changes_the_order(seed: int) -> None:
    means = np.round(np.random.default_rng(seed).random((4, 3)), 1)

    def count(systems: list[int]) -> dict[int, float]:
        ranks = stats.rankdata(means[systems], axis=0)
        return dict(zip(systems, (ranks - 1).sum(axis=1).tolist(), strict=True))

    everyone = count([0, 1, 2, 3])
    changes = []
    for a, b in itertools.combinations(range(4), 2):
        for third in {0, 1, 2, 3} - {a, b}:
            without = count([system for system in range(4) if system != third])
            changes.append((everyone[a] - everyone[b]) * (without[a] - without[b]) < 0)
    assert rank_systems(means).others_decide is any(changes)


def test_random_effects_agree_with_the_published_trials_and_statsmodels() -> None:
    from statsmodels.stats.meta_analysis import combine_effects

    cells = np.array(BCG, np.float64)
    treated, control = cells[:, :2].sum(axis=1), cells[:, 2:].sum(axis=1)
    effect = np.log(cells[:, 0] / treated) - np.log(cells[:, 2] / control)
    variance = 1 / cells[:, 0] - 1 / treated + 1 / cells[:, 2] - 1 / control
    summary = random_effects(effect, np.sqrt(variance))
    assert summary is not None

    # As in the documentation of the R package metafor (Viechtbauer, 2010), method DL.
    assert summary.q == pytest.approx(152.2330, abs=5e-5)
    assert summary.tau_squared == pytest.approx(0.3088, abs=5e-5)
    assert summary.i_squared == pytest.approx(0.9212, abs=5e-5)
    assert summary.mean == pytest.approx(-0.7141, abs=5e-5)

    oracle = combine_effects(effect, variance, method_re="chi2", use_t=True)
    assert summary.tau_squared == pytest.approx(oracle.tau2)
    assert summary.error == pytest.approx(oracle.sd_eff_w_re_hksj)
    low, high = stats.t.interval(0.95, 12, oracle.mean_effect_re, oracle.sd_eff_w_re_hksj)
    assert (summary.low, summary.high) == pytest.approx((low, high))
    assert summary.weights.sum() == pytest.approx(1)

    spread = stats.t.ppf(0.975, 11) * math.sqrt(oracle.tau2 + oracle.sd_eff_w_re_hksj**2)
    assert summary.prediction_low == pytest.approx(oracle.mean_effect_re - spread)


def test_means_of_differences_that_cancel_are_0() -> None:
    """0.1 + 0.2 - 0.3 is not 0 in double precision: nobody is ahead by rounding."""
    values = [np.array([[d, d], [0.0, 0.0]]) for d in (0.1, 0.2, -0.3)]
    differences = differences_from(values, 1)
    assert on_other_topics(differences, np.full(3, 1 / 3)).difference[0] == 0
    assert on_other_collections(differences).difference[0] == 0


def test_random_effects_without_a_meaning() -> None:
    assert random_effects(np.array([0.1, 0.2]), np.array([0.0, 0.1])) is None
    assert random_effects(np.array([0.1, math.nan]), np.array([0.1, math.nan])) is None
    two = random_effects(np.array([0.1, 0.2]), np.array([0.1, 0.1]))
    assert two is not None
    assert two.tau_squared == 0
    assert math.isnan(two.prediction_low)
    assert two.mean == pytest.approx(0.15)


@pytest.mark.parametrize("least", [0.01, 1e-9, 1e-14, 1e-40])
def test_random_effects_of_a_collection_with_almost_all_of_the_weight(least: float) -> None:
    from fractions import Fraction

    mean, error = np.array([0.1, 0.2, 0.4]), np.array([least, 0.1, 0.05])
    summary = random_effects(mean, error)
    assert summary is not None

    y, w = [Fraction(m) for m in mean], [1 / Fraction(e) ** 2 for e in error]
    common = sum(a * b for a, b in zip(w, y, strict=True)) / sum(w)
    q = sum(a * (b - common) ** 2 for a, b in zip(w, y, strict=True))
    tau_squared = (q - 2) / (sum(w) - sum(a**2 for a in w) / sum(w))
    assert summary.q == pytest.approx(float(q), rel=1e-12)
    assert summary.tau_squared == pytest.approx(float(tau_squared), rel=1e-12)
    assert summary.weights.sum() == pytest.approx(1)


def test_errors_without_a_square_have_no_summary() -> None:
    assert random_effects(np.array([0.1, 0.2]), np.array([1e-200, 0.1])) is None
    assert random_effects(np.array([0.1, 0.2]), np.array([1e200, 0.1])) is None


def test_intervals_of_borda_are_percentiles_of_recounts() -> None:
    values = _drawn(9, 4, [7, 12, 5])
    values[0][:, 2] = math.nan
    values[1][3] = values[1][0]
    low, high = borda_intervals(values, 300, seed=5)

    random, recounts = np.random.default_rng(5), np.zeros((300, 4))
    # Draws are made by collection, in batches.
    for matrix, size in zip(values, (6, 12, 5), strict=True):
        matrix = matrix[:, np.isfinite(matrix[0])]
        for recount in recounts:
            drawn = np.repeat(np.arange(size), random.multinomial(size, np.full(size, 1 / size)))
            recount += stats.rankdata(matrix[:, drawn].mean(axis=1).round(12)) - 1
    assert low.tolist() == pytest.approx(np.quantile(recounts, 0.025, axis=0).tolist())
    assert high.tolist() == pytest.approx(np.quantile(recounts, 0.975, axis=0).tolist())

    # One topic has no other draw: the interval is the count.
    single = [matrix[:, :1] for matrix in values[1:]]
    low, high = borda_intervals(single, 100, seed=0)
    assert low.tolist() == high.tolist() == rank_systems(collection_means(single)).borda.tolist()


def test_means_and_borda_agree_with_those_of_mteb() -> None:
    """Scores and expected figures of tests/test_task_aggregation.py of embeddings-benchmark/mteb,
    commit 09d2fee5: a task of bitext mining and two of classification."""
    means = np.array([[1, 2, 1], [1, 1, 1], [2, 2, 1], [2, 1, 1]], np.float64)
    assert combine(means, collection_weights([1, 1, 1])).tolist() == pytest.approx(
        [4 / 3, 1, 5 / 3, 4 / 3]
    )
    groups = ["BitextMining", "Classification", "Classification"]
    by_group = combine(means, collection_weights([1, 1, 1], groups))
    assert by_group.tolist() == pytest.approx([1.25, 1, 1.75, 1.5])
    assert rank_systems(means).borda.tolist() == [4.5, 2.5, 6.5, 4.5]
