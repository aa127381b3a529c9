"""Precision over recall: the textbook's tables, IPrec at every point, and other points by definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from evalhub.operating.simulation import TEXTBOOK_QRELS, TEXTBOOK_RUN
from metrics.engine.curve.precision_recall import (
    graded_precision_recall,
    precision_recall,
    recall_points,
    relevance_levels,
)
from metrics.engine.errors import MeasureError
from metrics.engine.judgement.gains import GainMap
from metrics.engine.judgement.judged import JudgedRun
from metrics.engine.measures.grammar import parse_measure
from tests.engine import naive
from tests.engine.build import judged_run, ranked
from tests.engine.test_against_pytrec_eval import random_collection
from tests.engine.test_trec_eval_measures import judge_files, judgements_of


@pytest.fixture
def textbook() -> JudgedRun:
    return judge_files(judgements_of(TEXTBOOK_QRELS.encode()), TEXTBOOK_RUN.encode(), "float64")


def test_the_tables_of_modern_information_retrieval(textbook: JudgedRun) -> None:
    """The source cuts; its second query's 33.3, 25 and 20 and the means 66.6, 49.9, 41.6, 32.5, 29.1, 12.5, 10."""
    drawn = precision_recall(textbook, 1, rounding="exact")
    first = [1, 1, 2 / 3, 1 / 2, 2 / 5, 1 / 3, 0, 0, 0, 0, 0]
    second = [*[1 / 3] * 4, *[1 / 4] * 3, *[1 / 5] * 4]
    np.testing.assert_allclose(drawn.topics, [first, second], atol=1e-12)
    assert [round(100 * value, 1) for value in drawn.mean] == [
        66.7,
        66.7,
        50,
        41.7,
        32.5,
        29.2,
        12.5,
        10,
        10,
        10,
        10,
    ]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "form", ["interp='ceiling',rounding='10'", "rounding='9'", "rounding=exact", "interp=interval"]
)
def test_eleven_points_are_iprec_at_each_of_them(form: str, seed: int) -> None:
    view = judged_run(*random_collection(seed))
    for rel in (1, 2, 3):
        expected = [
            parse_measure(f"IPrec(rel={rel},{form})@{step / 10}").compute(view)
            for step in range(11)
        ]
        parameters = parse_measure(f"IPrec({form})@0").parameters
        drawn = precision_recall(
            view, rel, interp=parameters["interp"], rounding=parameters["rounding"]
        )
        np.testing.assert_array_equal(drawn.topics, np.transpose(expected))


@pytest.mark.parametrize("seed", range(5))
def test_a_level_alone_is_iprec_of_that_level(seed: int) -> None:
    qrels, run = random_collection(seed)
    view = judged_run(qrels, run)
    for level in (1, 2, 3):
        drawn = precision_recall(view, level, alone=True)
        assert (drawn.rel, drawn.alone) == (level, True)
        expected = [
            parse_measure(f"IPrec(level={level})@{step / 10}").compute(view) for step in range(11)
        ]
        np.testing.assert_array_equal(drawn.topics, np.transpose(expected))
        first = [
            max(
                (1 / rank for rank, value in enumerate(topic.levels, 1) if value == level),
                default=0.0,
            )
            for topic in naive.topics(qrels, run)
        ]
        assert (drawn.topics[:, 0] >= np.array(first) - 1e-12).all()


def in_documents(topic: naive.Topic) -> list[tuple[int, float]]:
    """Relevant documents found and precision at each of them."""
    return [(count, count / rank) for count, rank in enumerate(topic.ranks(), 1)]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("points", [2, 5, 41, 101])
def test_any_number_of_points_follows_the_definition(points: int, seed: int) -> None:
    qrels, run = random_collection(seed)
    view = judged_run(qrels, run)
    exact = precision_recall(view, 1, points=points, rounding="exact").topics
    interval = precision_recall(view, 1, points=points, interp="interval").topics
    for row, topic in enumerate(naive.topics(qrels, run)):
        size = topic.size()
        for column in range(points):
            low, high = column / (points - 1), (column + 1) / (points - 1)
            above = [p for count, p in in_documents(topic) if count / size >= low - 1e-9]
            between = [
                p for count, p in in_documents(topic) if low - 1e-9 <= count / size <= high + 1e-9
            ]
            assert math.isclose(exact[row, column], max(above, default=0.0), abs_tol=1e-12)
            assert math.isclose(interval[row, column], max(between, default=0.0), abs_tol=1e-12)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("points", [2, 11, 101])
@pytest.mark.parametrize("name", ["linear", "0-1-10-100", "0.5-1-1-0"])
def test_generalised_precision_over_recall_follows_the_definition(
    name: str, points: int, seed: int
) -> None:
    qrels, run = random_collection(seed)
    gains = GainMap.parse(name)
    drawn = graded_precision_recall(judged_run(qrels, run), gains, points=points).topics

    def worth(level: int | None) -> float:
        return 0.0 if level is None or level < 0 else float(gains.of(np.array([level]))[0])

    topics = list(naive.topics(qrels, run))
    largest = max(worth(level) for topic in topics for level in topic.base)
    for row, topic in enumerate(topics):
        total, gained, reached = sum(map(worth, topic.base)), 0.0, []
        for rank, level in enumerate(topic.levels, 1):
            gained += worth(level)
            if worth(level):
                reached.append((gained / total, gained / rank / largest))
        for column in range(points):
            least = column / (points - 1) - 1e-9
            expected = max((gp for gr, gp in reached if gr >= least), default=0.0)
            assert math.isclose(drawn[row, column], expected, abs_tol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_binary_gains_generalise_to_precision_over_recall_itself(seed: int) -> None:
    view = judged_run(*random_collection(seed))
    np.testing.assert_allclose(
        graded_precision_recall(view, GainMap("binary")).topics,
        precision_recall(view, 1, rounding="exact").topics,
        rtol=1e-14,
    )


def test_the_band_is_student_s_interval() -> None:
    drawn = precision_recall(judged_run(*random_collection(1)), 1)
    band = drawn.band(0.9)
    assert band is not None
    theirs = [stats.ttest_1samp(column, 0.0).confidence_interval(0.9) for column in drawn.topics.T]
    np.testing.assert_allclose(np.transpose(band), theirs, atol=1e-12)
    assert precision_recall(ranked(1, 0), 1).band(0.9) is None


def test_levels_are_those_above_0_that_occur_in_the_judgements_retrieved_or_not() -> None:
    assert relevance_levels(ranked(0, 2, -1, recall_base={"missed": 7})) == [2, 7]
    assert relevance_levels(ranked(0, -2)) == []


def test_points_are_evenly_spaced() -> None:
    assert recall_points(11).tolist() == [step / 10 for step in range(11)]
    assert recall_points(2).tolist() == [0, 1]


def test_an_interval_rounds_nothing() -> None:
    with pytest.raises(MeasureError, match="rounding belongs to interp='ceiling'"):
        precision_recall(ranked(1), 1, interp="interval", rounding="9")
