"""Columns of a judged view's rows in fewer bytes: every bit comes back, whatever the scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from metrics.engine.compiled.row_columns import COLUMNS, grow, shrink
from metrics.engine.judgement.judged import JudgedRun
from tests.engine.build import first_format, judged_run

TOPICS = 5
DECIMAL = st.integers(-(10**9), 10**9)
# Written as decimals of one kind, as runs have them, or anything: zeros with a sign, infinities,
# all 17 digits.
SCORES = st.one_of(
    st.tuples(st.integers(0, 9), st.lists(DECIMAL, max_size=40)).map(
        lambda drawn: [n / 10 ** drawn[0] for n in drawn[1]]
    ),
    st.lists(st.floats(allow_nan=False), max_size=40),
)


@st.composite
def rows(draw: st.DrawFn) -> dict[str, Any]:
    """Columns as `judge` makes them: sorted by topic and rank."""
    score = np.array(draw(SCORES), np.float64)
    topic = np.sort(
        np.array(
            draw(st.lists(st.integers(0, TOPICS - 1), min_size=len(score), max_size=len(score))),
            int,
        )
    )
    whole = st.lists(st.integers(0, 300), min_size=len(score), max_size=len(score))
    rank = np.cumsum(np.array(draw(whole), int) + 1)
    for number in range(TOPICS):
        rank[topic == number] -= rank[topic < number].max(initial=0)
    return {
        "topic": topic,
        "rank": rank,
        "level": np.array(draw(whole), int) - 2,
        "judgement": np.array(draw(whole), int) * 1000,
        "score": score,
        "tie_first": rank - np.minimum(rank - 1, np.array(draw(whole), int)),
        "tie_size": np.array(draw(whole), int) + 1,
    }


@given(rows())
def test_every_bit_comes_back(columns: dict[str, Any]) -> None:
    arrays = shrink(dict(columns), TOPICS)
    again = grow(arrays)
    assert not arrays
    assert set(again) == set(COLUMNS)
    for name, column in columns.items():
        assert again[name].dtype == column.dtype
        assert again[name].tobytes() == column.tobytes(), name


@pytest.mark.parametrize(
    ("scores", "digits"),
    [
        ([3.0, 2.0, 1.0], 0),
        ([12.3456, 12.3455, 0.1], 4),
        ([17.125301, 17.1253, 0.000001], 6),
        ([0.1234567, 0.5], 7),
        ([1 / 3, 0.25], None),
        ([2.5, -0.0], None),
        ([1e300, 1.0], None),
        # Beyond 2 ** 53 not all whole numbers are floats.
        ([1e16, 1.0], None),
        ([1.0] * 20 + [1 / 3], None),
    ],
)
def test_decimals_are_stored_as_whole_numbers_and_nothing_else_is(
    scores: list[float], digits: int | None
) -> None:
    some = np.arange(len(scores))
    columns = dict.fromkeys(COLUMNS, some) | {
        "topic": np.zeros_like(some),
        "score": np.array(scores),
    }
    arrays = shrink(columns, 1)
    assert ("score" in arrays) == (digits is None)
    assert arrays.get("score_decimals", [None])[0] == digits


def test_views_of_the_first_format_are_read() -> None:
    view = judged_run(
        {"1": {"a": 1, "b": 0}, "2": {"a": 2}},
        {"1": {"b": 0.5, "a": 0.25}, "2": {"c": 1.0, "a": 0.5}},
    )
    again = JudgedRun.from_bytes(first_format(2, whole_columns(view)))
    assert again.to_bytes() == view.to_bytes()
    assert again.rank.tolist() == view.rank.tolist() == [1, 2, 2]


def test_a_stored_view_takes_less_than_half_of_what_its_columns_take() -> None:
    rng = np.random.default_rng(0)
    run = {
        f"{topic}": {f"d{n}": round(rng.gamma(2.0, 5.0), 4) for n in range(300)}
        for topic in range(9)
    }
    view = judged_run(
        {topic: dict.fromkeys(rng.permutation(list(docs)), 1) for topic, docs in run.items()}, run
    )
    before = first_format(9, whole_columns(view))
    assert len(zstandard.compress(view.to_bytes())) < len(zstandard.compress(before)) / 2


def whole_columns(view: JudgedRun) -> dict[str, Any]:
    """The arrays of a view in the first format, of the types that hold their numbers."""
    columns = {name: getattr(view, name) for name in (*COLUMNS, "num_ret", "squared_scores")}
    columns |= {
        f"base_{name}": getattr(view.recall_base, name) for name in ("topic", "level", "counts")
    }
    # No number of these is larger; scores stay floats.
    return {
        name: column.astype(np.int16) if column.dtype.kind == "i" else column
        for name, column in columns.items()
    }
