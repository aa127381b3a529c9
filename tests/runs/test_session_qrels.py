"""Judgements of single queries, from a file and from the sessions themselves."""

from __future__ import annotations

import json

import numpy as np
import pytest

from metrics.engine.sessions.grammar import parse_session_measure, session_values
from metrics.engine.sessions.judging import judge_sessions
from runs.errors import FileTooLarge, InvalidFile
from runs.formats.compression import in_memory
from runs.formats.limits import Limits
from runs.formats.sessions.qrels import own_judgements, read_session_qrels
from runs.formats.sessions.reading import use_sessions
from runs.formats.trec_qrels import QrelsSummary

LIMITS = Limits()
RECORDS = [
    {
        "session_id": "s:1",
        "queries": [{"documents": ["a", "b"], "judged": {"b": 2}}, {"documents": ["b"]}],
    },
    {
        "session_id": "s2",
        "queries": [{"documents": []}, {"documents": ["b", "a"], "judged": {"a": 1, "b": 0}}],
    },
]
CONTENT = "".join(json.dumps(record) + "\n" for record in RECORDS).encode()


def read(content: str | bytes, limits: Limits = LIMITS) -> QrelsSummary:
    encoded = content.encode() if isinstance(content, str) else content
    return read_session_qrels(lambda: in_memory(encoded, limits), limits=limits)


def test_a_file_of_judgements_by_query() -> None:
    summary = read("\ufeff# by hand\r\ns:1 1 b 2\r\n\r\ns:1\t2  b 1\ns2 2 a 3")
    summary.report.check()
    assert summary.judgements.topic_ids == [b"s:1:1", b"s:1:2", b"s2:2"]
    _, blocks = use_sessions(lambda: in_memory(CONTENT, LIMITS), list)
    view = judge_sessions(blocks, summary.judgements, by="query")
    np.testing.assert_allclose(
        session_values(view, parse_session_measure("sDCG")), [2 / 2 + 1 / 1.5, 3 / 2 / 1.5]
    )


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("s 1 a 1\n\ns q b 1", [(3, "bad_query_number")]),
        ("s 0 a 1", [(1, "bad_query_number")]),
        ("s 1", [(1, "bad_query_number")]),
        ("s 1 a", [(1, "too_few_columns")]),
        ("# none\ns 1 a high", [(2, "bad_level")]),
        ("s 1 a 1\ns 1 a 2", [(2, "conflicting_judgement")]),
        ("# none", [(0, "empty_qrels")]),
    ],
)
def test_lines_that_are_refused(content: str, expected: list[tuple[int, str]]) -> None:
    with pytest.raises(InvalidFile) as refused:
        read(content).report.check()
    assert [(problem.line, problem.code) for problem in refused.value.report.problems] == expected


def test_too_many_bytes_at_once() -> None:
    with pytest.raises(FileTooLarge, match="bytes of judgements"):
        read("s 1 a 1\n" * 100, Limits(bytes_at_once=100))


def test_what_searchers_judged_themselves() -> None:
    _, blocks = use_sessions(lambda: in_memory(CONTENT, LIMITS), list)
    judgements = own_judgements(blocks)
    assert judgements
    assert judgements.topic_ids == [b"s:1:1", b"s2:2"]
    view = judge_sessions(blocks, judgements, by="query")
    np.testing.assert_allclose(
        session_values(view, parse_session_measure("sDCG")), [2 / 2, 1 / 2 / 1.5]
    )
    assert own_judgements([]) is None
