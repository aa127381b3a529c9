"""Curves, their bands and their readings against one topic after the other, written out in full."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from metrics.engine.curve.curves import CURVES, Curve, curve, curve_measure, curve_measures
from metrics.engine.curve.readings import against_best, readings
from metrics.engine.errors import MeasureError
from metrics.engine.judgement.judged import JudgedRun
from metrics.engine.measures.grammar import parse_measure
from tests.engine import naive
from tests.engine.build import Qrels, Run, judged_run, ranked
from tests.engine.test_against_pytrec_eval import random_collection

DEPTH = 70
SEEDS = range(3)
NORMALISED = [
    "nCG",
    "nDCG",
    "nDCG(dis='jk',b=3)",
    "nDCG(gains='0-1-10-100',ideal='retrieved')",
    "nCG(gains='exp')",
]
EVERY = [
    *CURVES,
    *NORMALISED[2:],
    "DCG(dis='session',b=4)",
    "P(rel=2)",
    "P(relative=True)",
    "R(rel=2)",
    "P(level=2)",
    "F(rel=2)",
    "E(beta=2)",
    "E(level=1,judged_only=True)",
]


def drawn(measure: str, qrels: Qrels, run: Run, depth: int = DEPTH) -> Curve:
    return curve(judged_run(qrels, run), curve_measure(measure), depth)


def sums(
    measure: str, qrels: Qrels, run: Run, depth: int = DEPTH
) -> tuple[npt.NDArray[np.float64], ...]:
    """What a normalised measure divides, topic by topic and rank by rank: (D)CG of the run and of the ideal."""
    parameters = curve_measure(measure).parameters
    dis, b = parameters.get("dis", "none"), parameters.get("b", 2.0)

    def discount(rank: int) -> float:
        return {"none": 1.0, "log2": math.log2(rank + 1), "jk": max(1.0, math.log(rank, b))}[dis]

    def cumulated(levels: list[int]) -> list[float]:
        gains = [float(parameters["gains"].of(np.array([level]))[0]) for level in levels] + [
            0.0
        ] * depth
        return [
            sum(gains[i - 1] / discount(i) for i in range(1, k + 1)) for k in range(1, depth + 1)
        ]

    actual, ideal = [], []
    for topic in naive.topics(qrels, run):
        levels = [naive.positive(level) for level in topic.levels]
        of = (
            levels
            if parameters["ideal"] == "retrieved"
            else [naive.positive(level) for level in topic.base]
        )
        best = sorted(
            of, key=lambda level: float(parameters["gains"].of(np.array([level]))[0]), reverse=True
        )
        actual.append(cumulated(levels))
        ideal.append(cumulated(best))
    return np.array(actual), np.array(ideal)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("measure", EVERY)
def test_the_mean_of_a_curve_is_that_of_its_topics(measure: str, seed: int) -> None:
    qrels, run = random_collection(seed)
    ours = drawn(measure, qrels, run)
    name, _, arguments = measure.partition("(")
    judged = judged_run(qrels, run)
    cut = [
        parse_measure(f"{name}({arguments or ')'}@{k}").compute(judged) for k in range(1, DEPTH + 1)
    ]
    np.testing.assert_allclose(ours.topics, np.transpose(cut), rtol=0, atol=1e-12)
    np.testing.assert_allclose(ours.mean, np.mean(cut, axis=1), rtol=0, atol=1e-12)
    np.testing.assert_allclose(ours.ideal_mean, ours.ideal.mean(axis=0), rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("measure", ["nDCG", "DCG", "CG", "P", "P(relative=True)", "R", "F", "E"])
def test_the_ideal_is_the_curve_of_the_best_ranking(measure: str, seed: int) -> None:
    qrels, run = random_collection(seed)
    perfect = {
        topic: {doc: float(level) for doc, level in judged.items()}
        for topic, judged in qrels.items()
    }
    np.testing.assert_allclose(
        drawn(measure, qrels, run).ideal, drawn(measure, qrels, perfect).topics, rtol=0, atol=1e-12
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("measure", NORMALISED)
def test_a_ratio_of_averaged_vectors_is_not_a_mean_of_ratios(measure: str, seed: int) -> None:
    qrels, run = random_collection(seed)
    actual, ideal = sums(measure, qrels, run)
    name, _, arguments = measure.rstrip(")").partition("(")
    pooled = drawn(f"{name}({arguments}{',' if arguments else ''}norm='average')", qrels, run)
    expected = actual.sum(axis=0) / ideal.sum(axis=0)
    np.testing.assert_allclose(pooled.mean, expected, rtol=0, atol=1e-12)
    separate = drawn(measure, qrels, run)
    np.testing.assert_allclose(pooled.topics, separate.topics, rtol=0, atol=1e-12)
    assert np.abs(pooled.mean - separate.mean).max() > 0.001
    assert pooled.ideal_mean.tolist() == [1.0] * DEPTH


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("measure", NORMALISED)
def test_a_pooled_figure_is_the_pooled_curve_at_its_rank(measure: str, seed: int) -> None:
    view = judged_run(*random_collection(seed))
    name, _, arguments = measure.rstrip(")").partition("(")
    arguments = f"{arguments}{',' if arguments else ''}norm='average'"
    for judged_only in ("", ",judged_only=True"):
        whole = curve(view, curve_measure(f"{name}({arguments}{judged_only})"), DEPTH).mean
        for rank in (1, 7, DEPTH):
            for text, expected in (
                (f"{name}({arguments}{judged_only})@{rank}", whole[rank - 1]),
                (f"AvgPos(of='{name}',{arguments}{judged_only})@{rank}", whole[:rank].mean()),
            ):
                pooled = parse_measure(text)
                values = pooled.compute(view)
                assert pooled.aggregate(values, view) == (pytest.approx(expected, abs=1e-12), 12)
                np.testing.assert_array_equal(
                    values, parse_measure(text.replace("average", "topic")).compute(view)
                )


def test_an_unanswered_topic_counts_in_a_pooled_figure_unless_the_ideal_is_what_was_retrieved() -> (
    None
):
    qrels = {"1": {"a": 2, "b": 1}, "2": {"x": 3}, "3": {"n": 0}}
    view = judged_run(qrels, {"1": {"b": 2.0, "a": 1.0}})
    for text, expected in (
        ("nCG(norm='average')@1", 1 / 5),
        ("nCG(norm='average',ideal='retrieved')@1", 1 / 2),
    ):
        measure = parse_measure(text)
        assert measure.aggregate(measure.compute(view), view) == (pytest.approx(expected), 3)


def test_a_pooled_figure_without_any_gain_is_0_and_without_its_run_an_error() -> None:
    measure = parse_measure("nDCG(norm='average')")
    view = judged_run({"1": {"a": 0}}, {"1": {"a": 1.0}})
    values = measure.compute(view)
    assert measure.aggregate(values, view) == (0.0, 1)
    assert curve(view, measure, 3).mean.tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="made from the run"):
        measure.aggregate(values)


@pytest.mark.parametrize("measure", EVERY)
def test_the_band_is_student_s_interval_of_the_topics(measure: str) -> None:
    ours = drawn(measure, *random_collection(3))
    theirs = stats.ttest_1samp(ours.topics, 0.0)
    for confidence in (0.5, 0.95, 0.999):
        band = ours.band(confidence)
        assert band is not None
        interval = theirs.confidence_interval(confidence)
        np.testing.assert_allclose(band[0], interval.low, rtol=0, atol=1e-9)
        np.testing.assert_allclose(band[1], interval.high, rtol=0, atol=1e-9)


@pytest.mark.parametrize("measure", NORMALISED)
def test_the_band_of_a_ratio_comes_from_its_residuals(measure: str) -> None:
    qrels, run = random_collection(5)
    actual, ideal = sums(measure, qrels, run)
    name, _, arguments = measure.rstrip(")").partition("(")
    band = drawn(f"{name}({arguments}{',' if arguments else ''}norm='average')", qrels, run).band(
        0.9
    )
    assert band is not None
    n = len(actual)
    for rank in (0, 4, DEPTH - 1):
        r = actual[:, rank].sum() / ideal[:, rank].sum()
        residuals = actual[:, rank] - r * ideal[:, rank]
        error = math.sqrt(sum(residuals**2) / (n - 1) / n) / ideal[:, rank].mean()
        margin = stats.t.ppf(0.95, n - 1) * error
        assert band[0][rank] == pytest.approx(r - margin, abs=1e-9)
        assert band[1][rank] == pytest.approx(r + margin, abs=1e-9)


def test_with_one_ideal_for_all_topics_both_norms_have_one_mean_and_one_band() -> None:
    qrels = {str(topic): {"a": 3, "b": 1, "c": 0} for topic in range(5)}
    rng = np.random.default_rng(2)
    run = {topic: {doc: float(rng.random()) for doc in judged} for topic, judged in qrels.items()}
    topic, average = (drawn(f"nDCG(norm={norm})", qrels, run, 4) for norm in ("topic", "average"))
    np.testing.assert_allclose(topic.mean, average.mean, atol=1e-12)
    np.testing.assert_allclose(topic.band(0.95), average.band(0.95), atol=1e-9)


def test_a_band_needs_two_topics_and_topics_that_agree_give_it_no_width() -> None:
    assert curve(ranked(1, 0, 2), parse_measure("nDCG"), 5).band(0.95) is None
    qrels = {str(topic): {"a": 1, "b": 0, "c": 2} for topic in range(7)}
    run = {topic: {"a": 3.0, "b": 2.0, "c": 1.0} for topic in qrels}
    for measure in (*EVERY, "nDCG(norm='average')"):
        ours = drawn(measure, qrels, run, 5)
        band = ours.band(0.95)
        assert band is not None
        np.testing.assert_allclose(band, [ours.mean, ours.mean], rtol=1e-15)


@pytest.mark.parametrize("measure", ["CG(gains='exp')", "nCG(gains='exp',norm='average')"])
def test_a_band_of_huge_gains_does_not_overflow(measure: str) -> None:
    qrels = {"1": {"a": 1000}, "2": {"b": 999}}
    band = drawn(measure, qrels, {"1": {"a": 1.0}, "2": {"x": 1.0}}, 2).band(0.95)
    assert band is not None
    assert np.isfinite(band).all()


def test_a_deep_run_and_an_empty_one_have_curves_of_the_depth_asked_for() -> None:
    view = judged_run(
        {"1": {"d900": 1}}, {"1": {f"d{rank}": -float(rank) for rank in range(1, 1001)}}
    )
    assert curve(view, parse_measure("CG"), 899).mean.tolist() == [0.0] * 899
    assert curve(view, parse_measure("CG"), 1000).mean[-101:].tolist() == [1.0] * 101
    nothing = judged_run({"1": {"a": 1}, "2": {"b": 0}}, {"9": {"a": 1.0}})
    for measure in EVERY:
        if measure.startswith("Ideal"):
            # What the best ranking gains is there whether the run answers or not.
            continue
        worst = 1.0 if measure.startswith("E") else 0.0
        assert curve(nothing, curve_measure(measure), 4).mean.tolist() == [worst] * 4


def reached(actual: list[float], target: float) -> int:
    """The first rank at which the curve is there; 0 for never."""
    return next((rank for rank, value in enumerate(actual, 1) if value >= target - 1e-9), 0)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("measure", ["CG", "DCG", "DCG(gains='0-1-10-100',dis='jk')", "R"])
def test_the_curves_read_across_and_down(measure: str, seed: int) -> None:
    view = judged_run(*random_collection(seed))
    whole, read = (
        curve(view, curve_measure(measure), 200),
        readings(view, curve_measure(measure), 20),
    )
    actual, ideal = whole.mean.tolist(), whole.ideal_mean.tolist()
    assert read.needed is not None
    assert read.needed.tolist() == [reached(actual, target) for target in ideal[:20]]
    assert 0 in read.needed
    assert read.needed[0] != 1
    missed = [best - value for best, value in zip(ideal[:20], actual, strict=False)]
    np.testing.assert_allclose(read.missed, missed, atol=1e-12)
    np.testing.assert_allclose(
        read.percent, [100 * m / best for m, best in zip(missed, ideal, strict=False)]
    )
    assert read.horizontal_from == next(
        rank for rank, value in enumerate(ideal, 1) if value >= max(ideal) - 1e-12
    )


@pytest.mark.slow
@given(st.lists(st.integers(0, 3), min_size=1, max_size=12))
def test_the_ideal_ranking_needs_as_many_ranks_as_the_ideal(levels: list[int]) -> None:
    levels.sort(reverse=True)
    read = readings(ranked(*levels), parse_measure("DCG(dis='jk',b=3)"), len(levels))
    gaining = sum(level > 0 for level in levels)
    assert read.needed is not None
    assert read.needed.tolist()[:gaining] == list(range(1, gaining + 1))
    assert read.missed.tolist() == pytest.approx([0.0] * len(levels))
    assert read.horizontal_from == (gaining or None)


@pytest.mark.parametrize("measure", ["CG", "DCG(gains='0-1-10-100',dis='jk')", "R"])
def test_runs_are_read_against_the_best_of_them(measure: str) -> None:
    views = [judged_run(*random_collection(seed)) for seed in range(8)]
    curves = against_best([readings(view, curve_measure(measure), 20) for view in views], 20)
    assert curves is not None
    means = [curve(view, curve_measure(measure), 200).mean.tolist() for view in views]
    for rank in range(20):
        highest = max(mean[rank] for mean in means)
        assert means[curves.best[rank]][rank] == highest
        assert curves.needed[:, rank].tolist() == [reached(mean, highest) for mean in means]
    assert 0 in curves.needed
    assert (curves.needed > 20).any()


def test_curves_that_may_fall_are_not_read_against_each_other() -> None:
    assert against_best([readings(ranked(1, 0), parse_measure("nDCG"), 2)], 2) is None
    assert against_best([], 2) is None


def test_a_run_is_read_across_beyond_the_depth_shown() -> None:
    view = ranked(0, 0, 0, 0, 0, 0, 2)
    read = readings(view, parse_measure("CG"), 2)
    assert read.needed is not None
    assert read.needed.tolist() == [7, 7]
    assert np.isnan(readings(ranked(0, 0), parse_measure("CG"), 2).percent).all()


@pytest.mark.parametrize("measure", ["nDCG", "nCG", "P"])
def test_a_curve_that_may_fall_is_read_down_only(measure: str) -> None:
    read = readings(ranked(1, 0, 2), curve_measure(measure), 3)
    assert (read.needed, read.horizontal_from) == (None, None)
    assert len(read.missed) == 3


def test_curves_are_listed_without_cutoffs_and_each_once() -> None:
    assert [m.name for m in curve_measures("nDCG, P(rel=2) P@5,CG nDCG@10")] == [
        "nDCG",
        "P(rel=2)",
        "P",
        "CG",
    ]
    with pytest.raises(MeasureError, match="the limit is 20"):
        curve_measures(",".join(f"P(rel={rel})" for rel in range(21)))


def test_a_measure_without_a_curve_is_refused() -> None:
    view: JudgedRun = ranked(1)
    with pytest.raises(
        MeasureError,
        match="AP has no curve over ranks; these have: nDCG, DCG, nCG, CG, IdealDCG, IdealCG, P, R, GP, GR",
    ):
        curve(view, parse_measure("AP"), 3)
