"""Labels: moved by compare-and-set, seen by who sees the run, usable wherever a run is named."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection, connections
from rest_framework.test import APIClient

from evalhub.operating.backup import saved_models
from metrics.services.upkeep.integrity import find_faults
from runs.errors import Conflict
from runs.models import (
    AuditEvent,
    Collection,
    Immutable,
    Label,
    LabelMove,
    Membership,
    Run,
    Team,
    User,
)
from runs.services.tracking.labels import move_label
from tests.conftest import GOOD, client_of
from tests.metrics.scored import make_scored, simulated

BOARD = "/api/v1/collections/board/"
NOBODY = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def lab(alice: User, bob: User) -> Team:
    """Alice's and Bob's team."""
    team = Team.objects.create(slug="lab", name="Lab")
    for user in (alice, bob):
        Membership.objects.create(team=team, user=user)
    return team


@pytest.fixture
def runs(lab: Team) -> list[str]:
    """Four evaluated runs of the lab."""
    return make_scored("board", lab, simulated(4, 20))


def put(client: APIClient, run: str, name: str = "main", **fields: Any) -> Any:
    return client.put(f"{BOARD}labels/{name}/", {"run": run, **fields}, format="json")


def labels(client: APIClient, **query: str) -> list[tuple[str, str, str]]:
    answer = client.get(f"{BOARD}labels/", query)
    return [(row["team"], row["name"], row["tag"]) for row in answer.json()["results"]]


def test_a_label_is_made_moved_and_deleted_and_its_past_stays(
    api: APIClient, runs: list[str]
) -> None:
    answer = put(api, runs[0], note="first")
    assert (answer.status_code, answer.json()["tag"], answer.json()["team"]) == (201, "r0", "lab")
    assert put(api, runs[0]).status_code == 200
    moved = put(api, runs[1], expected=runs[0])
    assert (moved.status_code, moved.json()["tag"]) == (200, "r1")
    past = api.get(f"{BOARD}labels/main/").json()["moves"]
    assert [(move["from_run"], move["to_run"], move["by"], move["note"]) for move in past] == [
        (runs[0], runs[1], "alice", ""),
        (None, runs[0], "alice", "first"),
    ]
    assert api.get(f"/api/v1/runs/{runs[1]}/").json()["labels"] == ["main"]
    assert api.get(f"/api/v1/runs/{runs[0]}/").json()["number"] == 1
    assert [row["labels"] for row in api.get(f"{BOARD}runs/").json()["results"]].count(
        ["main"]
    ) == 1
    refused = api.delete(f"{BOARD}labels/main/?expected={runs[0]}")
    assert (refused.status_code, refused.json()["code"]) == (409, "label_moved")
    assert api.delete(f"{BOARD}labels/main/").status_code == 204
    assert (labels(api), LabelMove.objects.count()) == ([], 3)
    actions = AuditEvent.objects.filter(object_id="board/lab/main").values_list("action", flat=True)
    assert list(actions) == ["label.deleted", "label.moved", "label.moved"]
    with pytest.raises(Immutable):
        LabelMove.objects.update(note="another")
    with pytest.raises(Immutable):
        LabelMove.objects.first().save()  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({"expected": NOBODY}, 409, "label_moved"), ({"expected": None}, 409, "label_moved"),
        ({"team": "alice"}, 400, "invalid"), ({"run": NOBODY}, 404, "not_found"), ({"run": "main"}, 400, "invalid"),
        ({"note": "a\x07"}, 400, "invalid"), ({"nonsense": 1}, 400, "unknown_field"),
        ({"note": "x" * 301}, 400, "invalid"),
    ],
)  # fmt: skip
def test_a_refused_move_changes_nothing(
    api: APIClient, runs: list[str], fields: dict[str, Any], status: int, code: str
) -> None:
    put(api, runs[0])
    answer = put(api, **{"run": runs[1], **fields})
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert (labels(api), LabelMove.objects.count()) == ([("lab", "main", "r0")], 1)


def test_names_of_labels(api: APIClient, runs: list[str]) -> None:
    assert put(api, runs[0], "v1.0_final-x").status_code == 201
    for name in ("-x", "a b", "x" * 41, "a/b", "ä"):
        assert put(api, runs[0], name).status_code == 404


def test_of_many_moves_at_once_one_succeeds(runs: list[str], bob: User) -> None:
    """All expect the same run, each names another label's place: the statement decides, in any order."""
    first, *others = (Run.objects.select_related("collection", "team").get(pk=run) for run in runs)
    move_label(run=first, name="main", user=bob)
    outcomes = []
    for run in others * 5:
        try:
            move_label(run=run, name="main", user=bob, expected=first.pk)
            outcomes.append("moved")
        except Conflict as error:
            outcomes.append(error.code)
    # Those that name the same run as the winner find it there.
    assert outcomes.count("label_moved") == 10
    assert LabelMove.objects.count() == 2


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_of_fifty_concurrent_moves_one_succeeds(alice: User) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("threads share the one connection of a database in memory")
    team = alice.personal_team
    runs = make_scored("board", team, np.ones((51, 3)))
    move_label(run=Run.objects.get(pk=runs[0]), name="main", user=alice)

    def move(run: str) -> int:
        try:
            return int(put(client, run, expected=runs[0]).status_code)
        finally:
            connections.close_all()

    client = client_of(alice)
    with ThreadPoolExecutor(10) as threads:
        statuses = list(threads.map(move, runs[1:]))
    assert sorted(statuses) == [200] + 49 * [409]
    assert LabelMove.objects.count() == 2


