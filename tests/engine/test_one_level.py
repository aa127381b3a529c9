"""One level alone as relevant: the same as judgements in which no other document is."""

from __future__ import annotations

import numpy as np
import pytest
import pytrec_eval

from metrics.engine.errors import MeasureError
from metrics.engine.measures import MEASURES
from metrics.engine.measures.grammar import parse_measure
from metrics.engine.trec_eval.requests import read_requests
from tests.engine import naive
from tests.engine.build import Qrels, judged_run, known_run, ranked
from tests.engine.test_against_pytrec_eval import random_collection
from tests.engine.test_measures import with_cutoff

WITH_LEVEL = [
    name
    for name in MEASURES
    if "level" in {parameter.name for parameter in MEASURES[name].parameters}
]


def of_level(qrels: Qrels, level: int) -> dict[str, dict[str, int]]:
    """Level 1 for this level, 0 for any other; what is below 0 stays unjudged."""
    return {
        topic: {
            doc: min(value, 0) if value < 0 else int(value == level) for doc, value in docs.items()
        }
        for topic, docs in qrels.items()
    }


@pytest.mark.parametrize("name", WITH_LEVEL)
@pytest.mark.parametrize("level", [1, 2, 3])
def test_it_is_the_measure_under_judgements_of_that_level(name: str, level: int) -> None:
    qrels, run = random_collection(level)
    plain = with_cutoff(name)
    written = plain.name.replace("(", f"(level={level},", 1) if "(" in plain.name else None
    measure = parse_measure(
        written or f"{name}(level={level}){'@' + str(plain.cutoff) if plain.cutoff else ''}"
    )
    known = {topic: list(docs)[::3] for topic, docs in qrels.items()}
    views = [
        known_run(judged, run, known, dict.fromkeys(qrels, 2))
        for judged in (qrels, of_level(qrels, level))
    ]
    np.testing.assert_array_equal(measure.compute(views[0]), plain.compute(views[1]))
    assert measure.why_undefined(views[0], measure.compute(views[0])) == plain.why_undefined(
        views[1], plain.compute(views[1])
    )


@pytest.mark.parametrize("seed", range(3))
def test_it_agrees_with_trec_eval_on_such_judgements(seed: int) -> None:
    qrels, run = random_collection(seed)
    binary = of_level(qrels, 2)
    theirs = pytrec_eval.RelevanceEvaluator(binary, {"map", "P_5", "Rprec", "recall_10"}).evaluate(
        run
    )
    view = judged_run(qrels, run, "float32")
    topics = {
        "P(level=2)@5": "P_5",
        "AP(level=2)": "map",
        "Rprec(level=2)": "Rprec",
        "R(level=2)@10": "recall_10",
    }
    for measure, name in topics.items():
        ours = dict(zip(qrels, parse_measure(measure).compute(view), strict=True))
        for topic, values in theirs.items():
            assert ours[topic] == pytest.approx(values[name], abs=1e-9), (measure, topic)


def test_a_document_of_a_higher_level_is_not_relevant() -> None:
    run = ranked(3, 2, 1, 2, recall_base={"missed": 2})
    for measure, expected in {
        "P(level=2)@2": 1 / 2, "R(level=2)@4": 2 / 3, "RR(level=2)": 1 / 2, "P(level=3)@2": 1 / 2,
        "AP(level=2)": (1 / 2 + 2 / 4) / 3, "NumRel(level=2)": 3, "SearchLength(level=1)": 3, "P(rel=2)@2": 1,
    }.items():  # fmt: skip
        assert parse_measure(measure).compute(run)[0] == pytest.approx(expected), measure


def test_unjudged_documents_are_left_out_before_the_level_is_looked_at() -> None:
    qrels, run = {"1": {"a": 3, "b": 2, "c": -1}}, {"1": {"c": 4.0, "x": 3.0, "a": 2.0, "b": 1.0}}
    assert parse_measure("RR(level=2,judged_only=True)").compute(judged_run(qrels, run))[0] == 1 / 2


def test_every_topic_by_a_loop_over_its_documents() -> None:
    qrels, run = random_collection(4)
    expected = [
        sum(level == 2 for level in topic.levels[:10]) / 10 for topic in naive.topics(qrels, run)
    ]
    np.testing.assert_allclose(
        parse_measure("P(level=2)@10").compute(judged_run(qrels, run)), expected
    )


def test_names_and_refusals() -> None:
    assert parse_measure("P(judged_only=True,level=2)@10").name == "P(level=2,judged_only=True)@10"
    for written in (
        "P(level=2,rel=2)@5",
        "AP(level=0)",
        "P(level=1001)@5",
        "StRecall(level=2)@5",
        "nDCG(level=2)",
    ):
        with pytest.raises(MeasureError):
            parse_measure(written)
    with pytest.raises(MeasureError, match="give one of them"):
        parse_measure("AP(rel=3,level=2)")


def test_the_level_of_evalhub_eval_leaves_it_alone() -> None:
    _, measures = read_requests(["P(level=3)@5", "P@5"], "10", level=2)
    assert [measure.name for measure in measures] == ["P(level=3)@5", "P(rel=2)@5"]
