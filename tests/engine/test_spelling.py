"""Names that nobody knows: what is named instead, and the names of other tools that mean a measure here."""

from __future__ import annotations

import ir_measures
import pytest

from evalhub.local import eval as local
from metrics.engine.errors import MeasureError
from metrics.engine.measures.grammar import parse_measure
from metrics.engine.measures.spelling import closest
from metrics.engine.sessions.grammar import parse_session_measure
from tests.engine.build import judged_run

MEANT = {
    "nDGC@10": "nDCG@10",
    "Ndcg": "nDCG",
    "nDGC(gains='exp')@5": "nDCG(gains='exp')@5",
    "mAP": "AP",
    "precision@5": "P@5",
    "precision_5": "P@5",
    "p@5": "P@5",
    "precision": "P@10",
    "iprec": "IPrec@0.1",
    "hit_rate@5": "Success@5",
    "F-measure@5": "F@5",
    "alphandcg@10": "alpha_nDCG@10",
    "R-Prec": "Rprec",
    "recip_rnk": "RR",
}


@pytest.mark.parametrize(("text", "name"), MEANT.items())
def test_the_measure_that_was_meant_is_named(text: str, name: str) -> None:
    with pytest.raises(MeasureError) as refused:
        parse_measure(text)
    assert refused.value.message == f"unknown measure {text!r}; did you mean {name}?"
    assert refused.value.code == "unknown_measure"
    assert parse_measure(name).name == name


@pytest.mark.parametrize(
    "text", ["foo", "nope", "xyz@10", "((((", "@", "", "x" * 200, "ndcg)@10(" * 20]
)
def test_where_nothing_is_near_it_says_what_names_look_like(text: str) -> None:
    with pytest.raises(MeasureError) as refused:
        parse_measure(text)
    assert refused.value.message.endswith("names look like nDCG@10 or P(rel=2)@5")


def test_a_session_measure_is_named_too() -> None:
    with pytest.raises(MeasureError, match=r"did you mean nsDCG\(b=2,bq=4\)@20\?"):
        parse_session_measure("nsdcg@20")


def test_no_message_of_the_engine_names_an_address() -> None:
    for text in ("foo", "nDGC@10"):
        with pytest.raises(MeasureError) as refused:
            parse_measure(text)
        assert "/api/" not in refused.value.message


def test_the_command_names_the_measure_and_its_own_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        local.main(["evalhub", "eval", "-m", "nDGC@10", "qrels", "run"])
    text = capsys.readouterr().err
    assert stop.value.code == 2
    assert (
        "error: unknown measure 'nDGC@10'; did you mean nDCG@10?\nevalhub eval --help describes the names"
        in text
    )
    assert "/api/" not in text


def test_num_ret_with_a_level_is_what_ir_measures_calls_the_relevant_ones() -> None:
    assert parse_measure("NumRet(rel=1)") == parse_measure("NumRelRet")
    assert parse_measure("NumRet(rel=2)").name == "NumRelRet(rel=2)"
    assert parse_measure("NumRet").name == "NumRet"


@pytest.mark.parametrize("text", ["NumRet", "NumRet(rel=1)", "NumRet(rel=2)"])
def test_num_ret_counts_as_ir_measures_does(text: str) -> None:
    qrels = {"1": {"a": 2, "b": 1, "c": 0}}
    run = {"1": {"a": 4.0, "b": 3.0, "c": 2.0, "d": 1.0}}
    (peer,) = ir_measures.iter_calc([ir_measures.parse_measure(text)], qrels, run)
    assert parse_measure(text).compute(judged_run(qrels, run)).tolist() == [peer.value]


def test_a_near_name_is_found_in_any_case() -> None:
    assert closest("Measure", ["measures", "scores"]) == "measures"
    assert closest("foo", ["measures", "scores"]) is None
    assert closest("x" * 100_000, ["measures"]) is None
