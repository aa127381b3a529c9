"""Cascade, persistence, goal, graded, search length and user-oriented measures.

Against ir_measures where it computes without other packages, else against a naive loop over one
topic's documents on random collections full of ties and holes, and against numbers worked by hand
or printed.
"""

from __future__ import annotations

import math

import ir_measures
import numpy as np
import pytest

from metrics.engine.errors import MeasureError
from metrics.engine.judgement.judged import JudgedRun
from metrics.engine.measures.grammar import parse_measure
from tests.engine.build import judged_run, ranked
from tests.engine.naive import NAIVE, expected_search_length, topics
from tests.engine.test_against_pytrec_eval import random_collection
from tests.engine.test_published_examples import TOIS

SEEDS = range(6)


def value(measure: str, run: JudgedRun) -> float:
    (only,) = parse_measure(measure).compute(run)
    return float(only)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_topic_agrees_with_a_loop_over_its_documents(seed: int) -> None:
    qrels, run = random_collection(seed)
    judged, plain = judged_run(qrels, run), list(topics(qrels, run))
    for measure, loop in NAIVE.items():
        expected = [loop(topic) for topic in plain]
        np.testing.assert_allclose(
            parse_measure(measure).compute(judged), expected, rtol=0, atol=1e-9, err_msg=measure
        )


@pytest.mark.slow
def test_expected_search_length_is_the_mean_over_random_orders_of_ties() -> None:
    for seed in range(2):
        qrels, run = random_collection(seed)
        expected = [expected_search_length(topic) for topic in topics(qrels, run)]
        np.testing.assert_allclose(
            parse_measure("ESL(n=2)").compute(judged_run(qrels, run)), expected, atol=0.15
        )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("measure", ["Accuracy", "Accuracy@10", "Accuracy(rel=2)@20", "Compat", "Compat(p=0.8)",
                                     "Compat(normalize=False)"])  # fmt: skip
def test_every_topic_agrees_with_ir_measures(measure: str, seed: int) -> None:
    """Its own tie rule differs, so every score is made different, and positive as it takes an absent score for 0."""
    qrels, tied = random_collection(seed)
    orders = {topic: sorted(docs, key=lambda doc: (docs[doc], doc)) for topic, docs in tied.items()}
    run = {
        topic: {doc: float(place) for place, doc in enumerate(order, 1)}
        for topic, order in orders.items()
    }
    peer = {
        m.query_id: m.value
        for m in ir_measures.iter_calc([ir_measures.parse_measure(measure)], qrels, run)
    }
    absent = math.nan if measure.startswith("Accuracy") else 0.0
    expected = [peer.get(topic, absent) for topic in qrels]
    np.testing.assert_allclose(
        parse_measure(measure).compute(judged_run(qrels, run)), expected, rtol=0, atol=1e-9
    )


def test_compatibility_orders_documents_of_one_level_as_the_run_does() -> None:
    """Negative scores and ties too: the ideal ranking is the one most like the run."""
    assert value("Compat", ranked(3, 2, 2, 1, 1)) == pytest.approx(1)
    tied = judged_run({"1": {"a": 1, "b": 1, "c": 1}}, {"1": {"b": -1.0, "a": -1.0}})
    overlap = 1 + 0.95 + 0.95**2 * 2 / 3
    assert value("Compat", tied) == pytest.approx(overlap / (1 + 0.95 + 0.95**2))


