"""Session files: what is read of each format, line by line, and what is refused."""

from __future__ import annotations

import contextlib
import gzip
import json
import time
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.engine.ranking import hash_spans
from metrics.engine.sessions.blocks import Session, SessionBlock
from runs.errors import FileReport, FileTooLarge, InvalidFile, UnsupportedFile
from runs.formats.compression import in_memory
from runs.formats.limits import Limits
from runs.formats.sessions import listing as session_list
from runs.formats.sessions.jsonl import write
from runs.formats.sessions.reading import (
    FORMATS,
    SessionsSummary,
    check_sessions,
    detect_format,
    read_sessions,
    use_sessions,
)

LIMITS = Limits()
JSONL = """\
{"session_id": "s1", "topic_id": "301", "searcher": "u7", "system": "A", "queries": [\
{"text": "crime", "time": 4.5, "documents": ["d1", "d7"], "scores": [9.5, 8], "clicked": ["d7"], "judged": {"d7": 2}, \
"scanned": 2}, {"text": "organized crime", "documents": []}, {"documents": ["d7"]}]}
{"id": 2, "queries": [{"documents": ["x"], "ranks": [3]}]}
"""
XML = """\
<?xml version="1.0"?>
<sessiontrack2014>
<session num="s1" userid="u7" system="A" starttime="10:00:00"><topic num="301"><desc>Crime</desc></topic>
<interaction num="1" starttime="00:01:04.5" scanned="2"><query>
  crime</query>
<results>
<result rank="2"><url>http://b/</url><clueweb12id>d7</clueweb12id></result>
<result rank="1"><url>http://a/</url><docno> d1 </docno></result>
</results>
<clicked><click num="1"><rank>2</rank></click><click num="2"><docno>d1</docno></click></clicked>
</interaction>
<interaction num="2" starttime="90"><query>organized crime</query><results/></interaction>
<interaction num="3"><query/><results><result><url>http://c/?a=1&amp;b</url></result></results></interaction>
<currentquery><query>crime now</query></currentquery>
</session>
</sessiontrack2014>
"""
FLAT = """\
# from the log
s1 1 d1 1 9.5 A 301 u7
s1 1 d7 2 8 A 301 u7
s1 2 - 0 0 A 301 u7
s1 3 d7 1 0 A\t301  u7
2 2 x 3 1 B
"""
Read = tuple[SessionsSummary, list[SessionBlock]]
Flat = list[tuple[Session, list[tuple[list[str], list[int]]]]]


def read(content: str | bytes, limits: Limits = LIMITS, format: str | None = None) -> Read:
    encoded = content.encode() if isinstance(content, str) else content
    return use_sessions(lambda: in_memory(encoded, limits), list, limits=limits, format=format)


def contents(blocks: list[SessionBlock]) -> Flat:
    """Every session with the documents and ranks of its queries."""
    found: Flat = []
    for block in blocks:
        text = block.data.tobytes()
        for index, session in enumerate(block.sessions):
            queries = []
            for query in range(*block.query_starts[index : index + 2].tolist()):
                rows = range(*block.document_starts[query : query + 2].tolist())
                docs = [text[block.doc_starts[row] : block.doc_ends[row]].decode() for row in rows]
                queries.append((docs, [int(block.ranks[row]) for row in rows]))
            found.append((session, queries))
    return found


def found_in(content: str | bytes, **more: Any) -> Flat:
    summary, blocks = read(content, **more)
    summary.report.check()
    return contents(blocks)


def problems(content: str | bytes, limits: Limits = LIMITS, format: str | None = None) -> list[tuple[int, str]]:
    try:
        report = read(content, limits, format)[0].report
    except InvalidFile as error:
        report = error.report
    return sorted({(problem.line, problem.code) for problem in report.problems})


FIRST = (Session(b"s1", b"301", b"u7", b"A"), [(["d1", "d7"], [1, 2]), ([], []), (["d7"], [1])])


