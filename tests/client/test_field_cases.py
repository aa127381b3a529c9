"""Files as people of the field have them, sent by the command to a real server.

`expected.txt` of each folder says what has to come of it; the folders are not part of the repository.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from evalhub.client import Hub, cli
from evalhub.client.config import Config
from tests.reliability.servers import embedded_server

CASES = Path(os.environ.get("EVALHUB_REAL_DATA", "")) / "field-cases"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        "EVALHUB_REAL_DATA" not in os.environ or not CASES.is_dir(),
        reason="EVALHUB_REAL_DATA names no folder of cases",
    ),
]


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Config]:
    with embedded_server(tmp_path_factory.mktemp("field") / "data") as server:
        yield Config(server.url, server.token or server.make_admin(), "default")


@pytest.fixture
def evh(config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Any:
    """Runs a command; returns its rows and what it says, after its exit status was checked."""
    for name, value in (("URL", config.url), ("TOKEN", config.token), ("CONFIG", tmp_path / "x")):
        monkeypatch.setenv(f"EVH_{name}", str(value))
    monkeypatch.chdir(tmp_path)

    def run(*arguments: Any, status: int = 0) -> tuple[list[Any], str]:
        exit_status = cli.run([*map(str, arguments), "--format", "json"])
        out, err = capsys.readouterr()
        assert exit_status == status, err
        return json.loads(out or "[]"), err

    return run


Evh = Callable[..., tuple[Any, str]]


def test_an_arm_that_never_ran_and_cut_ids(evh: Evh, config: Config) -> None:
    case = CASES / "04-arm-never-ran"
    evh("collections", "create", "c04", "--qrels", case / "qrels.txt", "-m", "nDCG@10")
    evh("submit", "c04", case / "good.run", "--tag", "good", "--wait")
    (row,), err = evh("submit", "c04", case / "fts5.run", "--wait")
    assert (row["topics"], row["Judged@10"]) == ("1/30", 0.0)
    assert "BEIR would print" in err
    (row,), err = evh("submit", "c04", case / "wrongids.run", "--tag", "wrongids", "--wait")
    assert (row["topics"], row["Judged@10"]) == ("30/30", 0.0)
    assert "wrongids: nothing is judged of its first 10 documents" in err

    with Hub(config) as hub:
        for pair in (("good", "fts5"), ("wrongids", "good"), ("good", "wrongids")):
            verdict = hub.collection("c04").gate(*pair, "nDCG@10 no-worse-than 0.01")
            assert verdict.undecided, pair
    _, err = evh("gate", "c04", "good", status=2)
    assert "evh gate c04 good --baseline label:main" in err


def test_a_query_that_is_a_document(evh: Evh) -> None:
    case = CASES / "05-query-is-document"
    evh(
        "collections",
        "create",
        "c05",
        "--qrels",
        case / "qrels.json",
        "-m",
        "R@10",
        "-m",
        "nDCG@10",
    )
    (row,), err = evh("submit", "c05", case / "run.json", "--wait")
    assert (row["tag"], row["R@10"], row["nDCG@10"]) == ("run", 1.0, 1.0)
    assert "1 topic retrieves the document of its own id" in err
    options = ("--drop-identical", "--tag", "dropped", "--wait")
    (row,), err = evh("submit", "c05", case / "run.json", *options)
    assert (row["R@10"], round(row["nDCG@10"], 2)) == (pytest.approx(0.9, abs=1e-12), 0.94)
    assert "drop_identical left out 1 relevant document, such as that of topic 0" in err


def test_a_topic_with_nothing_relevant(evh: Evh) -> None:
    case = CASES / "06-no-relevant"
    evh("collections", "create", "c06", "-m", "nDCG@10")
    _, err = evh("qrels", "upload", "c06", case / "qrels.txt")
    assert "nothing_relevant: 1 topic with nothing relevant (b): " in err
    (row,), err = evh("submit", "c06", case / "run.txt", "--wait")
    assert row["nDCG@10"] == 0.5
    assert "1 topic has nothing relevant: nDCG@10 is 0 there for every run" in err


def test_chunks_of_judged_documents(evh: Evh) -> None:
    case = CASES / "13-chunks"
    evh("collections", "create", "c13", "--qrels", case / "qrels.txt", "-m", "nDCG@10")
    _, err = evh("submit", "c13", case / "dup.run", status=5)
    assert "document 'docA' is listed twice for topic 'a', first in line 1" in err
    (row,), _ = evh("submit", "c13", case / "chunk.run", "--passages", "#", "--wait")
    assert row["nDCG@10"] == 1.0


def test_levels_in_tenths(evh: Evh) -> None:
    case = CASES / "23-fractional"
    evh("collections", "create", "c23", "-m", "nDCG@10", "-m", "DCG@10")
    _, err = evh("qrels", "upload", "c23", case / "qrels.txt", status=5)
    assert f"evh qrels upload COLLECTION {case / 'qrels.txt'} --scale 10" in err
    (row,), _ = evh("qrels", "upload", "c23", case / "qrels.txt", "--scale", "10")
    assert row["note"] == "levels times 10"
    (row,), _ = evh("submit", "c23", case / "run.txt", "--wait")
    # The values of expected.txt; DCG has the scale.
    assert round(row["nDCG@10"], 6) == 0.925773
    assert round(row["DCG@10"] / 10, 6) == 1.380930


def test_no_judgements_yet(evh: Evh) -> None:
    evh("collections", "create", "c41", "-m", "nDCG@10")
    case = CASES / "41-no-judgements-wait"
    (row,), err = evh("submit", "c41", case / "run.txt", "--wait", status=12)
    assert row["state"] == "queued"
    assert "the collection has no active judgements yet" in err
    evh("gate", "c41", row["tag"], "--baseline", row["tag"], status=12)


def test_files_of_beir_msmarco_and_ntcir(evh: Evh) -> None:
    evh("collections", "create", "c42", "-m", "nDCG@10", "-m", "RR@10")
    (row,), err = evh("qrels", "upload", "c42", CASES / "42-beir-qrels/test.tsv")
    assert (row["judgements"], row["topics"]) == (3, 2)
    assert "the judgement of 'd1' in line 2 is repeated (line 5)" in err
    (row,), err = evh("submit", "c42", CASES / "43-msmarco-run/run.tsv", "--wait")
    assert (row["tag"], row["nDCG@10"], row["RR@10"]) == ("run", 1.0, 1.0)
    assert "a run in the form of MS MARCO" in err
    evh("collections", "create", "c44", "-m", "nDCG@10")
    (row,), err = evh("qrels", "upload", "c44", CASES / "44-ntcir-qrels/ntcir.qrels")
    assert (row["judgements"], row["topics"]) == (3, 2)
    assert "levels of NTCIR: L0 became 0" in err


def test_nothing_measured_is_not_fine(evh: Evh, tmp_path: Path) -> None:
    judged = CASES / "04-arm-never-ran/qrels.txt"
    topics = sorted({line.split()[0] for line in judged.read_text().splitlines()})
    for tag in ("a", "b"):
        lines = "".join(f"{topic} Q0 {tag} 1 1 {tag}\n" for topic in topics)
        (tmp_path / f"{tag}.run").write_text(lines)
    evh("collections", "create", "c46", "--qrels", judged, "-m", "nDCG@10")
    evh("submit", "c46", "a.run", "b.run", "--wait")
    rule = ("--rule", "nDCG@10 no-worse-than 0.01")
    for rules in (rule, ()):
        options = ("--baseline", "b", *rules, "--undecided", "fail")
        verdict, _ = evh("gate", "c46", "a", *options, status=11)
        assert verdict["verdict"] == "undecided"


def test_seeds_of_two_models(evh: Evh) -> None:
    case = CASES / "03-seeds"
    evh("collections", "create", "c03", "--qrels", case / "qrels.txt", "-m", "CG@1")
    for model in "AB":
        files = [case / f"{model}-seed{seed}.run" for seed in range(3)]
        rows, _ = evh("submit", "c03", *files, "--replicate", model, "--wait")
        assert [row["tag"] for row in rows] == [f"{model}-seed{seed}" for seed in range(3)]

    evh("wait", "c03", "A", "B")
    board, _ = evh("leaderboard", "c03")
    assert [(row["tag"], row["replicates"]) for row in board] == [("B", 3), ("A", 3)]
    (pair,), _ = evh("compare", "c03", "A", "B")
    assert (pair["difference"], pair["test"]) == (27.0, "paired_t")
    assert pair["p_value"] == pytest.approx(7.24e-7, rel=1e-3)
    assert pair["methods_p_value"] > pair["p_value"]


def test_topics_in_groups(evh: Evh, tmp_path: Path) -> None:
    """Means and tests in each group stand beside those of all topics."""
    case = CASES / "25-topic-groups"
    Path("qrels.txt").write_text("t1 0 a 1\nt2 0 a 1\nt3 0 a 1\n")
    for tag, ranks in (("old", (1, 2, 2)), ("new", (2, 1, 1))):
        documents = (("b", "a") if rank == 2 else ("a", "b") for rank in ranks)
        lines = [
            f"t{topic} Q0 {document} {place} {3 - place} {tag}\n"
            for topic, ranking in enumerate(documents, 1)
            for place, document in enumerate(ranking, 1)
        ]
        Path(f"{tag}.run").write_text("".join(lines))

    evh("collections", "create", "c25", "--qrels", "qrels.txt", "-m", "RR")
    evh("submit", "c25", "old.run", "new.run", "--wait")
    _, err = evh("topics", "attributes", "c25", case / "groups.tsv", status=5)
    assert "groups.tsv:1: bad_header: the first line names the columns with tabs" in err

    groups = (case / "groups.tsv").read_text()
    Path("groups.tsv").write_text(f"topic\tgroup\n{groups}")
    (row,), _ = evh("topics", "attributes", "c25", "groups.tsv")
    assert (row["topics"], row["group"]) == (3, 2)

    board, _ = evh("leaderboard", "c25", "-m", "RR", "--by", "group")
    means = {
        row["tag"]: [
            pytest.approx(row[name]) for name in ("RR", "group:adr-lookup", "group:script-header")
        ]
        for row in board
    }
    assert means == {"new": [5 / 6, 1.0, 0.5], "old": [2 / 3, 0.5, 1.0]}

    (total,), _ = evh("compare", "c25", "new", "old", "-m", "RR", "--test", "paired_t")
    rows, err = evh(
        "compare", "c25", "new", "old", "-m", "RR", "--test", "paired_t", "--by", "group"
    )
    sign = 1 if total["a"] == "new" else -1
    differences = {row["group"]: (row["topics"], sign * row["difference"]) for row in rows}
    assert sign * total["difference"] == pytest.approx(1 / 6)
    assert differences == {"adr-lookup": (2, 0.5), "script-header": (1, -0.5)}
    assert [row["verdict"] for row in rows] == [None, None]
    assert "RR: Whether the groups differ cannot be tested: no group varies." in err
