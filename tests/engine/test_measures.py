"""Properties that hold for every line of the MEASURES table, and the grammar of their names."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.engine.curve.curves import CURVES, curve
from metrics.engine.errors import MeasureError
from metrics.engine.measures import MEASURES
from metrics.engine.measures.definition import Cutoff
from metrics.engine.measures.grammar import (
    MAX_LIST,
    Measure,
    parse_measure,
    parse_measures,
    split_names,
)
from metrics.engine.sessions.grammar import parse_session_measures
from tests.engine.build import judged_run, ranked
from tests.readers import of_a_reader

LEVELS = st.lists(st.integers(-1, 3), min_size=1, max_size=25)


CUTOFFS = {Cutoff.NONE: "", Cutoff.OPTIONAL: "@5", Cutoff.REQUIRED: "@5", Cutoff.SHARE: "@0.5"}


def with_cutoff(name: str) -> Measure:
    needed = ",".join(f"{p.name}={p.example}" for p in MEASURES[name].parameters if p.example)
    return parse_measure(f"{name}({needed}){CUTOFFS[MEASURES[name].cutoff]}")


# Without a number of documents expected these have no value at all.
EXPECTING = [
    parse_measure("RelativeRecall(expected=2)@5"),
    parse_measure("RecallEffort(expected=2)"),
]
EVERY = [*(with_cutoff(name) for name in MEASURES), *EXPECTING]
RATIOS = [
    measure
    for measure in EVERY
    if MEASURES[measure.definition.name].sections()["range"].startswith("0 to 1")
]
LOWER_IS_BETTER = [m for m in EVERY if "lower is" in m.definition.sections()["range"]]
# One more document is one more to be told apart, compared with the ideal or multiplied by its
# score.
OF_THE_WHOLE_LIST = ("Accuracy", "Compat", "RelRelevance", "Satisfaction", "Frustration", "Total")
# These judge the order of the first k alone: a better document that enters the first k at their end
# is a new demand.
AGAINST_THE_LIST = ("Accuracy", "Satisfaction", "Frustration", "Total")
# Every retrieved document counts in these; Rndcg takes nDCG once more at the end of a long enough
# ranking.
COUNTED = ("NumRet", "Judged", "SetP", "SetF", "SetAP", "utility", "unj", "Rndcg")
# A level below 0 is no judgement to these, so a non-relevant document is not better than one of
# level -1.
PASS_OVER = ("Bpref", "gm_bpref", "infAP")
# G and ndcg_rel weigh a document by what else the ranking holds by then, so an early document of a
# low level can pay; unj is a share of unjudged documents, which have no better order; a user of BPM
# who meets the goal earlier may have passed up a better document by that, and what counts is gain
# per document. The blended ratio counts the gain of one document at the ranks of others: a low
# level that is moved above a higher one comes at a rank with a high ideal.
NOT_MONOTONE = ("G", "ndcg_rel", "unj", "BPM", "Q", "NCU", "PPlus", "PMeasure", "OMeasure")


def may_be_undefined(measure: Measure) -> bool:
    return "undefined" in measure.definition.sections()


@pytest.mark.parametrize("measure", EVERY, ids=str)
def test_the_docstring_says_formula_range_and_source(measure: Measure) -> None:
    assert {"summary", "formula", "range", "source"} <= set(measure.definition.sections())


@pytest.mark.parametrize("measure", EVERY, ids=str)
def test_the_canonical_name_parses_back(measure: Measure) -> None:
    assert parse_measure(measure.name) == measure


@pytest.mark.parametrize("measure", EVERY, ids=str)
def test_a_run_that_answers_nothing_has_finite_values_or_a_reason(measure: Measure) -> None:
    view = judged_run({"1": {"a": 1}, "2": {"b": 0}}, {"9": {"a": 1.0}})
    values = measure.compute(view)
    assert not np.isinf(values).any()
    assert not np.isnan(values).any() or may_be_undefined(measure)


# Of one example all measures are asked: to make it takes longer than to compute them.
@pytest.mark.slow
@given(levels=LEVELS)
def test_ratios_stay_within_zero_and_one(levels: list[int]) -> None:
    view = ranked(*levels)
    for measure in RATIOS:
        (value,) = measure.compute(view)
        assert 0 <= value <= 1 + 1e-12 or (np.isnan(value) and may_be_undefined(measure)), measure


@pytest.mark.slow
@given(levels=LEVELS)
def test_an_unjudged_document_at_the_end_changes_nothing(levels: list[int]) -> None:
    qrels = {"1": {f"d{rank}": level for rank, level in enumerate(levels, 1)}}
    run = {f"d{rank}": -float(rank) for rank in range(1, len(levels) + 1)}
    view, longer = (
        judged_run(qrels, {"1": ranking}) for ranking in (run, {**run, "unjudged": -1000.0})
    )
    for measure in (
        measure
        for measure in EVERY
        if measure.definition.name not in (*COUNTED, *OF_THE_WHOLE_LIST)
    ):
        np.testing.assert_array_equal(measure.compute(view), measure.compute(longer), str(measure))


@pytest.mark.slow
@given(levels=LEVELS, where=st.data())
def test_a_better_document_moved_up_makes_nothing_worse(
    levels: list[int], where: st.DataObject
) -> None:
    upper = where.draw(st.integers(0, len(levels) - 1))
    lower = where.draw(st.integers(upper, len(levels) - 1))
    better = list(levels)
    if levels[upper] < levels[lower]:
        better[upper], better[lower] = levels[lower], levels[upper]
    views = {
        least: [ranked(*(max(level, least) for level in order)) for order in (better, levels)]
        for least in (-1, 0)
    }
    for measure in (
        measure
        for measure in RATIOS
        if measure.definition.name not in (*AGAINST_THE_LIST, *NOT_MONOTONE)
    ):
        least = 0 if measure.definition.name in PASS_OVER else -1
        (now,), (then,) = (measure.compute(view) for view in views[least])
        gain = then - now if measure in LOWER_IS_BETTER else now - then
        assert gain >= -1e-12 or (np.isnan(gain) and may_be_undefined(measure)), measure


@pytest.mark.parametrize(
    "name", ["nDCG@10", "nDCG", "nCG@3", "nDCG(dis='jk')@10", "nDCG(gains='exp')", "AP", "RR"]
)
@given(levels=LEVELS)
def test_the_ideal_order_is_perfect(name: str, levels: list[int]) -> None:
    (value,) = parse_measure(name).compute(ranked(*sorted(levels, reverse=True)))
    assert value == pytest.approx(1.0 if max(levels) > 0 else 0.0)


@pytest.mark.parametrize("name", list(CURVES))
@given(levels=LEVELS)
def test_a_curve_is_the_measure_at_every_cutoff(name: str, levels: list[int]) -> None:
    view = ranked(*levels)
    drawn = curve(view, parse_measure(f"{name}@1"), 30).topics
    expected = [parse_measure(f"{name}@{k}").compute(view)[0] for k in range(1, 31)]
    np.testing.assert_allclose(drawn[0], expected, atol=1e-12)


def test_gain_maps_change_what_a_level_is_worth() -> None:
    view = ranked(1, 3, 2)
    assert parse_measure("CG(gains='0:0,1:1,2:10,3:100')@3").compute(view) == 111
    assert parse_measure("CG(gains='exp')@3").compute(view) == 1 + 7 + 3
    assert parse_measure("CG(gains='2:5')@3").compute(view) == 1 + 3 + 5
    assert parse_measure("CG(gains='0.5-2')@4").compute(ranked(0, 1, -1, 3)) == 0.5 + 2 + 2


def test_negative_levels_gain_nothing() -> None:
    view = ranked(-2, 1)
    assert parse_measure("CG").compute(view) == 1
    assert parse_measure("DCG(gains='exp')").compute(view) == pytest.approx(1 / np.log2(3))


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("ndcg_cut_10", "nDCG@10"),
        ("ndcg_cut.10", "nDCG@10"),
        ("ndcg@10", "nDCG@10"),
        ("ndcg(gains='exp')@10", "nDCG(gains='exp')@10"),
        ("map@100", "AP@100"),
        ("recall@100", "R@100"),
        ("success@5", "Success@5"),
        ("map", "AP"),
        ("Prec@3", "P@3"),
        ("R-precision", "Rprec"),
        ("Bpref-10", "Bpref(norm='10')"),
        ("bpref-10(rel=2)", "Bpref(rel=2,norm='10')"),
        ("GMAP", "gm_map"),
        ("NR(documents=100)", "NormRecall(documents=100)"),
        ("SR@10", "SlidingRatio@10"),
        ("AvgCut(cutoffs='5, 10',of=P)", "AvgCut(of='P',cutoffs='5,10')"),
        ("AvgCut(of='P(level=2)',cutoffs=\"5,10\")", "AvgCut(of='P(level=2)',cutoffs='5,10')"),
        ("AvgCut(of=\"ndcg(gains='exp')\",cutoffs='5,10')", "AvgCut(of=\"nDCG(gains='exp')\",cutoffs='5,10')"),
        ("E(b=2)@10", "E(beta=2)@10"),
        ("SetF(b=2)", "SetF(beta=2)"),
        ("AvgPos(dis='jk',b=3)@5", "AvgPos(of='nDCG',dis='jk',b=3)@5"),
        ("MAP@100", "AP@100"),
        ("recip_rank", "RR"),
        ("MRR@10", "RR@10"),
        ("P_5", "P@5"),
        ("recall_100", "R@100"),
        ("success_1", "Success@1"),
        ("num_rel_ret", "NumRelRet"),
        ("nDCG(dcg='exp-log2')@10", "nDCG(gains='exp')@10"),
        ("nDCG(dcg='log2')@10", "nDCG@10"),
        ("P( rel = 2 )@5", "P(rel=2)@5"),
        ("nDCG(b=10,dis=\"jk\")", "nDCG(dis='jk',b=10)"),
        ("CG(gains={3:100,1:1})", "CG(gains='1:1,3:100')"),
        ("AP(rel=1)", "AP"),
        ("bpref", "Bpref"),
        ("BPref", "Bpref"),
        ("infAP", "infAP"),
        ("iprec_at_recall_0.10", "IPrec@0.1"),
        ("iprec_at_recall.0", "IPrec@0"),
        ("IPrec@0.50", "IPrec@0.5"),
        ("IPrec@0.000001", "IPrec@0.000001"),
        ("11pt_avg", "11pt_avg"),
        ("11pt_avg(rounding='9')", "11pt_avg(rounding='9')"),
        ("Rprec_mult_0.20", "Rprec_mult_0.20"),
        ("Rprec_mult.2", "Rprec_mult_2.00"),
        ("Rprec_mult@0.125", "Rprec_mult_0.125"),
        ("Rprec_mult(rel=2)@0.2", "Rprec_mult(rel=2)@0.2"),
        ("relative_P_5", "P(relative=True)@5"),
        ("set_P", "SetP"),
        ("set_relative_P", "SetP(relative=True)"),
        ("SetRelP(rel=2)", "SetP(rel=2,relative=True)"),
        ("set_recall", "SetR"),
        ("set_F", "SetF"),
        ("set_F.2.0", "SetF(beta=2)"),
        ("set_map", "SetAP"),
        ("utility", "utility"),
        ("utility(c=-0.5,b=-2)", "utility(b=-2,c=-0.5)"),
        ("gm_map", "gm_map"),
        ("gm_bpref", "gm_bpref"),
        ("Rndcg", "Rndcg"),
        ("ndcg_rel", "ndcg_rel"),
        ("ideal_dcg", "IdealDCG"),
        ("unj_10", "unj_10"),
        ("unj@10", "unj_10"),
        ("num_nonrel_judged_ret", "num_nonrel_judged_ret"),
        ("nDCG(norm='average')@5", "nDCG(norm='average')@5"),
        ("nCG(norm=topic)", "nCG"),
        ("AvgPos(norm=average,of=nCG)@3", "AvgPos(of='nCG',norm='average')@3"),
        ("CG(gains='0-1.0-10-100')", "CG(gains='0-1-10-100')"),
        ("CG(gains='0-0.00001-1')", "CG(gains='0-0.00001-1')"),
        ("CG(gains=0.5-1.5)", "CG(gains='0.5-1.5')"),
        ("nDCG(gains='0-1-2-3')@10", "nDCG(gains='0-1-2-3')@10"),
        ("nDCG(gains='0:0,1:1')@10", "nDCG@10"),
        ("nDCG(gains='2:2')@10", "nDCG@10"),
    ],
)  # fmt: skip
def test_other_spellings_have_one_canonical_name(written: str, canonical: str) -> None:
    assert parse_measure(written).name == canonical
    assert parse_measure(canonical) == parse_measure(written)


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("SDCG", "sDCG for the session measure"),
        ("P", "needs a cutoff"),
        ("P_0", "from 1 to"),
        ("P@1e9", "from 1 to"),
        ("Rprec@5", "takes no cutoff"),
        ("nDCG(b=3)", "dis='jk'"),
        ("nDCG(dis='jk',b=1)", "above 1"),
        ("nDCG(colour=3)", "has no parameter 'colour'"),
        ("AP(rel=1,rel=2)", "given twice"),
        ("AvgCut(of='P',cutoffs='5')", "two or more, separated by commas"),
        ("AvgCut(of='P',cutoffs='5,05')", "a cutoff is given twice"),
        ("AvgCut(of='P',cutoffs='5,0')", "a whole number from 1"),
        ("AvgCut(of='IPrec',cutoffs='0.5,2')", "from 0 to 1"),
        ("AvgCut(of='P@5',cutoffs='5,10')", "without a cutoff"),
        ("AvgCut(of='Rprec',cutoffs='5,10')", "takes no cutoff"),
        ("AvgCut(of='nDCG(norm=average)',cutoffs='5,10')", "no value for a topic"),
        ("AvgCut(of='AvgCut',cutoffs='5,10')", "AvgCut needs of"),
        ("AvgCut(of='P')", "needs cutoffs"),
        ("E(b=2,beta=3)@10", "beta is given twice"),
        ("F(b=2)@10", "no parameter 'b'"),
        ("Bpref-10(norm='R')", "norm is given twice"),
        ("AP(rel=2.5)", "whole number"),
        ("CG(gains='a')", "pairs such as"),
        ("CG(gains='1:-2')", "from 0 to"),
        ("CG(gains='0-1--2')", "0-1-10-100 or pairs"),
        ("CG(gains='-1-2')", "0-1-10-100 or pairs"),
        ("CG(gains='0-9999999999999999')", "0-1-10-100 or pairs"),
        ("AvgPos(of='CG',norm='average')@3", "norm belongs to nDCG and nCG"),
        ("nDCG(norm='mean')", "one of 'topic', 'average'"),
        ("ndcg_10", "unknown measure"),
        ("IPrec", "needs a cutoff: IPrec@0.1"),
        ("IPrec@5", "from 0 to 1"),
        ("Rprec_mult_11", "from 0 to 10"),
        ("IPrec(interp='interval',rounding='9')@0.1", "rounding belongs to interp='ceiling'"),
        ("utility(d=1)", "go together"),
        ("SetRelP(relative=False)", "given twice"),
        ("set_F.0", "above 0"),
        ("<script>", "unknown measure"),
        ("AP(dcg='log2')", "no parameter 'dcg'"),
        (
            f"nDCG(gains='{','.join(f'{level}:9e14' for level in range(1, 22))}')@10",
            "canonical form",
        ),
        ("P@" + "9" * 300, "at most 200 characters"),
    ],
)
def test_a_name_without_a_meaning_is_refused_with_a_reason(written: str, says: str) -> None:
    with pytest.raises(MeasureError, match=says):
        parse_measure(written)


def test_a_list_is_split_outside_brackets_only() -> None:
    names = [
        measure.name for measure in parse_measures("nDCG@10, P(rel=2,judged_only=True)@5 map,AP")
    ]
    assert names == ["nDCG@10", "P(rel=2,judged_only=True)@5", "AP"]
    assert split_names("Session(of='P(rel=2)@5', b=2)@10,, AP) Q(a, b)@2") == [
        "Session(of='P(rel=2)@5', b=2)@10",
        "AP)",
        "Q(a, b)@2",
    ]


@pytest.mark.parametrize("unit", [",", "a,", "(", "a,(", ") ,"])
def test_a_hostile_list_is_split_at_once(unit: str) -> None:
    text = (unit * MAX_LIST)[: MAX_LIST - 1] + ")"
    began = time.thread_time()
    with suppress(MeasureError):
        split_names(text)
    assert time.thread_time() - began < 0.5


@pytest.mark.parametrize("read", [parse_measures, parse_session_measures])
def test_a_list_that_is_too_long_is_refused_by_its_length(
    read: Callable[[str], list[Measure]],
) -> None:
    with pytest.raises(
        MeasureError, match="at most 20,000 characters; this one has 20,001"
    ) as refused:
        read("," * (MAX_LIST + 1))
    assert refused.value.code == "too_many_measures"


# What names are made of, so that some have a meaning and others nearly have one.
NAME_PARTS = st.sampled_from(
    [*MEASURES, "ndcg_cut_10", "map", "P_5", "@", "@5", "@0", "@0.5", "@1000000000", "(", ")", "=", ",", "'", '"', " ",
     "rel=2", "p=0.8", "p=nan", "dis='jk'", "b=2", "b=1e999", "gains='0:0,1:1'", "gains='0:-1'", "judged_only=True",
     "rel=", "rel=99999999999999999999", "-1", "\0", "\u0661", "\ud7ff", "None", "((", "))"]
)  # fmt: skip


@of_a_reader
@given(st.text(max_size=60) | st.lists(NAME_PARTS, max_size=12).map("".join))
def test_any_text_is_a_measure_or_a_measure_error(text: str) -> None:
    try:
        assert parse_measure(parse_measure(text).name)
    except MeasureError as error:
        assert error.message
        assert error.code
