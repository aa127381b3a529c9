"""trec_eval's other measures: per topic against pytrec_eval, hand-worked, and on real runs against both versions."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from evalhub.operating.simulation import TEXTBOOK_QRELS, TEXTBOOK_RUN
from metrics.engine.compiled.running import running_sum
from metrics.engine.curve.curves import curve
from metrics.engine.judgement.judged import JudgedRun
from metrics.engine.judgement.judging import Judgements, ScoreType, judge
from metrics.engine.measures.grammar import Measure, parse_measure
from runs.formats.compression import in_memory
from runs.formats.limits import DEFAULT_LIMITS
from runs.formats.trec_qrels import read_qrels
from runs.formats.trec_run import check_run, read_run
from tests.engine.build import SEED, Qrels, Run, judged_run, ranked
from tests.engine.test_against_pytrec_eval import NAMES as COMPARED_THERE
from tests.engine.test_against_pytrec_eval import random_collection

RECALL = [f"{step / 10:.2f}" for step in range(11)]
MULTIPLES = [f"{step / 5:.2f}" for step in range(1, 11)]
DEPTHS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
GRADED = ("G", "Rndcg", "ndcg_rel")
GEOMETRIC = ("gm_map", "gm_bpref")
SINGLE = (
    *GRADED, *GEOMETRIC, "bpref", "infAP", "11pt_avg", "binG", "set_P", "set_relative_P", "set_recall", "set_F",
    "set_map", "utility", "num_nonrel_judged_ret",
)  # fmt: skip
NAMES = [
    *SINGLE, *(f"iprec_at_recall_{recall}" for recall in RECALL), *(f"Rprec_mult_{share}" for share in MULTIPLES),
    *(f"relative_P_{depth}" for depth in DEPTHS),
]  # fmt: skip
FAMILIES = {*SINGLE, "iprec_at_recall", "Rprec_mult", "relative_P"}
# Not figures of a topic's ranking, or of a run: the tag, a drawing of it in letters, the number of
# topics.
NOT_MEASURES = {"runid", "relstring", "num_q"}
VERSIONS: dict[ScoreType, str] = {"float64": "trec_eval-10.0-rc3", "float32": "trec_eval-9.0.8"}
NEW_IN_10 = ["unj_5", "unj_10", "unj_20"]
HALF_A_DIGIT = 0.5e-4 + 1e-9


def spelled(name: str, rounding: str = "9", **parameters: object) -> Measure:
    """The measure of trec_eval's name as that version rounds recall, with more parameters."""
    measure = parse_measure(name)
    if any(key == "rounding" for key, _ in measure.values):
        parameters["rounding"] = rounding
    values = tuple((key, parameters.get(key, value)) for key, value in measure.values)
    return Measure(measure.definition, measure.cutoff, values)


def assert_agrees(
    qrels: Qrels, run: Run, names: list[str] = NAMES, rel: int = 1, judged_only: bool = False
) -> None:
    """Every topic that the run answers has pytrec_eval's value, to nine decimals; the others have none there."""
    peer = pytrec_eval.RelevanceEvaluator(
        qrels, FAMILIES, relevance_level=rel, judged_docs_only_flag=judged_only
    )
    expected = peer.evaluate(run)
    answered = [topic in expected for topic in qrels]
    ours = judged_run(qrels, run, "float32")
    for name in names:
        values = spelled(name, rel=rel, judged_only=judged_only).compute(ours)
        if name in GEOMETRIC:
            values = np.log(np.maximum(values, 0.00001))
        theirs = [expected[topic][name] for topic in qrels if topic in expected]
        # Where nothing that was retrieved is judged, trec_eval -J divides 0 by 0.
        theirs = np.nan_to_num(theirs) if judged_only else theirs
        np.testing.assert_allclose(values[answered], theirs, rtol=0, atol=1e-9, err_msg=name)


def test_every_measure_of_pytrec_eval_is_compared() -> None:
    names = {name.rsplit("_", 1)[0] if name[-1].isdigit() else name for name in COMPARED_THERE}
    assert pytrec_eval.supported_measures <= FAMILIES | names | NOT_MEASURES


