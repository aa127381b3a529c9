"""Topic files: what each format gives, what is refused and in which line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.errors import FileReport, FileTooLarge, InvalidFile, UnsupportedFile
from runs.formats.topics import definition as topic_module
from runs.formats.topics.definition import TopicText
from runs.formats.topics.reading import FORMATS, read_topics
from runs.models import Collection
from runs.services.collections.topics import import_topics
from tests.readers import of_a_reader
from tests.shared_data import alice, api, collection, module_data

__all__ = ["alice", "api", "collection", "module_data"]

REAL_DATA = os.environ.get("EVALHUB_REAL_DATA", "")


def topics_of(content: str | bytes, format: str | None = None) -> list[TopicText]:
    return read_topics(content.encode() if isinstance(content, str) else content, format)[1]


def problems_of(content: str | bytes, format: str | None = None) -> list[tuple[int, str]]:
    with pytest.raises(InvalidFile) as caught:
        topics_of(content, format)
    return [(problem.line, problem.code) for problem in caught.value.report.problems]


UNCLOSED = """
<top>
<num> Number: 301
<title> International   Organized
 Crime

<desc> Description:
Identify organizations.

In two paragraphs.
<narr> Narrative:
A relevant document < or > must.
</top>

<TOP>
<NUM> 302 <TITLE> Topic: Poliomyelitis
"""
CLOSED = """<!-- a comment -->
<top>
<num>Number: MB01</num>
<title>BBC <b>cuts</b></title>
<querytime>Tue Feb 08</querytime>
</top>"""
COVID = """<?xml version="1.0" encoding="ISO-8859-1"?>
<topics task="COVIDSearch" batch="1">
  <topic number="1">
    <query>coronavirus  origin &amp; spread</query>
    <question>what is the origin \u00e9</question>
    <narrative>one

    two</narrative>
  </topic>
  <topic number="2"><query>weather</query></topic>
