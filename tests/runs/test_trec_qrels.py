"""TREC qrels: levels, repeated judgements, and what is refused in which line."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from runs.errors import FileTooLarge, InvalidFile, UnsupportedFile
from runs.formats.compression import in_memory
from runs.formats.limits import Limits
from runs.formats.scanning import pieces
from runs.formats.scanning.scan import plain_for
from runs.formats.trec_qrels import QrelsSummary, read_qrels
from tests.readers import of_a_reader

LIMITS = Limits()
GOOD = "1 0 a 2\n1 0 b 0\n2 0 x 1\n"
LEVELS = {"1": {"a": 2, "b": 0}, "2": {"x": 1}}


def read(
    content: str | bytes, limits: Limits = LIMITS, iteration: str | None = None
) -> QrelsSummary:
    encoded = content.encode() if isinstance(content, str) else content
    return read_qrels(lambda: in_memory(encoded, limits), iteration=iteration, limits=limits)


def levels_of(content: str | bytes) -> dict[str, dict[str, int]]:
    """The levels of sound qrels by topic and document."""
    summary = read(content)
    summary.report.check()
    judgements, levels = summary.judgements, dict[str, dict[str, int]]()
    text = judgements.data.tobytes()
    rows = zip(
        judgements.topics,
        judgements.doc_starts,
        judgements.doc_ends,
        judgements.levels,
        strict=True,
    )
    for topic, start, end, level in rows:
        levels.setdefault(judgements.topic_ids[topic].decode(), {})[text[start:end].decode()] = int(
            level
        )
    return levels


def problems(content: str | bytes, limits: Limits = LIMITS) -> list[tuple[int, str]]:
    try:
        report = read(content, limits).report
    except UnsupportedFile as error:
        return [(0, error.code)]
    except InvalidFile as error:
        report = error.report
    return sorted({(problem.line, problem.code) for problem in report.problems})


def warnings(content: str) -> list[tuple[int, str]]:
    report = read(content).report
    report.check()
    return [(line, warning.code) for warning in report.warnings for line in warning.lines or [0]]


@pytest.mark.parametrize(
    "content",
    [
        GOOD,
        GOOD.replace(" ", "\t"),
        GOOD.replace(" ", "  \t"),
        GOOD.replace("\n", "\r\n"),
        "\ufeff " + GOOD.replace("\n", " \n\n\r\n  "),
        GOOD.removesuffix("\n"),
        "# judged in 2026\n" + GOOD + "#\n",
        GOOD.replace(" 0 a", " Q0 a"),
        "1 0 a 2\n2 0 x 1\n1 0 b 0\n",
        "1 0 a +2\n1 0 b -0\n2 0 x 0001\n",
    ],
)
def test_white_space_comments_and_the_order_of_topics_change_nothing(content: str) -> None:
    assert levels_of(content) == LEVELS
    assert read(content).levels == {0: 1, 1: 1, 2: 1}


def test_topics_keep_the_order_of_the_file() -> None:
    assert read("9 0 a 1\n10 0 a 1\n1 0 a 1\n9 0 b 1\n").judgements.topic_ids == [b"9", b"10", b"1"]


@pytest.mark.parametrize("level", [-1000, -2, -1, 0, 1, 1000])
def test_levels_up_to_a_thousand_are_kept(level: int) -> None:
    assert levels_of(f"1 0 a {level}\n") == {"1": {"a": level}}


@pytest.mark.parametrize(
    "text",
    [
        "1001", "-1001", "1000000", "99999999999999999999", "-99999999999999999999", "9" * 5000, "1.0", "0.9", "1.",
        ".5", "1e0", "1e2", "nan", "inf", "yes", "0x1", "1_0", "\uff11", "\u0661", "-", "+", "--1", "1-", "1,0",
    ],
)  # fmt: skip
def test_what_is_no_whole_number_within_a_thousand_is_refused(text: str) -> None:
    assert problems(f"# comment\n{GOOD}\n3 0 a {text}\n") == [(6, "bad_level")]


def test_a_header_line_is_named_as_one() -> None:
    (problem,) = read(f"query-id 0 corpus-id label\n{GOOD}").report.problems
    assert (problem.line, problem.code) == (1, "bad_level")
    assert "header line" in problem.message


@pytest.mark.parametrize("line", ["1", "1 0", "1 0 a", "1 a 1", "1 0 a \r"])
def test_fewer_columns_are_refused_with_the_line(line: str) -> None:
    assert problems(f"{GOOD}\n{line}\n") == [(5, "too_few_columns")]


def test_text_after_the_level_is_warned_about() -> None:
    content = GOOD.replace("1 0 a 2", "1 0 a 2 # judged twice")
    assert levels_of(content) == LEVELS
    assert warnings(content) == [(1, "extra_columns")]


@pytest.mark.parametrize("fifth", ["1", "-1", "0.5", "1e5", "123456789012345678901"])
def test_a_number_after_the_level_is_refused_as_it_may_be_the_level(fifth: str) -> None:
    """Sampled qrels have a stratum there: topic 0 document stratum level."""
    assert problems(f"{GOOD}3 0 a 1 {fifth}\n") == [(4, "ambiguous_level")]
    assert problems(f"{GOOD}3 0 a 1 {fifth} more\n") == [(4, "ambiguous_level")]


@pytest.mark.parametrize("line", ["#1 0 a 1", " #1 0 a 1", "#judged by group 3", "#1 0 a 1.5"])
def test_a_topic_that_starts_with_a_hash_is_ambiguous(line: str) -> None:
    assert (4, "ambiguous_comment") in problems(f"{GOOD}{line}\n")
    assert problems(f"{GOOD}{line.replace('#', '# ')}\n") == []


# Repeated judgements


def test_the_same_judgement_twice_is_warned_about() -> None:
    content = "# comment\n1 0 a 2\n2 0 a 1\n1 0 b 0\n1 0 a 02\n"
    assert levels_of(content) == {"1": {"a": 2, "b": 0}, "2": {"a": 1}}
    (warning,) = read(content).report.warnings
    assert (warning.line, warning.code) == (5, "duplicate_judgement")
    assert "line 2" in warning.message


def test_two_levels_in_one_iteration_are_refused_with_both_lines() -> None:
    (problem,) = read("1 0 a 2\n2 0 a 1\n\n1 0 a -1\n").report.problems
    assert (problem.line, problem.code) == (4, "conflicting_judgement")
    assert "level -1 here and 2 in line 1" in problem.message


def test_the_highest_level_of_several_iterations_counts() -> None:
    content = "1 0 a 0\n1 1 a 2\n1 2 a 1\n1 0 b -2\n1 x b -1\n"
    assert levels_of(content) == {"1": {"a": 2, "b": -1}}
    lines = [(2, "several_iterations"), (3, "several_iterations"), (5, "several_iterations")]
    assert warnings(content) == [(0, "subtopics"), *lines]


def test_every_iteration_is_checked_on_its_own() -> None:
    content = "1 0 a 0\n1 1 a 2\n1 1 a 2\n1 0 a 0\n1 1 a 1\n1 0 a 2\n"
    report = read(content).report
    assert [(entry.code, entry.lines) for entry in report.warnings] == [
        ("subtopics", []), ("several_iterations", [2]), ("duplicate_judgement", [3, 4]),
    ]  # fmt: skip
    assert [(entry.line, entry.code) for entry in report.problems] == [
        (5, "conflicting_judgement"), (6, "conflicting_judgement"),
    ]  # fmt: skip
    assert "level 1 here and 2 in line 2" in report.problems[0].message
    assert "level 2 here and 0 in line 1" in report.problems[1].message


def test_a_repeated_level_of_thousands_of_digits_is_compared_as_a_number() -> None:
    zeros = "0" * 5000
    assert warnings(f"1 0 a 1\n1 0 a {zeros}1\n") == [(2, "duplicate_judgement")]
    (problem,) = read(f"1 0 a 1\n1 0 a {zeros}2\n").report.problems
    assert len(problem.message) < 100


def test_repeated_judgements_beyond_fifty_are_counted() -> None:
    report = read("1 0 a 1\n" * 300 + "1 0 a 2\n" * 200 + "1 1 a 1\n").report
    several = {"subtopics": 2, "several_iterations": 1}
    assert report.counts == several | {"duplicate_judgement": 299, "conflicting_judgement": 200}
    assert len(report.problems) == 50


ROW = st.tuples(
    st.sampled_from(["1", "2", "10"]),
    st.sampled_from(["0", "1"]),
    st.sampled_from("abcd"),
    st.integers(-2, 3),
)


@of_a_reader
@given(st.lists(ROW, min_size=1, max_size=30))
def test_qrels_are_read_as_a_dictionary_reads_them(rows: list[tuple[str, str, str, int]]) -> None:
    given_levels: dict[tuple[str, str, str], int] = {}
    highest: dict[str, dict[str, int]] = {}
    expected: list[tuple[int, str]] = []
    for line, (topic, iteration, document, level) in enumerate(rows, 1):
        if given_levels.setdefault((topic, iteration, document), level) != level:
            expected.append((line, "conflicting_judgement"))
        documents = highest.setdefault(topic, {})
        documents[document] = max(documents.get(document, level), level)
    content = "".join(
        f"{topic} {iteration} {document} {level}\n" for topic, iteration, document, level in rows
    )
    assert problems(content) == expected
    if not expected:
        assert levels_of(content) == highest
        assert_iterations_are_kept(content, given_levels)


PARTS = st.sampled_from(
    [b"1", b"0", b"2", b"-1", b"1.0", b"99999999999", b"a", b"d-1", b"#", b" ", b" ", b"\t", b"\n", b"\n", b"\r\n",
     b"\0", b"\xc3\xa9", b"\xff", b"\xef\xbb\xbf", b"1 0 a 1\n", b"1 1 a 2\n"]
)  # fmt: skip


@of_a_reader
@example(b"PK\x03\x04")
@given(st.binary(max_size=60) | st.lists(PARTS, max_size=40).map(b"".join))
def test_any_bytes_are_read_or_refused_alike_by_both_scans(content: bytes) -> None:
    result = problems(content)
    with plain_for(len(content)):
        assert problems(content) == result
        plain = {} if result else levels_of(content)
    assert result or levels_of(content) == plain


def subtopics_of(content: str) -> list[tuple[str, str, int, int]]:
    """The rows of the table of subtopics: topic, document, number of the subtopic and level."""
    judgements = read(content, iteration="subtopic").judgements
    table, text = judgements.subtopics, judgements.data.tobytes()
    if table is None:
        return []
    documents = [
        text[judgements.doc_starts[row] : judgements.doc_ends[row]].decode()
        for row in table.judgement
    ]
    np.testing.assert_array_equal(judgements.topics[table.judgement], table.topic)
    topics = [judgements.topic_ids[topic].decode() for topic in table.topic]
    return list(zip(topics, documents, table.subtopic.tolist(), table.level.tolist(), strict=True))


def assert_iterations_are_kept(content: str, given_levels: dict[tuple[str, str, str], int]) -> None:
    """The same documents and levels under the numbers of the table as under the names of the file."""
    named, numbered = defaultdict[object, set[object]](set), defaultdict[object, set[object]](set)
    for (topic, iteration, document), level in given_levels.items():
        named[topic, iteration].add((document, level))
    for topic, document, number, level in subtopics_of(content):
        numbered[topic, number].add((document, level))
    several = len(named) > len({topic for topic, _, _ in given_levels})
    assert sorted(map(sorted, numbered.values())) == (
        sorted(map(sorted, named.values())) if several else []
    )


def test_each_iteration_of_a_topic_is_kept_as_a_subtopic_with_its_own_levels() -> None:
    content = "2 x b 1\n1 one a 0\n1 two a 2\n1 one c -1\n2 y b 0\n1 one c -1\n2 x a 3\n"
    assert levels_of(content) == {"2": {"b": 1, "a": 3}, "1": {"a": 2, "c": -1}}
    assert subtopics_of(content) == [
        ("2", "b", 0, 1), ("2", "b", 1, 0), ("2", "a", 0, 3),
        ("1", "c", 0, -1), ("1", "a", 0, 0), ("1", "a", 1, 2),
    ]  # fmt: skip
    report = read(content).report
    assert "4 subtopics of 2 topics" in report.warnings[0].message
    assert report.counts["subtopics"] == 4


@pytest.mark.parametrize("content", [GOOD, "1 0 a 1\n2 1 a 1\n1 0 b 0\n", "1 0 a 1\n1 0 a 1\n"])
def test_one_iteration_for_each_topic_says_nothing_of_subtopics(content: str) -> None:
    assert read(content).judgements.subtopics is None
    assert "subtopics" not in read(content).report.counts


# Encodings, limits, nothing


def test_text_that_is_not_utf8_is_refused_with_its_line() -> None:
    assert problems(b"# x\n\n1 0 a 1\n1 0 caf\xe9 1\n") == [(4, "undecodable_bytes")]
    assert problems(GOOD.encode("utf-16")) == [(1, "undecodable_bytes")]
    assert problems("1 0 a\0 1\n") == [(1, "control_character")]
    assert problems("1 0 a 1\r2 0 b 1\n") == [(1, "bad_level"), (1, "control_character")]


@pytest.mark.parametrize("content", ["", "\n\n", " \t\r\n", "# only a comment\n", "\ufeff"])
def test_qrels_without_a_judgement_are_refused(content: str) -> None:
    assert problems(content) == [(0, "empty_qrels")]


def test_long_ids_and_lines_are_refused() -> None:
    assert problems(f"{'t' * 1024} 0 {'d' * 1024} 1\n") == []
    assert problems(f"{GOOD}1 0 {'d' * 1025} 1\n") == [(4, "id_too_long")]
    assert problems(f"{GOOD}1 0 d 1 {'x' * 9000}\n") == [(4, "line_too_long")]


@pytest.mark.parametrize(
    ("limit", "code"),
    [
        ("lines", "too_many_lines"),
        ("topics", "too_many_topics"),
        ("lines_at_once", "too_large_at_once"),
    ],
)
def test_each_limit_is_inclusive(limit: str, code: str) -> None:
    size = 2 if limit == "topics" else 3
    assert read(GOOD, replace(LIMITS, **{limit: size})).lines == 3
    with pytest.raises(FileTooLarge) as caught:
        read(GOOD, replace(LIMITS, **{limit: size - 1}))
    assert caught.value.code == code


def test_qrels_larger_than_memory_allows_are_refused() -> None:
    assert read(GOOD, replace(LIMITS, bytes_at_once=len(GOOD))).lines == 3
    with pytest.raises(FileTooLarge) as caught:
        read(GOOD, replace(LIMITS, bytes_at_once=len(GOOD) - 1))
    assert caught.value.code == "too_large_at_once"


def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "PIECE", 10_000)
    assert problems(GOOD + "1 0 " + "x" * 50_000) == [(4, "line_too_long")]