def test_members_move_labels_and_others_see_them(
    api: APIClient, runs: list[str], bob: User
) -> None:
    outsider = client_of(User.objects.create_user("carol"))
    assert put(client_of(bob), runs[0]).status_code == 201
    assert put(outsider, runs[1]).status_code == 403
    assert put(client_of(bob, ["read"]), runs[1]).json()["code"] == "missing_scope"
    assert put(client_of(None), runs[1]).status_code == 401
    assert labels(outsider) == labels(client_of(None)) == [("lab", "main", "r0")]
    assert outsider.get(f"{BOARD}labels/main/").status_code == 403
    assert outsider.delete(f"{BOARD}labels/main/").status_code == 403
    Collection.objects.update(blind=True)
    assert (labels(outsider), labels(api)) == ([], [("lab", "main", "r0")])
    assert outsider.get(f"{BOARD}labels/main/").status_code == 404
    Collection.objects.update(visibility="private")
    assert outsider.get(f"{BOARD}labels/").status_code == 404


def test_a_labelled_run_is_withdrawn_without_its_labels_only(
    api: APIClient, runs: list[str]
) -> None:
    put(api, runs[0])
    refused = api.delete(f"/api/v1/runs/{runs[0]}/")
    assert (refused.status_code, refused.json()["code"]) == (409, "run_is_labelled")
    assert api.delete(f"/api/v1/runs/{runs[0]}/?drop_labels=maybe").status_code == 400
    assert api.delete(f"/api/v1/runs/{runs[0]}/?drop_labels=true").status_code == 204
    assert (labels(api), LabelMove.objects.filter(to_run=None).count()) == ([], 1)
    assert put(api, runs[0]).status_code == 404
    # A withdrawn run counts among those that the team has tried.
    assert api.get(f"/api/v1/runs/{runs[1]}/").json()["number"] == 2


def test_labels_name_runs_everywhere(api: APIClient, runs: list[str]) -> None:
    put(api, runs[0])
    put(api, runs[1], "next")
    compared = api.get(
        f"{BOARD}comparison/?runs=label:main,label:lab/next&baseline=label:main"
    ).json()
    assert {run["id"] for run in compared["runs"]} == set(runs[:2])
    assert compared["family"]["baseline"] == runs[0]
    assert api.get(f"{BOARD}difference/?runs=label:next,label:main").json()["a"]["id"] == runs[1]
    queued = api.post(
        f"{BOARD}comparison/", {"runs": ["label:main", runs[2]], "tests": ["sign"]}, format="json"
    )
    assert queued.status_code == 202
    board = api.get(f"{BOARD}leaderboard/?baseline=label:main").json()
    assert board["statistics"]["baseline"]["run"] == runs[0]
    assert {row["run"]["tag"]: row["labels"] for row in board["results"]} == {
        "r0": ["main"], "r1": ["next"], "r2": [], "r3": [],
    }  # fmt: skip
    tags = {
        text: sorted(
            row["run"]["tag"]
            for row in api.get(f"{BOARD}leaderboard/", {"filter": text}).json()["results"]
        )
        for text in ("label:main", "label:lab/main,next", "-label:main", "label:alice/main")
    }
    assert tags == {
        "label:main": ["r0"], "label:lab/main,next": ["r0", "r1"], "-label:main": ["r1", "r2", "r3"],
        "label:alice/main": [],
    }  # fmt: skip
    assert api.get(f"{BOARD}leaderboard/", {"filter": "label:a/b/c"}).json()["code"] == "bad_filter"
    unknown = api.get(f"{BOARD}comparison/?runs=label:none,{runs[0]}")
    assert (unknown.status_code, unknown.json()["code"]) == (400, "unknown_label")


