"""Coverage, novelty, relative recall and recall effort: against sets, by hand, and where they have no value."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.engine.errors import MeasureError
from metrics.engine.judgement.judged import JudgedRun
from metrics.engine.judgement.known import KnownDocuments, mark_known
from metrics.engine.judgement.ranking import RankedBlock
from metrics.engine.measures import MEASURES
from metrics.engine.measures.grammar import parse_measure
from tests.engine.build import Qrels, Run, judged_run, judgements_of, known_run, ranked
from tests.engine.naive import NAIVE_KNOWN, Searcher
from tests.engine.test_against_pytrec_eval import random_collection

NAMES = ("Coverage", "Novelty", "RelativeRecall", "RecallEffort")
NOTHING = math.nan
Knowledge = dict[str, set[str]]


def random_knowledge(seed: int, qrels: Qrels) -> tuple[Knowledge, dict[str, int]]:
    """Documents judged or not, retrieved or not, none in some topics, and a topic nobody judged; numbers for some."""
    rng = np.random.default_rng([seed, 1])
    known = {
        topic: {f"d{i}" for i in rng.choice(60, rng.integers(0, 25), replace=False)}
        for topic in qrels
    }
    known |= {"t2": set(), "t3": {"elsewhere"}, "another topic"[:7]: {"d0"}}
    return known, {topic: int(rng.integers(1, 8)) for topic in list(qrels)[::2]}


def searchers(qrels: Qrels, run: Run, known: Knowledge, expected: dict[str, int]) -> list[Searcher]:
    counts = []
    for topic, levels in qrels.items():
        scores = run.get(topic, {})
        ranking = sorted(scores, key=lambda doc: (scores[doc], doc), reverse=True)
        counts.append(Searcher(ranking, dict(levels), known.get(topic, set()), expected.get(topic)))
    return counts


def values(measure: str, run: JudgedRun) -> list[float]:
    return parse_measure(measure).compute(run).tolist()


@pytest.mark.parametrize("measure", NAIVE_KNOWN)
@pytest.mark.parametrize("seed", range(6))
def test_every_topic_agrees_with_sets_of_documents(measure: str, seed: int) -> None:
    qrels, run = random_collection(seed)
    known, expected = random_knowledge(seed, qrels)
    wanted = [NAIVE_KNOWN[measure](user) for user in searchers(qrels, run, known, expected)]
    assert not all(map(math.isnan, wanted))
    np.testing.assert_allclose(
        values(measure, known_run(qrels, run, known, expected)), wanted, rtol=0, atol=1e-12
    )


def test_values_worked_by_hand() -> None:
    """The user knew 4 of 5 relevant documents; the run finds 3 at ranks 1, 4 and 5, of which 2 were known."""
    qrels = {"1": {"a": 1, "b": 0, "c": 2, "d": 1, "e": 1, "f": 3}}
    run = {"1": {"a": 5.0, "unjudged": 4.0, "b": 3.0, "c": 2.0, "d": 1.0}}
    view = known_run(qrels, run, {"1": {"a", "b", "c", "e", "f", "unjudged", "nowhere"}}, {"1": 2})
    for measure, value in {
        "Coverage": 2 / 4,
        "Coverage@1": 1 / 4,
        "Coverage(rel=2)": 1 / 2,
        "Novelty": 1 / 3,
        "Novelty@1": 0,
        "Novelty(rel=2)": 0,
        "RelativeRecall": 3 / 2,
        "RelativeRecall@3": 1 / 2,
        "RelativeRecall(judged_only=True)@3": 2 / 2,
        "RelativeRecall(expected=10)": 3 / 10,
        "RecallEffort": 2 / 4,
        "RecallEffort(judged_only=True)": 2 / 3,
        "RecallEffort(expected=1)": 1,
        "RecallEffort(expected=3)": 3 / 5,
    }.items():
        assert values(measure, view) == pytest.approx([value]), measure


def test_what_has_no_value_is_undefined() -> None:
    """Topic 1 is answered and 2 is not; in 3 a non-relevant document was known, in 4 none; 5 has none relevant; in 6
    no relevant document is retrieved."""
    relevant, none = {"a": 1, "b": 1, "n": 0}, {"n": 0}
    qrels = {"1": relevant, "2": relevant, "3": relevant, "4": relevant, "5": none, "6": relevant}
    run = {topic: {"a": 1.0} for topic in "1345"} | {"6": {"n": 1.0}}
    known = {"1": ["b"], "2": ["a"], "3": ["n"], "5": ["n"], "6": ["a"]}
    view = known_run(qrels, run, known, {"1": 1, "2": 1, "3": 2, "5": 1})
    for measure, expected in {
        "Coverage": [0, 0, NOTHING, NOTHING, NOTHING, 0],
        "Novelty": [1, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING],
        "RelativeRecall": [1, 0, 0.5, NOTHING, 0, NOTHING],
        "RelativeRecall(expected=1)": [1, 0, 1, 1, 0, 0],
        "RecallEffort": [1, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING],
        "RecallEffort(expected=1)": [1, NOTHING, 1, 1, NOTHING, NOTHING],
    }.items():
        np.testing.assert_array_equal(values(measure, view), expected, err_msg=measure)


@pytest.mark.parametrize("name", NAMES)
def test_without_known_documents_nothing_has_a_value_and_the_mean_says_so(name: str) -> None:
    measure = parse_measure(name)
    assert "undefined" in MEASURES[name].sections()
    assert measure.aggregate(measure.compute(ranked(1, 0, 2))) == (None, 0)


def test_a_number_in_the_name_needs_no_known_documents_and_goes_before_theirs() -> None:
    qrels, run = {"1": {"a": 1, "b": 1}}, {"1": {"a": 2.0, "x": 1.5, "b": 1.0}}
    for view in (judged_run(qrels, run), known_run(qrels, run, {"1": "a"}, {"1": 1})):
        assert values("RecallEffort(expected=2)", view) == pytest.approx([2 / 3])


DOCUMENTS = st.sets(st.sampled_from("abcdefgh"))


@given(st.lists(st.sampled_from("abcdefgh"), unique=True), DOCUMENTS, DOCUMENTS, st.integers(1, 9))
def test_coverage_and_novelty_share_out_what_is_found(
    ranking: list[str], relevant: set[str], known: set[str], k: int
) -> None:
    """|K & R| Coverage + |R & A| Novelty is |R & A|, and both stay within 0 and 1."""
    qrels = {"1": {doc: int(doc in relevant) for doc in "abcdefgh"}}
    view = known_run(
        qrels, {"1": {doc: -float(i) for i, doc in enumerate(ranking)}}, {"1": known | {"z"}}, {}
    )
    ((covered,), (new,)) = values(f"Coverage@{k}", view), values(f"Novelty@{k}", view)
    hits = len(relevant & set(ranking[:k]))
    assert math.isnan(covered) == (not relevant & known)
    assert math.isnan(new) == (math.isnan(covered) or not hits)
    if not math.isnan(new):
        assert 0 <= covered <= 1
        assert 0 <= new <= 1
        assert len(known & relevant) * covered + hits * new == pytest.approx(hits)


@given(st.lists(st.integers(0, 2), min_size=1, max_size=20), st.integers(1, 6))
def test_recall_effort_is_the_precision_where_relative_recall_reaches_one(
    levels: list[int], expected: int
) -> None:
    view = ranked(*levels)
    (effort,) = values(f"RecallEffort(expected={expected})", view)
    reached = [
        k for k in range(1, 21) if values(f"RelativeRecall(expected={expected})@{k}", view)[0] >= 1
    ]
    assert math.isnan(effort) == (not reached or reached[0] > len(levels))
    if not math.isnan(effort):
        assert [effort] == pytest.approx(values(f"P@{reached[0]}", view))


@pytest.mark.parametrize("seed", range(3))
def test_the_stored_form_keeps_what_was_known(seed: int) -> None:
    qrels, run = random_collection(seed)
    view = known_run(qrels, run, *random_knowledge(seed, qrels))
    again = JudgedRun.from_bytes(view.to_bytes())
    assert view.known
    assert again.known
    np.testing.assert_array_equal(again.known.rows, view.known.rows)
    for measure in NAIVE_KNOWN:
        np.testing.assert_array_equal(
            values(measure, again), values(measure, view), err_msg=measure
        )


def test_a_view_without_known_documents_is_stored_as_it_always_was() -> None:
    stored = ranked(1, 0, 2).to_bytes()
    assert b"known" not in stored
    assert JudgedRun.from_bytes(stored).known is None


def test_equal_hashes_do_not_make_documents_known() -> None:
    """Every document under one hash: the bytes alone must decide."""
    judgements = judgements_of({"1": {"a": 1, "b": 1}, "2": {"a": 1}})
    judgements.doc_hashes[:] = 5
    starts = np.arange(2)
    block = RankedBlock(
        np.frombuffer(b"bc", np.uint8), [b"1"], np.array([0, 2]), np.zeros(2), starts, starts + 1,
        np.full(2, 5, np.uint64),
    )  # fmt: skip
    plain = judged_run({"1": {"a": 1, "b": 1}, "2": {"a": 1}}, {"1": {"a": 2.0, "b": 1.0}})
    view = mark_known(plain, judgements, KnownDocuments(block, {}))
    assert view.known
    assert view.known.rows.tolist() == [False, True]
    assert view.known.base.counts.tolist() == [1]
    assert all(
        value is getattr(plain, name) for name, value in vars(view).items() if name != "known"
    )


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("RelativeRecall(expected=0)", "from 1 to"),
        ("RecallEffort(expected=2.5)", "whole number"),
        ("RecallEffort@5", "takes no cutoff"),
        ("Coverage(expected=2)", "no parameter 'expected'"),
    ],
)
def test_numbers_nobody_can_expect_are_refused(written: str, says: str) -> None:
    with pytest.raises(MeasureError, match=says):
        parse_measure(written)
