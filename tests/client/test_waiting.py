"""What takes its time: watching, following a folder, a quota that is used up, progress; and downloads."""

from __future__ import annotations

import hashlib
import io
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from evalhub.client import Hub, QuotaExceeded, UploadWarning, metadata, progress
from evalhub.client.metadata import command_line, gather_metadata
from tests.client.conftest import Clock, problem, raw_run
from tests.client.test_batches import FakeServer

RUNS = [
    raw_run("bm25"),
    raw_run("dense", "evaluated", number=2),
    raw_run("lost", "failed", number=3),
]


def listing(*states: str) -> Callable[[httpx.Request], httpx.Response]:
    """A server of RUNS; the first of them has these states, one after the other."""
    remaining = iter(states)

    def server(request: httpx.Request) -> httpx.Response:
        if "id" not in request.url.params:
            return httpx.Response(
                200, json={"count": 3, "next": None, "results": json.loads(json.dumps(RUNS))}
            )
        state = {**RUNS[0]["status"], "state": next(remaining), "id": RUNS[0]["id"]}
        return httpx.Response(200, json={"runs": [state], "missing": []})

    return server


def test_watching_ends_when_nothing_is_on_its_way(evh: Any) -> None:
    for named in (("c",), ("-c", "c"), ("c", "--team", "lab")):
        status, out, err = evh(
            listing("queued", "evaluating", "evaluated"), "watch", *named, "--format", "json(state)"
        )
        # The third of them failed.
        assert status == 7
        assert [row["state"] for row in json.loads(out)] == ["evaluated", "evaluated", "failed"]
        assert err.splitlines() == [
            "1 evaluated, 1 failed, 1 queued", "1 evaluated, 1 evaluating, 1 failed", "2 evaluated, 1 failed",
        ]  # fmt: skip


def test_watching_ends_with_the_time_there_is(evh: Any) -> None:
    status, _, err = evh(listing(*["queued"] * 9), "watch", "c", "--timeout", "5")
    assert (status, "bm25; the evaluation goes on" in err) == (8, True)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_table_is_drawn_in_place_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    table = progress.Table(out)
    table.show("a\nb\n", "2 queued")
    table.show("\n".join(f"run {number}" for number in range(60)), "60 queued")
    table.clear()
    assert out.getvalue().startswith("a\nb\n2 queued\n\x1b[3A\x1b[Jrun 0\n")
    assert "... and 38 more\n60 queued\n\x1b[24A\x1b[J" in out.getvalue()
    monkeypatch.setenv("CI", "true")
    assert not progress.is_interactive(out)
    assert not progress.is_interactive(io.StringIO(), {})