def test_an_answer_follows_its_label(api: APIClient, runs: list[str]) -> None:
    """The same address again, after the label was moved: nothing of before is remembered."""
    path = f"{BOARD}difference/?runs=label:main,{runs[3]}"
    put(api, runs[0])
    before, page = api.get(path), api.get("/collections/board/").content.decode()
    assert '<span class="label name">main</span>' in page
    put(api, runs[1])
    after = api.get(path, headers={"If-None-Match": before["ETag"]})
    assert (before.json()["a"]["id"], after.json()["a"]["id"]) == (runs[0], runs[1])
    assert "Δ vs r1" in api.get("/collections/board/?baseline=label:main").content.decode()
    assert (
        "label:none names no run"
        in api.get("/collections/board/?baseline=label:none").content.decode()
    )
    assert '<span class="label name">main</span>' in api.get(f"/runs/{runs[1]}/").content.decode()


def test_a_name_that_several_teams_have(
    api: APIClient, runs: list[str], alice: User, bob: User
) -> None:
    """Mine is meant; of two of mine, or of two of others, neither."""
    other = Team.objects.create(slug="other", name="Other")
    Membership.objects.create(team=other, user=alice)
    Run.objects.filter(pk=runs[1]).update(team=other)
    for run in runs[:2]:
        put(api, run)
    path = f"{BOARD}comparison/?runs=label:main,{runs[3]}"
    for client in (api, client_of(None)):
        answer = client.get(path)
        assert (answer.status_code, answer.json()["code"]) == (400, "ambiguous_label")
    assert {run["tag"] for run in client_of(bob).get(path).json()["runs"]} == {"r0", "r3"}
    assert {run["tag"] for run in api.get(path.replace("main", "other/main")).json()["runs"]} == {
        "r1",
        "r3",
    }
    assert api.delete(f"{BOARD}labels/main/").json()["code"] == "ambiguous_label"
    assert api.delete(f"{BOARD}labels/main/?team=other").status_code == 204


def test_backups_know_labels_and_fsck_finds_wrong_ones(api: APIClient, runs: list[str]) -> None:
    order = [model.__name__ for model in saved_models()]
    assert order.index("Run") < min(order.index("Label"), order.index("LabelMove"))
    put(api, runs[0])
    assert not [fault for fault in find_faults(fast=True) if "label" in fault.code]
    Label.objects.update(run=runs[1])
    assert [fault.code for fault in find_faults(fast=True) if "label" in fault.code] == [
        "label_not_moved"
    ]
    Run.objects.filter(pk=runs[1]).update(deleted_at="2026-01-01T00:00Z")
    (wrong,) = (fault for fault in find_faults(fast=True) if "label" in fault.code)
    assert (wrong.code, bool(wrong.repair)) == ("label_of_withdrawn_run", True)
    assert wrong.repair is not None
    wrong.repair()
    assert not Label.objects.exists()


def test_a_submission_moves_its_label(api: APIClient, collection: str) -> None:
    def submit(**fields: str) -> Any:
        form = {"file": SimpleUploadedFile("run", GOOD.encode()), **fields}
        return api.post(f"/api/v1/collections/{collection}/runs/", form, format="multipart")

    def named() -> list[str]:
        return list(Label.objects.filter(name="main").values_list("run__tag", flat=True))

    assert submit(tag="a", label="main", dry_run="true").status_code == 200
    assert submit(tag="a", label="no name").json()["errors"][0]["pointer"] == "/label"
    assert (named(), Run.objects.count()) == ([], 0)
    assert submit(tag="a", label="main").status_code == 202
    assert named() == ["a"]
    assert submit(tag="b", label="main").status_code == 202
    assert named() == ["b"]
    # The same file again.
    assert submit(tag="a", label="main").status_code == 200
    assert named() == ["a"]
    assert list(LabelMove.objects.values_list("to_run__tag", flat=True)) == ["a", "b", "a"]
