"""Campaigns in the client: from the call to the receipt, and what their commands write."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from rest_framework.test import APIClient

from evalhub.client import BadFile, Conflict, Hub, NotFound, QuotaExceeded, cli, commands
from runs.models import Membership, Team, User
from tests.campaigns.conftest import clock, people  # noqa: F401
from tests.campaigns.worlds import CLOSES, LATE, OPENS, TICK, Clock, make_campaign, run_of
from tests.client.conftest import problem
from tests.client.inside import hub_inside
from tests.conftest import evaluate_all
from tests.reliability.servers import ROOT

pytestmark = pytest.mark.sqlite
SCHEMAS: dict[str, Any] = json.loads((ROOT / "docs/client.schema.json").read_text())["$defs"]
Clients = dict[str, APIClient]
# What is written of releases and mails, which the second test of commands tries.
AFTERWARDS = {
    f"campaign {name}"
    for name in (
        "create",
        "publish",
        "team",
        "publish-entry",
        "paper",
        "notify",
        "notices",
        "outbox",
        "release plan",
        "release now",
        "release list",
        "packet",
        "entries-file",
        "topics",
        "snapshot make",
        "snapshot list",
        "snapshot pull",
        "board",
    )
}


@pytest.fixture
def hubs(people: Clients) -> dict[str, Hub]:  # noqa: F811
    """A campaign with an agreement and a phase of three slots, and the clients of an organiser and two teams."""
    form = [{"key": "stages", "type": "number", "label": "Stages", "required": True}]
    make_campaign(people["olga"], slots=3, attempts_total=3, form=form)
    by_name = {
        name: hub_inside(User.objects.get(username=name)) for name in ("olga", "ann", "abe", "ben")
    }
    by_name["olga"].campaign("cup").add_agreement("Data", "No redistribution.")
    return by_name


def test_a_team_takes_part_from_registration_to_receipt(hubs: dict[str, Hub], clock: Clock) -> None:  # noqa: F811
    ann = hubs["ann"].campaign("cup")
    (agreement,) = ann.agreements().rows()
    assert ann.register("apples", affiliation="Orchard").state == "accepted"
    assert [
        (row["team"], row["members"]) for row in hubs["olga"].campaign("cup").teams().rows()
    ] == [("apples", 1)]
    task = ann.phase("task")
    assert task.info().countdown().startswith("phase task of cup opens in 1 d, at 2027-04-02")
    clock.now = OPENS
    with pytest.raises(Conflict, match="is not signed by you"):
        task.enter(run_of("dense").encode(), answers={"stages": 2})
    assert ann.sign(agreement["sha256"][:8], "Ann A.").signed_at
    with pytest.raises(NotFound, match="at least 8 characters"):
        ann.sign(agreement["sha256"][:7], "Ann A.")
    with pytest.raises(BadFile, match="an answer is required"):
        task.enter(run_of("dense").encode())
    assert task.enter(run_of("dense").encode(), answers={"stages": 2}, dry_run=True).lines == 5
    first = task.enter(run_of("dense").encode(), answers={"stages": 2}, description="two stages")
    assert (first.tag, first.late, first.priority, first.rows()[0]["slots_left"]) == (
        "dense",
        False,
        1,
        2,
    )
    task.enter(run_of("sparse").encode(), answers={"stages": 1})
    assert task.prioritise(["sparse", "dense"]).order == ["sparse", "dense"]
    assert [(row["tag"], row["priority"]) for row in task.entries().rows()] == [
        ("dense", 2),
        ("sparse", 1),
    ]
    assert task.withdraw("dense", "a bug").state == "withdrawn"
    with pytest.raises(NotFound, match="did you mean 'sparse'"):
        task.withdraw("spars")
    task.enter(run_of("third").encode(), answers={"stages": 1})
    assert task.allowance().raw | {"resets_at": ""} == {
        "slots_left": 1, "attempts_left_today": None, "attempts_left": 0, "resets_at": "",
    }  # fmt: skip
    # Attempts in all: nothing is waited for.
    with pytest.raises(QuotaExceeded, match=r"used its 3 attempts in phase task$"):
        task.enter(run_of("fourth").encode(), answers={"stages": 1})


def test_the_countdown_has_the_clock_of_the_server(hubs: dict[str, Hub], clock: Clock) -> None:  # noqa: F811
    task, organised = (
        hubs["ben"].campaign("cup").phase("task"),
        hubs["olga"].campaign("cup").phase("task"),
    )
    rule = "The last byte has to arrive before that instant, by the server's clock; the instant itself is late."
    for now, sentence in (
        (
            CLOSES - timedelta(minutes=75),
            f"closes in 1 h 15 min, at 2027-05-02 12:00:00 UTC. {rule}",
        ),
        (CLOSES - TICK, f"closes in 0 s, at 2027-05-02 12:00:00 UTC. {rule}"),
        (
            CLOSES,
            "late entries are taken for 7 d, until 2027-05-09 12:00:00 UTC, and stay marked as late.",
        ),
        (LATE, "closed at 2027-05-02 12:00:00 UTC."),
    ):
        clock.now = now
        assert task.info().countdown().endswith(sentence)
    clock.now = OPENS
    organised.pause("wrong topics")
    assert "is paused: wrong topics" in task.info().countdown()
    organised.resume()
    organised.extend((CLOSES + timedelta(hours=1)).isoformat(), "storm")
    assert task.info().closes == "2027-05-02T13:00:00Z"


def test_an_entry_whose_answer_is_lost_is_sent_again_with_its_key(
    hub_of: Callable[..., Hub],
) -> None:
    keys = []

    def answer(request: httpx.Request) -> Any:
        keys.append(request.headers["Idempotency-Key"])
        return (
            httpx.ReadTimeout("lost")
            if len(keys) < 3
            else httpx.Response(201, json={"tag": "dense"})
        )

    assert (
        hub_of(answer).campaign("cup").phase("task").enter(b"1 Q0 d 1 1.0 dense\n").tag == "dense"
    )
    assert len(keys) == 3
    assert len(set(keys)) == 1


class Commands:
    """Runs commands of somebody, and checks what they write by its schema; `checked` are the schemas that were used."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
        self._patch, self._capsys = monkeypatch, capsys
        self._schemas = pytest.importorskip("jsonschema")
        self.checked: set[str] = set()

    def __call__(
        self, who: str, name: str, *options: str, status: int = 0
    ) -> tuple[list[dict[str, Any]], str]:
        self._patch.setattr(
            commands, "hub_of", lambda args: hub_inside(User.objects.get(username=who))
        )
        words = [word for word in name.split() if not word.startswith("--")]
        flags = [word for word in name.split() if word.startswith("--")]
        exit_status = cli.run(["campaign", *words, *options, *flags, "--format", "json"])
        out, err = self._capsys.readouterr()
        assert exit_status == status, err
        if not out or status == 2:
            return [], err
        definition = {"$defs": SCHEMAS, **SCHEMAS[f"campaign {name}"]}
        checker = self._schemas.FormatChecker()
        self._schemas.Draft202012Validator(definition, format_checker=checker).validate(
            json.loads(out)
        )
        self.checked.add(f"campaign {name}")
        return json.loads(out), err