@pytest.mark.parametrize(
    ("measure", "levels", "expected"),
    [
        ("ERR", (3, 0, 4), 7 / 16 + 9 / 16 * 15 / 16 / 3),
        ("ERR@2", (3, 0, 4), 7 / 16),
        ("ERR", (9, 1), 15 / 16 + 1 / 16 * 1 / 16 / 2),
        ("RBP(p=0.5)", (1, 0, 1), 0.5 + 0.125),
        ("RBP(p=0.5)", (1, 0, 2), 0.25 + 0.125),
        ("RBP(p=0.5,gains='0:0,1:0.2,2:0.9')", (1, 2), 0.1 + 0.225),
        ("RBPResidual(p=0.5)", (1, -1, 0), 0.25 + 0.125),
        ("NERR8(max_rel=1)@3", (0, 1, 1), 1 / 2),
        ("BPM(max_rel=2)@5", (1, 1, 2), 1 / 2),
        ("BPM(max_rel=2)@5", (0, 1), 0.5 / 5),
        ("F@5", (1, 0, 1, 0, 1), 0.75),
        ("E@5", (1, 0, 1, 0, 1), 0.25),
        ("Accuracy", (1, 0, 1, 0), 3 / 4),
        ("AvgPos(of='CG')@10", TOIS, (3 + 5 + 8 + 8 + 8 + 9 + 11 + 13 + 16 + 16) / 10),
        ("SlidingRatio@3", TOIS, 8 / 9),
        ("SlidingRatio@10", TOIS, 1.0),
        ("GP@10", TOIS, 16 / 30),
        ("GR@3", TOIS, 8 / 16),
        ("SearchLength", (0, 0, 1, 1), 3),
        ("ASL", (0, 0, 1, 1), 3.5),
        ("ESL(n=2)", (0, 1, 0, 1), 2),
        ("NormRecall(documents=10)", (1, 0, 1), 1 - 1 / 16),
        ("Satisfaction", (0, 1), 1 / 2),
        ("Satisfaction", (1, 0, 3), (3 * 1 + 1 * 3) / (3 * 3 + 2 * 1)),
        ("Frustration", (0, 1), 1.0),
        ("Frustration", (1, 0, 0), 3 / 5),
        ("Total", (0, 1), 0.25),
        ("RHL", (1, 0, 2, 1), 3.0),
        ("RHL", (0, 0, 0, 2), 4.0),
    ],
)  # fmt: skip
def test_values_worked_by_hand(measure: str, levels: tuple[int, ...], expected: float) -> None:
    assert value(measure, ranked(*levels)) == pytest.approx(expected)


def test_expected_search_length_of_van_rijsbergen() -> None:
    """Information Retrieval, chapter 7: 3 non-relevant, then 2 relevant of 5 tied; one is needed: 4 on average."""
    levels = {**{f"r{i}": 1 for i in range(5)}, "x": 1, "y": 1}
    above = {f"r{i}": 3.0 for i in range(5)} | {f"n{i}": 2.0 for i in range(3)}
    tied = dict.fromkeys(("x", "y", "n3", "n4", "n5"), 1.0)
    assert value("ESL(n=6)", judged_run({"1": levels}, {"1": above | tied})) == 4


def test_average_position_of_the_normalised_vector() -> None:
    """The recall base of TOIS 2002, whose nCG vector is printed as these ten values."""
    run = ranked(*TOIS, recall_base={f"r{i}": 1 for i in range(3)})
    printed = [1, 0.83, 0.89, 0.73, 0.62, 0.6, 0.69, 0.76, 0.89, 0.84]
    assert value("AvgPos(of='nCG')@10", run) == pytest.approx(sum(printed) / 10, abs=0.005)


def test_graded_scales_are_those_of_the_qrels_except_for_rbp() -> None:
    view = judged_run({"1": {"a": 1}, "2": {"b": 4}}, {"1": {"a": 1.0}, "2": {"b": 1.0}})
    assert parse_measure("GP@1").compute(view).tolist() == [0.25, 1]
    assert parse_measure("RBP(p=0.5)").compute(view).tolist() == [0.5, 0.5]


