"""Names of session measures, the research variants, sessions as rankings, instances, and real sessions."""

from __future__ import annotations

import csv
from math import log, log2
from pathlib import Path

import numpy as np
import pytest

from metrics.engine.errors import MeasureError
from metrics.engine.measures.definition import Cutoff
from metrics.engine.measures.grammar import parse_measure
from metrics.engine.sessions.grammar import (
    parse_session_measure,
    parse_session_measures,
    session_values,
    setting_of,
)
from metrics.engine.sessions.judged import JudgedSessions
from metrics.engine.sessions.judging import judge_sessions
from metrics.engine.sessions.measures import SESSION_MEASURES
from metrics.engine.sessions.settings import Setting
from metrics.engine.sessions.vectors import normalised_vectors, session_vectors
from runs.formats.compression import in_memory
from runs.formats.limits import DEFAULT_LIMITS
from runs.formats.sessions.reading import use_sessions
from tests.engine.build import SEED, judgements_by_subtopic, judgements_of
from tests.engine.session_build import Record, blocks_of, judged_sessions, session

QRELS = {"t": {"a": 2, "b": 1, "x": 0, "c": 1}}


def value(record: Record, name: str) -> float:
    return float(session_values(judged_sessions([record], QRELS), parse_session_measure(name))[0])


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("sDCG", "sDCG(b=2,bq=4)@10"),
        ("session-dcg@5", "sDCG(b=2,bq=4)@5"),
        ("sDCG(bq=none,b=1.5)", "sDCG(b=1.5,bq=none)@10"),
        ("sDCG(short='min:03',dup=\"every\")", "sDCG(b=2,bq=4,short='min:3')@10"),
        ("nsDCG(figure='final',norm='query')@100", "nsDCG(b=2,bq=4,norm='query')@100"),
        ("nsDCG(gains='0-1-10-100')", "nsDCG(gains='0-1-10-100',b=2,bq=4)@10"),
        ("sDCG_shifted(gains='exp')", "sDCG_shifted(b=2,bq=4)@10"),
        ("nsDCG_DD(queries=10)", "nsDCG_DD(b=2,bq=4)@5"),
        ("Session(short='pad',of='map')", "Session(of='AP',short='pad')@10"),
        (
            "Query(of=\"nDCG(gains='exp')@10\",figure='last')@1000",
            "Query(of=\"nDCG(gains='exp')@10\",figure='last')@1000",
        ),
        ("InstanceRecall(rel=2)", "InstanceRecall(rel=2)@10"),
    ],
)
def test_a_name_has_one_canonical_form(written: str, canonical: str) -> None:
    assert parse_session_measure(written).name == canonical
    assert parse_session_measure(canonical) == parse_session_measure(written)


def test_a_list_is_split_outside_brackets() -> None:
    names = "sDCG(b=2,bq=4)@10, Session(short='asis',of=\"P(rel=2)@5\") sDCG"
    assert [measure.name for measure in parse_session_measures(names)] == [
        "sDCG(b=2,bq=4)@10",
        "Session(of='P(rel=2)@5')@10",
    ]


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("SDCG", "sDCG for the session measure"),
        ("SDCG(b=2)@5", "ScaledDCG"),
        ("nDCG@10", r"Session\(of='AP'\)"),
        ("sDCG(b=1)", "above 1"),
        ("sDCG(bq=1000)", "below 1000"),
        ("sDCG@0", "from 1 to 1000"),
        ("sDCG@1001", "from 1 to 1000"),
        ("sDCG(short='min:0')", "from 1 to 1000"),
        ("sDCG(short='min:٣')", "from 1 to 1000"),
        (
            "nsDCG(short='min:5')@3",
            "counts 3 documents of each query, so m of 'min:m' is at most 3",
        ),
        ("Session(of='AP',short='min:11')", "at most 10"),
        ("sDCG(norm='query')", "no parameter 'norm'"),
        ("nsDCG(ideal='once',norm='query')", "none to divide by"),
        ("Session", "needs of"),
        ("Session(of='StRecall@5')", "InstanceRecall is"),
        ("Query(of='nDCG(norm=average)')", "no value for a session"),
        ("Query(of='sDCG')", "measure of sessions, not of runs"),
        ("Query(of='P@5',figure='avgpos')", "one of"),
        ("Query(of='P@5',figure='turn')", "one of"),
        ("Query(of='P@5',figure='turn:0')", "from 1"),
        ("sDCG(" + "b" * 300 + ")", "at most 200"),
    ],
)
def test_what_has_no_meaning_is_refused(written: str, says: str) -> None:
    with pytest.raises(MeasureError, match=says):
        parse_session_measure(written)