def test_json_lines() -> None:
    summary, blocks = read(JSONL)
    assert contents(blocks) == [FIRST, (Session(b"2", b"2"), [(["x"], [3])])]
    assert (summary.format, summary.queries, summary.documents, summary.empty_queries) == ("jsonl", [3, 1], 4, 1)
    assert summary.report.counts == {"empty_query": 1}
    (block,) = blocks
    first = block.queries[0]
    assert (first.text, first.time, first.clicked, first.judged) == ("crime", 4.5, (b"d7",), {b"d7": 2})
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
    again = read_sessions(lambda: in_memory(mixed.encode(), LIMITS), format="columns", grouped=False)
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
        ('{"id": "a", "queries": [{"documents": ["a"], "clicked": ["a\\ud800"]}]}', [(1, "bad_doc_id")]),
        ('{"id": "a", "queries": [{"documents": [], "eyes": [' + "[]," * 100_000 + "[]]}]}", [(1, "bad_json")]),
        ('{"id": "a", ' + "".join(f'"k{n}": 1, ' for n in range(100)) + f"{QUERY}}}", [(1, "bad_value")]),
        (f'{{"id": "a", "queries": [{{"documents": ["{"d" * 1025}"]}}]}}', [(1, "bad_doc_id")]),
        ('{"id": "a", "queries": [{"documents": ["a", "b", "a"]}]}', [(1, "duplicate_document")]),
        ('{"id": "a", "queries": [{"documents": ["a"], "ranks": [0]}]}', [(1, "bad_rank")]),
        ('{"id": "a", "queries": [{"documents": ["a", "b"], "ranks": [2, 2]}]}', [(1, "bad_rank")]),
        ('{"id": "a", "queries": [{"documents": ["a"], "ranks": [1, 2]}]}', [(1, "bad_rank")]),
        ('{"id": "a", "queries": [{"documents": ["a"], "ranks": [true]}]}', [(1, "bad_value")]),
        ('{"id": "a", "queries": [{"documents": ["a"], "scores": [1, 2]}]}', [(1, "bad_score")]),
        ('{"id": "a", "queries": [{"documents": ["a"], "scores": [1e400]}]}', [(1, "bad_value")]),
        ('{"id": "a", "queries": [{"documents": ["a"], "judged": {"a": 2.5}}]}', [(1, "bad_value")]),
        ('{"id": "a", "queries": [{"documents": ["a"], "judged": {"a": 2000}}]}', [(1, "bad_level")]),
        ('{"id": "a", "queries": [{"documents": ["a"], "scanned": -1}]}', [(1, "bad_value")]),
        ('{"id": "a", "queries": [{"documents": ["a"], "time": "4"}]}', [(1, "bad_value")]),
        ('{"id": "a", "queries": [{"documents": ["a"], "text": "\\u0001"}]}', [(1, "control_character")]),
        (f'{{"id": "a", "queries": [{{"documents": [], "text": "{"x" * 100_001}"}}]}}', [(1, "text_too_long")]),
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


def in_session(inner: str) -> str:
    return f'<log>\n<session num="s">\n{inner}\n</session></log>'


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
    xml = in_session(f"<interaction starttime='soon'><results/><clicked>{clicks}</clicked></interaction>")
    assert read(xml)[0].report.counts == {"bad_time": 1, "clicked_not_listed": 2, "empty_query": 1}
    assert read("s 1 a 1 0 A t u more\n")[0].report.counts == {"extra_columns": 1}


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_without_a_session_is_refused(name: str) -> None:
    assert problems("<log/>" if name == "trec-xml" else "\n", format=name) == [(0, "empty_sessions")]