def test_what_has_no_value_is_undefined() -> None:
    """Topic 1 has two relevant documents, one of them retrieved; 2 is not answered; 3 has none; 4 has all."""
    qrels = {"1": {"a": 1, "b": 1}, "2": {"a": 1}, "3": {"a": 0}, "4": {"a": 1}}
    view = judged_run(qrels, {"1": {"a": 1.0, "x": 0.5}, "3": {"a": 1.0}, "4": {"a": 1.0}})
    nothing = math.nan
    for measure, expected in {
        "SearchLength": [1, nothing, nothing, 1],
        "SearchLength(missing='last',documents=9)": [1, 9, nothing, 1],
        "ASL": [nothing, nothing, nothing, 1],
        "ASL(missing='last',documents=9)": [5, 9, nothing, 1],
        "ESL": [0, nothing, nothing, 0],
        "ESL(n=2)": [nothing, nothing, nothing, nothing],
        "ESL(n=2,missing='last',documents=9)": [7, nothing, nothing, nothing],
        "NormRecall(documents=9)": [nothing, nothing, nothing, 1],
        "NormRecall(documents=1)": [nothing, nothing, nothing, nothing],
        "Accuracy": [1, nothing, nothing, nothing],
        "Satisfaction": [1, 0, nothing, 1],
        "Frustration": [1 / 2, nothing, 1, 0],
        "Total": [0.75, 0, nothing, 1],
        "RelRelevance": [1 / math.sqrt(1.25), 0, nothing, 1],
        "RHL": [1, nothing, nothing, 1],
        "RBPResidual(p=0.5)": [0.5, 1, 0.5, 0.5],
    }.items():
        np.testing.assert_allclose(parse_measure(measure).compute(view), expected, err_msg=measure)


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("RBP", "RBP(p=0.8)"),
        ("RBP(rel=1)", "RBP(p=0.8,rel=1)"),
        ("rbp", "RBP(p=0.9)"),
        ("rbp_resid", "RBPResidual(p=0.9)"),
        ("ERR@20", "ERR@20"),
        ("NERR8(min_rel=0, max_rel=3)@10", "NERR8(max_rel=3)@10"),
        ("NERR10(p=0.9,max_rel=3)", "NERR10(max_rel=3)"),
        ("INST(T=1.0,max_rel=2)", "INST(max_rel=2)"),
        ("BPM(max_rel=2,T=2.5)@10", "BPM(T=2.5,max_rel=2)@10"),
        ("Compat(normalize=False,p=0.95)", "Compat(normalize=False)"),
        ("ScaledDCG(dcg='log2',max_rel=3)@10", "ScaledDCG(max_rel=3)@10"),
        ("Accuracy(rel=2)", "Accuracy(rel=2)"),
        ("F1@10", "F@10"),
        ("AvgPos(dis='session',b=4)@10", "AvgPos(of='nDCG',dis='session',b=4)@10"),
        ("AvgPos@200", "AvgPos(of='nDCG')@200"),
        ("NormRecall(documents=1000000000000)", "NormRecall(documents=1000000000000)"),
    ],
)  # fmt: skip
def test_other_spellings_have_one_canonical_name(written: str, canonical: str) -> None:
    measure = parse_measure(written)
    assert measure.name == canonical
    assert parse_measure(measure.name) == measure


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("INST", "needs max_rel"),
        ("NERR8(max_rel=3)", "needs a cutoff"),
        ("NERR9(max_rel=1,min_rel=1)@5", "below max_rel"),
        ("NormRecall", "needs documents"),
        ("NormRecall(documents=1000000000001)", "from 1 to"),
        ("ASL(missing='last')", "go together"),
        ("ASL(documents=9)", "go together"),
        ("RBP(p=1)", "below 1"),
        ("RBP(rel=1,gains='exp')", "give one of them"),
        ("AvgPos(of='CG',dis='jk')@5", "no discount"),
        ("AvgPos(of='DCG',ideal='retrieved')@5", "no ideal"),
        ("SDCG(max_rel=3)@10", "ScaledDCG"),
    ],
)  # fmt: skip
def test_parameters_that_contradict_each_other_are_refused(written: str, says: str) -> None:
    with pytest.raises(MeasureError, match=says):
        parse_measure(written)


def test_an_average_over_cutoffs_is_that_of_the_measure_at_each() -> None:
    view = judged_run(*random_collection(3))
    points = ",".join(f"0.{tenth}" for tenth in range(10)) + ",1"
    np.testing.assert_allclose(
        parse_measure(f"AvgCut(of='IPrec',cutoffs='{points}')").compute(view),
        parse_measure("11pt_avg").compute(view),
        rtol=1e-14,
    )
    assert parse_measure("AvgCut(of='E',cutoffs='5,10')").lower_is_better
    assert not parse_measure("AvgCut(of='P',cutoffs='5,10')").lower_is_better


def test_an_average_over_cutoffs_is_undefined_for_the_reason_of_its_measure() -> None:
    view = ranked(1, 0)
    measure = parse_measure("AvgCut(of='Accuracy',cutoffs='1,2')")
    values = measure.compute(view)
    assert np.isnan(values).tolist() == [True]
    assert measure.why_undefined(view, values) == ["no_pair_of_documents"]
