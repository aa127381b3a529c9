"""Session logs that are too much: every limit, and that reading stops."""

from __future__ import annotations

import json
import time
from typing import Any, cast

import pytest

from runs.errors import FileReport, FileTooLarge, InvalidFile
from runs.formats.limits import Limits
from runs.formats.sessions import listing as session_list
from runs.formats.sessions.reading import (
    FORMATS,
)
from tests.runs.session_files import FLAT, JSONL, LIMITS, XML, contents, in_session, problems, read


@pytest.mark.parametrize("content", [JSONL, XML, FLAT])
@pytest.mark.parametrize(
    ("limits", "code"),
    [
        (Limits(queries_per_session=2), "too_many_queries"),
        (Limits(documents_per_query=1), "too_many_documents"),
        (Limits(sessions=0), "too_many_sessions"),
    ],
)
def test_limits(content: str, limits: Limits, code: str) -> None:
    if content == FLAT and code == "too_many_queries":
        assert problems(content, limits) == [(5, "bad_query_number")]
        return
    with pytest.raises(FileTooLarge) as refused:
        read(content, limits)
    assert refused.value.code == code


def test_a_session_without_end_is_refused_before_it_fills_the_memory() -> None:
    limits = Limits(session_length=1024)
    assert problems('{"id": "' + "x" * 3_000_000, limits, "jsonl") == [(1, "line_too_long")]
    assert problems("<log>\n<session num='s'>" + "x" * 3_000_000, limits) == [(2, "line_too_long")]
    assert problems("<log>\n<session num='" + "x" * 3_000_000, limits) == [(2, "line_too_long")]
    assert problems("<a>" * 60, limits) == [(1, "bad_xml")]


class Endless:
    """A log that repeats a line; how much of it was read."""

    def __init__(self, start: bytes, line: bytes) -> None:
        self.parts, self.reads = [start, line * (1_000_000 // len(line))], 0

    def read(self, size: int = -1, /) -> bytes:
        self.reads += 1
        assert self.reads < 30, "reading goes on"
        return self.parts[0] if self.reads == 1 and self.parts[0] else self.parts[1]


@pytest.mark.parametrize(
    ("start", "line"),
    [
        ("", "{}\n"),
        ("", "{\n"),
        ('{"id": "a b"}\n', "{}\n"),
        ("<log>", "<session/>"),
        ("<log>", '<session num="a"/>'),
    ],
)
def test_reading_stops_after_the_listed_problems(start: str, line: str) -> None:
    log = Endless(start.encode(), line.encode())
    name = "trec-xml" if start == "<log>" else "jsonl"
    with pytest.raises(
        InvalidFile, match="after 50 problems the file was read no further than line"
    ) as refused:
        list(FORMATS[name](lambda: cast(Any, log), FileReport(), LIMITS, 0, True))
    assert (len(refused.value.report.problems), refused.value.report.read_to > 0) == (50, True)


@pytest.mark.parametrize(
    ("start", "line", "code"),
    [
        (JSONL, "\n", "too_many_lines"),
        ("<log>", "\n", "too_many_lines"),
        ("<log>", "<a/>", "too_many_lines"),
        ("<log>", '<a b="" c=""/>', "too_many_lines"),
        ("<log>", "<?a?>", "too_many_lines"),
    ],
)
def test_lines_and_elements_are_bounded(start: str, line: str, code: str) -> None:
    log = Endless(start.encode(), line.encode())
    name = "trec-xml" if start == "<log>" else "jsonl"
    with pytest.raises(FileTooLarge) as refused:
        list(FORMATS[name](lambda: cast(Any, log), FileReport(), Limits(lines=100_000), 0, True))
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("content", "limits", "code"),
    [
        (JSONL, Limits(queries=3), "too_many_queries"),
        (XML, Limits(queries=2), "too_many_queries"),
        ("a 900 - 0 0 A\nb 900 - 0 0 A\n", Limits(queries=1_000), "too_many_queries"),
        (JSONL, Limits(session_documents=3), "too_many_documents"),
        (FLAT, Limits(session_documents=3), "too_many_documents"),
        (JSONL, Limits(session_ids=9), "too_large_at_once"),
        (FLAT, Limits(session_ids=10), "too_large_at_once"),
        ('{"id": "a", "queries": [{"documents": [], "judged": {"a": 1, "b": 1}}]}',
         Limits(documents_per_query=1), "too_many_documents"),
    ],
)  # fmt: skip
def test_what_is_kept_of_a_log_is_bounded(content: str, limits: Limits, code: str) -> None:
    with pytest.raises(FileTooLarge) as refused:
        read(content, limits)
    assert refused.value.code == code


def test_texts_count_for_the_size_of_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_list, "BLOCK", 10_000)
    lines = [
        json.dumps({"id": n, "queries": [{"documents": [], "text": "x" * 5_000}]})
        for n in range(20)
    ]
    assert len(read("\n".join(lines))[1]) == 10


def test_clicks_by_rank_take_time_in_proportion_to_their_number() -> None:
    results = "".join(
        f"<result rank='{rank}'><docno>d{rank}</docno></result>" for rank in range(1, 10_001)
    )
    clicks = "<click><rank>10000</rank></click>" * 50_000
    began = time.process_time()
    with pytest.raises(FileTooLarge, match="more than 10,000 documents for a query"):
        read(
            in_session(
                f"<interaction><results>{results}</results><clicked>{clicks}</clicked></interaction>"
            )
        )
    assert time.process_time() - began < 10
    with pytest.raises(FileTooLarge, match="more than 5 documents for a query"):
        read(
            in_session(f"<interaction><results>{results}"),
            Limits(documents_per_query=5),
            "trec-xml",
        )


def test_many_sessions_come_in_several_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_list, "BLOCK", 10)
    lines = [json.dumps({"id": n, "queries": [{"documents": [f"doc{n}"]}]}) for n in range(20)]
    summary, blocks = read("\n".join(lines))
    assert len(blocks) > 5
    assert [session.session_id for session in summary.sessions] == [b"%d" % n for n in range(20)]
    assert [docs for _, queries in contents(blocks) for docs, _ in queries] == [
        [f"doc{n}"] for n in range(20)
    ]