def test_formats_that_are_not_read() -> None:
    with pytest.raises(UnsupportedFile, match="known are jsonl, trec-xml, columns"):
        read(JSONL, format="csv")
    assert problems(JSONL.encode("utf-16")) == [(1, "undecodable_bytes")]


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
        self.parts, self.given = [start, line * (1_000_000 // len(line))], 0

    def read(self, size: int = -1, /) -> bytes:
        self.given += 1
        assert self.given < 30, "reading goes on"
        return self.parts[0] if self.given == 1 and self.parts[0] else self.parts[1]


@pytest.mark.parametrize(
    ("start", "line"),
    [("", "{}\n"), ("", "{\n"), ('{"id": "a b"}\n', "{}\n"), ("<log>", "<session/>"), ("<log>", '<session num="a"/>')],
)
def test_reading_stops_after_the_listed_problems(start: str, line: str) -> None:
    log = Endless(start.encode(), line.encode())
    name = "trec-xml" if start == "<log>" else "jsonl"
    with pytest.raises(InvalidFile, match="after 50 problems the file was read no further than line") as refused:
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
        (JSONL, Limits(lines=3), "too_many_documents"),
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
    lines = [json.dumps({"id": n, "queries": [{"documents": [], "text": "x" * 5_000}]}) for n in range(20)]
    assert len(read("\n".join(lines))[1]) == 10


def test_clicks_by_rank_take_time_in_proportion_to_their_number() -> None:
    results = "".join(f"<result rank='{rank}'><docno>d{rank}</docno></result>" for rank in range(1, 10_001))
    clicks = "<click><rank>10000</rank></click>" * 50_000
    began = time.process_time()
    with pytest.raises(FileTooLarge, match="more than 10,000 documents for a query"):
        read(in_session(f"<interaction><results>{results}</results><clicked>{clicks}</clicked></interaction>"))
    assert time.process_time() - began < 10
    with pytest.raises(FileTooLarge, match="more than 5 documents for a query"):
        read(in_session(f"<interaction><results>{results}"), Limits(documents_per_query=5), "trec-xml")


def test_many_sessions_come_in_several_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_list, "BLOCK", 10)
    lines = [json.dumps({"id": n, "queries": [{"documents": [f"doc{n}"]}]}) for n in range(20)]
    summary, blocks = read("\n".join(lines))
    assert len(blocks) > 5
    assert [session.session_id for session in summary.sessions] == [b"%d" % n for n in range(20)]
    assert [docs for _, queries in contents(blocks) for docs, _ in queries] == [[f"doc{n}"] for n in range(20)]


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


IDS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=12)
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
    lines = [json.dumps({"session_id": name, "queries": queries}) for name, queries in sessions.items()]
    summary, blocks = read("\n".join(lines))
    summary.report.check()
    expected = [[query["documents"] for query in queries] for queries in sessions.values()]
    assert [[docs for docs, _ in queries] for _, queries in contents(blocks)] == expected
    assert found_in(b"".join(write(iter(blocks)))) == contents(blocks)


WORDS = st.text("abc:#é", min_size=1, max_size=4).filter(lambda name: not name.startswith("#"))
LISTS = st.lists(st.lists(WORDS, unique=True, max_size=4), min_size=1, max_size=4)


def element(name: str, lists: list[list[str]]) -> str:
    results = ("".join(f"<result><docno>{doc}</docno></result>" for doc in documents) for documents in lists)
    queries = "".join(f"<interaction><results>{result}</results></interaction>" for result in results)
    return f'<session num="{name}">{queries}</session>'


@given(st.dictionaries(WORDS, LISTS, min_size=1, max_size=4), st.randoms())
def test_every_format_says_the_same(sessions: dict[str, list[list[str]]], random: Any) -> None:
    """Columns in any order of lines, which changes no more than the order of the sessions."""
    lines = [json.dumps({"id": name, "queries": [{"documents": q} for q in lists]}) for name, lists in sessions.items()]
    columns = [
        f"{name} {number} {doc} {rank} 0 -\n"
        for name, lists in sessions.items()
        for number, documents in enumerate(lists, 1)
        for rank, doc in enumerate(documents, 1)
    ]
    columns += [f"{name} {n} - 0 0 -\n" for name, lists in sessions.items() for n, q in enumerate(lists, 1) if not q]
    random.shuffle(columns)
    plain = {session.session_id: queries for session, queries in found_in("\n".join(lines))}
    assert {session.session_id: queries for session, queries in found_in("".join(columns))} == plain
    found = found_in(f"<log>{''.join(element(*one) for one in sessions.items())}</log>")
    assert {session.session_id: queries for session, queries in found} == plain


@given(st.binary(max_size=300), st.sampled_from([*FORMATS, None]))
def test_no_bytes_make_a_reader_fail(content: bytes, format: str | None) -> None:
    with contextlib.suppress(InvalidFile, UnsupportedFile):
        check_sessions(lambda: in_memory(content, LIMITS), format=format)


@given(st.text(st.sampled_from('{}[]":,asd1\\ue\n '), max_size=200))
def test_no_text_like_json_makes_the_reader_fail(content: str) -> None:
    problems(f'{{"id": "a", "queries": [{{"documents": [{content}', format="jsonl")
