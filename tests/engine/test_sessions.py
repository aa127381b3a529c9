"""Session vectors and figures: worked by hand, against plain loops, and what must hold for all of them."""

from __future__ import annotations

from dataclasses import replace
from math import log, log2
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.engine.compiled.packing import unpack
from metrics.engine.errors import MeasureError
from metrics.engine.judgement.gains import LINEAR, GainMap
from metrics.engine.sessions.figures import FIGURES, normalised_figure, raw_figure
from metrics.engine.sessions.grammar import parse_session_measure, session_values
from metrics.engine.sessions.judged import JudgedSessions
from metrics.engine.sessions.settings import Setting
from metrics.engine.sessions.vectors import (
    ideal_vectors,
    normalised_vectors,
    session_vectors,
    stretches,
)
from tests.engine import naive_sessions as naive
from tests.engine.build import first_format
from tests.engine.session_build import Record, judged_sessions, session

QRELS = {"t": {"a": 3, "b": 1, "x": 0, "c": 2}}
# Of rank 3 with b = 2, and of query 3 with bq = 4.
R3, Q3 = 1 / (1 + log2(3)), 1 / (1 + log(3, 4))
SESSION = session(["a", "x", "b"], [], ["b", "a", "u", "c"])
THREE = Setting(depth=3)


def vector(record: Record, setting: Setting) -> list[float]:
    return session_vectors(judged_sessions([record], QRELS), setting).of(0).tolist()


def value(record: Record, name: str) -> float:
    return float(session_values(judged_sessions([record], QRELS), parse_session_measure(name))[0])


def test_short_lists_are_padded_with_zeros() -> None:
    first = 3 + R3
    third = [first + Q3, first + Q3 + 3 * Q3 / 2, first + Q3 + 3 * Q3 / 2]
    assert vector(SESSION, THREE) == pytest.approx([3, 3, first, first, first, first, *third])


def test_short_lists_may_be_taken_as_they_are() -> None:
    values = vector(SESSION, replace(THREE, short="asis"))
    assert values == pytest.approx(
        [3, 3, 3 + R3, 3 + R3 + Q3, 3 + R3 + 2.5 * Q3, 3 + R3 + 2.5 * Q3]
    )


def test_short_lists_may_be_padded_to_a_minimum() -> None:
    values = vector(SESSION, replace(THREE, short="min:2"))
    assert values == pytest.approx(
        [3, 3, 3 + R3, 3 + R3, 3 + R3, 3 + R3 + Q3, 3 + R3 + 2.5 * Q3, 3 + R3 + 2.5 * Q3]
    )
    assert len(vector(session(["a"], ["b"]), Setting(depth=3, short="min:5"))) == 10


def test_a_document_may_gain_the_first_time_only() -> None:
    """b and a came in the first query; c is new, but stands below X."""
    assert vector(SESSION, replace(THREE, duplicates="first")) == pytest.approx(
        [3, 3] + [3 + R3] * 7
    )
    four = vector(SESSION, Setting(depth=4, duplicates="first"))
    assert four[-1] == pytest.approx(3 + R3 + 2 / 3 * Q3)


def test_a_document_below_the_depth_was_not_seen_before() -> None:
    record = session(["x", "a"], ["a"])
    assert vector(record, Setting(depth=1, duplicates="first")) == pytest.approx([0, 3 / 1.5])


def test_the_bases_and_gains_are_chosen() -> None:
    values = vector(
        session(["b", "a"], ["a"]), Setting(GainMap.parse("0-1-10-100"), depth=2, b=4, bq=2)
    )
    assert values == pytest.approx([1, 1 + 100 / 1.5, 1 + 100 / 1.5 + 50, 1 + 100 / 1.5 + 50])
    plain = vector(session(["b", "a"], ["a"]), Setting(depth=2, bq=None))
    assert plain == pytest.approx([1, 2.5, 5.5, 5.5])


def test_the_recorded_depth_counts_where_it_is_known() -> None:
    record = session(["a", "b", "c"], ["b", "a"], [], scanned=[1])
    recorded = Setting(depth=2, scan="recorded")
    assert vector(record, recorded) == pytest.approx(
        [3, 3 + 1 / 1.5, 3 + 2.5 / 1.5, 3 + 2.5 / 1.5, 3 + 2.5 / 1.5]
    )
    nothing = session(["a"], ["a"], scanned=[0, 0])
    assert vector(nothing, recorded) == []
    assert value(nothing, "sDCG(scan='recorded')") == 0
    assert np.isnan(value(nothing, "nsDCG(scan='recorded')"))


