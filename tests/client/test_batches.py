"""Many files: what is sent, what is not sent twice, what stops a batch."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from evalhub.client import BadSource, Hub, QuotaExceeded, TimedOut
from evalhub.client.batches import Journal
from tests.client.conftest import problem, raw_run


class FakeServer:
    """Takes runs, remembers keys, and evaluates what was asked about once."""

    def __init__(self, **refusals: httpx.Response) -> None:
        self.refusals, self.keys, self.looks = refusals, {}, []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            key = request.headers["Idempotency-Key"]
            tag = re.search(rb'name="tag"\r\n\r\n(\S+)', request.content)[1].decode()  # type: ignore[index]
            if tag in self.refusals:
                return self.refusals[tag]
            self.keys.setdefault(key, raw_run(tag, number=len(self.keys)))
            return httpx.Response(202, json=self.keys[key])
        if "id" not in request.url.params:
            return httpx.Response(200, json={"active_qrels": None})
        ids = request.url.params["id"].split(",")
        self.looks.append(len(ids))
        state = "evaluated" if len(self.looks) > 2 else "queued"
        runs = [{**raw_run("x")["status"], "state": state, "id": run_id} for run_id in ids]
        return httpx.Response(200, json={"runs": runs, "missing": []})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    runs = tmp_path / "runs"
    runs.mkdir()
    for number in range(5):
        (runs / f"run-{number}.run").write_text(f"1 Q0 d{number} 1 1.0 test\n")
    return runs


def submit(hub: Hub, folder: Path, **options: Any) -> Any:
    return hub.collection("c").submit_all(folder, journal=folder.parent / "journal", **options)


def test_all_are_sent_and_waited_for_with_one_request_at_a_time(
    hub_of: Callable[..., Hub], folder: Path
) -> None:
    server = FakeServer()
    batch = submit(hub_of(server), folder)
    assert [run.tag for run in batch.runs] == [f"run-{number}" for number in range(5)]
    assert {run.state for run in batch.runs} == {"evaluated"}
    assert server.looks == [5, 5, 5]


def test_a_second_call_sends_nothing_again(hub_of: Callable[..., Hub], folder: Path) -> None:
    server = FakeServer()
    submit(hub_of(server), folder)
    (folder / "new.run").write_text("1 Q0 d 1 1.0 new\n")
    (folder / "run-0.run").write_text("1 Q0 other 1 1.0 test\n")
    batch = submit(hub_of(server), folder)
    assert len(batch.runs) == 6
    # The new one and the one that has changed.
    assert len(server.keys) == 7


def test_what_is_in_doubt_is_sent_again_with_its_key(
    hub_of: Callable[..., Hub], folder: Path
) -> None:
    server = FakeServer()
    first = submit(hub_of(server), folder, timeout=0.0)
    journal = folder.parent / "journal"
    lines = journal.read_text().splitlines()
    # As a kill leaves it: the keys are there, the answers are not, and the last line is cut short.
    journal.write_text("\n".join(line for line in lines if '"key"' in line) + "\n" + lines[-1][:20])
    again = submit(hub_of(server), folder, timeout=0.0)
    assert [run.id for run in again.runs] == [run.id for run in first.runs]
    assert len(server.keys) == 5
    assert all(json.loads(line) for line in journal.read_text().splitlines() if line.endswith("}"))
    assert submit(hub_of(server), folder, timeout=0.0).rows() == first.rows()


def test_a_refused_file_does_not_stop_the_others(hub_of: Callable[..., Hub], folder: Path) -> None:
    server = FakeServer(**{"run-1": problem(422, "bad_score")})
    batch = submit(hub_of(server), folder, parallel=1)
    assert len(batch.runs) == 4
    assert list(batch.refused) == [str(folder / "run-1.run")]
    server = FakeServer(**{"run-1": problem(422, "bad_score")})
    batch = hub_of(server).collection("c").submit_all(folder, journal=None, parallel=1, stop=True)
    assert (len(batch.runs), len(batch.refused), len(batch.unsent)) == (1, 1, 3)


def test_a_quota_that_is_used_up_ends_the_batch(hub_of: Callable[..., Hub], folder: Path) -> None:
    server = FakeServer(**{"run-2": problem(429, "quota_exceeded", **{"Retry-After": "3600"})})
    batch = submit(hub_of(server), folder, parallel=1)
    assert (len(batch.runs), len(batch.refused), len(batch.unsent)) == (2, 0, 3)
    (error,) = {id(error): error for error in batch.unsent.values()}.values()
    assert isinstance(error, QuotaExceeded)
    assert error.wait == 3600
    # On the next day the rest is sent.
    assert len(submit(hub_of(FakeServer()), folder).runs) == 5


def test_two_files_of_one_tag_are_refused_before_anything_is_sent(
    hub_of: Callable[..., Hub], folder: Path
) -> None:
    (folder / "other.run").write_text("1 Q0 d 1 1.0 run-1\n")
    server = FakeServer()
    with pytest.raises(BadSource, match=r"run-1: .*other.run.*run-1.run"):
        submit(hub_of(server), folder)
    assert server.keys == {}


def test_files_that_are_no_runs_are_refused_before_anything_is_sent(
    hub_of: Callable[..., Hub], folder: Path
) -> None:
    (folder / "README").write_text("These are our runs of the year.\n")
    (folder / "table.csv").write_text("topic,AP\n1,0.5\n")
    (folder / "score.run").write_text("# k1: 0.9\n\n1 Q0 d 1 high tag\n")
    server = FakeServer()
    with pytest.raises(
        BadSource, match=r"first line of these is not that of a run: \S+README, \S+table.csv$"
    ):
        submit(hub_of(server), folder)
    assert server.keys == {}


def test_a_batch_ends_with_what_concerns_all_of_it(
    hub_of: Callable[..., Hub], folder: Path
) -> None:
    for refusal in (problem(401), problem(403, "missing_scope"), problem(404)):
        batch = submit(hub_of(FakeServer(**{"run-1": refusal})), folder, parallel=1)
        assert (len(batch.runs), len(batch.refused), len(batch.unsent)) == (1, 0, 4)
        (folder.parent / "journal").unlink()


def test_waiting_ends_with_the_time_there_is(hub_of: Callable[..., Hub], folder: Path) -> None:
    server = FakeServer()
    with pytest.raises(TimedOut, match="run-0") as caught:
        submit(hub_of(server), folder, timeout=0.1)
    assert len(caught.value.runs) == 5


def test_a_journal_is_found_again_where_it_has_a_file(tmp_path: Path) -> None:
    journal = Journal(None)
    journal.note("a", key="k")
    assert journal.find("a") == {"key": "k"}
    reread = Journal(tmp_path / "journal")
    reread.note("a", key="k")
    assert Journal(tmp_path / "journal").find("a")["key"] == "k"
