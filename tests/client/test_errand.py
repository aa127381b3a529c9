"""The client against a real server: an errand, and a batch whose server and sender are killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalhub.client import BadFile, Hub, NotFound, Refused, cli, ir_datasets
from evalhub.client.config import Config
from tests.client.many import send_under_kills
from tests.client.test_libraries import Dataset, Qrel
from tests.reliability.servers import ROOT, Server, embedded_server

pytestmark = pytest.mark.slow
QRELS = "1 0 a 1\n1 0 b 0\n2 0 c 2\n3 0 q 1\n"
BM25 = {"1": {"a": 3.0, "b": 2.0}, "2": {"x": 3.0, "c": 2.0}}
DENSE = {"1": {"z": 2.0, "a": 1.0}, "2": {"c": 1.0}, "3": {"q": 1.0}}
RUNS = 20


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Config]]:
    """A server with a collection, and what a client needs to reach it."""
    folder = tmp_path_factory.mktemp("errand")
    with embedded_server(folder / "data") as server:
        config = Config(
            server.url, server.token or server.make_admin(), "default", collection="tiny"
        )
        with Hub(config) as hub:
            team = hub.me().teams[0]["slug"]
            collection = hub.create_collection("tiny", team=team, measures=["AP", "nDCG@10"])
            (folder / "qrels").write_text(QRELS)
            collection.upload_qrels(folder / "qrels")
        yield server, config


def test_an_errand(place: tuple[Server, Config]) -> None:
    """AP by hand: of bm25 (1 + 1/2 + 0) / 3, of dense (1/2 + 1 + 1) / 3."""
    with Hub(place[1]) as hub:
        tiny = hub.collection()
        assert tiny.submit(BM25, tag="bm25", dry_run=True).lines == 4
        bm25 = tiny.submit(BM25, tag="bm25").wait(60)
        dense = tiny.submit(DENSE, tag="dense", metadata={"k1": 0.9}).wait(60)
        assert bm25.means("AP")["AP"] == pytest.approx(0.5, abs=1e-12)
        assert dict(bm25.values("AP")) == {"1": 1.0, "2": 0.5, "3": 0.0}
        assert bm25.means().coverage == {"answered": 2, "judged": 3}
        rows = tiny.leaderboard("AP").rows()
        assert [(row["rank"], row["tag"], round(row["AP"], 12)) for row in rows] == [
            (1, "dense", 0.833333333333),
            (2, "bm25", 0.5),
        ]
        (pair,) = tiny.compare("bm25", dense, measures=["AP"], tests=["sign"]).rows()
        assert (pair["a"], pair["b"], round(pair["difference"], 12)) == (
            "dense",
            "bm25",
            0.333333333333,
        )
        assert tiny.difference("bm25", "dense", "AP").losses == 2
        assert tiny.submit(BM25, tag="bm25", if_taken="skip").id == bm25.id
        assert tiny.submit(DENSE, tag="bm25", if_taken="suffix").tag == "bm25-2"
        assert tiny.run("dense").metadata == {"k1": 0.9}
        assert tiny.submit(DENSE, tag="dense", label="main", if_taken="skip").id == dense.id
        verdict = tiny.gate(bm25, "label:main", ["AP no-worse-than 0.01", "AP no-drop"])
        assert [rule["verdict"] for rule in verdict.rules] == ["undecided", "undecided"]
        assert tiny.run("label:main").labels == ["main"]
        assert bm25.file().startswith(b"1 Q0 a 1 3.0 bm25\n")
        assert "<table" in tiny.leaderboard("AP")._repr_html_()
        with pytest.raises(BadFile, match="run:1: bad_score"):
            tiny.submit(b"1 Q0 a 1 high x\n")


def test_the_example_of_the_documentation_prints_what_it_says(
    place: tuple[Server, Config], tmp_path: Path
) -> None:
    page = (ROOT / "docs/client.md").read_text()
    example, printed = page.partition("```python\n")[2].split("```")[0:3:2]
    (tmp_path / "tiny.qrels").write_text(QRELS)
    (tmp_path / "bm25.run").write_text(
        page.partition("named `pyterrier`\n\n```\n")[2].partition("```")[0]
    )
    with Hub(place[1]) as hub:
        example = example.replace("alice", hub.me().teams[0]["slug"])
    example = example.replace("import evalhub_client", "import evalhub.client").replace(
        '"tiny"', '"shown"'
    )
    environment = {
        **os.environ,
        "EVH_URL": place[1].url,
        "EVH_TOKEN": place[1].token,
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        [sys.executable, "-c", example],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == printed.removeprefix("\n")


LOG = """{"session_id": "s1", "topic_id": "1", "system": "A", "queries": [{"documents": ["a", "z"]}]}
{"session_id": "s2", "topic_id": "2", "system": "B", "queries": [{"documents": ["x"]}, {"documents": ["c"]}]}
"""
TOPICS = b'{"_id": "1", "text": "cats"}\n{"_id": "2", "text": "dogs", "narrative": "Only dogs."}\n'


def test_the_rest_of_a_run_and_a_collection(place: tuple[Server, Config]) -> None:
    with Hub(place[1]) as hub:
        full = hub.create_collection("full", team=hub.me().teams[0]["slug"], measures=["AP"])
        assert full.upload_qrels(QRELS.encode(), dry_run=True).iteration == "ignore"
        assert full.qrels().rows() == []
        full.upload_qrels(QRELS.encode(), note="first")
        full.upload_qrels(b"1 0 a 1\n", activate=False)
        assert full.qrels(1).info().note == "first"
        assert full.qrels(2).file() == b"1 0 a 1\n"
        assert full.qrels(2).activate().active
        assert full.qrels(1).activate().active
        assert full.upload_topics(TOPICS, dry_run=True).topics == 2
        assert full.topics().rows() == []
        assert full.upload_topics(TOPICS).format == "jsonl"
        assert [row["title"] for row in full.topics().rows()] == ["cats", "dogs"]
        attributes = b'{"topic": "1", "type": "short"}'
        assert full.upload_topic_attributes(attributes).keys == {"type": 1}
        assert full.topic_attributes().rows()[0]["attributes"] == {"type": "short"}
        full.delete_topic_attributes()
        assert full.topic_attributes().rows() == []
        titles = {"_id": "a", "title": "Cats and dogs", "text": "They often fight."}
        assert full.upload_documents(json.dumps(titles).encode(), dry_run=True).documents == 1
        assert full.upload_documents(json.dumps(titles).encode()).titled == 1
        full.delete_documents()
        run = full.submit(BM25, tag="bm25", known=b"1 a\n").wait(60)
        assert run.known() == b"1 a\n"
        first, again = (run.attach(b"k1 = 0.9", "notes 1.txt") for _ in range(2))
        assert (first.sha256, first.size) == (again.sha256, 8)
        assert [file["name"] for file in run.artifacts().rows()] == ["notes 1.txt"]
        assert run.artifact("notes 1.txt") == b"k1 = 0.9"
        assert [row["level"] for row in run.ranking("1").rows()] == [1, 0]
        assert run.curve("P", depth=2).rows()[1]["mean"] == pytest.approx((0.5 + 0.5 + 0) / 3)
        assert run.chart("curve", measure="P")._repr_svg_().startswith("<svg")  # type: ignore[union-attr]
        frame = pytest.importorskip("pandas").DataFrame(
            [
                (topic, doc, score)
                for topic, ranking in DENSE.items()
                for doc, score in ranking.items()
            ],
            columns=["qid", "docno", "score"],
        )
        dense = full.submit(frame, tag="frame").wait(60)
        assert full.compare(run, dense, measures=["AP"], tests=["sign"]).to_frame()[
            "wins"
        ].tolist() == [2]
        assert dense.means("AP")["AP"] == pytest.approx(2.5 / 3, abs=1e-12)
        dense.withdraw()
        assert [run.tag for run in full.runs()] == ["bm25"]
        with pytest.raises(NotFound, match="no run 'bm2'; did you mean 'bm25'"):
            full.run("bm2")
        with pytest.raises(Refused, match=r"did you mean '?nDCG@10"):
            run.means("ndgc@10")
        session_set = full.sessions.submit(LOG.encode(), tag="log").wait(60)
        assert full.sessions.submit(LOG.encode(), dry_run=True).systems == ["A", "B"]
        assert {row["system"] for row in full.sessions.values("log", "nsDCG@3").rows()} == {
            "A",
            "B",
        }
        assert [row["system"] for row in full.sessions.leaderboard("nsDCG@3").rows()] == ["A", "B"]
        assert session_set.file() == LOG.encode()


def write_files(tmp_path: Path) -> None:
    """What is uploaded by the commands: four runs, one file that is bad below its first line."""
    (tmp_path / "qrels").write_text(QRELS)
    (tmp_path / "topics").write_bytes(TOPICS)
    (tmp_path / "titles.tsv").write_text("a\tCats and dogs\n")
    (tmp_path / "log").write_text(LOG)
    folder = tmp_path / "runs"
    folder.mkdir()
    for tag, run in (("bm25", BM25), ("dense", DENSE), ("third", BM25), ("fourth", DENSE)):
        rows = [
            f"{topic} Q0 {doc} 1 {score} {tag}"
            for topic, docs in run.items()
            for doc, score in docs.items()
        ]
        (folder / f"{tag}.run").write_text("\n".join(rows) + "\n")
    (folder / "bad.run").write_text("1 Q0 a 1 1.0 bad\n1 Q0 b 2 high bad\n")


def upload_attributes(evh: Any) -> None:
    Path("attributes").write_text("topic\ttype\n1\tshort\n2\t\n")
    attributes = evh("topics attributes FILE", "topics", "attributes", "told", "attributes")
    assert attributes == [{"file": "attributes", "topics": 2, "type": 1}]
    assert evh("topics attributes", "topics", "attributes", "told") == [
        {"topic_id": "1", "type": "short"}, {"topic_id": "2", "type": None},
    ]  # fmt: skip


def carry_topics(evh: Any, capsys: Any) -> None:
    """Upload the topics that were pulled: they keep their attributes."""
    capsys.readouterr()
    attributes = evh("topics attributes", "topics", "attributes", "told")
    assert cli.run(["topics", "attributes", "told", "--delete"]) == 0
    assert cli.run(["topics", "upload", "told", "pulled/topics.jsonl"]) == 0
    capsys.readouterr()
    assert evh("topics attributes", "topics", "attributes", "told") == attributes != []


def compare_runs(evh: Any) -> None:
    evh("compare", "compare", "told", "-m", "AP", "--test", "sign", "--test", "paired_t")
    pair = ("compare", "told", "bm25", "dense", "-m", "AP", "--topics", "topic:1,2,3")
    groups = evh("compare --by", *pair, "--by", "relevant")
    assert sum(group["topics"] for group in groups) == 3
    board = evh(
        "leaderboard", "leaderboard", "told", "-m", "AP", "--topics", "topic:1", "--by", "type"
    )
    assert board[0]["type:short"] == board[0]["AP"]


def upload_judgements(evh: Any) -> None:
    """Versions of judgements, and a collection that is filled as it is made."""
    evh("qrels upload --dry-run", "qrels", "upload", "told", "qrels", "--dry-run")
    filled = ("--topics", "topics", "--qrels", "qrels")
    (row,) = evh("collections create", "collections", "create", "filled", *filled)
    assert (row["topics"], row["active_qrels"]) == (2, 1)
    evh("qrels upload", "qrels", "upload", "told", "qrels", "--note", "first")
    evh("qrels activate", "qrels", "activate", "told", "1")
    assert [row["note"] for row in evh("qrels", "qrels", "told")] == ["first"]


def read_sessions(evh: Any) -> None:
    """Session sets and their leaderboard."""
    evh("sessions submit --dry-run", "sessions", "submit", "told", "log", "--dry-run")
    evh("sessions submit", "sessions", "submit", "told", "log", "--tag", "log", "--wait")
    evh("sessions", "sessions", "told")
    evh("sessions values", "sessions", "values", "told", "log")
    evh(
        "sessions values --per-session",
        "sessions",
        "values",
        "told",
        "log",
        "--per-session",
        "--system",
        "A",
    )
    evh("sessions leaderboard", "sessions", "leaderboard", "told", "-m", "nsDCG@3")


def label_gate_and_import(evh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels, the gate, and an import from what stands in for ir_datasets."""
    evh("label", "label", "told", "main", "bm25", "--expected", "none")
    evh("submit", "submit", "told", "runs/dense.run", "--label", "main")
    assert [(row["name"], row["tag"]) for row in evh("labels", "labels", "told")] == [
        ("main", "dense")
    ]
    rules = ("--rule", "AP no-worse-than 0.01", "--rule", "AP at-least 0.3")
    assert (
        evh("gate", "gate", "told", "bm25", "--baseline", "label:main", *rules)["verdict"]
        == "undecided"
    )
    monkeypatch.setattr(ir_datasets, "_load", lambda name: Dataset(Qrel("1", "d1", 1, "0")))
    monkeypatch.setattr(ir_datasets.metadata, "version", lambda name: "0.6.3")
    evh("collections import", "collections", "import", "imported", "--ir-datasets", "lab/tiny")


