"""The command: what it writes, where, and its exit status."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from evalhub.client import cli
from evalhub.client.output import BadFormat, format_rows
from tests.client.conftest import problem, raw_run
from tests.client.test_batches import FakeServer

ROWS = [{"tag": "bm25", "nDCG(b=2,dis='jk')": 0.123456789, "n": None}, {"tag": "dense", "n": 3}]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            "table",
            "tag    nDCG(b=2,dis='jk')  n\nbm25               0.1235\ndense                      3\n",
        ),
        ("tsv", "tag\tnDCG(b=2,dis='jk')\tn\nbm25\t0.123456789\t\ndense\t\t3\n"),
        ("csv(tag,n)", "tag,n\nbm25,\ndense,3\n"),
        (
            "jsonl(nDCG(b=2,dis='jk'))",
            "{\"nDCG(b=2,dis='jk')\": 0.123456789}\n{\"nDCG(b=2,dis='jk')\": null}\n",
        ),
    ],
)
def test_formats_and_fields(fields: str, text: str) -> None:
    assert format_rows(ROWS, fields) == text


def test_json_is_one_list() -> None:
    assert json.loads(format_rows(ROWS, "json(tag)")) == [{"tag": "bm25"}, {"tag": "dense"}]
    assert format_rows([], "json") == "[]\n"
    for kind in ("xml", "json(", "json(nothing)"):
        with pytest.raises(BadFormat, match=r"fields|format"):
            format_rows(ROWS, kind)


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (httpx.ConnectError("refused"), 1), (problem(500), 1), (problem(503), 1), (problem(429, "throttled"), 1),
        (problem(400, "unknown_measure"), 2), (problem(401), 3), (problem(403, "missing_scope"), 3),
        (problem(403, "blind"), 4), (problem(404), 4), (problem(422, "bad_score"), 5), (problem(413), 5),
        (problem(429, "quota_exceeded", **{"Retry-After": "60"}), 6), (problem(409, "tag_taken"), 9),
    ],
)  # fmt: skip
def test_the_status_says_what_went_wrong(evh: Any, answer: Any, status: int) -> None:
    exit_status, out, err = evh(lambda request: answer, "whoami")
    assert (exit_status, out) == (status, "")
    assert err.startswith("evh: ")


def test_wrong_options_and_help(evh: Any) -> None:
    assert evh(None, "submit")[0] == 2
    assert evh(None, "nothing")[0] == 2
    status, out, _ = evh(None, "--help")
    assert (status, "130 interrupted" in out) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("leaderbord", "c"), "did you mean 'leaderboard'?"),
        (("leaderboard", "c", "--mesure", "AP"), "did you mean '--measure'?"),
        (("submit", "c", "f", "--if-taken", "sufix"), "did you mean 'suffix'?"),
        (("qrels", "c", "uplod", "f"), "did you mean 'upload'?"),
        (("completion", "powershell"), "choose from bash, zsh, fish"),
        (("whoami", "--format", "jsn"), "did you mean 'json'?"),
        (("whoami", "--format", "json(usr)"), "did you mean 'user'?"),
    ],
)
def test_a_refusal_names_what_may_be_meant(evh: Any, arguments: tuple[str, ...], says: str) -> None:
    me = {"username": "alice", "teams": [], "token": None}
    status, out, err = evh(lambda request: httpx.Response(200, json=me), *arguments)
    assert (status, out) == (2, "")
    assert says in err


def test_the_order_of_arguments(evh: Any, tmp_path: Path) -> None:
    """Options may come anywhere, and another order is refused with the right line."""
    run = tmp_path / "bm25.run"
    run.write_text("1 Q0 a 1 1.0 bm25\n")

    def server(request: httpx.Request) -> httpx.Response:
        rows: list[Any] = []
        check = {"tag": "t", "lines": 1, "topics": 1, "documents": 1, "warnings": {"counts": {}}}
        body = check if request.method == "POST" else {"count": 0, "next": None, "results": rows}
        return httpx.Response(200, json=body)

    for line in (
        ("submit", "c", "--dry-run", str(run)),
        ("--quiet", "submit", "--tag", "t", "c", "--dry-run", str(run)),
        ("-q", "submit", "c", str(run), "--tag", str(run), "--dry-run"),
    ):
        assert evh(server, *line)[0] == 0, line
    for line in (("qrels", "c"), ("-q", "qrels", "list", "c"), ("topics", "c", "--format", "json")):
        assert evh(server, *line)[0] == 0, line

    status, out, err = evh(None, "qrels", "c", "upload", "my file", "--note", "x")
    assert (status, out) == (2, "")
    assert "evh qrels upload c 'my file' --note x" in err
    assert evh(None, "values", "c", "a", "b")[0] == 2


def test_a_collection_has_to_be_named_or_configured(evh: Any, tmp_path: Path) -> None:
    for command in ("leaderboard", "pull", "status"):
        status, out, err = evh(None, command)
        assert (status, out) == (2, ""), command
        assert "collection" in err


def test_a_collection_and_a_run_that_may_be_meant(evh: Any) -> None:
    def server(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/collections/"):
            rows = [{"slug": "robust04"}, {"slug": "dl19"}]
        elif "/collections/robust4/" in request.url.path:
            return httpx.Response(
                404, json={"code": "not_found", "detail": "there is no collection 'robust4'"}
            )
        else:
            rows = (
                [] if "tag" in request.url.params else [raw_run("bm25"), raw_run("dense", number=2)]
            )
        return httpx.Response(200, json={"count": len(rows), "next": None, "results": rows})

    status, _, err = evh(server, "leaderboard", "robust4")
    assert (status, "there is no collection 'robust4'; did you mean 'robust04'?" in err) == (
        4,
        True,
    )
    status, _, err = evh(server, "values", "bm52", "-c", "robust04")
    assert (status, "has no run 'bm52'; did you mean 'bm25'?" in err) == (4, True)


def test_a_run_is_submitted_and_its_id_printed(evh: Any, tmp_path: Path) -> None:
    path = tmp_path / "bm25.run"
    path.write_text("1 Q0 a 1 1.0 run\n")
    server = FakeServer()
    status, out, err = evh(server, "submit", "c", str(path), "--quiet")
    assert (status, out, err) == (0, raw_run("x", number=0)["id"] + "\n", "")
    status, out, _ = evh(server, "submit", "c", str(path), "--format", "json(tag,state)")
    assert (status, json.loads(out)) == (0, [{"tag": "bm25", "state": "queued"}])
    assert evh(server, "submit", "c", str(tmp_path / "nowhere"))[0] == 5


def test_the_worst_of_a_batch_is_its_status(evh: Any, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.run").write_text("1 Q0 a 1 1.0 run\n")
    for code, refusal in (
        (5, problem(422, "bad_score")), (6, problem(429, "quota_exceeded")), (1, problem(502)), (3, problem(401)),
        (9, problem(409, "tag_taken")),
    ):  # fmt: skip
        sent = (
            "submit",
            "c",
            str(tmp_path),
            "--journal",
            str(tmp_path / f".{code}"),
            "--parallel",
            "1",
        )
        status, out, err = evh(FakeServer(b=refusal), *sent)
        assert status == code
        assert out.splitlines()[1].startswith("a\tqueued")
        assert "b.run" in err


def test_waiting_has_its_own_statuses(evh: Any) -> None:
    def answer(state: str) -> Callable[[httpx.Request], Any]:
        def server(request: httpx.Request) -> httpx.Response:
            run = raw_run("bm25", state)
            copy = {**run["status"], "id": run["id"]}
            many = {"runs": [copy], "missing": []} if "id" in request.url.params else run
            return httpx.Response(200, json=many)

        return server

    identity = raw_run("bm25")["id"]
    assert evh(answer("evaluated"), "wait", identity)[:2] == (0, "")
    assert evh(answer("received"), "wait", identity)[:2] == (0, "")
    assert evh(answer("failed"), "wait", identity)[0] == 7
    assert evh(answer("queued"), "wait", identity, "--timeout", "5")[0] == 8


def test_what_was_sent_is_listed_when_waiting_ends(evh: Any, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.run").write_text("1 Q0 a 1 1.0 run\n")
    sent = (
        "submit",
        "c",
        str(tmp_path),
        "--wait",
        "--timeout",
        "0.1",
        "--journal",
        str(tmp_path / ".j"),
    )
    status, out, err = evh(FakeServer(), *sent, "--format", "jsonl(tag,state)")
    assert (status, [json.loads(line)["tag"] for line in out.splitlines()]) == (8, ["a", "b"])
    assert "goes on" in err


def test_an_interruption_is_told(evh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(request: httpx.Request) -> httpx.Response:
        raise KeyboardInterrupt

    status, _, err = evh(interrupted, "whoami")
    assert (status, "goes on" in err) == (130, True)


def test_a_tag_of_several_teams_is_refused_with_the_list(evh: Any) -> None:
    runs = [
        raw_run("bm25", team="lab"),
        raw_run("bm25", team="guests", number=2),
        raw_run("bm25+rm3", number=3),
    ]
    page = httpx.Response(200, json={"count": 3, "next": None, "results": runs})
    status, _, err = evh(lambda request: page, "values", "bm25", "-c", "c")
    assert (status, "guests/bm25, lab/bm25" in err) == (2, True)


def test_predictions_of_libraries_are_submitted(evh: Any, tmp_path: Path) -> None:
    results = {"q1": {"q1": 3.0, "d1": 2.0}, "q2": {"d2": 1.0}}
    lines = [
        {
            "query_id": query,
            "results": [{"corpus_id": doc, "score": score} for doc, score in ranking.items()],
        }
        for query, ranking in results.items()
    ]
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    meta = {"model_name": "lab/e5", "revision": "no_revision_available"}
    for task in ("SciFact", "NFCorpus"):
        payload = {"mteb_model_meta": meta, "default": {"test": results}}
        (tmp_path / f"{task}_predictions.json").write_text(json.dumps(payload))
    (tmp_path / "map.toml").write_text('SciFact = "scifact"\n')
    sent: list[httpx.Request] = []

    def server(request: httpx.Request) -> httpx.Response:
        request.read()
        if request.method == "POST":
            sent.append(request)
        return FakeServer()(request)

    of_mteb = (
        "submit",
        "--from",
        "mteb",
        str(tmp_path),
        "--collections",
        str(tmp_path / "map.toml"),
    )
    status, out, err = evh(
        server, *of_mteb, "--meta", "seed=1", "--drop-identical", "--format", "json(tag)"
    )
    assert (status, json.loads(out)) == (0, [{"tag": "lab-e5"}])
    assert (
        err
        == f"Not in {tmp_path / 'map.toml'}, so not sent: NFCorpus/default/test.\nSubmitted for team lab.\n"
    )
    assert sent[0].url.path == "/api/v1/collections/scifact/runs/"
    assert b'"mteb_task": "SciFact"' in sent[0].content
    assert b'"seed": 1, "dropped_identical": 1' in sent[0].content
    assert b"q1 Q0 d1 1 2.0 lab-e5\nq2" in sent[0].content
    of_st = ("submit", "c", str(tmp_path / "p.jsonl"), "--from", "st")
    assert evh(server, *of_st, "--tag", "mpnet", "--quiet")[0] == 0
    assert b"q1 Q0 q1 1 3.0 mpnet\n" in sent[1].content
    assert evh(lambda request: problem(422, "bad_score"), *of_st, "--tag", "mpnet")[0] == 5
    alone = ("submit", str(tmp_path / "p.jsonl"), "--from", "st", "--tag", "mpnet")
    assert evh(server, *alone)[0] == 2
    assert evh(server, *alone, collection="dev")[0] == 0
    assert sent.pop().url.path == "/api/v1/collections/dev/runs/"
    for wrong in (
        of_st,
        of_mteb[:-2],
        ("submit", "c"),
        ("submit", "c", "f.run", "--collections", "map.toml"),
    ):
        assert evh(server, *wrong)[0] == 2
    assert len(sent) == 2


def test_what_other_programs_print_is_told_where_topics_are_missing(
    evh: Any, tmp_path: Path
) -> None:
    (tmp_path / "bm25.run").write_text("1 Q0 a 1 1.0 run\n")
    requests: list[str] = []

    def server(request: httpx.Request) -> httpx.Response:
        if not request.url.path.endswith("/values/"):
            return httpx.Response(202, json=raw_run("bm25", "evaluated"))
        requests.append(request.url.params.get("measures", ""))
        names = requests[-1].split(",") if requests[-1] else ["AP", "RR"]
        means = {name: {"mean": 0.5, "aggregate": "mean"} for name in names}
        values = {
            "1": {**dict.fromkeys(names, 1.0), "NumRet": 1.0},
            "2": {**dict.fromkeys(names, 0.0), "NumRet": 0.0},
        }
        topics = [{"topic_id": topic, "values": by_topic} for topic, by_topic in values.items()]
        coverage = {"answered": 1, "judged": 2}
        return httpx.Response(200, json={"means": means, "topics": topics, "coverage": coverage})

    status, out, err = evh(
        server,
        "submit",
        "c",
        str(tmp_path / "bm25.run"),
        "--wait",
        "--format",
        "tsv(tag,AP,topics)",
    )
    assert (status, out) == (0, "tag\tAP\ttopics\nbm25\t0.5\t1/2\n")
    assert err == (
        "bm25: BEIR would print AP 1.0000 (1 topic), EvalHub 0.5000 (2)\nSubmitted for team lab.\n"
    )
    assert requests == ["", "AP,RR,NumRet", "Judged@10"]


def test_an_import_names_its_dataset(evh: Any) -> None:
    status, _, err = evh(None, "collections", "import", "c")
    assert (status, "required: --ir-datasets" in err) == (2, True)


def test_mcp_says_what_to_install(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.delitem(sys.modules, "evalhub.client.mcp", raising=False)
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert cli.run(["mcp"]) == 1
    assert "pip install 'evalhub-client[mcp]'" in capsys.readouterr().err
