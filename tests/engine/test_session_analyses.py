"""Curves and tables over sets of sessions, and sessions of several systems made ready for a test."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm

from metrics.engine.errors import MeasureError, StatisticsError
from metrics.engine.sessions.analyses import (
    length_table,
    mean_ideal_curves,
    mean_query_curves,
    mean_session_curves,
    reformulations,
    width,
)
from metrics.engine.sessions.blocks import Session
from metrics.engine.sessions.designs import Factors, paired_values, recognise, samples, topic_values
from metrics.engine.sessions.grammar import parse_session_measure, session_values
from metrics.engine.sessions.settings import Setting
from metrics.engine.sessions.vectors import ideal_vectors, session_vectors
from metrics.engine.significance import latin_square
from metrics.engine.significance.welch_t import compare_samples
from tests.engine.session_build import judged_sessions, session

QRELS = {"t": {"a": 2, "b": 1}, "u": {"z": 0}}
ONE = Setting(depth=1)
GROUP = np.array([0, 0, 1, 1])


def sessions() -> Any:
    """Two systems; sessions of 1, 3, 2 and 1 queries, the last one's topic without a gain."""
    records = [
        session(["a"]),
        session(["x"], ["b"], ["a"], name="s2"),
        session(["b"], ["x"], name="s3"),
        session(["z"], name="s4", topic="u"),
    ]
    return judged_sessions(records, QRELS)


Q3 = 1 / (1 + np.log(3) / np.log(4))


def test_a_session_that_has_stopped_is_held_constant() -> None:
    curves = mean_session_curves(sessions(), ONE, GROUP, 2)
    assert curves.count.tolist() == [2, 2]
    np.testing.assert_allclose(
        curves.values[0], np.mean([[2, 2, 2], [0, 1 / 1.5, 1 / 1.5 + 2 * Q3]], axis=0)
    )
    np.testing.assert_allclose(curves.values[1], np.mean([[1, 1, 1], [0, 0, 0]], axis=0))


def test_a_normalised_curve_is_frozen_with_its_ideal_and_leaves_out_what_has_none() -> None:
    curves = mean_session_curves(sessions(), ONE, GROUP, 2, normalised=("repeated", "session"))
    assert curves.count.tolist() == [2, 1]
    np.testing.assert_allclose(curves.values[1], [1 / 2, 1 / (2 + 2 / 1.5), 1 / (2 + 2 / 1.5)])


def test_sessions_of_at_least_n_queries() -> None:
    curves = mean_session_curves(sessions(), ONE, GROUP, 2, least=2)
    assert curves.count.tolist() == [1, 1]
    np.testing.assert_allclose(curves.values, [[0, 1 / 1.5, 1 / 1.5 + 2 * Q3], [1, 1, 1]])
    none = mean_session_curves(sessions(), ONE, np.full(4, -1), 1, length=width(sessions(), ONE))
    assert none.values.tolist() == [[0, 0, 0]]
    assert none.count.tolist() == [0]


def test_last_queries_against_the_others() -> None:
    view, setting = sessions(), Setting(depth=2)
    last = mean_query_curves(view, setting, "last", GROUP, 2)
    np.testing.assert_allclose(last.values, [[(2 + 2 * Q3) / 2] * 2, [0, 0]])
    assert last.count.tolist() == [2, 2]
    others = mean_query_curves(view, setting, "others", GROUP, 2)
    np.testing.assert_allclose(others.values[:, 1], [(0 + 1 / 1.5) / 2, 1])
    assert others.count.tolist() == [2, 1]
    best = mean_query_curves(view, setting, "best", GROUP, 2)
    np.testing.assert_allclose(best.values[:, 0], [(2 + 2 * Q3) / 2, 1 / 2])


def test_table_2_of_ecir_2008() -> None:
    """60 sessions with each system, 343 queries in all."""
    published = {0: [28, 7, 10, 4, 5, 4, 1, 1, 0, 0, 0], 1: [21, 7, 9, 11, 2, 4, 2, 2, 0, 1, 1]}
    records, group = [], []
    for system, counts in published.items():
        for queries, number in enumerate(counts, 1):
            records += [
                session(*[["a"]] * queries, name=f"{system}-{queries}-{n}") for n in range(number)
            ]
            group += [system] * number
    view = judged_sessions(records, QRELS)
    table = length_table(view, np.array(group), 2)
    assert table.counts.tolist() == list(published.values())
    assert np.round(table.mean, 2).tolist() == [2.53, 3.18]
    assert view.n_queries == 343


