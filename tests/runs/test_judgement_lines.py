"""Usual lines of judgements read in one pass give what the scan to columns gives, report and all."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.errors import FileTooLarge, InvalidFile
from runs.formats import trec_qrels
from runs.formats.compression import in_memory
from runs.formats.limits import Limits
from runs.formats.scanning import judgement_lines, kernel, scan
from runs.formats.scanning.ahead import few_threads
from runs.formats.trec_qrels import ITERATIONS, read_qrels
from tests.readers import of_a_reader

LIMITS = Limits()
NARROW = Limits(id_length=3, line_length=40, topics=2)
LONG = "a-document-with-an-id-of-more-than-sixty-four-bytes-in-a-line-of-usual-judgements"
USUAL = "".join(
    f"{topic} 0 {doc} {level}\n"
    for topic in (1, 2, 10)
    for level, doc in enumerate(("a", "é", LONG, "d2"))
)
read = judgement_lines.judgement_reader(seed=97)


def outcome_of(content: bytes, limits: Limits, iteration: str | None) -> object:
    """What a reading says and gives, or its error."""
    try:
        summary = read_qrels(
            lambda: in_memory(content, limits), iteration=iteration, limits=limits, seed=97
        )
    except (InvalidFile, FileTooLarge) as error:
        return type(error), error.code, getattr(error, "report", None)
    judgements = summary.judgements
    text = judgements.data.tobytes()
    spans = zip(judgements.doc_starts.tolist(), judgements.doc_ends.tolist(), strict=True)
    arrays = judgements.topics, judgements.levels, judgements.doc_hashes, judgements.topic_starts
    outcome = (
        [text[start:end] for start, end in spans],
        judgements.topic_ids,
        [each.tolist() for each in arrays],
    )
    subtopics = judgements.subtopics and judgements.subtopics.level.tolist()
    return replace(summary, judgements=None), outcome, subtopics  # type: ignore[type-var]


def assert_same(content: bytes, limits: Limits = LIMITS, iteration: str | None = None) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trec_qrels, "judgements_beside", lambda _: lambda *_: None)
        by_columns = outcome_of(content, limits, iteration)
    assert outcome_of(content, limits, iteration) == by_columns


TOPIC, ITERATION = (
    st.sampled_from(["1", "2", "10", "topic-301"]),
    st.sampled_from(["0", "0", "0", "0", "1"]),
)
DOCUMENT = st.sampled_from(["a", "b", "c", "d1", "é", LONG]) | st.integers(1, 99).map(str)
LEVEL = st.sampled_from(["0", "1", "2", "1", "-1", "1000", "+1", "01", "1001", "1.0", "1e1", "x"])
ODD = st.sampled_from(
    [
        "",
        "# a comment",
        "1 0 a",
        "1 0 a 1 x",
        "1 0 a 1 2",
        " 1 0 z 1",
        "1  0 z 1",
        "1 0 z 1 ",
        "1 0 \x7f 1",
    ]
)


@st.composite
def file(draw: st.DrawFn) -> bytes:
    level = LEVEL if draw(st.booleans()) else st.sampled_from("0123")
    iteration = ITERATION if draw(st.booleans()) else st.just("0")
    rows = draw(st.lists(st.tuples(TOPIC, iteration, DOCUMENT, level), max_size=30))
    if draw(st.booleans()):
        # As judgements usually are: those of a topic together, each document once.
        rows = sorted(
            {
                (topic, document): (topic, *others)
                for topic, *others in rows
                for document in others[1:2]
            }.values()
        )
    lines = [" ".join(row) for row in rows] + draw(st.lists(ODD, max_size=1))
    end, gap = draw(st.sampled_from(["\n", "\n", "\r\n"])), draw(st.sampled_from("  \t"))
    text = "".join(line.replace(" ", gap) + end for line in lines)
    return (text.removesuffix("\n") if draw(st.booleans()) else text).encode()


@pytest.mark.slow
@of_a_reader
@given(
    content=file(), limits=st.sampled_from([LIMITS, NARROW]), iteration=st.sampled_from([None, *ITERATIONS]),
    threads=st.sampled_from([1, 3]),
)  # fmt: skip
def test_made_up_files_are_read_alike(
    content: bytes, limits: Limits, iteration: str | None, threads: int
) -> None:
    with pytest.MonkeyPatch.context() as patch, few_threads(threads):
        patch.setattr(kernel, "_LARGE", 20)
        assert_same(content, limits, iteration)


CHANGES = [
    ("", ""),
    ("\n", "\r\n"),
    (" ", "\t"),
    (" 0 ", " Q0 "),
    (" 1\n", " -1\n"),
    (" 3\n", " +1000\n"),
]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("large", [60, 10_000])
def test_usual_lines_are_read_in_one_pass(
    change: tuple[str, str], large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "_LARGE", large)
    content = USUAL.replace(*change).encode() if change[0] else USUAL.encode()
    with few_threads(3):
        result = read(content.removesuffix(b"\n") + scan.PADDING, len(content) - 1, 1, LIMITS)
    assert result is not None
    assert result.topic_ids == [b"1", b"2", b"10"]
    assert result.topics.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert_same(content)


ODD_LINES = [
    "10  0 z 1", "10 0 z", "10 0 z 1 x", "#10 0 z 1", "", "10 0 z 1001", "10 0 z 1.0", "10 0 z 1e2", "10 0 z x",
    "10 1 z 1", "11 1 z 1", "10 0 a 0", "1 0 z 1", "10 0 z\x7f 1", "10 0 z\x01 1", "10 0 z 1\v", " 10 0 z 1",
    f"10 0 {'z' * 1025} 1", f"{'z' * 1025} 0 z 1",
]  # fmt: skip


@pytest.mark.parametrize("line", ODD_LINES)
def test_what_needs_a_report_is_left_to_the_scan(line: str) -> None:
    content = f"{USUAL}{line}\n".encode()
    assert read(content + scan.PADDING, len(content), 1, LIMITS) is None
    assert_same(content)
    assert_same(f"{line}\n{USUAL}".encode())


def test_a_document_repeated_a_million_times_takes_no_longer_than_any_file() -> None:
    content = b"1 0 a 1\n" * 1_000_000
    # The first repetition ends the reading. To put all of them into one table would take hours.
    assert read(content + scan.PADDING, len(content), 1, LIMITS) is None