def timed(record: Record, *times: float | None) -> Record:
    queries = [
        query if time is None else {**query, "time": time}
        for query, time in zip(record["queries"], times, strict=True)
    ]
    return {**record, "queries": queries}


def test_gains_count_half_after_the_half_life() -> None:
    """The second query comes 224 s after the first one, the third 336 s after it."""
    record = timed(SESSION, 100.0, 324.0, 436.0)
    first, third = 3 + R3, (1 + 3 / 2) * 2**-1.5
    assert value(record, "sDCG(bq=none,half_life=224)@3") == pytest.approx(first + third)
    assert value(record, "sDCG(half_life=224)@3") == pytest.approx(first + third * Q3)
    values = vector(record, replace(THREE, half_life=224.0))
    assert values[-1] == pytest.approx(first + third * Q3)

    # The ideal session has its queries at the same times; query by query the ideal has no time.
    best = 3 + 2 / 2 + R3
    ideal = best * (1 + 2**-1 / 1.5 + 2**-1.5 * Q3)
    assert value(record, "nsDCG(half_life=224)@3") == pytest.approx((first + third * Q3) / ideal)
    by_query = value(record, "nsDCG(half_life=224,norm='query')@3")
    assert by_query == pytest.approx(third * Q3 / best)


@pytest.mark.parametrize(
    "name", ["sDCG(figure='mean')", "nsDCG(ideal='once')", "nsDCG(figure='avgpos')"]
)
def test_with_a_long_half_life_time_hardly_counts(name: str) -> None:
    record = timed(SESSION, 0.0, 60.0, 90.0)
    expected = value(record, f"{name}@3")
    assert value(record, f"{name[:-1]},half_life=9e8)@3") == pytest.approx(expected, rel=1e-6)
    assert value(record, f"{name[:-1]},half_life=60)@3") != pytest.approx(expected, rel=1e-3)


def test_a_half_life_needs_the_time_of_every_query() -> None:
    for record in (SESSION, timed(SESSION, 0.0, None, 90.0)):
        with pytest.raises(MeasureError, match="half_life needs the time of every query"):
            value(record, "sDCG(half_life=224)")
        assert value(record, "sDCG") > 0


def test_times_are_stored_with_the_view_and_taken_with_their_sessions() -> None:
    records = [timed(session(["a"], ["b"], name="p"), 5.0, 9.5), session(["a"], name="q")]
    view = judged_sessions(records, QRELS)
    assert view.time is not None
    assert view.time[:2].tolist() == [5, 9.5]
    assert np.isnan(view.time[2])
    again = JudgedSessions.from_bytes(view.to_bytes())
    np.testing.assert_array_equal(again.time, view.time)
    assert again.take(np.array([0])).elapsed.tolist() == [0, 4.5]
    untimed = judged_sessions([session(["a"])], QRELS)
    assert untimed.time is None
    assert JudgedSessions.from_bytes(untimed.to_bytes()).time is None


def test_the_ideal_is_repeated_in_every_query() -> None:
    """a, c, b: gains 3, 2, 1."""
    view = judged_sessions([session(["x"], ["a", "c", "b"])], QRELS)
    query = np.cumsum([3, 2 / 2, R3])
    best = ideal_vectors(view, THREE).of(0)
    np.testing.assert_allclose(best, [*query, *(query[-1] + query / 1.5)])
    final = session_vectors(view, THREE).of(0)[-1]
    assert normalised_vectors(view, THREE).of(0)[-1] == pytest.approx(final / best[-1])


def test_the_ideal_may_have_each_document_once() -> None:
    """The three best places are ranks 1 of both queries, then rank 2 of the first."""
    view = judged_sessions([session(["a", "c", "b"], ["a"])], QRELS)
    best = ideal_vectors(view, THREE, "once").of(0)
    np.testing.assert_allclose(best, np.cumsum([3, 1 / 2, 0, 2 / 1.5, 0, 0]))
    assert value(session(["a", "b"], ["c"]), "nsDCG(ideal='once',dup='first')@3") == pytest.approx(
        1
    )