def test_reformulations_that_gained_and_lost() -> None:
    """The query's position is left out: the same list again is neither."""
    view = judged_sessions(
        [session(["x"], ["b"], ["b"], ["a"], ["x"]), session(["a"], name="s2")], QRELS
    )
    result = reformulations(view, Setting())
    np.testing.assert_allclose(result.change, [np.nan, 1, 0, 1, -2, np.nan])
    assert result.gained.tolist() == [False, True, False, True, False, False]
    assert result.lost.tolist() == [False] * 4 + [True, False]
    assert result.same.tolist() == [False, False, True, False, False, False]
    shares = reformulations(view, ONE, normalised=True).change
    np.testing.assert_allclose(shares, [np.nan, 1 / 2, 0, 1 / 2, -1, np.nan])


def design_of(rows: list[tuple[str, str, str]]) -> tuple[str, Factors]:
    """Of (topic, searcher, system)."""
    factors = Factors.of(
        [Session(b"s%d" % n, *(part.encode() for part in row)) for n, row in enumerate(rows)]
    )
    return recognise(factors), factors


SQUARE = [
    (f"t{topic}", f"u{user}", "AB"[(topic + user) % 2])
    for topic, user in product(range(4), range(6))
]


@pytest.mark.parametrize(
    ("rows", "design"),
    [
        (list(product(["t1", "t2"], ["u1", "u2"], ["A", "B"])), "paired"),
        (
            [
                ("t1", "u1", "A"),
                ("t1", "u1", "B"),
                ("t2", "u9", "A"),
                ("t2", "u9", "B"),
                ("t2", "u9", "B"),
            ],
            "paired",
        ),
        (SQUARE, "latin_square"),
        (SQUARE[:-1], "two_way"),
        ([(topic, "", system) for topic, _, system in SQUARE], "two_way"),
        ([("t1", "u1", "A"), ("t1", "u2", "B"), ("t2", "u3", "A"), ("t2", "u4", "B")], "two_way"),
        ([("t1", "u1", "A"), ("t2", "u2", "B")], "unpaired"),
        ([("t1", "u1", "A"), ("t2", "u2", "A")], "unpaired"),
        ([("t1", "u1", "")], "unpaired"),
    ],
)
def test_designs_are_recognised(rows: list[tuple[str, str, str]], design: str) -> None:
    assert design_of(rows)[0] == design


def test_values_are_paired_where_every_system_has_one() -> None:
    rows = [
        ("t1", "u1", "A"),
        ("t1", "u1", "B"),
        ("t1", "u2", "A"),
        ("t1", "u2", "B"),
        ("t2", "u1", "A"),
        ("t1", "u1", "B"),
    ]
    _, factors = design_of(rows)
    pairs = paired_values(np.array([1, 2, 3, np.nan, 5, 4.0]), factors)
    assert pairs.values.tolist() == [[1], [3]]
    assert (pairs.topic.tolist(), pairs.searcher.tolist()) == ([0], [0])
    by_topic = topic_values(np.array([1, 2, 3, np.nan, 5, 4.0]), factors)
    assert by_topic.values.tolist() == [[2], [3]]
    assert by_topic.searcher.tolist() == [-1]
    assert [part.tolist() for part in samples(np.array([1, 2, 3, np.nan, 5, 4.0]), factors)] == [
        [1, 3, 5],
        [2, 4],
    ]


def random_square(seed: int, scale: float = 1.0) -> tuple[Any, Factors]:
    rng = np.random.default_rng(seed)
    _, factors = design_of(SQUARE)
    effects = (
        rng.normal(0, 1, 4)[factors.topic]
        + rng.normal(0, 1, 6)[factors.searcher]
        + 0.4 * factors.system
    )
    return scale * (effects + rng.normal(0, 0.5, len(SQUARE))), factors


@pytest.mark.parametrize("missing", [0, 3])
def test_the_latin_square_analysis_agrees_with_statsmodels(missing: int) -> None:
    values, factors = random_square(5)
    rows = np.arange(missing, len(values))
    values, factors = values[rows], factors.take(rows)
    ours = latin_square.analyse(values, factors.system, factors.topic, factors.searcher)
    frame = pd.DataFrame(
        {"y": values, "a": factors.system, "t": factors.topic, "u": factors.searcher}
    )
    theirs = anova_lm(ols("y ~ C(a) + C(t) + C(u)", frame).fit(), typ=2)
    for source, name in zip(ours.sources, ["C(a)", "C(t)", "C(u)", "Residual"], strict=True):
        assert source.squares == pytest.approx(theirs.loc[name, "sum_sq"])
        assert source.freedom == theirs.loc[name, "df"]
        if source.statistic is not None:
            assert source.statistic == pytest.approx(theirs.loc[name, "F"])
            assert source.p_value == pytest.approx(theirs.loc[name, "PR(>F)"])
    assert ours.p_value == ours.sources[0].p_value
    assert ours.effect == pytest.approx(
        theirs.loc["C(a)", "sum_sq"]
        / (theirs.loc["C(a)", "sum_sq"] + theirs.loc["Residual", "sum_sq"])
    )