@pytest.mark.parametrize(
    "name", ["sDCG", "nsDCG@10", "session-dcg", "sDCG_DD(b=2)", "Query(of='AP')"]
)
def test_runs_have_no_session_measures(name: str) -> None:
    with pytest.raises(MeasureError, match="of sessions, not of runs"):
        parse_measure(name)


@pytest.mark.parametrize("name", SESSION_MEASURES)
def test_every_definition_says_what_it_is(name: str) -> None:
    definition = SESSION_MEASURES[name]
    assert {"summary", "formula", "range", "source", "undefined"} <= set(definition.sections())
    assert definition.cutoff is Cutoff.OPTIONAL
    assert definition.default_cutoff
    written = f"{name}(of='AP')" if name in ("Session", "Query") else name
    assert session_values(
        judged_sessions([session(["a"])], QRELS), parse_session_measure(written)
    ).shape == (1,)


@pytest.mark.parametrize(
    "name", ["sDCG(b=3,dup='first',short='asis')@4", "nsDCG(norm='query')", "nsDCG_shifted@2"]
)
def test_a_measure_tells_the_setting_of_its_curve(name: str) -> None:
    record = session(["x", "b", "a"], ["c", "a"])
    view, measure = judged_sessions([record], QRELS), parse_session_measure(name)
    setting, normalised = setting_of(measure)
    vectors = (
        normalised_vectors(view, setting, *normalised)
        if normalised
        else session_vectors(view, setting)
    )
    np.testing.assert_allclose(vectors.last(), session_values(view, measure))
    with pytest.raises(MeasureError, match="no curve"):
        setting_of(parse_session_measure("InstanceRecall"))


def test_the_appendix_of_ecir_2008_corrected() -> None:
    """The source prints 3, 4, 5.67, 5.67, 5.67, 6.11, 6.94, 8.14, 9.30, 9.30; its formula gives these."""
    levels = [3, 2, 3, 0, 0, 1, 2, 2, 3, 0]
    names = [f"d{rank}" for rank in range(10)]
    view = judged_sessions([session(names)], {"t": dict(zip(names, levels, strict=True))})
    values = session_vectors(view, Setting(b=4)).of(0)
    assert np.round(values, 2).tolist() == [3, 4.33, 6.01, 6.01, 6.01, 6.44, 7.28, 8.08, 9.24, 9.24]


@pytest.mark.parametrize("short", ["pad", "asis", "min:1", "min:3"])
def test_a_perfect_query_reaches_one_however_short_lists_are_taken(short: str) -> None:
    perfect = session(["d1", "d2", "d3", "d4", "d5"])
    view = judged_sessions([perfect], {"t": dict.fromkeys(["d1", "d2", "d3", "d4", "d5"], 1)})
    assert session_values(view, parse_session_measure(f"nsDCG(short='{short}')@3")).tolist() == [
        1.0
    ]


def test_the_shifted_form() -> None:
    """2^level - 1, log_b(r + b - 1), log_bq(q + bq - 1)."""
    record = session(["b", "a"], ["x", "c"])
    second = 1 / log2(3)
    expected = 1 + 3 * second + second / log(5, 4)
    assert value(record, "sDCG_shifted") == pytest.approx(expected)
    assert value(record, "sDCG_shifted(figure='mean')") == pytest.approx(expected / 2)
    ideal = 3 + second + 1 / log2(4)
    assert value(record, "nsDCG_shifted") == pytest.approx(expected / (ideal + ideal / log(5, 4)))
    assert value(record, "nsDCG_shifted(bq=none)@2") == pytest.approx(
        (1 + 4 * second) / (2 * (3 + second))
    )


