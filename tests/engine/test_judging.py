"""The tie rule and the judged view, against the plainest possible sort."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.engine.judgement.judged import JudgedRun, RecallBase
from metrics.engine.judgement.judging import SCORE_TYPES, ScoreType, Search, judge, search
from metrics.engine.judgement.ranking import RankedBlock, hash_spans
from metrics.engine.judgement.search import search_compiled
from tests.engine.build import judged_run, judgements_of

ARRAYS = (
    "topic",
    "rank",
    "level",
    "judgement",
    "score",
    "tie_first",
    "tie_size",
    "num_ret",
    "squared_scores",
)
IDS = st.text("abcé0", min_size=1, max_size=12)
RUNS = st.dictionaries(
    st.sampled_from(["1", "2", "3"]),
    st.dictionaries(IDS, st.sampled_from([0.0, 0.5, -1.0, 1e-3]), min_size=1, max_size=30),
    min_size=1,
)
QRELS = st.dictionaries(
    st.sampled_from(["1", "2", "4"]),
    st.dictionaries(IDS, st.integers(-2, 3), min_size=1, max_size=12),
    min_size=1,
)


def by_the_rule(documents: dict[str, float]) -> list[str]:
    return sorted(documents, key=lambda doc: (documents[doc], doc.encode()), reverse=True)


@given(QRELS, RUNS)
def test_ranks_follow_the_tie_rule(
    qrels: dict[str, dict[str, int]], run: dict[str, dict[str, float]]
) -> None:
    view = judged_run(qrels, run)
    expected = [
        (index, rank, qrels[topic][doc])
        for index, topic in enumerate(qrels)
        for rank, doc in enumerate(by_the_rule(run.get(topic, {})), 1)
        if doc in qrels[topic]
    ]
    assert (
        list(zip(view.topic.tolist(), view.rank.tolist(), view.level.tolist(), strict=True))
        == expected
    )
    assert view.num_ret.tolist() == [len(run.get(topic, {})) for topic in qrels]


@given(QRELS, RUNS)
def test_tie_groups_are_known(
    qrels: dict[str, dict[str, int]], run: dict[str, dict[str, float]]
) -> None:
    view = judged_run(qrels, run)
    topics = list(qrels)
    rows = zip(
        view.topic.tolist(),
        view.score.tolist(),
        view.tie_first.tolist(),
        view.tie_size.tolist(),
        strict=True,
    )
    for topic, score, first, size in rows:
        scores = list(run[topics[topic]].values())
        assert size == scores.count(score)
        assert first == 1 + sum(other > score for other in scores)


@given(QRELS, RUNS)
def test_the_stored_form_gives_the_same_view_back(
    qrels: dict[str, dict[str, int]], run: dict[str, dict[str, float]]
) -> None:
    view = judged_run(qrels, run)
    again = JudgedRun.from_bytes(view.to_bytes())
    assert_same_view(again, view)
    np.testing.assert_array_equal(again.recall_base.counts, view.recall_base.counts)


def assert_same_view(run: JudgedRun, other: JudgedRun) -> None:
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(run, name), getattr(other, name), strict=True)


@given(QRELS, RUNS, st.booleans(), st.sampled_from(SCORE_TYPES))
def test_the_compiled_search_finds_what_the_plain_one_finds(
    qrels: dict[str, dict[str, int]],
    run: dict[str, dict[str, float]],
    in_order: bool,
    scores: ScoreType,
) -> None:
    if in_order:
        run = {topic: {doc: docs[doc] for doc in by_the_rule(docs)} for topic, docs in run.items()}
    assert_same_view(
        judged_run(qrels, run, scores, search_compiled), judged_run(qrels, run, scores)
    )


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(-3, 4)), max_size=60),
    st.sampled_from([1, 1_000_000]),
)
def test_recall_bases_of_few_and_of_many_levels_are_counted_alike(
    judged: list[tuple[int, int]], scale: int
) -> None:
    topics, levels = np.array(judged, np.int64).reshape(-1, 2).T
    base = RecallBase.of(topics, levels * scale, 4)
    expected = sorted(Counter(judged).items(), key=lambda item: (item[0][0], -item[0][1]))
    rows = zip(
        base.topic.tolist(), (base.level // scale).tolist(), base.counts.tolist(), strict=True
    )
    assert list(rows) == [(topic, level, count) for (topic, level), count in expected]
    assert {column.dtype.name for column in (base.topic, base.level, base.counts)} == {"int64"}


def test_a_stored_view_of_another_format_is_refused() -> None:
    stored = (
        judged_run({"1": {"a": 1}}, {"1": {"a": 1.0}})
        .to_bytes()
        .replace(b'"format": 2', b'"format": 3')
    )
    with pytest.raises(ValueError, match="format 3"):
        JudgedRun.from_bytes(stored)


def test_long_ids_are_ordered_like_short_ones() -> None:
    ids = ["x" * 80 + tail for tail in ("b", "a", "c")]
    view = judged_run({"1": dict.fromkeys(ids, 1)}, {"1": dict.fromkeys(ids, 1.0)})
    assert view.rank.tolist() == [1, 2, 3]
    assert view.judgement.tolist() == [2, 0, 1]


def test_one_tie_group_of_all_documents_is_sorted_once() -> None:
    documents = {f"doc{i:06d}": 1.0 for i in range(50_000)}
    view = judged_run({"1": {"doc049999": 1, "doc000000": 2}}, {"1": documents})
    assert view.rank.tolist() == [1, 50_000]


@pytest.mark.parametrize("search", [search, search_compiled])
def test_equal_hashes_do_not_make_documents_equal(search: Search) -> None:
    """Every document under one hash: the bytes alone must decide."""
    judgements = judgements_of({"1": {"a": 1, "b": 2, "c": 0}, "2": {"a": 3}})
    judgements.doc_hashes[:] = 5
    data = np.frombuffer(b"cab", np.uint8)
    starts = np.arange(3)
    block = RankedBlock(
        data,
        [b"1"],
        np.array([0, 3]),
        np.array([3.0, 2.0, 1.0]),
        starts,
        starts + 1,
        np.full(3, 5, np.uint64),
    )
    assert judge([block], judgements, search=search).level.tolist() == [0, 1, 2]


def test_more_than_two_gigabytes_of_judged_ids_are_refused() -> None:
    judgements = judgements_of({"1": {"a": 1}})
    block = RankedBlock(
        judgements.data,
        [b"1"],
        np.array([0, 1]),
        np.ones(1),
        *judgements.short_spans,
        judgements.doc_hashes,
    )
    assert judge([block], judgements, search=search_compiled).level.tolist() == [1]
    many = replace(judgements, data=np.broadcast_to(np.uint8(97), 2**31))
    with pytest.raises(ValueError, match="more than 2 GB"):
        judge([block], many, search=search_compiled)


def test_hashes_depend_on_the_seed() -> None:
    data = np.frombuffer(b"document-17", np.uint8)
    starts, ends = np.array([0]), np.array([11])
    assert hash_spans(data, starts, ends, 1) != hash_spans(data, starts, ends, 2)


def test_infinite_float32_scores_tie() -> None:
    view = judged_run({"1": {"a": 1, "b": 1}}, {"1": {"a": 1e300, "b": 1e299}}, "float32")
    assert view.tie_size.tolist() == [2, 2]