@pytest.fixture
def evh_as(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Commands:
    return Commands(monkeypatch, capsys)


def begin(evh: Callable[..., Any], hubs: dict[str, Hub], file: Path) -> None:
    """A campaign from nothing, and the teams that ask to take part."""
    (draft,), text = evh("olga", "create", "next", "--name", "Next cup", "--team", "lab")
    assert (draft["state"], draft["team"], "config get next" in text) == ("draft", "lab", True)
    phase = {
        "slug": "a",
        "name": "A",
        "collection": "open",
        "kind": "development",
        "closes_at": "2090-01-01",
    }
    start = {"opens_at": OPENS.isoformat(), "measures": ["nDCG@10"]}
    file.write_text(
        json.dumps({"campaign": {"registration": "approval"}, "phases": [{**phase, **start}]})
    )
    hubs["olga"].create_collection("open")
    evh("olga", "config put", "next", str(file))
    assert evh("olga", "publish", "next")[0][0]["state"] == "published"
    hubs["ben"].campaign("next").register("berries")
    for option, state in (("decline", "declined"), ("accept", "accepted"), ("remove", "removed")):
        (team,), _ = evh("olga", "team", "next", "berries", f"--{option}", "--reason", "late")
        assert (team["team"], team["state"]) == ("berries", state)


def configure(evh: Callable[..., Any], file: Path) -> None:
    """The campaign as a file, and next year's."""
    evh("olga", "config get", "cup", "--to", str(file))
    file.write_text(
        file.read_text()
        .replace("slots: 3", "slots: 4")
        .replace("kind: evaluation", "kind: training")
    )
    changes, text = evh("olga", "config put", "cup", str(file), "--dry-run", status=9)
    assert [(row["path"], row["allowed"]) for row in changes] == [
        ("phases[0].kind", False),
        ("phases[0].slots", True),
    ]
    assert text == "2 would change, 1 not allowed: nothing would be changed.\n"
    assert evh("olga", "config put", "cup", str(file), status=9)[1].startswith(
        "evh: kind of a phase stays"
    )
    file.write_text(file.read_text().replace("kind: training", "kind: evaluation"))
    assert evh("olga", "config put", "cup", str(file))[0][0]["to"] == 4
    (copied,), _ = evh("olga", "copy", "cup", "cup-2", "--team", "lab", "--shift-days", "365")
    assert copied["opens_at"] == "2028-04-01T12:00:00Z"
    assert evh("olga", "copy", "cup", "cup-3", "--collection", "dark", status=2)[1]
    assert evh("olga", "config", status=2)[1]


def take_out(evh: Callable[..., Any], folder: Path) -> None:
    """All packets, values by topic, and all entries with their answers."""
    every = folder / "all.zip"
    (row,), _ = evh("olga", "packet", "cup", "task", "--all", "--to", str(every))
    assert (row["size"], zipfile.is_zipfile(every)) == (every.stat().st_size, True)
    assert evh("olga", "packet", "cup", "task", "--all", "--team", "apples", status=2)[1]
    figures, _ = evh("olga", "topics", "cup", "task")
    assert {(row["measure"], row["n"]) for row in figures} == {("nDCG@10", 1)}
    entries = folder / "entries.csv"
    assert evh("olga", "entries-file", "cup", "task", "--to", str(entries))[0][0]["size"]
    assert "answer:stages" in entries.read_text()


def test_the_commands_of_a_participant_write_what_their_schema_says(
    hubs: dict[str, Hub], clock: Clock, evh_as: Commands, tmp_path: Path  # noqa: F811
) -> None:  # fmt: skip
    evh = evh_as
    Membership.objects.create(
        team=Team.objects.get(slug="berries"), user=User.objects.get(username="abe")
    )

    assert [row["slug"] for row in evh("ann", "list")[0]] == ["cup"]
    assert evh("ann", "show", "cup")[0][0]["phases"] == ["task"]
    (link,), _ = evh("olga", "link create", "cup", "--team", "Lab of Ada", "--people", "5")
    (row,), _ = evh("olga", "link list", "cup")
    assert (row["key"], row["team_name"], row["max_uses"]) == (link["key"], "Lab of Ada", 5)
    evh("olga", "link revoke", "cup", link["key"])
    assert evh("olga", "link list", "cup")[0] == []
    (agreement,), text = evh("ann", "agreements", "cup")
    assert "No redistribution." in text
    words = evh("ann", "register", "cup", "--team", "apples")[1]
    assert f"evh campaign sign cup {agreement['sha256'][:12]} --typed-name NAME" in words
    assert (
        "--typed-name"
        in evh("ben", "register", "cup", "--agreement", agreement["sha256"], status=2)[1]
    )
    named = ("--team", "berries", "--agreement", agreement["sha256"], "--typed-name", "Ben")
    assert "Not signed" not in evh("ben", "register", "cup", *named)[1]
    assert [row["team"] for row in evh("olga", "teams", "cup")[0]] == ["apples", "berries"]
    assert evh("abe", "join", "cup", "berries")[0][0]["team"] == "berries"
    clock.now = OPENS
    (tmp_path / "dense").write_text(run_of("dense"))
    enter = ("cup", "task", str(tmp_path / "dense"), "--answer", "stages=2")
    assert "evh campaign sign" in evh("ann", "enter", *enter, status=9)[1]
    evh("ann", "sign", "cup", agreement["sha256"][:8], "--typed-name", "Ann A.")
    assert evh("ann", "enter --dry-run", *enter)[0][0]["lines"] == 5
    assert evh("ann", "enter --dry-run", *enter[:3], status=5)[0][0]["error"].endswith(
        "an answer is required"
    )
    (receipt,), words = evh("ann", "enter", *enter)
    assert words.startswith(
        "Phase task of cup closes in 30 d, at 2027-05-02 12:00:00 UTC. The last byte has to arrive"
    )
    assert (receipt["tag"], receipt["late"], receipt["slots_left"]) == ("dense", False, 2)
    assert evh("ann", "entries", "cup", "task")[0][0]["id"] == receipt["id"]
    assert evh("olga", "allowance", "cup", "task", "--team", "apples")[0][0]["attempts_left"] == 2
    assert evh("ann", "priorities", "cup", "task", "dense")[0] == [{"priority": 1, "tag": "dense"}]
    hubs["olga"].campaign("cup").phase("task").extend((CLOSES + TICK).isoformat(), "storm")
    (phase,), sentence = evh("ann", "phases", "cup")
    assert (phase["slots"], "storm" in sentence) == (3, True)
    assert evh("ann", "withdraw", "cup", "task", "dense")[0][0]["state"] == "withdrawn"
    configure(evh, tmp_path / "cup.yaml")
    assert evh.checked == {name for name in SCHEMAS if name.startswith("campaign ")} - AFTERWARDS


def test_the_commands_of_organisers_write_what_their_schema_says(
    hubs: dict[str, Hub], clock: Clock, evh_as: Commands, tmp_path: Path  # noqa: F811
) -> None:  # fmt: skip
    evh, ann = evh_as, hubs["ann"].campaign("cup")
    begin(evh, hubs, tmp_path / "next.json")
    ann.register(
        "apples", agreements=[row["sha256"] for row in ann.agreements().rows()], typed_name="Ann"
    )
    clock.now = OPENS
    ann.phase("task").enter(run_of("dense").encode(), answers={"stages": 1})
    assert evh("olga", "notify", "cup", "More topics", "Soon.")[0][0]["audience"] == "teams"
    rows, text = evh("ann", "notices", "cup")
    assert ([row["title"] for row in rows], "Soon." in text) == (["More topics"], True)
    events = [row["event"] for row in evh("olga", "outbox", "cup", "--limit", "5")[0]]
    assert {"notice.posted", "entry.received"} <= set(events)
    clock.now = LATE
    late = (LATE + timedelta(days=9)).isoformat()
    (planned,), _ = evh("olga", "release plan", "cup", "task", "participants", "--at", late)
    assert (
        evh("olga", "release cancel", planned["id"])[1]
        == f"Release {planned['id']} is cancelled.\n"
    )
    (planned,), words = evh("olga", "release plan", "cup", "task", "teams", "--note", "first")
    assert words == f"It is done by evh campaign release now {planned['id']}.\n"
    assert "still to be evaluated" in evh("olga", "release now", planned["id"], status=9)[1]
    evaluate_all()
    assert evh("olga", "release now", planned["id"])[0][0]["state"] == "done"
    assert [row["state"] for row in evh("olga", "release list", "cup", "task")[0]] == [
        "cancelled",
        "done",
    ]
    file = tmp_path / "packet.zip"
    (row,), _ = evh("ann", "packet", "cup", "task", "--to", str(file))
    assert zipfile.is_zipfile(file)
    assert row["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    take_out(evh, tmp_path)
    assert ann.phase("task").results().team == "apples"
    (snapshot,), citation = evh(
        "olga", "snapshot make", "cup", "task", "--label", "official results"
    )
    assert snapshot["code"] in citation
    assert evh("olga", "snapshot list", "cup")[0] == [snapshot]
    # Before the results are everybody's it is the organisers' alone.
    pull = ("snapshot pull", snapshot["code"], "--to", str(tmp_path / "cup.tar.zst"))
    (pulled,), _ = evh("olga", *pull)
    assert pulled["sha256"] == hubs["olga"].snapshot(snapshot["code"]).archive_sha256
    assert "there is no snapshot" in evh("ann", *pull, status=4)[1]
    (planned,), _ = evh("olga", "release plan", "cup", "task", "public")
    evh("olga", "release now", planned["id"])
    (row,), _ = evh("ann", "board", "cup", "task", "-m", "AP", "--statistics", "tiers")
    assert (row["rank"], row["tag"], row["name"], row["late"]) == (1, "dense", "apples", False)
    assert evh("ann", "board", "cup", "task", "--view", "late")[0] == []
    assert evh("ann", "board", "cup", "task", "--filter", "tag:none")[0] == []
    more = {
        "collection": "dark",
        "kind": "afterwards",
        "opens_at": late,
        "closes_at": "2027-07-01T00:00:00Z",
    }
    hubs["olga"].campaign("cup").create_phase("more", name="More", **more)
    clock.now = LATE + timedelta(days=10)
    ann.phase("more").enter(run_of("later").encode(), tag="later")
    assert [row["tag"] for row in evh("ann", "publish-entry", "cup", "more", "later")[0]] == [
        "later"
    ]
    assert ann.phase("more").entries().raw["results"][0]["published"]
    evh("ann", "paper", "cup", "more", "later", "10.1145/3404835")
    assert ann.phase("more").entries().raw["results"][0]["paper"] == "10.1145/3404835"
    (pulled,), _ = evh("ann", *pull)
    assert pulled["size"] == snapshot["archive_bytes"] == (tmp_path / "cup.tar.zst").stat().st_size
    assert evh.checked == {*AFTERWARDS, "campaign config put"}


def test_a_tag_that_is_taken_in_a_campaign_is_told_without_an_option_that_there_is_not(
    evh: Any,
) -> None:
    refused = problem(409, "tag_taken")
    status, _, err = evh(lambda request: refused, "campaign", "withdraw", "cup", "task", "dense")
    assert (status, "--if-taken" in err) == (9, False)
