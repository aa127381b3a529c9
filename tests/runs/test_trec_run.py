"""TREC runs: what a file may look like, what is refused in which line, and that no other reader says otherwise."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.formats.compression import in_memory
from runs.formats.scanning.columns import RUN
from runs.formats.scanning.kernel import find_duplicates, scan
from runs.formats.scanning.pieces import WHOLE_FILE, TopicsInterleaved
from runs.formats.scanning.scan import PADDING
from runs.formats.trec_run import check_run, read_run, use_run
from tests.readers import of_a_reader
from tests.runs.run_files import (
    GOOD,
    LIMITS,
    NUMBERS,
    ROWS,
    check,
    problems,
    rows_of,
    small_pieces,
    warnings,
)

# White space and line ends


@pytest.mark.parametrize(
    "content",
    [
        GOOD,
        GOOD.replace(" ", "\t"),
        GOOD.replace(" ", " \t  "),
        GOOD.replace("\n", "\r\n"),
        GOOD.replace("\n", "  \n"),
        GOOD.replace("\n", "\t\r\n"),
        "  " + GOOD.replace("\n", "\n\t"),
        GOOD.replace("\n", "\n\n \t\n\r\n"),
        GOOD.removesuffix("\n"),
        "\ufeff" + GOOD,
        "\ufeff\r\n" + GOOD.replace("\n", "\r\n"),
        "# made by hand\n#\n" + GOOD + "# the end",
        "  # with blanks before\n\t#too\n" + GOOD,
        GOOD.replace("Q0", "0").replace(" t\n", " other\n"),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 16, 64, 8 * 1024 * 1024])
def test_white_space_and_comments_change_nothing(
    monkeypatch: pytest.MonkeyPatch, content: str, size: int
) -> None:
    small_pieces(monkeypatch, size)
    assert rows_of(content) == ROWS


def test_a_lone_carriage_return_ends_no_line() -> None:
    assert problems(GOOD.replace("\n", "\r")) == [(1, "control_character")]
    assert problems("1 Q0 a 1 3.0 t\r\r\n") == [(1, "control_character")]


@pytest.mark.parametrize(
    "character", ["\u00a0", "\u0085", "\u2028", "\u3000", "\u200b", "\u00e9", "\U0001f600"]
)
def test_other_characters_of_unicode_belong_to_ids(character: str) -> None:
    assert rows_of(f"1 Q0 a{character}b 1 1.0 t\n") == {"1": [(f"a{character}b", 1.0)]}
    assert rows_of(f"{character} Q0 a 1 1.0 t\n") == {character: [("a", 1.0)]}


def test_ids_are_compared_as_bytes() -> None:
    assert len(rows_of("1 Q0 \u00e9 1 2 t\n1 Q0 e\u0301 2 1 t\n")["1"]) == 2
    assert list(rows_of("1 Q0 a 1 1 t\n01 Q0 a 1 1 t\n")) == ["1", "01"]


@pytest.mark.parametrize("character", ["\0", "\x01", "\x0b", "\x0c", "\x1c", "\x1f", "\x7f"])
def test_control_characters_are_refused(character: str) -> None:
    assert problems(f"{GOOD}3 Q0 a{character}b 1 1.0 t\n") == [(4, "control_character")]
    assert (4, "control_character") in problems(f"{GOOD}3{character}Q0 a 1 1.0 t\n")


# Columns


def test_more_columns_are_warned_about() -> None:
    assert rows_of(GOOD.replace(" t\n", " t more and more\n")) == ROWS
    assert warnings("1 Q0 a 1 3.0 t\n1 Q0 b 2 2.0 t 7\n") == [(2, "extra_columns")]


@pytest.mark.parametrize(
    "line", ["1", "1 Q0", "1 Q0 a", "1 Q0 a 1", "1 Q0 a 1 2.0", "1 Q0 a 1 2.0 ", "1 Q0 a 1 2.0 \r"]
)
def test_fewer_columns_are_refused_with_the_line(line: str) -> None:
    assert problems(f"{GOOD}\n{line}\n") == [(5, "too_few_columns")]


def test_the_rank_column_holds_anything() -> None:
    content = "1 Q0 a 108.4 3 t\n1 Q0 b NaN 2 t\n1 Q0 c -1 1 t\n1 Q0 d 99999999999999999999 0 t\n1 Q0 e 1e5 -1 t\n"
    assert warnings(content) == []
    assert [score for _, score in rows_of(content)["1"]] == [3, 2, 1, 0, -1]


def test_ranks_that_contradict_scores_are_warned_about() -> None:
    assert warnings("1 Q0 a 1 1.0 t\n1 Q0 b 2 2.0 t\n2 Q0 x 2 2 t\n2 Q0 y 1 1 t\n") == [
        (2, "rank_contradicts_score"),
        (4, "rank_contradicts_score"),
    ]
    reversed_run = "".join(
        f"{topic} Q0 d{rank} {rank} {rank}.5 t\n" for topic in range(3) for rank in range(1, 101)
    )
    (warning,) = check(reversed_run).report.warnings
    assert (
        warning.message
        == "297 of 300 lines have a rank that contradicts their score; scores decide"
    )
    assert (warning.count, warning.lines) == (297, list(range(2, 12)))
    assert warnings("1 Q0 a 2 1.0 t\n1 Q0 b 1 2.0 t\n1 Q0 c 1 2.5 t\n2 Q0 x 0 9.0 t\n") == []


def test_scores_far_apart_are_compared_without_overflow() -> None:
    assert warnings("1 Q0 a 1 1e308 t\n1 Q0 b 2 -1e308 t\n") == []
    assert warnings("1 Q0 a 1 -1e308 t\n1 Q0 b 2 1e308 t\n") == [(2, "rank_contradicts_score")]


@pytest.mark.parametrize("text", NUMBERS)
def test_a_score_is_the_nearest_double(text: str) -> None:
    ((_, score),) = rows_of(f"1 Q0 a 1 {text} t\n")["1"]
    assert (score, math.copysign(1, score)) == (float(text), math.copysign(1, float(text)))


@pytest.mark.slow
@of_a_reader
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_scores_printed_with_17_digits_come_back_exactly(scores: list[float]) -> None:
    for form in ("%r", "%.17g", "%.17e", "%.20f"):
        content = "".join(
            f"1 Q0 d{index} 1 {form % score} t\n" for index, score in enumerate(scores)
        )
        assert [score for _, score in rows_of(content)["1"]] == [
            float(form % score) for score in scores
        ]


@pytest.mark.parametrize(
    "text",
    [
        "nan", "NaN", "-nan", "nan(0)", "inf", "-inf", "+Infinity", "1e400", "-1e400", "9" * 400, "0x10", "0x1p3",
        "1_000", "\uff11\uff12", "\u0661", "\u00b2", "high", "-", "+", ".", "-.", "e5", ".e5", "1e", "1e+", "1e5.0",
        "1.2.3", "1,5", "--1", "+-1", "1-", "1f", "1d0", "0b1", "1e5e5", "1\u00a0", "\u22121", "1j", "None", "''",
    ],
)  # fmt: skip
def test_what_is_no_finite_decimal_number_is_refused(text: str) -> None:
    assert problems(f"{GOOD}3 Q0 a 1 {text} t\n") == [(4, "bad_score")]


@pytest.mark.parametrize(
    "text", ["1" * 100_000, "1e" + "1" * 100_000, "0." + "0" * 100_000 + "1", "1e" * 50_000]
)
def test_a_number_of_a_hundred_thousand_digits_is_refused(text: str) -> None:
    assert (4, "line_too_long") in problems(f"{GOOD}3 Q0 a 1 {text} t\n")


def test_a_header_line_is_named_as_one() -> None:
    for start, line in (("", 1), ("# comment\n\n", 3)):
        (problem,) = check(f"{start}qid Q0 docno rank score tag\n{GOOD}").report.problems
        assert (problem.line, problem.code) == (line, "bad_score")
        assert "header line" in problem.message


def test_ties_are_counted() -> None:
    summary = check(
        "1 Q0 a 1 2 t\n1 Q0 b 2 1.0 t\n1 Q0 c 3 2.0 t\n1 Q0 d 4 2e0 t\n2 Q0 x 1 2 t\n2 Q0 y 2 -0 t\n2 Q0 z 3 0 t\n"
    )
    assert summary.tied_documents == 5
    assert summary.report.counts == {"rank_contradicts_score": 1, "ties": 5}
    assert summary.report.warnings[-1].line == 0
    assert (
        check("1 Q0 d9 1 0.92226214537525860 t\n1 Q0 d0 2 0.92226214537525850 t\n").tied_documents
        == 0
    )


# Duplicates and interleaved topics


def test_a_document_listed_twice_is_refused_with_both_lines() -> None:
    content = "# comment\n1 Q0 a 1 3 t\n\n1 Q0 b 2 2 t\n2 Q0 a 1 1 t\n1 Q0 a 3 1 t\n"
    (problem,) = check(content).report.problems
    assert (problem.line, problem.code) == (6, "duplicate_document")
    assert "first in line 2" in problem.message
    assert "'a'" in problem.message
    assert "topic '1'" in problem.message


@pytest.mark.parametrize("size", [1, 16, 40, 64, 1000])
def test_duplicates_are_found_over_pieces(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    small_pieces(monkeypatch, size)
    lines = [
        f"{topic} Q0 d{index} {index} {9 - index} t\n" for topic in range(5) for index in range(9)
    ]
    assert problems("".join(lines)) == []
    assert problems("".join([*lines, "0 Q0 d3 1 1 t\n"])) == [(46, "duplicate_document")]
    lines[13] = lines[9]
    assert problems("".join(lines)) == [(14, "duplicate_document")]


def test_many_duplicates_are_counted_and_fifty_shown() -> None:
    report = check("1 Q0 a 1 1 t\n" * 3000).report
    assert len(report.problems) == 50
    assert report.counts["duplicate_document"] == 2999


@pytest.mark.parametrize("size", [1, 16, 64, 1000])
def test_interleaved_topics_are_brought_together(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    small_pieces(monkeypatch, size)
    content = "".join(f"{index % 3} Q0 d{index} 1 {index}.5 t\n" for index in range(30))
    expected = {
        str(topic): [(f"d{index}", index + 0.5) for index in range(topic, 30, 3)]
        for topic in range(3)
    }
    assert rows_of(content) == expected
    assert not check(content).grouped
    with pytest.raises(TopicsInterleaved):
        list(read_run(lambda: in_memory(content.encode(), LIMITS)))


def test_one_run_is_read_whole_at_a_time_and_others_meanwhile() -> None:
    interleaved = GOOD + GOOD.replace(" a ", " f ").replace(" b ", " g ")
    with ThreadPoolExecutor(1) as pool:
        with WHOLE_FILE:
            waiting = pool.submit(check, interleaved)
            assert check(GOOD).grouped
            with pytest.raises(TimeoutError):
                waiting.result(0.2)
        assert not waiting.result(60).grouped


def test_the_lines_of_interleaved_topics_stay_right(monkeypatch: pytest.MonkeyPatch) -> None:
    small_pieces(monkeypatch, 32)
    content = "# start\n1 Q0 a 1 1 t\n2 Q0 a 1 1 t\n1 Q0 b 1 x t\n# between\n2 Q0 c 1 1 t\n1 Q0 a 1 1 t\n2 Q0 b 1 1\n"
    assert problems(content) == [
        (4, "bad_score"),
        (7, "duplicate_document"),
        (8, "too_few_columns"),
    ]


@pytest.mark.parametrize("size", [16, 100, 300])
def test_a_topic_may_span_several_pieces(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    small_pieces(monkeypatch, size)
    sizes = [1, 40, 1, 1, 25]
    content = "".join(
        f"{topic} Q0 d{i} {i} {-i} t\n" for topic, size in enumerate(sizes) for i in range(size)
    )
    summary = check("# comment\n" + content)
    assert summary.grouped
    assert summary.topics == {str(topic): size for topic, size in enumerate(sizes)}
    assert (summary.lines, summary.documents) == (69, 68)
    assert [len(rows) for rows in rows_of(content).values()] == sizes


def test_two_ids_made_to_share_a_hash_hide_no_duplicate() -> None:
    """Whoever finds ids that collide under any seed could list a relevant document twice."""
    content = "".join(
        f"1 Q0 {name} 1 {index} t\n" for index, name in enumerate(["a", "b", "c", "b", "a"])
    ).encode()
    columns = scan(content + PADDING, len(content), RUN, 1, 0, LIMITS)
    columns = replace(columns, hashes=np.full_like(columns.hashes, 7))
    first, second = find_duplicates(columns, np.array([0, 5]))
    assert (first.tolist(), second.tolist()) == ([1, 0], [3, 4])
    first, second = find_duplicates(columns, np.array([0, 3, 5]))
    assert (first.tolist(), second.tolist()) == ([], [])


@pytest.mark.parametrize("seed", range(20))
def test_a_collision_that_works_under_every_other_seed_hides_no_duplicate(seed: int) -> None:
    collision, real = "#lueweb1r-00p0tw-00-00000", "clueweb12-0000tw-00-00000"
    content = f"1 Q0 {collision} 1 3 t\n1 Q0 {real} 2 2 t\n1 Q0 {real} 3 1 t\n".encode()
    report = check_run(lambda: in_memory(content, LIMITS), seed=seed).report
    assert [(problem.line, problem.code) for problem in report.problems] == [
        (3, "duplicate_document")
    ]


# Comments and metadata

HEADER = "# ir_metadata.start\n# schema-version: 0.1\n# actor:\n#   team: us\n# ir_metadata.end\n"


@pytest.mark.parametrize("size", [16, 64, 1000])
def test_the_ir_metadata_header_is_read(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    small_pieces(monkeypatch, size)
    expected = {"schema-version": 0.1, "actor": {"team": "us"}}
    assert check(HEADER + GOOD).metadata == expected
    assert check(GOOD + HEADER).metadata == expected
    assert check(HEADER.replace("\n", "\r\n") + GOOD).metadata == expected


def test_a_header_that_cannot_be_read_is_warned_about() -> None:
    assert warnings("# ir_metadata.start\n# [\n# ir_metadata.end\n" + GOOD) == [
        (0, "bad_ir_metadata")
    ]


@pytest.mark.parametrize("size", [16, 40, 1000])
def test_a_comment_that_reads_as_data_is_refused_once(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    small_pieces(monkeypatch, size)
    content = "1 Q0 z 1 1 t\n1 Q0 y 1 0.5 t\n#1 Q0 a 1 2.0 t\n" + "".join(
        f"1 Q0 d{i} 1 {-i} t\n" for i in range(9)
    )
    report = check(content + GOOD.replace("1 Q0", "8 Q0")).report
    assert [(problem.line, problem.code) for problem in report.problems] == [
        (3, "ambiguous_comment")
    ]
    assert report.counts["ambiguous_comment"] == 1


@pytest.mark.parametrize(
    "line", ["#1 Q0 a 1 2.0 t", " #1 Q0 a 1 2.0 t", "#1\tQ0\ta\t1\t1e5\tt", "#1 Q0 a 1 2.0 t more"]
)
def test_a_topic_that_starts_with_a_hash_is_ambiguous(line: str) -> None:
    assert problems(f"{GOOD}{line}\n") == [(4, "ambiguous_comment")]


@pytest.mark.parametrize(
    "line",
    ["# 1 Q0 a 1 2.0 t", "#1 Q0 a 1 high t", "#1 Q0 a 1 2.0", "#", "#\t1 Q0 a 1 2.0 t", "##"],
)
def test_other_lines_that_start_with_a_hash_are_comments(line: str) -> None:
    assert rows_of(f"{GOOD}{line}\n") == ROWS


def test_a_hash_inside_a_line_is_part_of_an_id() -> None:
    assert rows_of("1 Q0 #a 1 1 t\n1#2 Q0 a#b 1 1 #t\n".replace("#t", "t")) == {
        "1": [("#a", 1)],
        "1#2": [("a#b", 1)],
    }


# Tags


def test_the_tag_is_that_of_the_file_or_of_the_submission() -> None:
    assert check(GOOD).tag == "t"
    assert check(GOOD, tag="mine").tag == "mine"
    assert warnings(GOOD, tag="mine") == [(1, "tag_differs")]
    assert warnings(GOOD, tag="t") == []


def test_two_tags_in_one_file_need_a_name() -> None:
    mixed = GOOD.replace("1.0 t", "1.0 u")
    assert problems(mixed) == [(3, "mixed_tags")]
    assert check(mixed, tag="mine").tag == "mine"
    assert warnings(mixed, tag="t") == [(1, "tag_differs")]


@pytest.mark.parametrize(
    "tag", ["<script>", "../x", "a" * 65, "caf\u00e9", "a:b", "a/b", "'t'", "a%00", "#t"]
)
def test_a_tag_outside_the_rule_is_refused(tag: str) -> None:
    assert problems(f"# comment\n1 Q0 a 1 1 {tag}\n") == [(2, "bad_run_tag")]
    assert check(f"1 Q0 a 1 1 {tag}\n", tag="t").tag == "t"


@pytest.mark.parametrize("tag", ["a", "a" * 64, "BM25.k1-0.9_b", "-", "..."])
def test_a_tag_within_the_rule_is_kept(tag: str) -> None:
    assert check(f"1 Q0 a 1 1 {tag}\n").tag == tag


@pytest.mark.parametrize(
    ("line", "code", "cause"),
    [
        (
            "1 Q0 a 1 3.0 t\r1 Q0 b 2 2.0 t\r",
            "control_character",
            "carriage return (CR) without a line feed",
        ),
        ("1 Q0 a\0 1 3.0 t\n", "control_character", "byte 0x00"),
        ("1\u00a0Q0 a 1 3.0 t\n", "too_few_columns", "no-break spaces (U+00A0)"),
        ("1 Q0\x0ba 1 3.0 t\n", "too_few_columns", "vertical tabs or form feeds"),
        ("1,Q0,a,1,3.0,t\n", "too_few_columns", "commas"),
        ("1 Q0 a 1 3.0 ilps@uva\n", "bad_run_tag", "give another tag in the submission"),
    ],
)
def test_a_problem_names_its_cause(line: str, code: str, cause: str) -> None:
    causes = [problem.message for problem in check(line).report.problems if problem.code == code]
    assert len(causes) == 1
    assert cause in causes[0]


# Checked and used in one reading


@pytest.mark.parametrize("size", [1, 30, 1000])
@pytest.mark.parametrize("content", [GOOD, "2 Q0 x 1 1.0 t\n1 Q0 a 1 3.0 t\n2 Q0 y 1 1.0 t\n"])
def test_a_run_is_used_as_it_is_checked_and_read(
    monkeypatch: pytest.MonkeyPatch, content: str, size: int
) -> None:
    small_pieces(monkeypatch, size)
    opener = lambda: in_memory(content.encode(), LIMITS)  # noqa: E731
    summary, blocks = use_run(opener, list)
    expected = check(content)
    assert (summary.grouped, summary.topics, summary.tag) == (
        expected.grouped,
        expected.topics,
        "t",
    )
    read = list(read_run(opener, grouped=expected.grouped))
    for part in ("topic_ids", "topic_starts", "scores", "doc_hashes"):
        assert [list(getattr(block, part)) for block in blocks] == [
            list(getattr(block, part)) for block in read
        ]


def test_the_good_lines_of_a_wrong_run_are_used_and_the_others_reported() -> None:
    content = b"1 Q0 a 1 high t\n1 Q0 b 2 2.0 t\n1 Q0 b 3 1.0 t\n"
    summary, blocks = use_run(lambda: in_memory(content, LIMITS), list)
    assert [problem.code for problem in summary.report.problems] == [
        "bad_score",
        "duplicate_document",
    ]
    assert [block.scores.tolist() for block in blocks] == [[2.0, 1.0]]


@pytest.mark.parametrize(
    "tags", [["a", "b", "c"], ["b", "c", "c"], ["b c d", "#", "c"], ["x" * 80, "y/z", "c"]]
)
def test_a_run_that_is_used_may_have_any_tags_and_has_the_last_one(tags: list[str]) -> None:
    content = "".join(
        f"{index % 2} Q0 d{index} 1 1 {tag}\n" for index, tag in enumerate(tags)
    ).encode()
    summary, _ = use_run(lambda: in_memory(content, LIMITS), list)
    assert (summary.tag, summary.report.problems) == ("c", [])
    assert [entry.code for entry in summary.report.warnings if entry.code == "mixed_tags"] == [
        "mixed_tags"
    ]
