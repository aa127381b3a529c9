"""The table of trec_eval's measures: complete, in its order, and of the same names as the measures' own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from metrics.engine.errors import MeasureError
from metrics.engine.judgement.judged import JudgedRun
from metrics.engine.measures import MEASURES
from metrics.engine.measures.definition import Aggregate
from metrics.engine.measures.grammar import parse_measure, trec_eval_measure
from metrics.engine.trec_eval.columns import Answers, Settings, columns
from metrics.engine.trec_eval.requests import Request, read_requests
from metrics.engine.trec_eval.table import ENTRIES, NICKNAMES, TABLE, Figure, Takes
from tests.engine.build import judged_run, ranked

# What trec_eval prints of a run or of its documents: figures that no measure is.
NOT_MEASURES = {"runid", "relstring"}


def printed(requests: list[Request]) -> list[str]:
    return [name for request in requests for name in request.names]


def test_the_table_has_every_name_that_measures_have_in_trec_eval_and_no_other() -> None:
    named = {definition.trec_eval for definition in MEASURES.values() if definition.trec_eval}
    named |= {
        form
        for definition in MEASURES.values()
        for form, _ in definition.forms
        if form not in ("SetRelP", "Bpref-10", "bpref-10")
    }
    cut = {entry.name.removesuffix("_cut") for entry in TABLE if entry.name.endswith("_cut")}
    assert {entry.name.removesuffix("_cut") for entry in TABLE} - NOT_MEASURES == named
    assert cut == {"ndcg", "map"}
    assert len(ENTRIES) == len(TABLE)


def test_figures_are_made_as_the_measures_say() -> None:
    kinds = {Figure.MEAN: Aggregate.MEAN, Figure.GEOMETRIC: Aggregate.GEOMETRIC}
    for entry in TABLE:
        if entry.name not in NOT_MEASURES:
            aggregate = trec_eval_measure(entry.name, None, {}).definition.aggregate
            assert aggregate is kinds.get(entry.figure, Aggregate.SUM), entry.name
            assert entry.whole == (aggregate is Aggregate.SUM)


@pytest.mark.parametrize(
    "name",
    ["P_5", "ndcg_cut_10", "map_cut_100", "relative_P_20", "success_1", "recall_30", "iprec_at_recall_0.30",
     "Rprec_mult_1.20", "unj_20", "set_F", "bpref", "rbp"],
)  # fmt: skip
def test_a_line_has_the_values_of_the_measure_of_that_name(name: str) -> None:
    view = ranked(0, 2, -1, 1, 0, 3, recall_base={"missed": 1, "other": 2})
    requests, _ = read_requests(["all_trec"], "10")
    by_name = {
        column.name: column
        for column in columns(Answers(view, [b"1"], "t", Settings()), requests, [])
    }
    assert by_name[name].values == parse_measure(name).compute(view).tolist()


@pytest.mark.real_data
def test_names_and_their_order_are_trec_evals(real_data: Path) -> None:
    lines = [
        line.split() for line in (real_data / "trec_eval_test/out.test.aq").read_text().splitlines()
    ]
    requests, others = read_requests(["all_trec"], "10")
    by_topic = [name for request in requests if request.entry.by_topic for name in request.names]
    assert others == []
    assert [name for name, topic, _ in lines if topic == "all"] == [
        n for n in printed(requests) if n != "relstring"
    ]
    assert [name for name, topic, _ in lines if topic == "301"] == by_topic
    official = (real_data / "trec_eval_test/out.test").read_text().splitlines()
    assert [line.split()[0] for line in official] == printed(read_requests(["official"], "10")[0])


def test_each_version_has_its_own_list() -> None:
    ten, nine = (
        set(printed(read_requests(["all_trec"], version)[0])) for version in ("10", "9.0.8")
    )
    assert ten - nine == {"rbp", "rbp_resid", "unj_5", "unj_10", "unj_20"}
    assert nine < ten
    for name in ("dcg", "ideal_dcg"):
        assert printed(read_requests([name], "10")[0]) == [name]
        with pytest.raises(MeasureError, match="came with version 10"):
            read_requests([name], "9.0.8")
    assert {name for names in NICKNAMES.values() for name in names} <= set(ENTRIES)


def test_names_end_in_the_parameters_as_they_are_written_or_as_each_number_is_printed() -> None:
    names = [
        "ndcg.1=3,2=9",
        "utility.2,-1,0,0",
        "11pt_avg..25,.5",
        "P.10,5",
        "iprec_at_recall..25,1",
        "set_F.2.0",
    ]
    requests, _ = read_requests(names, "10")
    assert printed(requests) == [
        "iprec_at_recall_0.25", "iprec_at_recall_1.00", "P_5", "P_10", "utility_2,-1,0,0", "11pt_avg_.25,.5",
        "ndcg_1=3,2=9", "set_F_2.0",
    ]  # fmt: skip
    assert {request.entry.takes for request in requests} == set(Takes) - {Takes.NOTHING}


def test_yet_another_average_precision_of_a_worked_example() -> None:
    """Relevant at ranks 1 and 3 of three documents: s = 1 + 2/3."""
    view = ranked(1, 0, 1, recall_base={"missed": 1})
    value = 1 + 2 / 3
    assert parse_measure("yaap").compute(view) == pytest.approx(
        np.log((1 + value) / (1 + 3 - value))
    )


# The options that change what is judged

QRELS = {
    "1": {f"d{i}": i % 4 - 1 for i in range(0, 20, 2)},
    "2": {"d1": 1, "d3": 0},
    "3": {"d5": 1},
}
RUN = {"1": {f"d{i}": float(-(i // 3)) for i in range(20)}, "2": {"d3": 1.0, "d1": 1.0, "d2": 1.0}}


def first(run: dict[str, dict[str, float]], depth: int) -> dict[str, dict[str, float]]:
    order = {
        topic: sorted(docs, key=lambda doc: (docs[doc], doc), reverse=True)
        for topic, docs in run.items()
    }
    return {topic: {doc: run[topic][doc] for doc in docs[:depth]} for topic, docs in order.items()}


@pytest.mark.parametrize("depth", [1, 2, 3, 4, 7, 19, 20, 100])
def test_a_truncated_view_is_that_of_the_first_documents(depth: int) -> None:
    cut, expected = judged_run(QRELS, RUN).truncated(depth), judged_run(QRELS, first(RUN, depth))
    for part in (
        "topic",
        "rank",
        "level",
        "judgement",
        "score",
        "tie_first",
        "tie_size",
        "num_ret",
    ):
        assert getattr(cut, part).tolist() == getattr(expected, part).tolist(), part
    known = ~np.isnan(cut.squared_scores)
    assert known.tolist() == [depth >= 20, depth >= 3, True]
    np.testing.assert_allclose(cut.squared_scores[known], expected.squared_scores[known])


def test_a_measure_of_all_scores_is_undefined_where_some_are_left_out() -> None:
    cosine = parse_measure("RelRelevance")
    view: JudgedRun = judged_run(QRELS, RUN)
    assert np.isnan(cosine.compute(view.truncated(2))).tolist() == [True, True, False]
    assert np.isnan(cosine.compute(view.condensed)).tolist() == [True, True, False]
    assert not np.isnan(cosine.compute(view)).any()