@pytest.mark.parametrize("seed", range(25))
def test_every_topic_agrees_to_nine_decimals(seed: int) -> None:
    assert_agrees(*random_collection(seed))


@pytest.mark.parametrize("seed", range(8))
def test_relevance_thresholds_agree(seed: int) -> None:
    assert_agrees(*random_collection(seed), [name for name in NAMES if name not in GRADED], rel=2)


@pytest.mark.parametrize("seed", range(8))
def test_condensed_lists_agree(seed: int) -> None:
    assert_agrees(*random_collection(seed), judged_only=True)


@given(
    levels=st.lists(st.sampled_from([-2, -1, 0, 1, 2, None]), min_size=1, max_size=12),
    missed=st.integers(0, 4),
)
def test_short_rankings_agree(levels: list[int | None], missed: int) -> None:
    """Around the ranks where trec_eval's loops end: as many documents retrieved as have a gain, one more, two more."""
    qrels = {f"d{rank}": level for rank, level in enumerate(levels) if level is not None}
    qrels |= {f"m{number}": number for number in range(missed)} or {"m": 0}
    assert_agrees({"1": qrels}, {"1": {f"d{rank}": -float(rank) for rank in range(len(levels))}})


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", GRADED)
def test_a_gain_map_is_worth_what_its_levels_would_be(name: str, seed: int) -> None:
    qrels, run = random_collection(seed)
    worth = {1: 1, 2: 10, 3: 100}
    raised = {
        topic: {doc: worth.get(level, level) for doc, level in docs.items()}
        for topic, docs in qrels.items()
    }
    expected = parse_measure(name).compute(judged_run(raised, run))
    values = parse_measure(f"{name}(gains='1:1,2:10,3:100')").compute(judged_run(qrels, run))
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("beta", ["0.5", "2.0"])
def test_set_f_weighs_recall_as_trec_eval_does(beta: str) -> None:
    qrels, run = random_collection(1)
    expected = pytrec_eval.RelevanceEvaluator(qrels, {f"set_F_{beta}"}).evaluate(run)
    values = parse_measure(f"set_F.{beta}").compute(judged_run(qrels, run, "float32"))
    theirs = [expected.get(topic, {"set_F": 0.0})["set_F"] for topic in qrels]
    np.testing.assert_allclose(values, theirs, rtol=0, atol=1e-9)


def test_every_negative_level_means_in_the_pool_and_unjudged() -> None:
    """trec_eval's -1 and -2 are numbers of its code: a line of the qrels with either one is pooled but not judged."""
    for level in (-1, -2, -7):
        view = ranked(1, level, 0, 1, recall_base={"other": 1})
        pooled = (1 + 1 / 4 + 3 / 4 * (1 + 1e-5) / (2 + 2e-5)) / 3
        assert parse_measure("infAP").compute(view) == pytest.approx(pooled, abs=1e-12)
        assert parse_measure("Bpref").compute(view) == pytest.approx((1 + 0) / 3)
        assert parse_measure("unj_5").compute(view) == 1 / 5
        assert parse_measure("num_nonrel_judged_ret").compute(view) == 1
    outside = judged_run(
        {"1": {"a": 1, "b": 0, "c": 1, "e": 1}}, {"1": {"a": 4.0, "x": 3.0, "b": 2.0, "c": 1.0}}
    )
    not_pooled = (1 + 1 / 4 + 2 / 4 * (1 + 1e-5) / (2 + 2e-5)) / 3
    assert parse_measure("infAP").compute(outside) == pytest.approx(not_pooled, abs=1e-12)
    assert parse_measure("unj_5").compute(outside) == 1 / 5


@pytest.mark.parametrize(
    ("measure", "value"),
    [
        ("Bpref", 4 * (1 - 1 / 4) / 6),
        ("Bpref(norm='R')", 4 * (1 - 1 / 6) / 6),
        ("Bpref(norm='10')", 4 * (1 - 1 / 16) / 6),
    ],
)
def test_binary_preference_of_the_example_that_showed_its_old_bug(
    measure: str, value: float
) -> None:
    """trec_eval's bpref_bug: one non-relevant, then four relevant documents, of four and six; bpref is 0.5."""
    missed = {"r5": 1, "r6": 1, "n2": 0, "n3": 0, "n4": 0}
    assert parse_measure(measure).compute(
        ranked(0, 1, 1, 1, 1, recall_base=missed)
    ) == pytest.approx(value)


