"""The command: what it writes, where, and its exit status."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from evalhub.client.output import BadFormat, rendered
from tests.client.conftest import problem, raw_run
from tests.client.test_batches import FakeServer

ROWS = [{"tag": "bm25", "nDCG(b=2,dis='jk')": 0.123456789, "n": None}, {"tag": "dense", "n": 3}]


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("table", "tag    nDCG(b=2,dis='jk')  n\nbm25               0.1235\ndense                      3\n"),
        ("tsv", "tag\tnDCG(b=2,dis='jk')\tn\nbm25\t0.123456789\t\ndense\t\t3\n"),
        ("csv(tag,n)", "tag,n\nbm25,\ndense,3\n"),
        ("jsonl(nDCG(b=2,dis='jk'))", "{\"nDCG(b=2,dis='jk')\": 0.123456789}\n{\"nDCG(b=2,dis='jk')\": null}\n"),
    ],
)
def test_formats_and_fields(asked: str, text: str) -> None:
    assert rendered(ROWS, asked) == text


def test_json_is_one_list() -> None:
    assert json.loads(rendered(ROWS, "json(tag)")) == [{"tag": "bm25"}, {"tag": "dense"}]
    assert rendered([], "json") == "[]\n"
    for asked in ("xml", "json(", "json(nothing)"):
        with pytest.raises(BadFormat, match=r"fields|format"):
            rendered(ROWS, asked)


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
    found, out, err = evh(lambda request: answer, "whoami")
    assert (found, out) == (status, "")
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
            return httpx.Response(404, json={"code": "not_found", "detail": "there is no collection 'robust4'"})
        else:
            rows = [] if "tag" in request.url.params else [raw_run("bm25"), raw_run("dense", number=2)]
        return httpx.Response(200, json={"count": len(rows), "next": None, "results": rows})

    status, _, err = evh(server, "leaderboard", "robust4")
    assert (status, "there is no collection 'robust4'; did you mean 'robust04'?" in err) == (4, True)
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
        sent = ("submit", "c", str(tmp_path), "--journal", str(tmp_path / f".{code}"), "--parallel", "1")
        status, out, err = evh(FakeServer(b=refusal), *sent)
        assert status == code
        assert out.splitlines()[1].startswith("a\tqueued")
        assert "b.run" in err


def test_waiting_has_its_own_statuses(evh: Any) -> None:
    def answer(state: str) -> Callable[[httpx.Request], Any]:
        def server(request: httpx.Request) -> httpx.Response:
            run = raw_run("bm25", state)
            one = {**run["status"], "id": run["id"]}
            many = {"runs": [one], "missing": []} if "id" in request.url.params else run
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
    sent = ("submit", "c", str(tmp_path), "--wait", "--timeout", "0.1", "--journal", str(tmp_path / ".j"))
    status, out, err = evh(FakeServer(), *sent, "--format", "jsonl(tag,state)")
    assert (status, [json.loads(line)["tag"] for line in out.splitlines()]) == (8, ["a", "b"])
    assert "goes on" in err


def test_an_interruption_is_told(evh: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(request: httpx.Request) -> httpx.Response:
        raise KeyboardInterrupt

    status, _, err = evh(interrupted, "whoami")
    assert (status, "goes on" in err) == (130, True)


def test_a_tag_of_several_teams_is_refused_with_the_list(evh: Any) -> None:
    runs = [raw_run("bm25", team="lab"), raw_run("bm25", team="guests", number=2), raw_run("bm25+rm3", number=3)]
    page = httpx.Response(200, json={"count": 3, "next": None, "results": runs})
    status, _, err = evh(lambda request: page, "values", "bm25", "-c", "c")
    assert (status, "guests/bm25, lab/bm25" in err) == (2, True)