def group_and_note(evh: Any) -> None:
    """An experiment of two runs, and notes about it and about a run."""
    evh("experiments create", "experiments", "create", "study", "--goal", "Which one?")
    added = evh("experiments add", "experiments", "add", "study", "bm25", "dense", "-c", "told")
    assert [(row["slug"], row["count"]) for row in added] == [("study", 2)]
    evh("experiments remove", "experiments", "remove", "study", "dense", "-c", "told")
    assert [row["tag"] for row in evh("experiments show", "experiments", "show", "study")] == [
        "bm25"
    ]
    assert [row["count"] for row in evh("experiments", "experiments")] == [1]
    evh("note", "note", "study", "it is bm25", "--experiment")
    evh("note", "note", "bm25", "a second try", "-c", "told")
    assert [row["text"] for row in evh("notes", "notes", "bm25", "-c", "told")] == ["a second try"]
    replicates = evh("replicate", "replicate", "told", "third", "fourth", "--of", "seeds")
    assert len({row["replicate_of"] for row in replicates}) == 1
    (single,) = evh("replicate", "replicate", "told", "third", "--single")
    assert (single["tag"], single["replicate_of"]) == ("third", None)


def explain(evh: Any, config: Config) -> None:
    """Parameters, costs and topics: two of four runs say how they were made."""
    with Hub(config) as hub:
        for tag, k1 in (("bm25", 0.9), ("dense", 1.2)):
            fields = {"metadata": {"k1": k1, "b": 0.4}, "costs": {"latency_ms": 10 * k1}}
            hub.request("PATCH", f"runs/{hub.run(tag, 'told').id}/", json=fields)
        team = hub.me().teams[0]["slug"]
    keys = evh("parameters", "parameters", "told")
    assert [(row["name"], row["values"]) for row in keys if row["space"] == "param"] == [
        ("b", [0.4]),
        ("k1", [0.9, 1.2]),
    ]
    Path("parameters.csv").write_text("tag,k1,b\nbm25,0.9,0.4\ndense,1.2,0.4\n")
    # They have these values already.
    csv = ("--upload", "parameters.csv", "--dry-run")
    assert evh("parameters --upload", "parameters", "told", *csv) == []
    beside = evh("configurations", "configurations", "told", "bm25", "dense")
    assert beside[0] == {
        "name": "k1",
        "unit": "",
        "kind": "differs",
        f"{team}/bm25": 0.9,
        f"{team}/dense": 1.2,
    }
    how = ("--baseline", "bm25", "--changes")
    (row,) = evh("configurations --changes", "configurations", "told", "bm25", "dense", *how)
    assert row == {
        "run": f"{team}/dense",
        "name": "k1",
        "change": "changed",
        "before": 0.9,
        "after": 1.2,
    }
    topics = evh("topics difficulty", "topics", "difficulty", "told", "-m", "AP", "--sort", "topic")
    assert [(row["topic_id"], row["title"], row["best"]) for row in topics] == [
        ("1", "cats", 1.0), ("2", "dogs", 1.0), ("3", "", 1.0),
    ]  # fmt: skip
    on_two = evh("topics show", "topics", "show", "told", "2", "-m", "AP")
    assert [(row["rank"], row["value"]) for row in on_two] == [
        (1, 1.0),
        (1, 1.0),
        (3, 0.5),
        (3, 0.5),
    ]
    evh("importance", "importance", "told", "-m", "AP")
    evh("importance --levels", "importance", "told", "--levels")
    priced = evh("frontier", "frontier", "told", "-m", "AP", "--cost", "latency_ms")
    assert [(row["tag"], row["status"]) for row in priced] == [
        ("bm25", "frontier"),
        ("dense", "frontier"),
    ]


