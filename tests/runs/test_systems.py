"""Systems: versions are numbered where they are submitted, seen by who sees the runs, and searched."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import IntegrityError, transaction
from django.test import Client
from rest_framework.test import APIClient

from evalhub.operating.backup import saved_models
from runs.models import AuditEvent, Collection, Membership, Run, System, Team, User
from runs.services.tracking.systems import stem_of
from tests.conftest import GOOD, POOR, client_of, upload
from tests.metrics.scored import make_scored

SYSTEM = "/api/v1/systems/alice/splade/"
SMALL = "/api/v1/collections/small/"
OTHER = GOOD.replace("3.0", "9.0")


def send(client: APIClient, content: str = GOOD, slug: str = "small", **fields: Any) -> Any:
    form = {"file": SimpleUploadedFile("run", content.encode()), **fields}
    return client.post(f"/api/v1/collections/{slug}/runs/", form, format="multipart")


def versions(client: APIClient, path: str = SYSTEM, **query: str) -> list[tuple[int, str]]:
    return [(row["version"], row["tag"]) for row in client.get(path, query).json()["results"]]


def test_a_run_without_a_tag_is_called_after_its_version(api: APIClient, collection: str) -> None:
    checked = send(api, system="splade", dry_run="true").json()
    assert (checked["tag"], checked["warnings"]["counts"], System.objects.count()) == (
        "splade-v1",
        {},
        0,
    )
    first = send(api, system="splade", metadata='{"k1": 0.9}')
    assert (first.status_code, first.json()["tag"]) == (202, "splade-v1")
    assert (
        first.json()["system"],
        first.json()["version"],
        first.json()["warnings"]["counts"],
    ) == ("splade", 1, {})
    second = send(api, POOR, system="splade", tag="pruned", metadata='{"k1": 1.2}').json()
    assert (second["tag"], second["version"]) == ("pruned", 2)
    again = send(api, system="splade", metadata='{"k1": 2}')
    assert (again.status_code, again.json()["id"]) == (200, first.json()["id"])
    assert again.json()["warnings"]["counts"] == {"metadata_differs": 1}
    answer = api.get(SYSTEM).json()
    assert (answer["versions"], answer["collections"]) == (
        2,
        [{"collection": "small", "versions": 2, "last": 2}],
    )
    assert [row["changed"] for row in answer["results"]] == [
        [], [{"space": "param", "name": "k1", "before": 0.9, "after": 1.2}],
    ]  # fmt: skip
    events = AuditEvent.objects.filter(action__in=("run.submitted", "system.created")).order_by(
        "id"
    )
    assert [(event.action, event.after.get("system"), event.after.get("version")) for event in events] == [
        ("system.created", None, None), ("run.submitted", "alice/splade", 1), ("run.submitted", "alice/splade", 2),
    ]  # fmt: skip


def test_a_taken_tag_makes_the_next_version(api: APIClient, collection: str) -> None:
    first = send(api, tag="bm25", if_taken="version").json()
    assert (first["tag"], first["system"], first["version"]) == ("bm25", None, None)
    assert send(api, POOR, tag="bm25").json()["code"] == "tag_taken"
    assert send(api, POOR, tag="bm25", system="bm25").json()["code"] == "tag_taken"
    second = send(api, POOR, tag="bm25", if_taken="version").json()
    third = send(api, OTHER, tag="bm25-v2", if_taken="version").json()
    assert [(answer["tag"], answer["system"], answer["version"]) for answer in (second, third)] == [
        ("bm25-v2", "bm25", 2), ("bm25-v3", "bm25", 3),
    ]  # fmt: skip
    assert versions(api, "/api/v1/systems/alice/bm25/") == [
        (1, "bm25"),
        (2, "bm25-v2"),
        (3, "bm25-v3"),
    ]
    again = send(api, POOR, tag="bm25", if_taken="version")
    assert (again.status_code, again.json()["id"], Run.objects.count()) == (200, second["id"], 3)
    assert (stem_of("a-v2-v3"), stem_of("-v2"), stem_of("..."), len(stem_of("a" * 64))) == (
        "a-v2",
        "v2",
        "run",
        54,
    )


def test_withdrawn_versions_keep_their_number(api: APIClient, collection: str) -> None:
    send(api, system="splade")
    second = send(api, POOR, system="splade").json()
    assert api.delete(f"/api/v1/runs/{second['id']}/").status_code == 204
    assert send(api, OTHER, system="splade").json()["tag"] == "splade-v3"
    assert versions(api) == [(1, "splade-v1"), (3, "splade-v3")]
    # The withdrawn version is not the same file sent again.
    assert send(api, POOR, system="splade").json()["version"] == 4


def test_a_tag_of_another_run_is_not_taken_away(api: APIClient, collection: str) -> None:
    send(api, tag="splade-v2")
    send(api, POOR, system="splade")
    refused = send(api, OTHER, system="splade")
    assert (refused.status_code, refused.json()["code"]) == (409, "tag_taken")
    assert (Run.objects.count(), send(api, OTHER, system="splade", tag="x").json()["version"]) == (
        2,
        2,
    )


@pytest.mark.parametrize(
    "fields", [{"system": "-x"}, {"system": "a b"}, {"system": "x" * 55}, {"if_taken": "maybe"}]
)
def test_wrong_fields_of_a_submission(
    api: APIClient, collection: str, fields: dict[str, str]
) -> None:
    answer = send(api, **fields)
    (name,) = fields
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, f"/{name}")


@pytest.fixture
def runs(alice: User) -> list[str]:
    return make_scored("board", alice.personal_team, np.ones((4, 3)))


def test_runs_become_versions_later_and_are_taken_out(api: APIClient, runs: list[str]) -> None:
    response = api.post("/api/v1/systems/", {"slug": "splade", "name": "SPLADE"}, format="json")
    assert (response.status_code, response.json()["team"], response.json()["versions"]) == (
        201,
        "alice",
        0,
    )
    again = api.post("/api/v1/systems/", {"slug": "splade"}, format="json")
    assert (again.status_code, again.json()["code"]) == (409, "slug_taken")
    for runs_added in ([runs[1], runs[0]], [runs[0], runs[2]]):
        answer = api.patch(SYSTEM, {"add": runs_added, "description": "sparse"}, format="json")
        assert (answer.status_code, answer.json()["description"]) == (200, "sparse")
    assert versions(api) == [(1, "r0"), (2, "r1"), (3, "r2")]
    api.post("/api/v1/systems/", {"slug": "other"}, format="json")
    refused = api.patch("/api/v1/systems/alice/other/", {"add": runs}, format="json")
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (409, "/add")
    api.patch(SYSTEM, {"remove": [runs[1]]}, format="json")
    assert versions(api) == [(1, "r0"), (3, "r2")]
    assert Run.objects.get(pk=runs[1]).version is None
    assert AuditEvent.objects.filter(action="run.changed", after__version=1).count() == 1
    with pytest.raises(IntegrityError), transaction.atomic():
        Run.objects.filter(pk=runs[1]).update(version=1)
    for name, fields, code in (
        ("add", ["00000000-0000-4000-8000-000000000000"], "unknown_run"), ("add", ["x"], "invalid"),
        ("remove", [runs[0]] * 1001, "max_length"),
    ):  # fmt: skip
        problem = api.patch(SYSTEM, {name: fields}, format="json").json()
        assert problem["errors"][0]["code"] == code, problem


def test_who_sees_and_changes_a_system(api: APIClient, runs: list[str], bob: User) -> None:
    api.post("/api/v1/systems/", {"slug": "splade"}, format="json")
    anonymous, other = client_of(None), client_of(bob)
    assert [client.get(SYSTEM).status_code for client in (api, other, anonymous)] == [200, 404, 404]
    api.patch(SYSTEM, {"add": runs[:2]}, format="json")
    assert [client.get(SYSTEM).status_code for client in (api, other, anonymous)] == [200, 200, 200]
    assert other.patch(SYSTEM, {"name": "x"}, format="json").status_code == 403
    assert (
        client_of(bob, ["read", "submit"]).post("/api/v1/systems/", {"slug": "x"}).json()["code"]
        == "missing_scope"
    )
    # A run of another team.
    lab = Team.objects.create(slug="lab", name="Lab")
    Membership.objects.create(team=lab, user=bob)
    other.post("/api/v1/systems/", {"slug": "x", "team": "lab"}, format="json")
    refused = other.patch("/api/v1/systems/lab/x/", {"add": runs[2:3]}, format="json")
    assert (
        refused.status_code,
        "versions of a system are of its own team" in refused.json()["detail"],
    ) == (400, True)
    # A second collection, and the first becomes blind: what is seen is counted, nothing else.
    second = make_scored("open", Team.objects.get(slug="alice"), np.ones((1, 3)))
    api.patch(SYSTEM, {"add": second}, format="json")
    Collection.objects.filter(slug="board").update(blind=True)
    listed = other.get("/api/v1/systems/?team=alice").json()["results"]
    assert [(row["slug"], row["versions"]) for row in listed] == [("splade", 1)]
    assert other.get(SYSTEM).json()["collections"] == [
        {"collection": "open", "versions": 1, "last": 1}
    ]
    assert other.get(SYSTEM, {"collection": "board"}).status_code == 404
    assert versions(api, collection="board") == [(1, "r0"), (2, "r1")]
    assert other.get("/api/v1/systems/?collection=board").json()["count"] == 0
    assert api.get("/api/v1/systems/?collection=board").json()["count"] == 1


def test_systems_and_versions_in_filters(api: APIClient, runs: list[str]) -> None:
    for slug, members in (("splade", runs[:2]), ("Splade-x", runs[2:3])):
        api.post("/api/v1/systems/", {"slug": slug}, format="json")
        api.patch(f"/api/v1/systems/alice/{slug}/", {"add": members}, format="json")
    board = "/api/v1/collections/board/leaderboard/"
    tags = {
        text: sorted(row["run"]["tag"] for row in api.get(board, {"filter": text}).json()["results"])
        for text in ("system:splade", "system:splade*", "-system:splade*", "system:alice/splade", "version:latest",
                     "-version:latest", "version:2,1", "system:bob/splade")
    }  # fmt: skip
    assert tags == {
        "system:splade": ["r0", "r1"], "system:splade*": ["r0", "r1", "r2"], "-system:splade*": ["r3"],
        "system:alice/splade": ["r0", "r1"], "version:latest": ["r1", "r2"], "-version:latest": ["r0", "r3"],
        "version:2,1": ["r0", "r1", "r2"], "system:bob/splade": [],
    }  # fmt: skip
    assert api.get("/api/v1/collections/board/runs/?system=splade").json()["count"] == 2
    wrong = api.get("/api/v1/collections/board/leaderboard/?filter=version:newest").json()
    assert (wrong["code"], "version: takes latest or a number" in wrong["detail"]) == (
        "bad_filter",
        True,
    )


def test_a_system_goes_with_an_empty_team_and_stays_in_backups(
    api: APIClient, collection: str
) -> None:
    order = [model.__name__ for model in saved_models()]
    assert order.index("System") < order.index("Run")
    api.post("/api/v1/teams/", {"slug": "lab", "name": "Lab"})
    api.post("/api/v1/systems/", {"slug": "splade", "team": "lab"}, format="json")
    assert api.delete("/api/v1/teams/lab/").status_code == 204
    assert not System.objects.exists()


def test_a_system_is_named_in_the_form(api: APIClient, collection: str, alice: User) -> None:
    browser = Client()
    browser.force_login(alice)
    form = {
        "file": SimpleUploadedFile("run", GOOD.encode()),
        "team": "alice",
        "system": "splade",
        "action": "submit",
    }
    assert browser.post("/collections/small/submit/", form).status_code == 303
    assert Run.objects.get().tag == "splade-v1"
    wrong = {**form, "file": SimpleUploadedFile("run", POOR.encode()), "system": "a b"}
    page = browser.post("/collections/small/submit/", wrong)
    assert (page.status_code, "A system has 1 to 54 letters" in page.content.decode()) == (
        400,
        True,
    )
    assert (
        upload(api, "collections/small/runs/", POOR, system="splade").json()["tag"] == "splade-v2"
    )