def test_of_places_with_equal_weights_the_first_has_the_better_document() -> None:
    """With bq = 1.5 rank 10 of query 2 and rank 1 of query 6 both weigh 1 / log_1.5(9), and with b = 10 no two others of
    the best places weigh the same."""
    setting = replace(THREE, depth=10, b=10.0, bq=1.5)
    view = judged_sessions([session(*[["x"]] * 6)], {"t": {f"d{n}": 1 for n in range(60)}})
    weights = np.diff(ideal_vectors(view, setting, "once").of(0), prepend=0)
    second, sixth = 10 + 9, 50
    assert weights[second] == pytest.approx(weights[sixth], rel=1e-14)

    above = int((weights > weights[second] * (1 + 1e-9)).sum())
    levels = {f"d{n}": 2 if n <= above else 1 for n in range(60)}
    view = judged_sessions([session(*[["x"]] * 6)], {"t": levels})
    gains = np.diff(ideal_vectors(view, setting, "once").of(0), prepend=0) / weights
    assert gains[[second, sixth]] == pytest.approx([2, 1])


def test_as_many_slots_of_the_ideal_as_the_list_takes() -> None:
    view = judged_sessions([session(["b"], [])], QRELS)
    assert ideal_vectors(view, replace(THREE, short="asis")).of(0).tolist() == [3]
    assert ideal_vectors(view, replace(THREE, short="min:2")).of(0) == pytest.approx(
        [3, 4, 6, 4 + 4 / 1.5]
    )


def test_each_query_may_be_divided_by_its_own_ideal() -> None:
    """The discount of the query's place stays: a perfect second query is worth 1 / 1.5."""
    view = judged_sessions([session(["x"], ["a", "c", "b"])], QRELS)
    assert normalised_vectors(view, THREE, norm="query").of(0) == pytest.approx(
        [0, 0, 0] + [1 / 1.5] * 3
    )


def test_single_figures() -> None:
    record = session(["b"], ["a"], ["x"])
    expected = {
        "final": 3,
        "mean": 1,
        "best": 2,
        "worst": 0,
        "first": 1,
        "last": 0,
        "avgpos": (1 + 3 + 3) / 3,
    }
    assert {name: value(record, f"sDCG(figure='{name}')@1") for name in FIGURES} == pytest.approx(
        expected
    )
    shares = {
        "final": 3 / (3 + 2 + 3 * Q3),
        "mean": 4 / 9,
        "best": 1,
        "worst": 0,
        "first": 1 / 3,
        "last": 0,
    }
    shares["avgpos"] = (1 / 3 + 3 / 5 + shares["final"]) / 3
    assert {name: value(record, f"nsDCG(figure='{name}')@1") for name in FIGURES} == pytest.approx(
        shares
    )


def test_a_session_that_nobody_judged_has_no_value() -> None:
    records = [
        session(["a"]),
        session(["a"], name="other", topic="elsewhere"),
        session(["n"], name="no", topic="none"),
    ]
    view = judged_sessions(records, {**QRELS, "none": {"n": 0}})
    for name, expected in (
        ("sDCG", [3, np.nan, 0]),
        ("nsDCG(figure='first')@1", [1, np.nan, np.nan]),
    ):
        np.testing.assert_array_equal(session_values(view, parse_session_measure(name)), expected)
    assert (
        parse_session_measure("nsDCG").aggregate(
            session_values(view, parse_session_measure("nsDCG"))
        )[1]
        == 1
    )


@pytest.mark.parametrize("by", ["session", "query"])
def test_judgements_may_be_those_of_a_session_or_of_its_queries(by: Any) -> None:
    records = [session(["a", "b"], ["a", "b"], name="s1"), session(["a"], name="s2")]
    by_session = {"s1": {"a": 1}, "s2": {"a": 2}}
    by_query = {"s1:1": {"a": 1}, "s1:2": {"b": 2}, "s2:1": {"a": 2}}
    view = judged_sessions(records, by_session if by == "session" else by_query, by)
    expected = {"session": [1 + 1 / 1.5, 2], "query": [1 + 2 / 2 / 1.5, 2]}
    np.testing.assert_allclose(session_values(view, parse_session_measure("sDCG")), expected[by])


def test_a_document_judged_in_two_queries_is_the_same_document() -> None:
    qrels = {"s:1": {"a": 1}, "s:2": {"a": 2, "b": 1}}
    view = judged_sessions([session(["a"], ["a", "b"])], qrels, "query")
    assert session_vectors(view, Setting(depth=2, duplicates="first")).of(0)[-1] == pytest.approx(
        1 + 1 / 2 / 1.5
    )


def test_what_needs_one_topic_refuses_judgements_by_query() -> None:
    view = judged_sessions([session(["a"], ["a"])], {"s:1": {"a": 1}, "s:2": {"a": 2}}, "query")
    for name in ("nsDCG(ideal='once')", "Session(of='AP')"):
        with pytest.raises(MeasureError, match="not by query"):
            session_values(view, parse_session_measure(name))
    assert np.isnan(session_values(view, parse_session_measure("nsDCG_DD"))[0])