def give_values(evh: Any) -> None:
    """Declare a measure, upload a table, rank by it and gate it."""
    (measure,) = evh("tables declare", "tables", "declare", "told", "ms", "lower", "--low", "0")
    assert (measure["name"], measure["low"], measure["version"]) == ("x:ms", 0.0, 0)
    lines = [
        f"{run} {topic} ms {ms}\n" for run, ms in (("bm25", 5), ("dense", 7)) for topic in (1, 2)
    ]
    Path("values.tsv").write_text("".join(lines))
    (uploaded,) = evh("tables upload", "tables", "upload", "told", "values.tsv", "--tool", "timer")
    assert (uploaded["number"], uploaded["measures"]) == (1, {"x:ms": 4})
    assert [row["tool"] for row in evh("tables", "tables", "told")] == ["timer"]
    assert [row["version"] for row in evh("tables measures", "tables", "measures", "told")] == [1]
    evh("submit", "submit", "told", "--values", "--tag", "answers", "--wait")
    Path("answers.tsv").write_text("answers 1 ms 9\nanswers 2 ms 9\n")
    evh("tables upload", "tables", "upload", "told", "answers.tsv")
    board = evh("leaderboard", "leaderboard", "told", "-m", "x:ms")
    assert (board[2]["tag"], board[2]["x:ms"]) == ("answers", 9.0)
    assert [(row["tag"], row["x:ms"]) for row in board[:2]] == [("bm25", 5.0), ("dense", 7.0)]
    assert cli.run(["gate", "told", "dense", "--rule", "x:ms at-least 6"]) == 10