def test_the_form_of_the_dynamic_domain_track() -> None:
    """Its bound has ten queries of five documents, whatever the session has: the places that count most are rank 1 of
    query 1, of query 2, of query 3."""
    record = session(["b"], ["a", "b"], ["c"])
    expected = 1 + 2 / 1.5 + 1 / 2 / 1.5 + 1 / (1 + log(3, 4))
    assert value(record, "sDCG_DD") == pytest.approx(expected)
    assert value(record, "sDCG_DD(queries=1)") == pytest.approx(1)
    assert value(record, "nsDCG_DD") == pytest.approx(
        expected / (2 + 1 / 1.5 + 1 / (1 + log(3, 4)))
    )
    assert value(record, "nsDCG_DD(queries=1)@2") == pytest.approx(1 / (2 + 1 / 2))


def test_the_form_with_gains_of_a_power_of_two() -> None:
    """a, b, c and x are judged 2, 1, 1 and 0, so that the ideal gains are 4, 2, 2, 1; u is unjudged and gains 1."""
    record = session(["u", "a"], [], ["b"])
    ideal = 4 + 2 / log2(3) + 2 / 2 + 1 / log2(5)
    expected = (1 + 4 / log2(3)) / ideal + 2 / ideal / 2
    assert value(record, "nsDCG_log2") == pytest.approx(expected)
    assert value(record, "nsDCG_log2@1") == pytest.approx(1 / ideal + 2 / ideal / 2)
    assert np.isnan(value(session(["a"], topic="elsewhere"), "nsDCG_log2"))


def test_a_session_as_one_ranking() -> None:
    """a x | b a: relevant at ranks 1 and 3; a again at rank 4 is relevant no more."""
    record = session(["a", "x"], ["b", "a"])
    assert value(record, "Session(of='AP')") == pytest.approx((1 + 2 / 3) / 3)
    assert value(record, "Session(of='P@4')") == pytest.approx(2 / 4)
    assert value(record, "Session(of='P@4',dup='every')") == pytest.approx(3 / 4)
    assert value(record, "Session(of='R@10')") == pytest.approx(2 / 3)
    assert value(record, "Session(of='RR',short='pad')@5") == 1
    assert value(session(["x"], ["b"]), "Session(of='RR',short='pad')@5") == pytest.approx(1 / 6)
    assert value(session(["x"], ["b"]), "Session(of='RR')@5") == pytest.approx(1 / 2)
    assert value(record, "Session(of='RR')@1") == 1
    assert value(record, "Session(of='AP')@1") == pytest.approx((1 + 2 / 2) / 3)


def test_each_query_by_itself() -> None:
    record = session(["x", "b"], ["a"], ["x"])
    expected = {"mean": 0.5, "best": 1, "worst": 0, "first": 0.5, "last": 0, "sum": 1.5}
    assert {name: value(record, f"Query(of='RR',figure='{name}')") for name in expected} == expected
    turns = [value(record, f"Query(of='RR',figure='turn:{turn}')") for turn in (1, 2, 3)]
    assert turns == [0.5, 1, 0]
    assert np.isnan(value(record, "Query(of='RR',figure='turn:4')"))
    assert value(record, "Query(of='SearchLength',figure='best')") == 1
    assert value(record, "Query(of='SearchLength',figure='mean')") == pytest.approx(1.5)
    assert np.isnan(value(record, "Query(of='SearchLength',figure='last')"))


def test_what_earlier_queries_have_shown_is_known() -> None:
    """Relevant are a, b and c; after the first query a and b are known."""
    record = session(["a", "b", "x"], ["b", "c"])
    assert value(record, "Query(of='Novelty',figure='last')") == pytest.approx(1 / 2)
    assert value(record, "Query(of='Coverage',figure='last')") == pytest.approx(1 / 2)
    assert value(record, "Query(of='Coverage',figure='last')@1") == 0
    assert np.isnan(value(record, "Query(of='Novelty',figure='first')"))
    assert value(record, "Query(of='Novelty')") == pytest.approx(1 / 2)