def test_identifiers_of_three_hundred_bytes_and_queries_without_results() -> None:
    long = ["https://example.org/" + "é" * 150 + str(number) for number in range(3)]
    view = judged_sessions([session([], long, [], [])], {"t": {long[2]: 1}})
    assert view.n_queries == 4
    assert session_vectors(view, THREE).of(0)[-1] == pytest.approx(R3 / 1.5)


DOCUMENTS = "abcdefgh"
LISTS = st.lists(st.sampled_from(DOCUMENTS), unique=True, max_size=7)
QUERIES = st.tuples(LISTS, st.integers(-1, 8))
ONE = st.tuples(st.sampled_from(["t", "u", "none"]), st.lists(QUERIES, min_size=1, max_size=5))
SESSIONS = st.lists(ONE, min_size=1, max_size=4)
LEVELS = st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(-1, 3), min_size=1)
CHOICES = st.builds(
    Setting,
    gains=st.sampled_from(
        [LINEAR, GainMap("exp"), GainMap.parse("0-1-10-100"), GainMap.parse("1-2-3-4")]
    ),
    depth=st.integers(1, 9),
    b=st.floats(1.1, 20),
    bq=st.none() | st.floats(1.1, 900),
    short=st.sampled_from(["pad", "asis", "min:1", "min:4"]),
    duplicates=st.sampled_from(["every", "first"]),
    scan=st.sampled_from(["fixed", "recorded"]),
    form=st.sampled_from(["source", "shifted"]),
)


def naively(setting: Setting) -> naive.Choice:
    return naive.Choice(
        lambda level: float(setting.gains.of(np.array([level]))[0]),
        setting.depth, setting.b, setting.bq, setting.short, setting.duplicates, setting.scan, setting.form,
    )  # fmt: skip


def both(
    sessions: list[Any], qrels: dict[str, dict[str, int]]
) -> tuple[JudgedSessions, list[naive.Session]]:
    records, plain = [], []
    for number, (topic, queries) in enumerate(sessions):
        texts = [
            {"documents": docs, **({"scanned": scanned} if scanned >= 0 else {})}
            for docs, scanned in queries
        ]
        records.append({"session_id": f"s{number}", "topic_id": topic, "queries": texts})
        levels = qrels.get(topic, {})
        plain.append([naive.NaiveQuery(docs, scanned, levels) for docs, scanned in queries])
    return judged_sessions(records, qrels), plain


@given(SESSIONS, LEVELS, LEVELS, CHOICES)
def test_vectors_and_figures_agree_with_plain_loops(
    sessions: list[Any], judgements: dict[str, int], other: dict[str, int], setting: Setting
) -> None:
    view, plain = both(sessions, {"t": judgements, "u": other})
    choice = naively(setting)
    vectors = session_vectors(view, setting)
    forms = [
        (ideal, norm)
        for ideal, norm in (("repeated", "session"), ("once", "session"), ("repeated", "query"))
    ]
    for place, record in enumerate(plain):
        np.testing.assert_allclose(
            vectors.of(place), naive.vector(record, choice), rtol=1e-9, atol=1e-12
        )
        for ideal in ("repeated", "once"):
            best = ideal_vectors(view, setting, ideal).of(place)  # type: ignore[arg-type]
            np.testing.assert_allclose(
                best, naive.ideal_vector(record, choice, ideal), rtol=1e-9, atol=1e-12
            )
        for ideal, norm in forms:
            shares = normalised_vectors(view, setting, ideal, norm).of(place)  # type: ignore[arg-type]
            np.testing.assert_allclose(
                shares, naive.normalised(record, choice, ideal, norm), rtol=1e-9, atol=1e-12
            )
    for name in FIGURES:
        expected = [naive.figure(record, choice, name) for record in plain]
        np.testing.assert_allclose(raw_figure(view, setting, name), expected, rtol=1e-9, atol=1e-12)
        for ideal, norm in forms:
            expected = [naive.figure(record, choice, name, ideal, norm) for record in plain]
            ours = normalised_figure(view, setting, name, ideal, norm)  # type: ignore[arg-type]
            np.testing.assert_allclose(ours, expected, rtol=1e-9, atol=1e-12)


