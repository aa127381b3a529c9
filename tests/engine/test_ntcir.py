"""NTCIR's measures: against loops in exact fractions, and against what NTCIREVAL prints."""

from __future__ import annotations

import numpy as np
import pytest

from metrics.engine.errors import MeasureError
from metrics.engine.measures.grammar import parse_measure
from tests.engine.build import judged_run, ranked
from tests.engine.naive import topics
from tests.engine.naive_ntcir import NAIVE_NTCIR
from tests.engine.test_against_pytrec_eval import random_collection

# The sample that NTCIREVAL comes with: three documents of level 3, three of 2, four of 1 and one of
# 0, of which a run retrieves one of level 0, one of 3, one that nobody judged, and one of 2.
_BASE = {"b": 3, "c": 3, "e": 2, "f": 2, "g": 1, "h": 1, "i": 1, "j": 1}
SAMPLE = judged_run(
    {"1": {"z": 0, "a": 3, "d": 2} | _BASE}, {"1": {"z": 4.0, "a": 3.0, "unjudged": 2.0, "d": 1.0}}
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("measure", NAIVE_NTCIR)
@pytest.mark.parametrize("seed", range(6))
def test_every_topic_agrees_with_a_loop_over_its_documents(measure: str, seed: int) -> None:
    qrels, run = random_collection(seed)
    expected = [NAIVE_NTCIR[measure](topic) for topic in topics(qrels, run)]
    np.testing.assert_allclose(
        parse_measure(measure).compute(judged_run(qrels, run)), expected, rtol=0, atol=1e-12
    )


@pytest.mark.parametrize(
    ("measure", "printed"),
    [
        ("RR", 0.5), ("OMeasure", 0.5), ("PMeasure", 0.5), ("PPlus", 0.5), ("AP", 0.1), ("Q", 0.0967),
        ("NCU(stop='gu',beta=0)", 0.1316), ("NCU(stop='gu')", 0.1281),
        ("NCU(stop='rb',beta=0)", 0.1215), ("NCU(stop='rb')", 0.1175), ("RBP(p=0.95)", 0.0761),
        ("ERR(gains='linear',max_rel=3)", 0.4062), ("Q@1000", 0.0967), ("MSnDCG@1000", 0.2760), ("P@1000", 0.0020),
        ("nERR(gains='linear',max_rel=3)@1000", 0.4710), ("Q(beta=0)@2", 0.25), ("Q@2", 0.25), ("MSnDCG@2", 0.3869),
        ("nDCG(dis='jk')@1000", 0.3380), ("nDCG(dis='jk')@2", 0.5), ("nERR(gains='linear',max_rel=3)@2", 0.4444),
    ],
)  # fmt: skip
def test_the_figures_that_ntcireval_prints_for_its_sample(measure: str, printed: float) -> None:
    assert parse_measure(measure).compute(SAMPLE)[0] == pytest.approx(printed, abs=0.5001e-4)


def test_blended_ratios_by_hand() -> None:
    """Levels 1, 0, 3 of R = 3, the third of level 2: the ideal gains 3, 5, 6."""
    run = ranked(1, 0, 3, recall_base={"missed": 2})
    first, third = (1 + 1) / (1 + 3), (2 + 4) / (3 + 6)
    for measure, expected in {
        "Q": (first + third) / 3,
        "Q@2": first / 2,
        "PMeasure": third,
        "PPlus": (first + third) / 2,
        "OMeasure": first,
        "NCU(stop='rb',gamma=0.5)": (first + third / 2) / 1.75,
        "NCU(stop='gu')": (first * 1 + third * 3) / 6,
    }.items():
        assert parse_measure(measure).compute(run)[0] == pytest.approx(expected), measure


def test_special_cases_are_the_measures_they_are_said_to_be() -> None:
    view = judged_run(*random_collection(3))
    for ours, other in (
        ("Q(beta=0)", "AP"),
        ("OMeasure(beta=0)", "RR"),
        ("MSnDCG(gains='exp')@9", "nDCG(gains='exp')@9"),
    ):
        np.testing.assert_allclose(
            parse_measure(ours).compute(view), parse_measure(other).compute(view), atol=1e-12
        )


@pytest.mark.parametrize(
    "measure",
    ["Q", "Q@5", "NCU(stop='rb')", "NCU(stop='gu')", "PPlus", "PMeasure", "OMeasure", "nERR@5"],
)
def test_no_answer_and_no_relevant_document_are_0_and_the_best_ranking_is_1(measure: str) -> None:
    """Topics without an answer, without a relevant document, with nothing relevant found, and perfect."""
    qrels = {
        "lost": {"a": 2},
        "poor": {"a": 0},
        "missed": {"a": 1},
        "best": {"a": 3, "b": 3, "c": 1, "d": 0},
    }
    run = {
        "poor": {"a": 1.0},
        "missed": {"x": 2.0},
        "best": {"a": 4.0, "b": 3.0, "c": 2.0, "x": 1.0},
    }
    np.testing.assert_allclose(
        parse_measure(measure).compute(judged_run(qrels, run)), [0, 0, 0, 1], atol=1e-12
    )


def test_a_tie_is_broken_as_for_every_measure() -> None:
    """By doc_id, descending: b before a."""
    view = judged_run({"1": {"a": 3, "b": 1}}, {"1": {"a": 1.0, "b": 1.0}})
    assert parse_measure("OMeasure").compute(view)[0] == (1 + 1) / (1 + 3)


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("Q-measure@10", "Q@10"),
        ("Q(gains='1:1,2:2,3:3')", "Q"),
        ("MSnDCG@10", "nDCG@10"),
        ("NCU", "NCU(stop='rb')"),
        ("NCU(beta=0,gamma=0.9)", "NCU(stop='rb',gamma=0.9,beta=0)"),
        ("P-measure(rel=2)", "PMeasure(rel=2)"),
        ("O-measure", "OMeasure"),
        ("P-plus", "PPlus"),
        ("nERR(gains='exp')@10", "nERR@10"),
        ("ERR(max_rel=4,gains='exp')", "ERR"),
    ],
)
def test_other_spellings_have_one_canonical_name(written: str, canonical: str) -> None:
    assert parse_measure(written).name == canonical


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("NCU(stop='gu',gamma=0.5)", "gamma belongs to stop='rb'"),
        ("NCU(stops='exp')", "stops belongs to stop='gu'"),
        ("Q(beta=-1)", "from 0 to"),
        ("NCU(gamma=1)", "below 1"),
        ("PMeasure@5", "takes no cutoff"),
    ],
)
def test_parameters_that_mean_nothing_are_refused(written: str, says: str) -> None:
    with pytest.raises(MeasureError, match=says):
        parse_measure(written)