def test_instance_recall_counts_distinct_instances() -> None:
    """The topic has the instances 1, 2 and 4; nothing is relevant to 3."""
    lines = [
        ("t", "1", "a", 1),
        ("t", "2", "a", 1),
        ("t", "2", "b", 2),
        ("t", "3", "b", 0),
        ("t", "4", "c", 1),
    ]
    records = [
        session(["a"], ["b", "a"]),
        session(["b"], ["x", "c"], name="two"),
        session([], name="none"),
    ]
    view = judge_sessions(blocks_of(records), judgements_by_subtopic(lines))
    np.testing.assert_allclose(
        session_values(view, parse_session_measure("InstanceRecall")), [2 / 3, 2 / 3, 0]
    )
    np.testing.assert_allclose(
        session_values(view, parse_session_measure("InstanceRecall@1")), [2 / 3, 1 / 3, 0]
    )
    np.testing.assert_allclose(
        session_values(view, parse_session_measure("InstanceRecall(rel=2)")), [1, 1, 0]
    )
    stored = JudgedSessions.from_bytes(view.to_bytes())
    np.testing.assert_allclose(
        session_values(stored, parse_session_measure("InstanceRecall")), [2 / 3, 2 / 3, 0]
    )


def test_without_instances_the_topic_is_its_own() -> None:
    view = judged_sessions([session(["x"]), session(["a"], name="two")], QRELS)
    assert session_values(view, parse_session_measure("InstanceRecall")).tolist() == [0, 1]


# Columns of the expected values, and the names that give them.
COLUMNS = {
    "sDCG_b2_bq4": "sDCG_shifted",
    "nsDCG_b2_bq4": "nsDCG_shifted",
    "sDCG_per_query": "sDCG_shifted(figure='mean')",
    "sDCG_noquerydisc": "sDCG_shifted(bq=none)",
    "nsDCG_noquerydisc": "nsDCG_shifted(bq=none)",
    "sum_nDCG": "Query(of=\"nDCG(gains='exp')@10\",figure='sum')",
    "mean_nDCG": "nsDCG_shifted(figure='mean')",
    "max_nDCG": "nsDCG_shifted(figure='best')",
    "min_nDCG": "nsDCG_shifted(figure='worst')",
    "first_nDCG": "nsDCG_shifted(figure='first')",
    "last_nDCG": "Query(of=\"nDCG(gains='exp')@10\",figure='last')",
}


@pytest.fixture(scope="module")
def cosobe(real_data: Path) -> JudgedSessions:
    """The 103 sessions, judged by session: of a document's labels in several queries the highest counts, as in the
    expected values."""
    folder = real_data / "sessions-cosobe"
    content = (folder / "sessions.xml").read_bytes()
    _, blocks = use_sessions(lambda: in_memory(content, DEFAULT_LIMITS), list, seed=SEED)
    names: dict[tuple[str, int, int], str] = {}
    for block in blocks:
        text = block.data.tobytes()
        for query, session_index in enumerate(
            np.repeat(np.arange(len(block.sessions)), np.diff(block.query_starts))
        ):
            number = query - int(block.query_starts[session_index]) + 1
            for row in range(*block.document_starts[query : query + 2].tolist()):
                key = (
                    block.sessions[session_index].session_id.decode(),
                    number,
                    int(block.ranks[row]),
                )
                names[key] = text[block.doc_starts[row] : block.doc_ends[row]].decode()
    qrels: dict[str, dict[str, int]] = {}
    with (folder / "labels.csv").open() as file:
        for name, query, rank, level in list(csv.reader(file))[1:]:
            levels, doc = qrels.setdefault(name, {}), names[name, int(query), int(rank)]
            levels[doc] = max(levels.get(doc, 0), int(level))
    return judge_sessions(blocks, judgements_of(qrels), by="session")


@pytest.mark.real_data
@pytest.mark.parametrize("column", COLUMNS)
def test_real_sessions_have_the_expected_values(
    cosobe: JudgedSessions, real_data: Path, column: str
) -> None:
    with (real_data / "sessions-cosobe/expected/cosobe_k10.tsv").open() as file:
        expected = [float(row[column]) for row in csv.DictReader(file, delimiter="\t")]
    values = session_values(cosobe, parse_session_measure(COLUMNS[column]))
    np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.real_data
def test_real_sessions_are_read_whole(cosobe: JudgedSessions) -> None:
    assert (cosobe.n_sessions, cosobe.n_queries, int(cosobe.length.sum())) == (103, 280, 2800)
