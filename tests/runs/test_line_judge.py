"""Lines judged while they are scanned give what the scan to columns and the plain search give, report and all."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.engine.judgement.judged import JudgedRun
from metrics.engine.judgement.judging import SCORE_TYPES, Judgements, ScoreType, judge
from runs.errors import FileTooLarge, InvalidFile
from runs.formats import trec_run
from runs.formats.compression import in_memory
from runs.formats.limits import Limits
from runs.formats.scanning import line_judge, pieces, scan
from runs.formats.trec_qrels import read_qrels
from runs.formats.trec_run import check_and_judge, check_run, judge_run, use_run
from tests.engine.build import judgements_of
from tests.readers import of_a_reader
from tests.runs.run_files import LIMITS, small_pieces
from tests.runs.test_trec_run_properties import file

NARROW = Limits(id_length=3, line_length=40, documents_per_topic=5, topics=3)
LONG = "a-document-with-an-id-of-more-than-sixty-four-bytes-in-a-line-of-a-usual-run"
QRELS = {
    "1": {"a": 1, "b": 2, "c": 0, "é": 1, LONG: 3},
    "2": {"a": 3, "d2": 1},
    "topic-301": {"a": 1, "d10": -1},
}
IDS = ["a", "b", "c", "d2", "d10", "é", "abcdefgh", "abcdefghi", "abcdefgh1", LONG]


def outcome_of(read: object) -> object:
    """What a reading says and gives: its report and view, or its error."""
    try:
        summary, view = read()  # type: ignore[operator]
    except (InvalidFile, FileTooLarge) as error:
        return type(error), error.code, getattr(error, "report", None)
    arrays = [getattr(view, part.name) for part in fields(JudgedRun)]
    return summary, [each.tolist() if isinstance(each, np.ndarray) else None for each in arrays]


def checked(content: bytes, limits: Limits) -> object:
    """The report that an upload gets, or its error."""
    try:
        return check_run(lambda: in_memory(content, limits), limits=limits, seed=97)
    except (InvalidFile, FileTooLarge) as error:
        return type(error), error.code, getattr(error, "report", None)


def assert_same(
    content: bytes, judgements: Judgements, scores: ScoreType, limits: Limits = LIMITS
) -> None:
    opener = lambda: in_memory(content, limits)  # noqa: E731
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trec_run, "judge_beside", lambda *_: None)
        by_columns = checked(content, limits)
    assert checked(content, limits) == by_columns
    plainly = outcome_of(
        lambda: use_run(
            opener, lambda blocks: judge(blocks, judgements, scores), limits=limits, seed=97
        )
    )
    assert (
        outcome_of(lambda: check_and_judge(opener, judgements, scores, limits=limits, seed=97))
        == plainly
    )
    if (
        not isinstance(plainly, tuple)
        or not hasattr(plainly[0], "report")
        or plainly[0].report.problems
    ):
        return
    grouped = plainly[0].grouped
    view = judge_run(opener, judgements, scores, grouped=grouped, limits=limits, seed=97)
    assert outcome_of(lambda: (plainly[0], view)) == plainly


@pytest.mark.slow
@of_a_reader
@given(
    content=file(), scores=st.sampled_from(SCORE_TYPES), limits=st.sampled_from([LIMITS, NARROW])
)
def test_made_up_files_are_judged_alike(content: bytes, scores: ScoreType, limits: Limits) -> None:
    assert_same(content, judgements_of(QRELS), scores, limits)


SCORES = st.sampled_from(
    [
        "3",
        "2.5",
        "2.50",
        "1.25000001",
        "1.25",
        "0.5",
        "0",
        "-0",
        "-1.5",
        "1e300",
        "9.123456789",
        "0.12345678901234567",
        "0.12345678901234568",
        "12.345678901234567",
        "1.5e-05",
        "1e999",
    ]
)
ROWS = st.lists(
    st.tuples(st.sampled_from(["1", "2", "topic-301", "9"]), st.sampled_from(IDS), SCORES),
    max_size=60,
)


@pytest.mark.slow
@given(
    rows=ROWS,
    scores=st.sampled_from(SCORE_TYPES),
    gap=st.sampled_from(" \t"),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_ties_missing_topics_and_unjudged_documents_are_judged_alike(
    rows: list[tuple[str, str, str]], scores: ScoreType, gap: str, end: str
) -> None:
    once = {(topic, doc): score for topic, doc, score in rows}
    ordered = sorted(once.items(), key=lambda item: (item[0][0], -float(item[1])))
    columns = [
        (topic, "Q0", doc, str(rank), score, "tag")
        for rank, ((topic, doc), score) in enumerate(ordered, 1)
    ]
    assert_same(
        "".join(gap.join(line) + end for line in columns).encode(), judgements_of(QRELS), scores
    )


USUAL = "".join(
    f"{topic} Q0 {doc} {rank} {9 - rank // 3}.5 t\n"
    for topic in QRELS
    for rank, doc in enumerate(IDS)
)
CHANGES = [
    ("", ""),
    ("\n", "\r\n"),
    (" ", "\t"),
    (".5 ", ".123456 "),
    (".5 ", ".12345678901234567 "),
    (".5 ", "5e-1 "),
    (" t\n", f" {'t' * 80}\n"),
]


@pytest.mark.parametrize("change", CHANGES)
def test_usual_lines_are_judged_in_one_pass(change: tuple[str, str]) -> None:
    content = USUAL.replace(*change).encode() if change[0] else USUAL.encode()
    judged = line_judge.line_judge(judgements_of(QRELS), "float64", checked=False)
    result = judged(content + scan.PADDING, len(content), 1, LIMITS)
    assert result is not None
    assert (result.lines, result.tied, result.block.judged.tolist()) == (30, 27, [5, 2, 2])


def test_an_upload_of_usual_lines_is_not_scanned_into_columns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scanned: list[int] = []
    monkeypatch.setattr(pieces, "scan", lambda *args: scanned.append(args[1]) or scan.scan(*args))
    assert check_run(lambda: in_memory(USUAL.encode(), LIMITS)).documents == 30
    assert not scanned
    odd = f"{USUAL}# a comment\n".encode()
    assert check_run(lambda: in_memory(odd, LIMITS)).documents == 30
    assert scanned == [len(odd)]


ODD_LINES = [
    "1  Q0 a 1 1 t", "1 Q0 a 1 1", "1 Q0 a 1 1 t x", "#1 Q0 a 1 1 t", "", "1 Q0 a 1 1e999 t",
    "1 Q0 a 1 12.345678901234567890 t", "1 Q0 a 1000000000000000 1 t",
    "topic-301 Q0 z 1.5 0 t", "topic-301 Q0 z -1 0 t", "topic-301 Q0 a 99 0 t",
    "topic-301 Q0 z 0 0 t", "topic-301 Q0 z 99 100 t", "topic-301 Q0 z 99 0 other", "topic-301 Q0 z\x7f 99 0 t",
    "topic-301 Q0 z\x01 99 0 t", "topic-301 Q0 z 99 . t",
]  # fmt: skip


@pytest.mark.parametrize("line", ODD_LINES)
def test_what_needs_a_report_is_left_to_the_scan(line: str) -> None:
    judged = line_judge.line_judge(judgements_of(QRELS), "float64", checked=False)
    content = (USUAL + line + "\n").encode()
    assert judged(content + scan.PADDING, len(content), 1, LIMITS) is None


def test_large_groups_of_ties_and_topics_over_pieces_are_judged_alike(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    many = {topic: {f"d{index}": index % 3 for index in range(300)} for topic in ("1", "2", "3")}
    content = "".join(
        f"{topic} Q0 d{rank} {rank} {2 - rank // 400} t\n" for topic in many for rank in range(500)
    )
    small_pieces(monkeypatch, 16_000)
    for scores in SCORE_TYPES:
        assert_same(content.encode(), judgements_of(many), scores)
        assert_same((content + "1 Q0 again 1 1 t\n").encode(), judgements_of(many), scores)
        assert_same(content.replace("2 Q0 d9 ", "2 Q0 d10 ").encode(), judgements_of(many), scores)


def test_documents_that_share_a_hash_are_told_apart() -> None:
    judgements = judgements_of(QRELS)
    last = len(QRELS["1"]) - 1
    judgements = replace(
        judgements, doc_hashes=np.full_like(judgements.doc_hashes, judgements.doc_hashes[last])
    )
    result = judge_run(lambda: in_memory(USUAL.encode(), LIMITS), judgements, seed=97)
    assert result.judgement.tolist() == [last]


@pytest.mark.slow
@pytest.mark.real_data
def test_real_and_odd_files_are_judged_alike(real_data: Path) -> None:
    folder = real_data / "trec_eval_test"
    judgements = read_qrels(
        lambda: in_memory((folder / "qrels.test").read_bytes(), LIMITS), seed=97
    ).judgements
    odd = [path for path in (real_data / "edge-cases").rglob("*") if path.is_file()]
    for path in [*odd, folder / "results.test"]:
        for scores in SCORE_TYPES:
            assert_same(path.read_bytes(), judgements, scores)