@given(SESSIONS, LEVELS, LEVELS, CHOICES)
def test_normalised_values_stay_between_0_and_1(
    sessions: list[Any], judgements: dict[str, int], other: dict[str, int], setting: Setting
) -> None:
    view, _ = both(sessions, {"t": judgements, "u": other})
    for norm in ("session", "query"):
        shares = normalised_vectors(view, setting, norm=norm).values  # type: ignore[arg-type]
        assert (shares >= 0).all()
        assert (shares <= 1 + 1e-12).all()
    first = replace(setting, duplicates="first")
    final = normalised_figure(view, first, "final", "once")
    assert (final[~np.isnan(final)] <= 1 + 1e-12).all()


@given(
    st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=2, max_size=5),
    CHOICES,
    st.data(),
)
def test_a_gain_in_an_earlier_query_or_a_patient_searcher_never_lowers_the_value(
    levels: list[list[int]], setting: Setting, data: st.DataObject
) -> None:
    """Gains at one rank change places, so that the larger one comes in the earlier query."""
    rank, early = data.draw(st.integers(0, 3)), data.draw(st.integers(0, len(levels) - 2))
    late = data.draw(st.integers(early + 1, len(levels) - 1))
    low, high = sorted((levels[early][rank], levels[late][rank]))
    moved = [list(row) for row in levels]
    levels[early][rank], levels[late][rank] = low, high
    moved[early][rank], moved[late][rank] = high, low
    assert _total(moved, setting) >= _total(levels, setting) - 1e-9
    if setting.bq is not None:
        assert (
            _total(levels, replace(setting, bq=setting.bq * 1.1)) >= _total(levels, setting) - 1e-9
        )


def _total(levels: list[list[int]], setting: Setting) -> float:
    rows = [[f"d{q}.{rank}" for rank in range(len(row))] for q, row in enumerate(levels)]
    qrels = {
        doc: level
        for names, row in zip(rows, levels, strict=True)
        for doc, level in zip(names, row, strict=True)
    }
    return float(raw_figure(judged_sessions([session(*rows)], {"t": qrels}), setting)[0])


@given(SESSIONS, LEVELS, CHOICES, st.data())
def test_the_stored_form_and_a_part_of_a_view_give_the_same(
    sessions: list[Any], levels: dict[str, int], setting: Setting, data: st.DataObject
) -> None:
    view, _ = both(sessions, {"t": levels})
    stored = JudgedSessions.from_bytes(view.to_bytes())
    np.testing.assert_array_equal(
        session_vectors(stored, setting).values, session_vectors(view, setting).values
    )
    chosen = np.array(data.draw(st.permutations(range(view.n_sessions))))[:2]
    np.testing.assert_array_equal(
        raw_figure(view.take(chosen), setting), raw_figure(view, setting)[chosen]
    )


def test_views_of_the_first_format_are_read() -> None:
    view = judged_sessions([SESSION], QRELS)
    header, arrays = unpack(view.to_bytes(), "view")
    assert header["format"] == 2
    assert (
        JudgedSessions.from_bytes(first_format(header["n_topics"], arrays)).to_bytes()
        == view.to_bytes()
    )


def test_a_view_of_another_format_is_refused() -> None:
    content = judged_sessions([SESSION], QRELS).to_bytes().replace(b'"format": 2', b'"format": 3')
    with pytest.raises(ValueError, match="format 3"):
        JudgedSessions.from_bytes(content)


def test_long_vectors_are_made_in_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    view = judged_sessions([session(["a"], ["b"], name=f"s{n}") for n in range(5)], QRELS)
    whole = normalised_figure(view, THREE, "avgpos")
    monkeypatch.setattr("metrics.engine.sessions.vectors._COMPONENTS_AT_ONCE", 13)
    assert [part.n_sessions for part in stretches(view, THREE)] == [2, 2, 1]
    np.testing.assert_array_equal(normalised_figure(view, THREE, "avgpos"), whole)


def test_values_of_a_large_log_are_made_in_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    lists = [[["a"], ["b"]], [[]], [["a", "b", "c"]], [["x"], ["c"]], [["b"]]]
    view = judged_sessions(
        [session(*ranking, name=f"s{n}") for n, ranking in enumerate(lists)], QRELS
    )
    assert list(view.stretches()) == [view]
    monkeypatch.setattr("metrics.engine.sessions.judged._ROWS_AT_ONCE", 4)
    parts = list(view.stretches())
    assert len(parts) > 2
    assert sum(part.n_sessions for part in parts) == view.n_sessions
    for name in (
        "nsDCG@3",
        "sDCG(dup='first')@3",
        "nsDCG(figure='avgpos',ideal='once')@3",
        "Session(of='AP')@3",
    ):
        measure = parse_session_measure(name)
        values = np.concatenate([session_values(part, measure) for part in parts])
        np.testing.assert_array_equal(values, session_values(view, measure))