@pytest.mark.parametrize("rich", [False, True])
def test_progress_is_told_of_every_file(
    hub_of: Callable[..., Hub], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rich: bool
) -> None:
    """Lines where rich is not installed, bars where it is: both count every byte of a file."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    if rich:
        pytest.importorskip("rich")
    else:
        monkeypatch.setattr(progress, "find_spec", lambda name: None)
    for name in ("a", "b"):
        (tmp_path / f"{name}.run").write_text("1 Q0 a 1 1.0 run\n" * 3000)
    out = Terminal()
    hub = hub_of(FakeServer(b=problem(422, "bad_score")))
    with progress.progress(hub, 2, out=out):
        hub.collection("c").submit_all(tmp_path, journal=None, parallel=1, timeout=0.0)
    if rich:
        assert "b.run: refused" in out.getvalue()
    else:
        assert (
            out.getvalue() == "1/2 a.run: queued, 51.0 KB sent\n2/2 b.run: refused, 51.0 KB sent\n"
        )
    assert hub.watcher is None


def test_files_that_appear_are_submitted_when_they_stop_growing(
    evh: Any, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    grown = folder / "late.run"
    server = FakeServer()

    def steps() -> Iterator[None]:
        (folder / "a.run").write_text("1 Q0 a 1 1.0 run\n")
        yield
        grown.write_text("1 Q0 a 1 1.0 run\n")
        yield
        # It is still being written.
        assert len(server.keys) == 1
        grown.write_text("1 Q0 a 1 1.0 run\n2 Q0 b 1 1.0 run\n")
        (folder / "README").write_text("what this is\n")
        yield
        assert len(server.keys) == 1
        yield
        raise KeyboardInterrupt

    looks = steps()
    monkeypatch.setattr(clock, "sleep", lambda seconds: next(looks))
    status, out, err = evh(
        server, "submit", "c", str(folder), "--follow", "--journal", str(tmp_path / "journal")
    )
    assert status == 130
    assert [line.split("\t")[0::2] for line in out.splitlines()] == [
        ["queued", raw_run("a", number=0)["id"]],
        [
            "refused",
            f"nothing was sent, as the first line of these is not that of a run: {folder / 'README'}",
        ],
        ["queued", raw_run("late", number=1)["id"]],
    ]
    assert "Ctrl-C" in err


def test_a_label_names_the_latest_file_that_is_followed(
    evh: Any, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, moved, runs = tmp_path / "runs", list[str](), FakeServer()
    folder.mkdir()

    def server(request: httpx.Request) -> Any:
        if request.method == "PUT":
            moved.append(json.loads(request.content)["run"])
            return httpx.Response(200, json={"name": "main"})
        return runs(request)

    def steps() -> Iterator[None]:
        for name in ("a", "b"):
            (folder / f"{name}.run").write_text("1 Q0 a 1 1.0 run\n")
            yield
            yield
        raise KeyboardInterrupt

    looks = steps()
    monkeypatch.setattr(clock, "sleep", lambda seconds: next(looks))
    options = (
        "submit",
        "c",
        str(folder),
        "--follow",
        "--journal",
        str(tmp_path / "journal"),
        "--label",
        "main",
    )
    assert evh(server, *options)[0] == 130
    assert moved == [raw_run("a", number=number)["id"] for number in (0, 1)]
    for option in ("--tag", "--known"):
        status, _, err = evh(server, *options, option, "x")
        assert (status, f"leave {option} out" in err) == (2, True)
    assert "leave --dry-run out" in evh(server, *options, "--dry-run")[2]


def test_following_ends_where_no_file_is_taken(evh: Any, tmp_path: Path) -> None:
    for status, refusal in (
        (6, problem(429, "quota_exceeded")),
        (3, problem(401)),
        (1, problem(503)),
    ):
        (tmp_path / "a.run").write_text("1 Q0 a 1 1.0 run\n")
        exit_status, out, err = evh(
            FakeServer(a=refusal),
            "submit",
            "c",
            str(tmp_path),
            "--follow",
            "--journal",
            f"{tmp_path}/.j",
        )
        assert (exit_status, out) == (status, "")
        assert "happened" in err


def test_a_quota_is_waited_for(hub_of: Callable[..., Hub], clock: Clock, caplog: Any) -> None:
    answers = iter(
        [
            problem(429, "quota_exceeded", **{"Retry-After": "3600"}),
            httpx.Response(202, json=RUNS[0]),
        ]
    )
    seen: list[httpx.Request] = []
    hub = hub_of(lambda request: seen.append(request) or next(answers))
    assert (
        hub.collection("c").submit(b"1 Q0 a 1 1.0 x\n", tag="x", wait_for_quota=True).tag == "bm25"
    )
    assert clock.slept == [3605.0]
    assert len({request.headers["Idempotency-Key"] for request in seen}) == 1
    assert "UTC) Waiting for it." in caplog.text
    with pytest.raises(QuotaExceeded, match=r"\(\d{4}-\d\d-\d\d \d\d:\d\d UTC\)") as caught:
        hub_of(lambda request: problem(429, "quota_exceeded", **{"Retry-After": "60"})).me()
    assert caught.value.resets_at.utcoffset().total_seconds() == 0  # type: ignore[union-attr]


def test_everything_of_a_collection_is_written_into_a_folder(evh: Any, tmp_path: Path) -> None:
    body = b"1 Q0 a 1 1.0 bm25\n"
    run = raw_run("bm25", "evaluated", sha256=hashlib.sha256(body).hexdigest(), known_sha256="x")
    topic = {"topic_id": "1", "title": "cats", "fields": {"description": "About cats"}}
    answers: dict[str, Any] = {
        "collections/c/": {"slug": "c", "topics": 1, "active_qrels": 2},
        "collections/c/runs/": {"count": 1, "next": None, "results": [run]},
        "collections/c/topics/": {"count": 1, "next": None, "results": [topic]},
        "collections/c/topic-attributes/": {
            "count": 1,
            "next": None,
            "results": [{"topic_id": "1", "attributes": {"type": "short"}}],
        },
        f"runs/{run['id']}/values/": {"means": {}, "topics": []},
        f"runs/{run['id']}/file/": body,
        f"runs/{run['id']}/known/": b"{}",
        "collections/c/qrels/2/file/": b"1 0 a 1\n",
    }

    def server(request: httpx.Request) -> httpx.Response:
        content = answers[request.url.path.removeprefix("/api/v1/")]
        return httpx.Response(
            200, **({"content": content} if isinstance(content, bytes) else {"json": content})
        )

    folder = tmp_path / "all"
    assert evh(server, "pull", "c", "--to", str(folder))[:2] == (0, "")
    manifest = json.loads((folder / "manifest.json").read_text())
    assert sorted(manifest["files"]) == [
        "qrels-2.qrels", "runs/lab/bm25.known", "runs/lab/bm25.run", "runs/lab/bm25.values.json", "topics.jsonl",
    ]  # fmt: skip
    for name, entry in manifest["files"].items():
        content = (folder / name).read_bytes()
        assert entry == {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    lines = json.loads((folder / "topics.jsonl").read_text())
    expected = {"_id": "1", "title": "cats", "description": "About cats"}
    assert lines == {**expected, "attributes": {"type": "short"}}
    # A file that arrived damaged, and a name that leads out of the folder.
    answers[f"runs/{run['id']}/file/"] = body[:-3]
    assert evh(server, "pull", "c", "--to", str(folder))[0] == 1
    run["tag"] = "../../x"
    assert evh(server, "pull", "c", "--to", str(folder))[0] == 1
    assert not (tmp_path / "x.run").exists()


def test_metadata_tells_the_commit_and_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = {"rev-parse": "0123abc", "status": " M a.py"}
    monkeypatch.setattr(metadata, "_git", lambda *arguments: outputs[arguments[0]])
    secret = ["--token", "abc", "--api-key=xyz", "https://me:pw@host/x", "evh_1234567890_s"]
    gathered = gather_metadata(["train.py", "--lr", "0.1", *secret])
    assert (gathered["git_commit"], gathered["git_dirty"]) == ("0123abc", True)
    assert (
        gathered["command"] == "train.py --lr 0.1 --token ... --api-key=... https://...@host/x ..."
    )
    assert gathered["python"] == ".".join(map(str, sys.version_info[:3]))
    assert "numpy" in gathered["packages"]
    monkeypatch.setattr(metadata, "_git", lambda *arguments: "")
    assert "git_commit" not in gather_metadata(["x"])
    assert command_line(["a", "--password", "--x", "1"]) == "a --password --x 1"


def test_metadata_is_sent_with_the_run(
    evh: Any, hub_of: Callable[..., Hub], tmp_path: Path
) -> None:
    sent: list[bytes] = []

    def server(request: httpx.Request) -> httpx.Response:
        sent.append(request.content)
        return httpx.Response(202, json=RUNS[0])

    path = tmp_path / "bm25.run"
    path.write_text("1 Q0 a 1 1.0 x\n")
    assert (
        evh(
            server,
            "submit",
            "c",
            str(path),
            "--meta",
            "auto",
            "--meta",
            "k1=0.9",
            "--meta",
            "model=1a",
        )[0]
        == 0
    )
    assert b'"k1": 0.9, "model": "1a"}' in sent[0]
    assert b'"evalhub_client": ' in sent[0]
    hub_of(server).collection("c").submit(path, metadata="auto")
    assert b'"command": ' in sent[1]
    assert evh(server, "submit", "c", str(path), "--meta", "k1")[0] == 2
    with pytest.raises(ValueError, match="'auto'"):
        hub_of(server).collection("c").submit(path, metadata="all")  # type: ignore[call-overload]


def states_of(
    status: dict[str, Any], created: dict[str, Any] | None = None
) -> Callable[[httpx.Request], httpx.Response]:
    """A server of one run: it is taken as `created`, and its state is `status` from then on."""

    def server(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            return httpx.Response(202, json={**raw_run("bm25"), **(created or {})})
        if "id" in request.url.params:
            row = {**RUNS[0]["status"], **status, "id": RUNS[0]["id"]}
            return httpx.Response(200, json={"runs": [row], "missing": []})
        return httpx.Response(200, json={"count": 1, "next": None, "results": [raw_run("bm25")]})

    return server


NO_QRELS = {"code": "no_active_qrels", "reason": "the collection has no active judgements yet"}
NO_WORKER = {"queue": {"position": 1, "seconds": 9.0, "waits_for": "no_worker_alive"}}


@pytest.mark.parametrize("command", ["submit", "wait", "watch"])
@pytest.mark.parametrize(("status", "says"), [(NO_QRELS, "no active judgements yet"), (NO_WORKER, "no worker")])  # fmt: skip
def test_nobody_waits_for_what_does_not_come(
    evh: Any, clock: Clock, tmp_path: Path, command: str, status: dict[str, Any], says: str
) -> None:
    (tmp_path / "bm25.run").write_text("1 Q0 a 1 1.0 bm25\n")
    more = (str(tmp_path / "bm25.run"), "--wait") if command == "submit" else ("bm25",)
    exit_status, _, err = evh(states_of(status), command, "c", *more, "--timeout", "3600")
    assert (exit_status, says in err) == (12, True), err
    # A worker may be away while the service starts again.
    assert sum(clock.slept) <= (1 if status is NO_QRELS else 20)


def test_what_is_waited_for_is_said_once_a_minute(
    evh: Any, caplog: pytest.LogCaptureFixture
) -> None:
    queue = {"position": 3, "seconds": 9.0, "waits_for": "worker"}
    assert evh(states_of({"queue": queue}), "wait", "c", "bm25", "--timeout", "200")[0] == 8
    assert len(caplog.messages) == 4
    what = "waiting for bm25: queued, number 3 in the queue ("
    assert all(message.startswith(what) for message in caplog.messages)


REPORT = {
    "warnings": [
        {"line": 0, "code": "no_topic_matches", "message": "none of the file's 2 topics", "count": 2,
         "lines": []},
        {"line": 2, "code": "extra_columns", "message": "columns are ignored", "count": 1200,
         "lines": [2, 3, 4, 5]},
        {"line": 1, "code": "tag_differs", "message": "replaced", "count": 1, "lines": [1]},
    ],
    "counts": {"no_topic_matches": 2, "extra_columns": 1200, "tag_differs": 1},
}  # fmt: skip
SAID = [
    "no_topic_matches: none of the file's 2 topics",
    "extra_columns: columns are ignored (lines 2, 3, 4 and 1,197 more)",
]


@pytest.mark.parametrize("dry_run", [False, True])
def test_warnings_of_an_upload_are_said(evh: Any, tmp_path: Path, dry_run: bool) -> None:
    (tmp_path / "bm25.run").write_text("1 Q0 a 1 1.0 bm25\n")
    counts = {"lines": 1, "topics": 1, "documents": 1}
    server = states_of({}, {"warnings": REPORT, **counts})
    options = ("--tag", "bm25", *(["--dry-run"] if dry_run else []))
    status, _, err = evh(server, "submit", "c", str(tmp_path / "bm25.run"), *options)
    assert (status, err.splitlines()[:2]) == (0, [f"evh: bm25.run: {text}" for text in SAID])


def test_warnings_are_those_of_python_and_can_be_filtered(hub_of: Callable[..., Hub]) -> None:
    collection = hub_of(states_of({}, {"warnings": REPORT})).collection("c")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UploadWarning)
        collection.submit({"1": {"a": 1.0}}, tag="x")
        warnings.simplefilter("ignore", UploadWarning)
        collection.submit({"1": {"a": 1.0}}, tag="x")
    assert [str(entry.message) for entry in caught] == [f"x.run: {text}" for text in SAID]
    # The place is the call of the user, not a line of the client.
    assert {entry.filename for entry in caught} == {__file__}