def test_huge_values_and_values_without_spread() -> None:
    values, factors = random_square(6)
    labels = (factors.system, factors.topic, factors.searcher)
    plain, huge = (
        latin_square.analyse(values, *labels),
        latin_square.analyse(values * 1e150, *labels),
    )
    assert huge.p_value == pytest.approx(plain.p_value)
    flat = latin_square.analyse(np.full(len(values), 0.3), *labels)
    assert (flat.statistic, flat.p_value, flat.effect) == (0.0, 1.0, 0.0)
    perfect = latin_square.analyse(factors.system.astype(float), *labels)
    assert (perfect.statistic, np.isnan(perfect.p_value), perfect.effect) == (None, True, 1.0)


@pytest.mark.parametrize(
    ("system", "topic", "searcher", "says"),
    [
        ([0, 0, 0, 0], [0, 1, 0, 1], [0, 0, 1, 1], "two systems"),
        ([0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 1, 1], "cannot be told apart"),
        ([0, 1, 1, 0], [0, 1, 2, 3], [0, 1, 2, 3], "no residual"),
    ],
)
def test_sessions_that_do_not_tell_the_factors_apart_are_refused(
    system: list[int], topic: list[int], searcher: list[int], says: str
) -> None:
    with pytest.raises(StatisticsError, match=says):
        latin_square.analyse(np.arange(4.0), *map(np.array, (system, topic, searcher)))


def test_samples_of_different_sizes_agree_with_scipy() -> None:
    rng = np.random.default_rng(3)
    parts = [rng.normal(0, 1, 40), rng.normal(0.5, 2, 25), rng.normal(0, 1, 2)]
    first, second = np.array([0, 0, 1]), np.array([1, 2, 2])
    ours = compare_samples(parts, first, second)
    for pair, (i, j) in enumerate(zip(first, second, strict=True)):
        theirs = stats.ttest_ind(parts[i], parts[j], equal_var=False)
        low, high = theirs.confidence_interval()
        assert (ours.statistic[pair], ours.p_value[pair]) == pytest.approx(
            (theirs.statistic, theirs.pvalue)
        )
        assert (ours.low[pair], ours.high[pair]) == pytest.approx((low, high))
    with pytest.raises(StatisticsError, match="two values or more"):
        compare_samples([parts[0], np.ones(1)], np.array([0]), np.array([1]))


def test_the_mean_ideal_is_that_of_the_sessions_that_take_part() -> None:
    """Session by session and component by component, held after each session's end."""
    view, setting = sessions(), Setting(depth=2)
    length = width(view, setting) + 1
    curves = mean_ideal_curves(view, setting, GROUP, 2, length=length)
    for system in range(2):
        taking = np.flatnonzero((system == GROUP) & view.is_judged)
        rows = [
            ideal_vectors(view.take(np.array([index])), setting).matrix(length)[0]
            for index in taking.tolist()
        ]
        np.testing.assert_allclose(curves.values[system], np.mean(rows, axis=0), rtol=1e-12)
        assert curves.count[system] == len(rows)
    longer = mean_ideal_curves(view, setting, GROUP, 2, least=2, length=3)
    assert longer.values.shape == (2, 3)
    assert longer.count.tolist() == [1, 1]


def test_averaged_vectors_are_divided_by_averaged_ideals() -> None:
    view, setting = sessions(), Setting(depth=2)
    curves = mean_session_curves(view, setting, GROUP, 2, normalised=("repeated", "average"))
    assert curves.count.tolist() == [2, 1]
    for system, members in enumerate(([0, 1], [2])):
        parts = [view.take(np.array([member])) for member in members]
        actual = np.mean([session_vectors(part, setting).matrix(6)[0] for part in parts], axis=0)
        ideal = np.mean([ideal_vectors(part, setting).matrix(6)[0] for part in parts], axis=0)
        np.testing.assert_allclose(curves.values[system], actual / ideal, rtol=1e-12)


def test_averaged_vectors_have_no_value_of_a_session() -> None:
    with pytest.raises(MeasureError, match="it has a curve, but no value of a session"):
        session_values(sessions(), parse_session_measure("nsDCG(norm='average')"))


def test_a_curve_may_be_cut_short() -> None:
    view = sessions()
    whole, part = (
        mean_session_curves(view, ONE, GROUP, 2, length=length).values for length in (3, 2)
    )
    np.testing.assert_allclose(part, whole[:, :2])
