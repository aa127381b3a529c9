"""Measures of subtopics: against pyndeval and ir_measures, against naive loops, published values, and properties."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import ir_measures
import numpy as np
import pyndeval
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.engine.errors import MeasureError
from metrics.engine.judgement.judged import JudgedRun
from metrics.engine.measures.grammar import parse_measure
from tests.engine.build import Run, SubtopicQrels, judged_by_subtopic, judged_run, ranked
from tests.engine.naive_subtopics import NAIVE, log2, of_ideal, topics

CUTOFFS = (1, 2, 3, 5, 10, 20)
NDEVAL = [
    "NRBP", "nNRBP", "MAP-IA",
    *(f"{name}@{k}" for name in ("nERR-IA", "alpha-nDCG", "P-IA", "strec") for k in CUTOFFS),
    # At k = 1 ndeval forgets to divide by the number of subtopics.
    *(f"{name}@{k}" for name in ("ERR-IA", "alpha-DCG") for k in CUTOFFS if k > 1),
]  # fmt: skip
IR_MEASURES = [
    "StRecall@5", "alpha_nDCG@10", "alpha_nDCG(alpha=0.25,rel=2)@5", "alpha_DCG(alpha=0.75)@20", "ERR_IA@10",
    "nERR_IA(rel=2)@5", "NRBP(alpha=0.25,beta=0.8)", "nNRBP", "P_IA@10", "AP_IA(rel=2)", "MAP_IA", "α_nDCG@10",
]  # fmt: skip
NORMALISED_BY_THE_IDEAL = ("alpha_nDCG@5", "nERR_IA@5", "nNRBP")
OTHERS = ("StRecall@5", "alpha_DCG@5", "ERR_IA@5", "NRBP", "P_IA@5", "AP_IA")


def random_qrels(seed: int) -> tuple[SubtopicQrels, Run]:
    """Up to six subtopics, some without a relevant document; ties, holes, negative levels, topics with one subtopic
    and with nothing relevant, unanswered and unknown ones; lines in no order."""
    rng = np.random.default_rng(seed)
    lines, run = list[tuple[str, str, str, int]](), dict[str, dict[str, float]]()
    for topic in range(8):
        documents, subtopics = [f"d{i}" for i in range(40)], 1 + (topic + seed) % 6
        shares = (0.1, 0.6, 0.2, 0.1) if topic % 4 else (0.1, 0.9, 0, 0)
        lines += [
            (f"t{topic}", f"s{subtopic}", doc, int(rng.choice([-2, 0, 1, 2], p=shares)))
            for doc in documents[::2]
            for subtopic in np.flatnonzero(rng.random(subtopics) < 0.8).tolist()
        ]
        retrieved = rng.choice(documents, rng.integers(1, 40), replace=False)
        run[f"t{topic}"] = {str(doc): float(rng.integers(0, 12)) for doc in retrieved}
    del run["t5"]
    run["unknown"] = {"d1": 1.0}
    return [lines[row] for row in rng.permutation(len(lines))], run


def without_ties(run: Run) -> Run:
    """The same order by scores alone, as pyndeval breaks ties the other way."""
    orders = {topic: sorted(docs, key=lambda doc: (docs[doc], doc)) for topic, docs in run.items()}
    return {
        topic: {doc: float(place) for place, doc in enumerate(order)}
        for topic, order in orders.items()
    }


def value_of(measure: str, run: JudgedRun) -> float:
    (value,) = parse_measure(measure).compute(run)
    return float(value)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("rel", "alpha", "beta"), [(1, 0.5, 0.5), (2, 0.25, 0.8), (1, 1.0, 0.3)])
def test_every_topic_agrees_with_ndeval_to_nine_decimals(
    seed: int, rel: int, alpha: float, beta: float
) -> None:
    qrels, run = random_qrels(seed)
    scored = [
        (topic, doc, score)
        for topic, docs in without_ties(run).items()
        for doc, score in docs.items()
    ]
    peer = pyndeval.RelevanceEvaluator(qrels, NDEVAL, rel, alpha, beta).evaluate(scored)
    ours = judged_by_subtopic(qrels, run)
    given_to = {
        "NRBP": f"alpha={alpha},beta={beta},",
        "DCG": f"alpha={alpha},",
        "ERR": f"alpha={alpha},",
    }
    for name in NDEVAL:
        base, at, cutoff = name.partition("@")
        more = next((text for part, text in given_to.items() if part in base), "")
        values = parse_measure(f"{base}({more}rel={rel}){at}{cutoff}").compute(ours)
        # It divides 0 by 0 where nothing is relevant.
        expected = [
            np.nan_to_num(peer.get(topic, {}).get(name, 0.0))
            for topic in dict.fromkeys(q[0] for q in qrels)
        ]
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("name", IR_MEASURES)
def test_every_topic_agrees_with_ir_measures_under_its_names(name: str) -> None:
    for seed in range(5):
        lines, run = random_qrels(seed)
        qrels = [
            ir_measures.Qrel(topic, doc, level, subtopic) for topic, subtopic, doc, level in lines
        ]
        results = ir_measures.iter_calc([ir_measures.parse_measure(name)], qrels, without_ties(run))
        peer = {metric.query_id: metric.value for metric in results}
        expected = [
            np.nan_to_num(peer.get(topic, 0.0))
            for topic in dict.fromkeys(line[0] for line in lines)
        ]
        values = parse_measure(name).compute(judged_by_subtopic(lines, run))
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("rel", "judged_only"), [(1, False), (2, False), (0, False), (1, True)])
def test_every_topic_agrees_with_a_loop_over_its_documents(rel: int, judged_only: bool) -> None:
    for seed in range(2):
        qrels, run = random_qrels(seed)
        judged = judged_by_subtopic(qrels, run)
        plain = list(topics(qrels, run, rel, judged_only))
        for name, loop in NAIVE.items():
            measure = parse_measure(name.format(f"rel={rel},judged_only={judged_only}"))
            expected = [loop(topic) for topic in plain]
            np.testing.assert_allclose(
                measure.compute(judged), expected, rtol=0, atol=1e-9, err_msg=name
            )


# The ten documents of Clarke et al., SIGIR 2008, by the subtopics that their printed gain vectors
# tell.
CRUISE = {
    "a": "12",
    "b": "1",
    "c": "1",
    "d": "",
    "e": "34",
    "f": "3",
    "g": "5",
    "h": "3",
    "i": "",
    "j": "",
}


@pytest.fixture
def cruise() -> JudgedRun:
    lines = [
        ("85", subtopic, doc, 1) for doc, subtopics in CRUISE.items() for subtopic in subtopics
    ]
    lines += [("85", "1", doc, 0) for doc in "dij"]
    return judged_by_subtopic(lines, {"85": {doc: -float(ord(doc)) for doc in CRUISE}})


def test_alpha_ndcg_of_the_paper_that_defines_it(cruise: JudgedRun) -> None:
    """Section 5 prints DCG = 2, 2.315, 2.440, ideal DCG = 2, 3.262, 3.762 and nDCG = 1, 0.710, 0.649."""
    printed = [1, 0.710, 0.649]
    assert [round(value_of(f"alpha_nDCG@{k}", cruise), 3) for k in (1, 2, 3)] == printed


def test_gain_vectors_of_the_paper_that_defines_alpha_ndcg(cruise: JudgedRun) -> None:
    """G = 2, 1/2, 1/4, 0, 2, 1/2, 1, 1/4, and in the ideal order a e g b f c h: 2, 2, 1, 1/2, 1/2, 1/4, 1/4."""
    for cover, printed in (
        (cruise.coverage(), [2, 1 / 2, 1 / 4, 0, 2, 1 / 2, 1, 1 / 4]),
        (cruise.ideal_coverage(1, 0.5, 1000), [2, 2, 1, 1 / 2, 1 / 2, 1 / 4, 1 / 4]),
    ):
        assert np.bincount(cover.rank - 1, 0.5**cover.earlier).tolist() == printed


@pytest.mark.parametrize(
    ("measure", "expected"),
    [
        # Ranks hold {1}, nothing, {1, 2}; of the subtopics 1 2 3, the third has one document that
        # is not retrieved.
        ("StRecall@1", 1 / 3),
        ("StRecall@3", 2 / 3),
        ("P_IA@3", (2 / 3 + 1 / 3 + 0) / 3),
        ("AP_IA", ((1 + 2 / 3) / 2 + 1 / 3 + 0) / 3),
        ("alpha_DCG@1", 1 / 3),
        ("ERR_IA@1", 1 / 3),
        ("ERR_IA@3", (1 + 1.5 / 3) / (3 * (1 + 0.5 / 2 + 0.25 / 3))),
        ("NRBP", 0.75 / 3 * (1 + 1.5 * 0.25)),
        # The ideal is {1, 2}, {3}, {1}.
        ("alpha_nDCG@3", (1 + 1.5 / 2) / (2 + 1 / math.log2(3) + 0.5 / 2)),
        ("nERR_IA@2", 1 / (2 + 1 / 2)),
        ("nNRBP", (1 + 1.5 * 0.25) / (2 + 1 * 0.5 + 0.5 * 0.25)),
    ],
)
def test_values_worked_by_hand(measure: str, expected: float) -> None:
    lines = [
        ("1", "1", "a", 1),
        ("1", "1", "b", 0),
        ("1", "1", "c", 2),
        ("1", "2", "c", 1),
        ("1", "3", "d", 1),
    ]
    never_relevant = ("1", "4", "a", 0)
    run = judged_by_subtopic([*lines, never_relevant], {"1": {"a": 3.0, "b": 2.0, "c": 1.0}})
    assert value_of(measure, run) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("third", "value"), [("a", 1.0), ("z", (2 + 2 / math.log2(3)) / (2 + 1.5 / math.log2(3)))]
)
def test_of_equal_gains_the_ideal_takes_the_highest_id_even_where_that_is_not_the_best(
    third: str, value: float
) -> None:
    """x and y hold two subtopics each, the third document one of either: to begin with it is greedy, and worse."""
    judged = {"x": "12", "y": "34", third: "13"}
    lines = [("1", subtopic, doc, 1) for doc, subtopics in judged.items() for subtopic in subtopics]
    assert value_of(
        "alpha_nDCG@2", judged_by_subtopic(lines, {"1": {"x": 2.0, "y": 1.0}})
    ) == pytest.approx(value)


def test_gains_that_differ_by_the_order_of_their_sums_alone_are_equal() -> None:
    """1 + 0.1 + 0.01 in one order is a little more than in another: exact fractions call it a tie."""
    judged = {"a": "01", "b": "134", "c": "234", "d": "124", "e": "13"}
    lines = [("1", subtopic, doc, 1) for doc, subtopics in judged.items() for subtopic in subtopics]
    run = {"1": {doc: -float(ord(doc)) for doc in judged}}
    (topic,) = topics(lines, run)
    exact = of_ideal(topic, 5, "9/10", log2)
    assert value_of("alpha_nDCG(alpha=0.9)@5", judged_by_subtopic(lines, run)) == pytest.approx(
        exact, abs=1e-9
    )


def with_a_second_iteration(levels: list[int]) -> SubtopicQrels:
    """The judgements of `ranked`, and a subtopic that no document is relevant to."""
    lines = [("1", "0", f"d{rank}", level) for rank, level in enumerate(levels, 1)]
    return [*lines, *(("1", "1", doc, -5) for _, _, doc, _ in lines)]


LEVELS = st.lists(st.integers(-1, 3), min_size=1, max_size=25)


@given(LEVELS)
def test_one_iteration_is_one_subtopic(levels: list[int]) -> None:
    run = {"1": {f"d{rank}": -float(rank) for rank in range(1, len(levels) + 1, 2)}}
    plain = judged_run({"1": {f"d{rank}": level for rank, level in enumerate(levels, 1)}}, run)
    table = judged_by_subtopic(with_a_second_iteration(levels), run)
    assert (plain.subtopics is None, table.subtopics is None) == (True, False)
    for name in (*NORMALISED_BY_THE_IDEAL, *OTHERS):
        assert value_of(name, plain) == pytest.approx(value_of(name, table), abs=1e-12), name
    assert value_of("StRecall@5", plain) == value_of("Success@5", plain)
    assert value_of("P_IA@5", plain) == value_of("P@5", plain)
    assert value_of("AP_IA", plain) == pytest.approx(value_of("AP", plain))
    flat = "0:0,1:1,2:1,3:1"
    assert value_of("alpha_nDCG(alpha=0)@5", plain) == pytest.approx(
        value_of(f"nDCG(gains='{flat}')@5", plain)
    )


COVERED = st.lists(st.sets(st.integers(0, 3)), min_size=2, max_size=12)


def view_of(ranking: list[set[int]], extra: dict[str, float] | None = None) -> JudgedRun:
    """Documents at ranks 1, 2, ... relevant to these subtopics; one more of all four is not retrieved."""
    lines = [("1", "9", f"d{rank}", 0) for rank in range(1, len(ranking) + 1)]
    lines += [
        ("1", str(subtopic), f"d{rank}", 1)
        for rank, subtopics in enumerate(ranking, 1)
        for subtopic in subtopics
    ]
    lines += [("1", str(subtopic), "other", 1) for subtopic in range(4)]
    return judged_by_subtopic(
        lines,
        {"1": {f"d{rank}": -float(rank) for rank in range(1, len(ranking) + 1)} | (extra or {})},
    )


@given(COVERED)
def test_values_stay_within_zero_and_one_and_unjudged_documents_at_the_end_change_nothing(
    ranking: list[set[int]],
) -> None:
    view, longer = view_of(ranking), view_of(ranking, {"unjudged": -99.0})
    for name in (*OTHERS, *NORMALISED_BY_THE_IDEAL):
        assert value_of(name, view) == value_of(name, longer)
        assert 0 <= value_of(name, view) <= (1 + 1e-12 if name in OTHERS else 2)


@pytest.mark.slow
@given(COVERED, st.data())
def test_a_document_of_more_subtopics_moved_up_makes_nothing_worse(
    ranking: list[set[int]], where: st.DataObject
) -> None:
    upper = where.draw(st.integers(0, len(ranking) - 1))
    lower = where.draw(st.integers(upper, len(ranking) - 1))
    if ranking[upper] <= ranking[lower]:
        better = list(ranking)
        better[upper], better[lower] = ranking[lower], ranking[upper]
        for name in (*OTHERS, *NORMALISED_BY_THE_IDEAL):
            assert value_of(name, view_of(better)) >= value_of(name, view_of(ranking)) - 1e-12, name


def test_the_stored_form_keeps_the_subtopics() -> None:
    qrels, run = random_qrels(1)
    view = judged_by_subtopic(qrels, run)
    again = JudgedRun.from_bytes(view.to_bytes())
    for name in (*OTHERS, *NORMALISED_BY_THE_IDEAL):
        np.testing.assert_array_equal(
            parse_measure(name).compute(again), parse_measure(name).compute(view)
        )


def test_a_collection_without_subtopics_stores_none_and_older_views_are_read_as_such() -> None:
    stored = ranked(1, 0, 2).to_bytes()
    header = json.loads(stored[8 : 8 + int.from_bytes(stored[:8], "little")])
    assert not any(name.startswith("subtopics") for name, *_ in header["arrays"])
    assert JudgedRun.from_bytes(stored).subtopics is None
    older = replace(view_of([{1}, {1, 2}]), subtopics=None).to_bytes()
    assert value_of("StRecall@1", JudgedRun.from_bytes(older)) == 1


def test_every_other_measure_sees_the_highest_level_of_a_document() -> None:
    qrels, run = random_qrels(2)
    highest: dict[str, dict[str, int]] = {}
    for topic, _, doc, level in qrels:
        documents = highest.setdefault(topic, {})
        documents[doc] = max(level, documents.get(doc, level))
    for name in ("nDCG@10", "AP(rel=2)", "Judged@10", "Bpref", "NumRel"):
        measure = parse_measure(name)
        np.testing.assert_array_equal(
            measure.compute(judged_by_subtopic(qrels, run)),
            measure.compute(judged_run(highest, run)),
            err_msg=name,
        )


def test_topics_without_a_relevant_document_or_an_answer_count_zero() -> None:
    lines = [("1", "1", "a", 0), ("1", "2", "b", 0), ("2", "1", "a", 1), ("2", "2", "b", 1)]
    view = judged_by_subtopic(lines, {"1": {"a": 1.0}})
    for name in (*OTHERS, *NORMALISED_BY_THE_IDEAL):
        assert parse_measure(name).compute(view).tolist() == [0, 0], name


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("alpha-nDCG@10", "alpha_nDCG@10"),
        ("alpha_nDCG(alpha=0.50)@10", "alpha_nDCG@10"),
        ("alpha-DCG(alpha=0)@20", "alpha_DCG(alpha=0)@20"),
        ("α_DCG(alpha=-0)@5", "alpha_DCG(alpha=0)@5"),
        ("ERR-IA@20", "ERR_IA@20"),
        ("nERR-IA(rel=2,alpha=1)@5", "nERR_IA(alpha=1,rel=2)@5"),
        ("strec@10", "StRecall@10"),
        ("P-IA@5", "P_IA@5"),
        ("MAP-IA", "AP_IA"),
        ("MAP_IA(judged_only=True)", "AP_IA(judged_only=True)"),
        ("nNRBP(beta=0.8,alpha=0.3)", "nNRBP(alpha=0.3,beta=0.8)"),
    ],
)
def test_the_spellings_of_ndeval_and_ir_measures_have_one_canonical_name(
    written: str, canonical: str
) -> None:
    assert parse_measure(written).name == canonical
    assert parse_measure(canonical) == parse_measure(written)


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("alpha_nDCG", "needs a cutoff"),
        ("alpha_nDCG@101", "from 1 to 100"),
        ("alpha_nDCG(alpha=1.1)@5", "from 0 to 1"),
        ("NRBP@10", "takes no cutoff"),
        ("nNRBP(beta=1)", "above 0 and below 0.99"),
        ("AP-IA", "unknown measure"),
        ("-", "unknown measure"),
    ],
)
def test_a_name_without_a_meaning_is_refused_with_a_reason(written: str, says: str) -> None:
    with pytest.raises(MeasureError, match=says):
        parse_measure(written)