def test_every_command_writes_what_its_schema_says(
    place: tuple[Server, Config], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """A whole errand of the command, in one process; each answer is checked by docs/client.schema.json."""
    jsonschema = pytest.importorskip("jsonschema")
    schemas = json.loads((ROOT / "docs/client.schema.json").read_text())
    checked: set[str] = set()
    for name, value in (
        ("EVH_URL", place[1].url),
        ("EVH_TOKEN", place[1].token),
        ("EVH_CONFIG", str(tmp_path / "x")),
    ):
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)

    def evh(schema: str, *arguments: str, status: int = 0) -> Any:
        exit_status = cli.run([*arguments, "--format", "json"])
        out, err = capsys.readouterr()
        assert exit_status == status, err
        rows = json.loads(out)
        definition = {"$defs": schemas["$defs"], **schemas["$defs"][schema]}
        jsonschema.Draft202012Validator(
            definition, format_checker=jsonschema.FormatChecker()
        ).validate(rows)
        checked.add(schema)
        return rows

    write_files(tmp_path)
    evh("whoami", "whoami")
    evh(
        "collections create",
        "collections",
        "create",
        "told",
        "-m",
        "AP",
        "-m",
        "nDCG@10",
        "--documents",
        "1000",
    )
    assert "told" in {row["slug"] for row in evh("collections", "collections")}
    assert evh("collections show", "collections", "show", "told")[0]["documents"] == 1000
    upload_judgements(evh)
    evh("topics upload", "topics", "upload", "told", "topics")
    assert evh("topics", "topics", "list", "told")[1] == {"topic_id": "2", "title": "dogs"}
    upload_attributes(evh)
    uploaded = evh("documents upload", "documents", "upload", "told", "titles.tsv")
    assert uploaded == [{"file": "titles.tsv", "documents": 1, "titled": 1}]
    dry = evh("submit --dry-run", "submit", "told", "runs", "--dry-run", status=5)
    assert [row["tag"] for row in dry if row["error"]] == [None]
    sent = evh("submit", "submit", "told", "runs", "--wait", status=5)
    assert [(row["tag"], row["topics"]) for row in sent] == [
        ("bm25", "2/3"), ("dense", "3/3"), ("fourth", "3/3"), ("third", "2/3"),
    ]  # fmt: skip
    assert {row["state"] for row in evh("status", "status", "told")} == {"evaluated"}
    evh("watch", "watch", "told")
    evh("values", "values", "bm25", "-c", "told")
    assert (
        evh("values --per-topic", "values", "bm25", "-c", "told", "--per-topic", "-m", "AP")[1][
            "AP"
        ]
        == 0.5
    )
    board = evh(
        "leaderboard",
        "leaderboard",
        "told",
        "--statistics",
        "all",
        "--baseline",
        "bm25",
        "--sort",
        "AP",
    )
    assert sorted((row["rank"], row["tag"]) for row in board) == [
        (1, "dense"),
        (1, "fourth"),
        (3, "bm25"),
        (3, "third"),
    ]
    compare_runs(evh)
    evh("diff", "diff", "told", "bm25", "dense", "--order", "difference")
    label_gate_and_import(evh, monkeypatch)
    group_and_note(evh)
    read_sessions(evh)
    explain(evh, place[1])
    give_values(evh)
    # Others are checked where their people and runs are: test_campaigns.py, test_pools.py,
    # test_suites.py.
    elsewhere = ("campaign ", "pool ", "suite ")
    assert checked == {name for name in schemas["$defs"] if not name.startswith(elsewhere)}
    # And what writes files.
    assert cli.run(["pull", "told", "bm25", "--to", "pulled"]) == 0
    assert [run["tag"] for run in json.loads(Path("pulled/manifest.json").read_text())["runs"]] == [
        "bm25"
    ]
    carry_topics(evh, capsys)
    assert cli.run(["qrels", "pull", "told"]) == 0
    assert capsys.readouterr().out == QRELS


def test_a_batch_survives_the_kill_of_its_sender_and_of_the_server(
    place: tuple[Server, Config], tmp_path: Path
) -> None:
    """Each run is there once, after the second call of the same command; tests/client/many.py is the long form."""
    kills = {5: "client", 10: "server"}
    outcome = send_under_kills(
        place[0], tmp_path, runs=RUNS, topics=2, documents=3, kills=kills, parallel=2
    )
    assert outcome.faults(RUNS) == []
