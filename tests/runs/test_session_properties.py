"""Made-up session logs: written and read again, and in every format the same."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.errors import InvalidFile, UnsupportedFile
from runs.formats.compression import in_memory
from runs.formats.sessions.jsonl import write
from runs.formats.sessions.reading import (
    FORMATS,
    check_sessions,
)
from tests.runs.session_files import FLAT, JSONL, LIMITS, XML, contents, found_in, problems, read


@pytest.mark.parametrize("content", [JSONL, XML, FLAT])
def test_what_is_written_is_read_again(content: str) -> None:
    _, blocks = read(content)
    written = b"".join(write(iter(blocks)))
    assert found_in(written) == contents(blocks)
    assert b"".join(write(iter(read(written)[1]))) == written


def test_the_canonical_form() -> None:
    _, blocks = read(JSONL)
    first, second = b"".join(write(iter(blocks))).decode().splitlines()
    assert first.startswith(
        '{"session_id":"s1","topic_id":"301","searcher":"u7","system":"A","queries":[{"text":"crime"'
    )
    assert second == '{"session_id":"2","topic_id":"2","queries":[{"documents":["x"],"ranks":[3]}]}'


IDS = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=12
)
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1)
QUERIES = st.fixed_dictionaries(
    {"documents": st.lists(IDS, unique=True, max_size=5)},
    optional={
        "text": st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1),
        "scanned": st.integers(0, 9),
    },
)


@given(st.dictionaries(IDS, st.lists(QUERIES, min_size=1, max_size=4), min_size=1, max_size=5))
def test_any_sessions_survive_a_round(sessions: dict[str, list[Any]]) -> None:
    lines = [
        json.dumps({"session_id": name, "queries": queries}) for name, queries in sessions.items()
    ]
    summary, blocks = read("\n".join(lines))
    summary.report.check()
    expected = [[query["documents"] for query in queries] for queries in sessions.values()]
    assert [[docs for docs, _ in queries] for _, queries in contents(blocks)] == expected
    assert found_in(b"".join(write(iter(blocks)))) == contents(blocks)


WORDS = st.text("abc:#é", min_size=1, max_size=4).filter(lambda name: not name.startswith("#"))
LISTS = st.lists(st.lists(WORDS, unique=True, max_size=4), min_size=1, max_size=4)


def element(name: str, lists: list[list[str]]) -> str:
    results = (
        "".join(f"<result><docno>{doc}</docno></result>" for doc in documents)
        for documents in lists
    )
    queries = "".join(
        f"<interaction><results>{result}</results></interaction>" for result in results
    )
    return f'<session num="{name}">{queries}</session>'


@given(st.dictionaries(WORDS, LISTS, min_size=1, max_size=4), st.randoms())
def test_every_format_says_the_same(sessions: dict[str, list[list[str]]], random: Any) -> None:
    """Columns in any order of lines, which changes no more than the order of the sessions."""
    lines = [
        json.dumps({"id": name, "queries": [{"documents": q} for q in lists]})
        for name, lists in sessions.items()
    ]
    columns = [
        f"{name} {number} {doc} {rank} 0 -\n"
        for name, lists in sessions.items()
        for number, documents in enumerate(lists, 1)
        for rank, doc in enumerate(documents, 1)
    ]
    columns += [
        f"{name} {n} - 0 0 -\n"
        for name, lists in sessions.items()
        for n, q in enumerate(lists, 1)
        if not q
    ]
    random.shuffle(columns)
    plain = {session.session_id: queries for session, queries in found_in("\n".join(lines))}
    assert {session.session_id: queries for session, queries in found_in("".join(columns))} == plain
    result = found_in(f"<log>{''.join(element(*item) for item in sessions.items())}</log>")
    assert {session.session_id: queries for session, queries in result} == plain


@given(st.binary(max_size=300), st.sampled_from([*FORMATS, None]))
def test_no_bytes_make_a_reader_fail(content: bytes, format: str | None) -> None:
    with contextlib.suppress(InvalidFile, UnsupportedFile):
        check_sessions(lambda: in_memory(content, LIMITS), format=format)


@given(st.text(st.sampled_from('{}[]":,asd1\\ue\n '), max_size=200))
def test_no_text_like_json_makes_the_reader_fail(content: str) -> None:
    problems(f'{{"id": "a", "queries": [{{"documents": [{content}', format="jsonl")