</topics>"""
WEB = """<webtrack2009>
<topic number="1" type="faceted"><query> obama family tree </query>
<description> Find. </description>
<subtopic number="1" type="nav">First</subtopic><subtopic number="2" type="inf">Second</subtopic>
</topic></webtrack2009>"""


def test_sgml_with_unclosed_tags_is_read() -> None:
    first, second = topics_of(UNCLOSED)
    assert (first.topic_id, first.title) == ("301", "International Organized Crime")
    assert first.fields == {
        "description": "Identify organizations.\n\nIn two paragraphs.",
        "narrative": "A relevant document < or > must.",
    }
    assert second == TopicText("302", "Poliomyelitis", {})


def test_sgml_with_closed_tags_is_read() -> None:
    assert topics_of(CLOSED) == [TopicText("MB01", "BBC <b>cuts</b>", {"querytime": "Tue Feb 08"})]
    assert topics_of("<top><num> 1 </num></top>") == [TopicText("1", "", {})]


def test_text_between_sgml_sections_is_warned_about() -> None:
    _, _, report = read_topics(b"\n<top><num>1</num> stray <title>a</title></top>")
    assert [(warning.line, warning.code) for warning in report.warnings] == [
        (2, "text_outside_sections")
    ]


def test_xml_of_trec_covid_is_read() -> None:
    first, second = topics_of(COVID)
    assert first.topic_id == "1"
    assert first.title == "coronavirus origin & spread"
    assert first.fields == {"question": "what is the origin \u00e9", "narrative": "one\n\n    two"}
    assert second == TopicText("2", "weather", {})


def test_xml_of_the_web_track_keeps_attributes_and_subtopics() -> None:
    fields = {
        "type": "faceted",
        "description": "Find.",
        "subtopic.1": "First",
        "subtopic.2": "Second",
    }
    assert topics_of(WEB) == [TopicText("1", "obama family tree", fields)]


@pytest.mark.parametrize(
    "content",
    [
        '<topics><topic number="7">a  58-year-old\nwoman</topic></topics>',
        '<queries><query id="7">a 58-year-old woman</query></queries>',
        "<topics><topic><num>7</num><title>a 58-year-old woman</title></topic></topics>",
    ],
)
def test_xml_variants_are_read(content: str) -> None:
    (topic,) = topics_of(content, "trec-xml")
    assert (topic.topic_id, topic.title) == ("7", "a 58-year-old woman")


def test_tsv_is_read_with_extra_columns() -> None:
    topics = topics_of("1\thow  many\r\n\r\n2\twhy\tnotes\t\tmore\r\n")
    assert topics == [
        TopicText("1", "how many", {}),
        TopicText("2", "why", {"column_3": "notes", "column_5": "more"}),
    ]


def test_jsonl_of_beir_and_ir_datasets_is_read() -> None:
    beir = '{"_id": 1, "text": "how many", "metadata": {"url": "x", "n": [1, "é"], "none": null}}'
    trec = '{"query_id": "2", "title": "t", "description": "d", "narrative": "n"}'
    assert topics_of(f"{beir}\n\n{trec}") == [
        TopicText("1", "how many", {"url": "x", "n": '[1, "é"]'}),
        TopicText("2", "t", {"description": "d", "narrative": "n"}),
    ]


@pytest.mark.parametrize("key", ["_id", "id", "qid", "query_id", "topic_id", "number"])
@pytest.mark.parametrize("text", ["title", "query", "text"])
def test_jsonl_keys_have_many_names(key: str, text: str) -> None:
    assert topics_of(json.dumps({key: "a", text: "b"})) == [TopicText("a", "b", {})]


@pytest.mark.parametrize(
    ("content", "format"),
    [
        (UNCLOSED, "trec-sgml"),
        (CLOSED, "trec-sgml"),
        (COVID, "trec-xml"),
        ('{"id": 1}', "jsonl"),
        ("1\ta", "tsv"),
    ],
)
def test_the_format_is_recognised_with_a_byte_order_mark_and_crlf(
    content: str, format: str
) -> None:
    changed = b"\xef\xbb\xbf" + content.replace("\n", "\r\n").encode()
    assert read_topics(changed)[0] == format
    assert topics_of(changed) == topics_of(content)


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(UnsupportedFile):
        topics_of("1\ta", "docx")


@pytest.mark.parametrize(
    ("content", "problems"),
    [
        ("", [(0, "no_topics")]),
        ("<topics/>", [(0, "no_topics")]),
        ("1\ta\n2 b\n", [(2, "too_few_columns")]),
        ("1\ta\n\tb\n", [(2, "missing_topic_id")]),
        ("1\ta\n2\tb\n1\tc", [(3, "duplicate_topic")]),
        ("1 2\ta", [(1, "bad_topic_id")]),
        ("\u00e9" * 513 + "\ta", [(1, "bad_topic_id")]),
        ("1\ta\n2\tb\x00", [(2, "control_character")]),
        (b"1\ta\n2\t\xff", [(2, "undecodable_bytes")]),
        ("1\ta".encode("utf-16"), [(1, "undecodable_bytes")]),
        ("1\t" + "a" * 100_001, [(1, "text_too_long")]),
        ('{"id": "a"}\n{', [(2, "bad_json")]),
        ("[1]", [(1, "bad_json")]),
        ('{"id": NaN}', [(1, "bad_json")]),
        ('{"id": 1e999, "x": 1e999}', [(1, "bad_json")]),
        ('{"id": 1.5}', [(1, "bad_topic_id")]),
        ('{"id": true}', [(1, "bad_topic_id")]),
        ('{"id": ["a"]}', [(1, "bad_topic_id")]),
        ('{"id": null, "text": "a"}', [(1, "missing_topic_id")]),
        ('{"id": "\\ud800"}', [(1, "bad_topic_id")]),
        ('{"id": "1", "text": "\\ud800"}', [(1, "undecodable_bytes")]),
        ('{"id": "1", "\\udfff": "a"}', [(1, "undecodable_bytes")]),
        ('{"id": "1", "text": "\\u0000"}', [(1, "control_character")]),
        ('{"id": ' + "1" * 5000 + "}", [(1, "bad_json")]),
        ('{"id": ' + "[" * 100_000, [(1, "bad_json")]),
        ("\n<topics>\n<topic>", [(3, "bad_xml")]),
        ('<!DOCTYPE a [<!ENTITY b "c">]>\n<a>&b;</a>', [(1, "bad_xml")]),
        ('\n<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>', [(2, "bad_xml")]),
        ("<topics>\n<topic>a</topic></topics>", [(2, "missing_topic_id")]),
        ("<top>\n<num>1</top>\n\n<top><num> Number: 1</top>", [(4, "duplicate_topic")]),
        ("<top><num>1<num>2</top>", [(1, "bad_topic_id")]),
        ("\n<top><title>a</top>", [(2, "missing_topic_id")]),
    ],
)
def test_problems_have_a_line_and_a_code(
    content: str | bytes, problems: list[tuple[int, str]]
) -> None:
    assert problems_of(content) == problems


@pytest.mark.parametrize("depth", range(100, 1100, 50))
def test_nested_json_is_read_or_refused_whatever_the_stack(depth: int) -> None:
    report = FileReport()
    FORMATS["jsonl"]('{"id": 1, "x": ' + '{"a":' * depth + "1" + "}" * depth + "}", report)
    assert {problem.code for problem in report.problems} <= {"bad_json"}


def test_a_duplicate_names_both_lines() -> None:
    with pytest.raises(InvalidFile, match="topic '1' of line 3 is already in line 1"):
        topics_of("1\ta\n2\tb\n1\tc")


def test_too_many_topics_stop_the_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_module, "MAX_TOPICS", 2)
    assert problems_of("1\ta\n2\tb\n3\tc\n4\td") == [(3, "too_many_topics")]


@pytest.mark.parametrize(
    "content", ["{}\n", '{"id": 1, "x": "a"}\n', "a\n", "1\ta\n", "<topic/>", "<top>\n"]
)
def test_reading_stops_after_the_listed_problems(content: str) -> None:
    with pytest.raises(
        InvalidFile, match="after 50 problems the file was read no further than line"
    ) as refused:
        topics_of(f"<a>{content * 100}</a>" if "/" in content else content * 100)
    assert len(refused.value.report.problems) == 50


@pytest.mark.parametrize(
    "content", ["1\t" + "\t" * 1_000_001, '{"id": 1, "x": "' + "a" * 1_000_000 + '"}']
)
def test_a_line_that_is_too_long_is_not_taken_apart(content: str) -> None:
    assert problems_of(content) == [(1, "text_too_long")]


def test_lines_are_bounded() -> None:
    for end in ("\n", "\r"):
        with pytest.raises(FileTooLarge, match="more than 5,000,000 lines"):
            topics_of("1\ta" + end * 5_000_001)


@pytest.mark.django_db
def test_many_topics_are_replaced_by_few_statements(
    collection: str, tmp_path: Path, django_assert_max_num_queries: Any
) -> None:
    stored = Collection.objects.get(slug=collection)
    (tmp_path / "topics.tsv").write_text("".join(f"t{n}\tquery {n}\tü {n}\n" for n in range(2_500)))
    for _ in range(2):
        with django_assert_max_num_queries(15):
            summary = import_topics(collection=stored, upload=tmp_path / "topics.tsv")
        assert (summary.format, len(summary.topics), summary.keys) == ("tsv", 2_500, None)
    rows = stored.topics.order_by("position").values_list("topic_id", "position", "title", "fields")
    assert list(rows) == [(f"t{n}", n, f"query {n}", {"column_3": f"ü {n}"}) for n in range(2_500)]


@pytest.mark.django_db
def test_a_dry_run_reads_topics_and_leaves_those_that_are_there(
    collection: str, tmp_path: Path
) -> None:
    stored = Collection.objects.get(slug=collection)
    (tmp_path / "topics.tsv").write_text("1\tcats\n2\tdogs\n")
    import_topics(collection=stored, upload=tmp_path / "topics.tsv")
    (tmp_path / "topics.tsv").write_text("3\tbirds\n")
    summary = import_topics(collection=stored, upload=tmp_path / "topics.tsv", dry_run=True)
    assert (summary.format, len(summary.topics)) == ("tsv", 1)
    assert list(stored.topics.values_list("topic_id", flat=True)) == ["1", "2"]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    "piece", ["<top", "<top ", "<top>", "<top><num> ", "<topic><", "<title ", "\n", " ", "{", "\t"]
)
def test_hostile_repetition_is_read_to_its_end(format: str, piece: str) -> None:
    """Backtracking over these would take hours."""
    content = "<top>" + piece * (200_000 // len(piece))
    try:
        topics = FORMATS[format](content, FileReport())
    except InvalidFile as refused:
        assert (refused.report.read_to, refused.report.problem_count) == (1, 50)
    else:
        assert sum(
            len(topic.title) + sum(map(len, topic.fields.values())) for topic in topics
        ) <= len(content)


PIECES = st.lists(
    st.sampled_from(
        [
            b"<top>",
            b"</top>",
            b"<num>",
            b"<topic number='1'>",
            b"</topic>",
            b"<topics>",
            b"</topics>",
        ]
    )
    | st.sampled_from(
        [
            b"\n",
            b"\t",
            b"1",
            b"{",
            b'"id":',
            b"}",
            b"[",
            b",",
            b'"\\ud800"',
            b"<!DOCTYPE a [",
            b"&a;",
        ]
    )
    | st.binary(max_size=4)
).map(b"".join)


@pytest.mark.slow
@of_a_reader
@given(st.binary() | PIECES, st.sampled_from([None, *FORMATS]))
def test_any_bytes_are_read_or_refused(content: bytes, format: str | None) -> None:
    try:
        _, topics, _ = read_topics(content, format)
    except InvalidFile as error:
        assert error.report.problems
    else:
        assert len({topic.topic_id for topic in topics}) == len(topics) > 0


@pytest.mark.slow
@of_a_reader
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=10
    )
)
def test_any_json_value_is_read_or_refused(value: object) -> None:
    try:
        topics_of(json.dumps({"id": value, "text": value, "metadata": {"a": value}}))
    except InvalidFile as error:
        assert error.report.problems


@pytest.mark.real_data
@pytest.mark.skipif(not REAL_DATA, reason="EVALHUB_REAL_DATA is not set")
def test_the_250_topics_of_robust04_are_read() -> None:
    name, topics, report = read_topics(
        (Path(REAL_DATA) / "robust03/topics/topics.robust04.txt").read_bytes()
    )
    assert (name, len(topics), report.warnings) == ("trec-sgml", 250, [])
    assert all(
        topic.title and set(topic.fields) == {"description", "narrative"} for topic in topics
    )
    assert (topics[0].topic_id, topics[0].title) == ("301", "International Organized Crime")
    assert topics[-1].topic_id == "700"
