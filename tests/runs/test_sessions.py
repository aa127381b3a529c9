"""Session files: what is read of each format, line by line, and what is refused."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from metrics.engine.judgement.ranking import hash_spans
from metrics.engine.sessions.blocks import Session
from runs.errors import UnsupportedFile
from runs.formats.compression import in_memory
from runs.formats.sessions.reading import (
    FORMATS,
    detect_format,
    read_sessions,
)
from tests.runs.session_files import (
    FIRST,
    FLAT,
    JSONL,
    LIMITS,
    XML,
    contents,
    found_in,
    in_session,
    problems,
    read,
)


def test_json_lines() -> None:
    summary, blocks = read(JSONL)
    assert contents(blocks) == [FIRST, (Session(b"2", b"2"), [(["x"], [3])])]
    assert (summary.format, summary.queries, summary.documents, summary.empty_queries) == (
        "jsonl",
        [3, 1],
        4,
        1,
    )
    assert summary.report.counts == {"empty_query": 1}
    (block,) = blocks
    first = block.queries[0]
    assert (first.text, first.time, first.clicked, first.judged) == (
        "crime",
        4.5,
        (b"d7",),
        {b"d7": 2},
    )
    assert block.scanned.tolist() == [2, -1, -1, -1]
    np.testing.assert_array_equal(block.scores, [9.5, 8, np.nan, np.nan])


def test_the_session_track_xml() -> None:
    summary, blocks = read(XML)
    assert summary.format == "trec-xml"
    (session, queries), *rest = contents(blocks)
    assert (session, rest) == (FIRST[0], [])
    assert queries == [(["d1", "d7"], [1, 2]), ([], []), (["http://c/?a=1&b"], [1])]
    texts = blocks[0].queries
    assert [query.text for query in texts] == ["crime", "organized crime", ""]
    assert [query.time for query in texts] == [64.5, 90.0, None]
    assert texts[0].clicked == (b"d7", b"d1")
    assert blocks[0].scanned.tolist() == [2, -1, -1]


def test_columns() -> None:
    summary, blocks = read(FLAT)
    assert contents(blocks) == [FIRST, (Session(b"2", b"2", b"", b"B"), [([], []), (["x"], [3])])]
    assert (summary.format, summary.grouped) == ("columns", True)
    assert summary.report.counts == {"empty_query": 2}


@pytest.mark.parametrize("content", [JSONL, XML, FLAT])
def test_compressed_crlf_marked_and_read_again(content: str) -> None:
    plain = found_in(content)
    for form in (
        gzip.compress(content.encode()),
        b"\xef\xbb\xbf" + content.encode(),
        content.replace("\n", "\r\n").encode(),
        content.rstrip("\n").encode(),
    ):
        assert found_in(form) == plain
    name = detect_format(content.encode())
    again = read_sessions(lambda: in_memory(content.encode(), LIMITS), format=name, seed=7)
    blocks = list(again)
    assert contents(blocks) == plain
    for block in blocks:
        expected = hash_spans(block.data, block.doc_starts, block.doc_ends, 7)
        assert block.doc_hashes.tolist() == expected.tolist()


def test_lines_of_sessions_may_be_interleaved_and_out_of_order() -> None:
    mixed = "b 1 x 1 0 A\na 2 q 2 0 B\nb 2 z 1 0 A\na 2 p 1 0 B\na 1 p 1 0 B\n"
    summary, blocks = read(mixed)
    assert contents(blocks) == [
        (Session(b"b", b"b", b"", b"A"), [(["x"], [1]), (["z"], [1])]),
        (Session(b"a", b"a", b"", b"B"), [(["p"], [1]), (["p", "q"], [1, 2])]),
    ]
    assert not summary.grouped
    again = read_sessions(
        lambda: in_memory(mixed.encode(), LIMITS), format="columns", grouped=False
    )
    assert contents(list(again)) == contents(blocks)


QUERY = '"queries": [{"documents": ["a"]}]'
SURROGATE = '{"session_id": "s", "queries": [{"documents": ["a\\ud800"]}]}'


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("{", [(1, "bad_json")]),
        (f'{{"id": "a", {QUERY}}}\n[]', [(2, "bad_json")]),
        ('{"a": NaN}', [(1, "bad_json")]),
        (f'{{"id": "a", "id": "b", {QUERY}}}', [(1, "bad_json")]),
        ('{"id": ' + "9" * 500 + "}", [(1, "bad_json")]),
        ('{"id": ' + "[" * 100_000, [(1, "bad_json")]),
        (b'\n{"id": "\xff"}', [(2, "undecodable_bytes")]),
        (f"{{{QUERY}}}", [(1, "missing_session_id")]),
        (f'{{"id": "", {QUERY}}}', [(1, "missing_session_id")]),
        (f'{{"id": true, {QUERY}}}', [(1, "bad_value")]),
        (f'{{"id": "a b", {QUERY}}}', [(1, "bad_session_id")]),
        (f'{{"id": "a\\u0000", {QUERY}}}', [(1, "bad_session_id")]),
        (f'{{"id": "{"é" * 600}", {QUERY}}}', [(1, "bad_session_id")]),
        (f'{{"id": "a", "topic": "t\\n", {QUERY}}}', [(1, "bad_topic_id")]),
        (f'{{"id": "a", "searcher": "u 1", {QUERY}}}', [(1, "bad_searcher")]),
        (f'{{"id": "a", "system": "\\u007f", {QUERY}}}', [(1, "bad_system")]),
        (f'{{"id": "a", {QUERY}}}\n\n{{"id": "a", {QUERY}}}', [(3, "duplicate_session")]),
        ('{"id": "a"}', [(1, "bad_queries")]),
        ('{"id": "a", "queries": {}}', [(1, "bad_queries")]),
        ('{"id": "a", "queries": [3]}', [(1, "bad_queries")]),
        ('{"id": "a", "queries": []}', [(1, "no_queries")]),
        ('{"id": "a", "queries": [{}]}', [(1, "bad_value")]),
        ('{"id": "a", "queries": [{"documents": "abc"}]}', [(1, "bad_value")]),
        ('{"id": "a", "queries": [{"documents": [1]}]}', [(1, "bad_value")]),
        ('{"id": "a", "queries": [{"documents": [""]}]}', [(1, "bad_doc_id")]),
        ('{"id": "a", "queries": [{"documents": ["a\\nb"]}]}', [(1, "bad_doc_id")]),
        (SURROGATE, [(1, "bad_doc_id")]),
        (
            '{"id": "a", "queries": [{"documents": ["a"], "clicked": ["a\\ud800"]}]}',
            [(1, "bad_doc_id")],
        ),
        (
            '{"id": "a", "queries": [{"documents": [], "eyes": [' + "[]," * 100_000 + "[]]}]}",
            [(1, "bad_json")],
        ),
        (
            '{"id": "a", ' + "".join(f'"k{n}": 1, ' for n in range(100)) + f"{QUERY}}}",
            [(1, "bad_value")],
        ),
        (f'{{"id": "a", "queries": [{{"documents": ["{"d" * 1025}"]}}]}}', [(1, "bad_doc_id")]),
        ('{"id": "a", "queries": [{"documents": ["a", "b", "a"]}]}', [(1, "duplicate_document")]),
        ('{"id": "a", "queries": [{"documents": ["a"], "ranks": [0]}]}', [(1, "bad_rank")]),
        ('{"id": "a", "queries": [{"documents": ["a", "b"], "ranks": [2, 2]}]}', [(1, "bad_rank")]),
        ('{"id": "a", "queries": [{"documents": ["a"], "ranks": [1, 2]}]}', [(1, "bad_rank")]),
        ('{"id": "a", "queries": [{"documents": ["a"], "ranks": [true]}]}', [(1, "bad_value")]),
        ('{"id": "a", "queries": [{"documents": ["a"], "scores": [1, 2]}]}', [(1, "bad_score")]),
        ('{"id": "a", "queries": [{"documents": ["a"], "scores": [1e400]}]}', [(1, "bad_value")]),
        (
            '{"id": "a", "queries": [{"documents": ["a"], "judged": {"a": 2.5}}]}',
            [(1, "bad_value")],
        ),
        (
            '{"id": "a", "queries": [{"documents": ["a"], "judged": {"a": 2000}}]}',
            [(1, "bad_level")],
        ),
        ('{"id": "a", "queries": [{"documents": ["a"], "scanned": -1}]}', [(1, "bad_value")]),
        ('{"id": "a", "queries": [{"documents": ["a"], "time": "4"}]}', [(1, "bad_value")]),
        (
            '{"id": "a", "queries": [{"documents": ["a"], "text": "\\u0001"}]}',
            [(1, "control_character")],
        ),
        (
            f'{{"id": "a", "queries": [{{"documents": [], "text": "{"x" * 100_001}"}}]}}',
            [(1, "text_too_long")],
        ),
    ],
)
def test_json_lines_that_are_refused(content: str | bytes, expected: list[tuple[int, str]]) -> None:
    assert problems(content, format="jsonl") == expected


WHOLE = "s 1 a 1 0 A"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("s 1 a 1 0", [(1, "too_few_columns")]),
        (f"{WHOLE}\n\ns 1 b 2 high A", [(3, "bad_score")]),
        ("s 1 a 0 0 A", [(1, "bad_rank")]),
        ("s 1 a -1 0 A", [(1, "bad_rank")]),
        ("s 1 a 1.5 0 A", [(1, "bad_rank")]),
        ("s 1 a 1000000001 0 A", [(1, "bad_rank")]),
        ("s 0 a 1 0 A", [(1, "bad_query_number")]),
        ("s q1 a 1 0 A", [(1, "bad_query_number")]),
        ("s 1001 a 1 0 A", [(1, "bad_query_number")]),
        (f"{WHOLE}\ns 1 b 1 0 A", [(2, "bad_rank")]),
        (f"{WHOLE}\ns 2 b 1 0 A\ns 1 a 2 0 A", [(3, "duplicate_document")]),
        (f"{WHOLE}\ns 2 b 1 0 B", [(2, "mixed_session")]),
        (f"{WHOLE} t\ns 2 b 1 0 A", [(2, "mixed_session")]),
        ("s 1 a\x01 1 0 A", [(1, "control_character")]),
        (f"s 1 {'d' * 1025} 1 0 A", [(1, "id_too_long")]),
        (b"s 1 \xff 1 0 A", [(1, "undecodable_bytes")]),
        ("#s 1 a 1 0 A", [(1, "ambiguous_comment")]),
    ],
)
def test_columns_that_are_refused(content: str | bytes, expected: list[tuple[int, str]]) -> None:
    assert problems(content, format="columns") == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("<log>", [(1, "bad_xml")]),
        ("<!DOCTYPE a><a/>", [(1, "bad_xml")]),
        ('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', [(1, "bad_xml")]),
        ("<log><session/></log>", [(1, "missing_session_id"), (1, "no_queries")]),
        (in_session(""), [(2, "no_queries")]),
        (in_session("<interaction><results><result rank='x'><docno>a</docno></result></results></interaction>"),
         [(3, "bad_rank")]),
        (in_session("<interaction><results><result/></results></interaction>"), [(3, "bad_doc_id")]),
        (in_session("<interaction>\n<results><result rank='1'><docno>a</docno></result>"
                    "<result rank='1'><docno>b</docno></result></results></interaction>"), [(3, "bad_rank")]),
        (in_session("<interaction><results><result><docno>a b</docno></result></results></interaction>"),
         [(3, "bad_doc_id")]),
        (in_session("<interaction scanned='no'><results/></interaction>"), [(3, "bad_value")]),
        ("<log>\n" + "<session num='s'><interaction/></session>\n" * 2 + "</log>", [(3, "duplicate_session")]),
    ],
)  # fmt: skip
def test_xml_that_is_refused(content: str, expected: list[tuple[int, str]]) -> None:
    assert problems(content, format="trec-xml") == expected


def test_oddities_are_warned_about() -> None:
    odd = '{"id": "a", "mood": 1, "queries": [{"documents": ["a"], "clicked": ["b"], "eyes": 2}]}'
    assert read(odd)[0].report.counts == {"unknown_key": 2, "clicked_not_listed": 1}
    clicks = "<click><rank>9</rank></click><click><rank>٣</rank></click>"
    xml = in_session(
        f"<interaction starttime='soon'><results/><clicked>{clicks}</clicked></interaction>"
    )
    assert read(xml)[0].report.counts == {"bad_time": 1, "clicked_not_listed": 2, "empty_query": 1}
    assert read("s 1 a 1 0 A t u more\n")[0].report.counts == {"extra_columns": 1}


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_without_a_session_is_refused(name: str) -> None:
    assert problems("<log/>" if name == "trec-xml" else "\n", format=name) == [
        (0, "empty_sessions")
    ]


def test_formats_that_are_not_read() -> None:
    with pytest.raises(UnsupportedFile, match="known are jsonl, trec-xml, columns"):
        read(JSONL, format="csv")
    assert problems(JSONL.encode("utf-16")) == [(1, "undecodable_bytes")]