def test_binary_preference_counts_no_more_non_relevant_documents_than_its_norm() -> None:
    view = ranked(*[0] * 13, 1, recall_base={"r2": 1})
    values = [
        float(parse_measure(name).compute(view)[0])
        for name in ("Bpref", "Bpref(norm='R')", "Bpref(norm='10')")
    ]
    assert values == [0.0, 0.0, 0.0]
    earlier = ranked(*[0] * 9, 1, recall_base={"r2": 1})
    assert parse_measure("Bpref(norm='10')").compute(earlier) == pytest.approx((1 - 9 / 12) / 2)


def test_average_precision_over_seen_documents_of_modern_information_retrieval() -> None:
    """Relevant at ranks 1, 3, 6, 10 and 15 of ten; the source prints 0.57 for (1 + 2/3 + 1/2 + 2/5 + 1/3) / 5."""
    levels = [int(rank in (1, 3, 6, 10, 15)) for rank in range(1, 16)]
    view = ranked(*levels, recall_base={f"missed{number}": 1 for number in range(5)})
    assert round(float(parse_measure("AP(over='seen')").compute(view)[0]), 2) == 0.58
    assert parse_measure("AP(over='seen')@3").compute(view) == pytest.approx((1 + 2 / 3) / 2)


@pytest.fixture
def textbook() -> JudgedRun:
    return judge_files(judgements_of(TEXTBOOK_QRELS.encode()), TEXTBOOK_RUN.encode(), "float64")


def points(run: JudgedRun, parameters: str) -> list[list[float]]:
    """Per cent at recall 0, 0.1 ... 1, one list per topic, cut to one decimal as the source does."""
    table = [parse_measure(f"IPrec({parameters})@{step / 10}").compute(run) for step in range(11)]
    cut = np.floor(np.array(table).T * 1000 + 1e-6) / 10
    listed: list[list[float]] = cut.tolist()
    return listed


def test_interpolated_precision_of_modern_information_retrieval(textbook: JudgedRun) -> None:
    first, second = points(textbook, "rounding='exact'")
    assert first == [100, 100, 66.6, 50, 40, 33.3, 0, 0, 0, 0, 0]
    assert second == [33.3] * 4 + [25] * 3 + [20] * 4
    mean = [
        parse_measure(f"IPrec(rounding='exact')@{step / 10}").compute(textbook).mean()
        for step in range(11)
    ]
    printed = [66.7, 66.7, 50.0, 41.7, 32.5, 29.2, 12.5, 10, 10, 10, 10]
    # The source rounds its means where it cuts its values.
    assert [round(100 * value, 1) for value in mean] == printed
    assert parse_measure("11pt_avg(rounding='exact')").compute(textbook).mean() == pytest.approx(
        np.mean(mean)
    )


def test_neither_trec_eval_takes_recall_exactly(textbook: JudgedRun) -> None:
    """Of three documents, 10 rounds 0.4 x 3 down to one; 9 cuts 0.7 x 3 + 0.9, a hair below three, to two."""
    assert points(textbook, "rounding='10'")[1] == [33.3] * 5 + [25] * 4 + [20] * 2
    assert points(textbook, "rounding='9'")[1] == [33.3] * 4 + [25] * 4 + [20] * 3


def test_interpolation_within_one_interval(textbook: JudgedRun) -> None:
    """The formula of the same source: an interval of recall without a relevant document gives 0."""
    first, second = points(textbook, "interp='interval'")
    assert first == [100, 100, 66.6, 50, 40, 33.3, 0, 0, 0, 0, 0]
    assert second == [0, 0, 0, 33.3, 0, 0, 25, 0, 0, 20, 20]


def test_utility_counts_the_four_kinds_of_documents() -> None:
    view = ranked(1, 0, -1, 1, recall_base={"missed": 1})
    assert parse_measure("utility").compute(view) == 2 - 2
    assert parse_measure("utility(a=3,b=-2,c=-5)").compute(view) == 3 * 2 - 2 * 2 - 5
    assert parse_measure("utility(a=0,b=0,d=0.5,documents=100)").compute(view) == (100 - 3 - 2) / 2


