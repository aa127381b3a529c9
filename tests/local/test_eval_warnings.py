"""What `evalhub eval` says of values that are missing or mean something unexpected, and measures that fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalhub.local import eval as command
from tests.local.conftest import Call

Files = tuple[Path, Path, Path]


@pytest.fixture
def three(tmp_path: Path) -> Files:
    """Judgements of three topics, a run that answers one of them and one that answers two."""
    qrels, first, second = (tmp_path / name for name in ("q", "first", "second"))
    qrels.write_text("1 0 a 4\n1 0 b 2\n2 0 x 1\n3 0 y 1\n")
    first.write_text("1 Q0 b 1 2 t\n1 Q0 a 2 1 t\n")
    second.write_text("1 Q0 b 1 2 t\n1 Q0 a 2 1 t\n2 Q0 z 1 1 t\n")
    return qrels, first, second


def cells_of(out: str) -> list[list[str]]:
    return [line.split() for line in out.splitlines()]


def test_a_ratio_over_all_topics_is_of_those_that_are_averaged(call: Call, three: Files) -> None:
    """6 of 6 over the first run's topic, 6 of 7 over the second's two, 6 of 8 over all three."""
    name = "nCG(norm='average')@5"
    status, out, _ = call("-m", name, *three)
    assert (status, cells_of(out)) == (0, [[name, "all", "1.0000"], [name, "all", "0.8571"]])
    assert cells_of(call("-c", "-m", name, "-m", "map", *three)[1])[1] == [name, "all", "0.7500"]
    by_topic = cells_of(call("-q", "-m", name, "-m", "map", *three)[1])
    assert [row for row in by_topic if row[1] == "1"] == [
        ["map", "1", "1.0000"],
        [name, "1", "1.0000"],
    ] * 2
    assert cells_of(call("-n", "-q", "-m", name, *three)[1]) == [[name, "1", "1.0000"], [name, "1", "1.0000"],
                                                             [name, "2", "0.0000"]]  # fmt: skip


def test_a_measure_that_fails_takes_no_other_with_it(
    call: Call, three: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = command.columns

    def failing(answers: object, requests: object, measures: list[object]) -> object:
        if [str(measure) for measure in measures] == ["AP"]:
            raise ValueError("no such thing")
        return whole(answers, requests, measures)  # type: ignore[arg-type]

    monkeypatch.setattr(command, "columns", failing)
    status, out, err = call("-c", "-m", "map", "-m", "AP", "-m", "RR", *three)
    assert status == 1
    assert [row[0] for row in cells_of(out)] == ["map", "RR"] * 2
    assert err == "".join(
        f"{run}: AP cannot be computed: ValueError: no such thing\n" for run in three[1:]
    )


def test_a_figure_over_some_topics_says_how_many_and_why(call: Call, three: Files) -> None:
    qrels, run, _ = three
    status, out, err = call("-c", "-m", "SearchLength", "-m", "Coverage", "-m", "AP", qrels, run)
    assert (status, [row[0] for row in cells_of(out)]) == (0, ["SearchLength", "AP"])
    assert err.splitlines() == [
        f"{run}: warning: SearchLength is over 1 of 3 topics: a relevant document that counts is not retrieved (2)",
        f"{run}: warning: Coverage has no value for any of 3 topics: the run came without known documents (3)",
    ]


def test_known_documents_are_those_of_every_run(call: Call, three: Files, tmp_path: Path) -> None:
    """Topic 1: both relevant documents retrieved, a known. Topic 2: x known, nothing relevant retrieved. Topic 3: no
    document known."""
    known = tmp_path / "known"
    known.write_text("1 a\n2 x\n1 expected 2\n9 z\n")
    options = [
        "-q",
        "-c",
        "-m",
        "Coverage",
        "-m",
        "Novelty",
        "-m",
        "RelativeRecall@1",
        "-m",
        "RecallEffort",
    ]
    status, out, err = call("--known", known, *options, *three)
    rows = {(name, topic): value for name, topic, value in cells_of(out)}
    assert status == 0
    assert rows["Coverage", "1"] == "1.0000"
    assert rows["Coverage", "2"] == "0.0000"
    assert rows["Coverage", "all"] == "0.5000"
    assert (rows["Novelty", "1"], rows["Novelty", "all"]) == ("0.5000", "0.5000")
    assert (rows["RelativeRecall@1", "1"], rows["RecallEffort", "1"]) == ("0.5000", "1.0000")
    assert ("Coverage", "3") not in rows
    assert (
        "Coverage is over 2 of 3 topics: the user knew no relevant document of the topic (1)" in err
    )
    cut = cells_of(
        call("-M", 1, "--known", known, "-m", "Coverage", "-m", "Novelty", *three[:2])[1]
    )
    assert cut == [["Coverage", "all", "0.0000"], ["Novelty", "all", "1.0000"]]


@pytest.mark.parametrize(
    ("content", "status", "words"),
    [
        ("1\n", 1, "known:1: too_few_columns"),
        ("1 expected many\n", 1, "known:1: bad_expected"),
        ("", 1, "empty"),
        ("8 a\n", 0, "known: warning: none of its topics has judgements"),
    ],
)
def test_known_documents_that_cannot_be_used_are_said(
    call: Call, three: Files, tmp_path: Path, content: str, status: int, words: str
) -> None:
    known = tmp_path / "known"
    known.write_text(content)
    exit_status, out, err = call("-c", "-m", "AP", "--known", known, *three[:2])
    assert (exit_status, bool(out)) == (status, status == 0)
    assert words in err
    assert call("--known", tmp_path / "nothing", *three[:2])[0] == 1


def test_the_number_of_documents_serves_every_measure_that_needs_it(
    call: Call, three: Files
) -> None:
    qrels, run, _ = three
    options = [
        "-c",
        "-m",
        "NormRecall(missing='last')",
        "-m",
        "ASL(missing='last')",
        "-m",
        "utility(d=1)",
        "-m",
        "ASL",
    ]
    status, out, _ = call("-N", 100, *options, qrels, run)
    names = [row[0] for row in cells_of(out)]
    assert (status, names) == (0, [
        "NormRecall(missing='last',documents=100)", "ASL(missing='last',documents=100)", "utility(d=1,documents=100)",
        "ASL",
    ])  # fmt: skip
    explicit = [part for name in names for part in ("-m", name)]
    assert call("-N", 7, "-c", *explicit, qrels, run)[1] == out
    assert "NormRecall needs documents" in call("-m", "NormRecall", qrels, run)[2]


def test_gains_that_leave_levels_out_are_named(call: Call, three: Files) -> None:
    qrels, run, _ = three
    options = [
        "-m",
        "nDCG(gains='0-1-10-100')@2",
        "-m",
        "CG(gains='1:1,2:10')@2",
        "-m",
        "ndcg.1=5",
        "-m",
        "nDCG@2",
    ]
    err = call("-c", *options, qrels, run)[2].splitlines()
    assert [line.split(": ")[:4] for line in err] == [
        [str(qrels), "warning", "gains_completed", "nDCG(gains='0-1-10-100')@2"],
        [str(qrels), "warning", "gain_order", "CG(gains='1:1,2:10')@2"],
        [str(qrels), "warning", "gain_order", "ndcg_1=5"],
    ]


def test_no_topic_in_common_is_always_said(call: Call, three: Files, tmp_path: Path) -> None:
    qrels, run = tmp_path / "upper", tmp_path / "lower"
    qrels.write_text("Q1 0 a 1\n")
    run.write_text("q1 Q0 a 1 1 t\n")
    cause = "none of the run's topics has judgements; the ids differ in case: 'q1' in the run, 'Q1' in the judgements"
    assert call("-c", "-m", "map", qrels, run) == (
        0,
        "map                   \tall\t0.0000\n",
        f"{run}: warning: {cause}\n",
    )
    assert call("-m", "map", qrels, run) == (1, "", f"{run}: error: {cause}\n")
    assert (
        call("-c", "-m", "map", three[0], run)[2]
        == f"{run}: warning: none of the run's topics has judgements\n"
    )