def test_the_curve_of_relative_precision_is_the_measure_at_every_cutoff() -> None:
    view = judged_run(*random_collection(4))
    drawn = curve(view, parse_measure("P(relative=True)@1"), 40).topics
    expected = [parse_measure(f"relative_P_{k}").compute(view) for k in range(1, 41)]
    np.testing.assert_allclose(drawn.T, expected, atol=1e-12)


def test_the_ideal_is_what_ndcg_divides_by() -> None:
    qrels, run = random_collection(3)
    view = judged_run(qrels, run)
    dcg, ideal, ndcg = (
        parse_measure(f"{name}@10").compute(view) for name in ("DCG", "IdealDCG", "nDCG")
    )
    np.testing.assert_allclose(ndcg * ideal, dcg, atol=1e-12)


def test_a_run_s_geometric_mean_takes_small_values_for_a_hundred_thousandth() -> None:
    measure = parse_measure("gm_map")
    assert measure.aggregate(np.array([1.0, 0.0, 0.25])) == (
        pytest.approx((0.25 * 0.00001) ** (1 / 3)),
        3,
    )


@given(st.lists(st.lists(st.floats(0, 1e6), max_size=6), min_size=1, max_size=8))
def test_running_sums_of_a_topic_depend_on_no_other(topics: list[list[float]]) -> None:
    topic = np.repeat(np.arange(len(topics)), [len(values) for values in topics])
    values = np.array([value for values in topics for value in values], np.float64)
    expected = [number for values in topics for number in np.cumsum(values)]
    assert running_sum(topic, values).tolist() == expected


def judgements_of(qrels: bytes) -> Judgements:
    return read_qrels(lambda: in_memory(qrels, DEFAULT_LIMITS), seed=SEED).judgements


def judge_files(judgements: Judgements, run: bytes, scores: ScoreType) -> JudgedRun:
    grouped = check_run(lambda: in_memory(run, DEFAULT_LIMITS), seed=SEED).grouped
    blocks = read_run(lambda: in_memory(run, DEFAULT_LIMITS), grouped=grouped, seed=SEED)
    return judge(blocks, judgements, scores)


def expected_values(path: Path) -> dict[tuple[str, str], float]:
    wanted = {*NAMES, *NEW_IN_10}
    rows = (line.split() for line in gzip.decompress(path.read_bytes()).decode().splitlines())
    return {(name, topic): float(value) for name, topic, value in rows if name in wanted}


@pytest.mark.slow
@pytest.mark.real_data
def test_robust_2003_equals_both_versions_of_trec_eval(real_data: Path) -> None:
    folder = real_data / "robust03"
    judgements = judgements_of((folder / "qrels/robust03_qrels.txt").read_bytes())
    topics = [topic.decode() for topic in judgements.topic_ids]
    for file in sorted((folder / "runs").iterdir()):
        content = gzip.decompress(file.read_bytes())
        for scores, version in VERSIONS.items():
            expected = expected_values(
                folder / "expected" / version / file.name.replace(".gz", ".txt.gz")
            )
            view = judge_files(judgements, content, scores)
            assert_equal(
                view,
                topics,
                expected,
                "9" if version.endswith("9.0.8") else "10",
                f"{file.name} {version}",
            )


def assert_equal(
    view: JudgedRun,
    topics: list[str],
    expected: dict[tuple[str, str], float],
    rounding: str,
    where: str,
) -> None:
    """Every line that trec_eval printed of these measures, per topic and for the run."""
    compared = 0
    for name in {name for name, _ in expected}:
        measure = spelled(name, rounding)
        values = measure.compute(view)
        ours = dict(zip(topics, values.tolist(), strict=True)) | {
            "all": measure.aggregate(values)[0]
        }
        for topic, value in ours.items():
            if (name, topic) in expected:
                theirs = expected[name, topic]
                assert value is not None
                assert abs(value - theirs) <= HALF_A_DIGIT, (
                    f"{where} {name} {topic}: {value} is not {theirs}"
                )
                compared += 1
    assert compared == len(expected)
    assert {name for name, _ in expected} >= set(NAMES)
