"""Lineage: parents that are seen, trees that end, links that lead somewhere, and names that outlive runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import IntegrityError, transaction
from django.test import Client
from rest_framework.test import APIClient

from evalhub.operating.backup import saved_models
from runs.errors import Unprocessable
from runs.formats.links import check_url
from runs.models import AuditEvent, Collection, Membership, Run, RunLink, RunParent, Team, User
from tests.conftest import GOOD, POOR, client_of
from tests.metrics.scored import make_scored
from tests.shared_data import alice, api, collection, module_data, submit

__all__ = ["alice", "api", "collection", "module_data", "submit"]

NOBODY = "00000000-0000-4000-8000-000000000000"
BOARD = "/api/v1/collections/board/leaderboard/"
HEADER = """\
# ir_metadata.start
# implementation:
#   source:
#     repository: https://github.com/lab/ranker
#     commit: 3f2a1c
# research goal:
#   publication:
#     doi: 10.1145/1234.5678
#     arxiv: '2104.05740'
#     url: git@example.org
#   evaluation:
#     baseline: [r0, nothing]
# ir_metadata.end
"""


@pytest.fixture(scope="module")
def runs(alice: User) -> list[str]:
    return make_scored("board", alice.personal_team, np.ones((6, 3)))


def put(client: APIClient, run: str, *parents: Any, **fields: Any) -> Any:
    named = [{"run": parent, **fields} if isinstance(parent, str) else parent for parent in parents]
    return client.put(f"/api/v1/runs/{run}/parents/", {"parents": named}, format="json")


def tree(client: APIClient, run: str) -> tuple[dict[str, int], set[tuple[str, str, str]], int]:
    """The levels by tag, the edges as child, name and relation, and what is left out."""
    answer = client.get(f"/api/v1/runs/{run}/tree/").json()
    tags = {node["run"]: node["tag"] for node in answer["nodes"]}
    edges = {(tags[edge["child"]], edge["name"], edge["relation"]) for edge in answer["edges"]}
    return {node["tag"]: node["level"] for node in answer["nodes"]}, edges, answer["left_out"]


def test_parents_are_kept_in_their_order(api: APIClient, runs: list[str]) -> None:
    answer = put(
        api, runs[0], {"run": runs[2], "relation": "fused", "weight": 0.4}, {"run": runs[1]}
    )
    assert answer.status_code == 200
    assert answer.json()["parents"] == [
        {"run": runs[2], "name": "alice/r2", "relation": "fused", "weight": 0.4},
        {"run": runs[1], "name": "alice/r1", "relation": "derived", "weight": None},
    ]
    assert client_of(None).get(f"/api/v1/runs/{runs[0]}/parents/").json() == answer.json()
    known = AuditEvent.objects.count()
    put(api, runs[0], {"run": runs[2], "relation": "fused", "weight": 0.4}, {"run": runs[1]})
    assert AuditEvent.objects.count() == known
    put(api, runs[0], runs[1])
    event = AuditEvent.objects.get(action="run.changed", after__parents=[
        {"run": runs[1], "relation": "derived", "weight": None}])  # fmt: skip
    assert len(event.before["parents"]) == 2
    # Edits of metadata are another matter.
    assert api.get(f"/api/v1/runs/{runs[0]}/history/").json()["edits"] == []


@pytest.mark.parametrize(
    ("parents", "status", "code", "pointer"),
    [
        ([{"run": NOBODY}], 400, "unknown_run", "/parents/0/run"),
        ([{"run": "{1}"}, {"run": "{1}"}], 400, "invalid", "/parents/1/run"),
        ([{"run": "{0}"}], 409, "cycle", "/parents/0/run"),
        ([{"run": "{1}", "relation": "copied"}], 400, "invalid_choice", "/parents/0/relation"),
        ([{"run": "{1}", "weight": "nan"}], 400, "invalid", "/parents/0/weight"),
        ([{"run": "{1}", "nonsense": 1}], 400, "unknown_field", "/nonsense"),
        ([{"run": "{1}"}] * 51, 400, "too_many_runs", "/parents"),
        ("x", 400, "invalid", "/parents"),
    ],
)
def test_wrong_parents_change_nothing(
    api: APIClient, runs: list[str], parents: Any, status: int, code: str, pointer: str
) -> None:
    text = json.dumps({"parents": parents})
    for number in (0, 1):
        text = text.replace(f"{{{number}}}", runs[number])
    answer = api.put(f"/api/v1/runs/{runs[0]}/parents/", text, content_type="application/json")
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (status, code), answer.json()
    assert answer.json()["errors"][0]["pointer"] == pointer
    assert not RunParent.objects.exists()


def test_a_tree_has_what_is_above_and_below(api: APIClient, runs: list[str]) -> None:
    put(api, runs[1], runs[0], relation="reranked")
    put(api, runs[2], runs[0], relation="expanded")
    put(api, runs[3], runs[1], runs[2], relation="fused")
    put(api, runs[4], runs[3], relation="trained")
    levels, edges, left_out = tree(api, runs[3])
    assert levels == {"r3": 0, "r1": -1, "r2": -1, "r0": -2, "r4": 1}
    assert edges == {
        ("r3", "alice/r1", "fused"), ("r3", "alice/r2", "fused"), ("r1", "alice/r0", "reranked"),
        ("r2", "alice/r0", "expanded"), ("r4", "alice/r3", "trained"),
    }  # fmt: skip
    assert (left_out, tree(api, runs[5])) == (0, ({"r5": 0}, set(), 0))
    for child, parent in ((0, 4), (0, 1), (3, 4)):
        refused = put(api, runs[child], runs[parent])
        assert (refused.status_code, refused.json()["code"]) == (409, "cycle")
    with pytest.raises(IntegrityError), transaction.atomic():
        RunParent.objects.create(child_id=runs[0], parent_id=runs[0], parent_name="x")


def test_a_tree_that_is_a_cycle_all_the_same_ends(api: APIClient, runs: list[str]) -> None:
    """Such as when a withdrawn run is restored."""
    for child, parent in ((0, 1), (1, 2), (2, 0)):
        RunParent.objects.create(child_id=runs[child], parent_id=runs[parent], parent_name="x")
    levels, edges, left_out = tree(api, runs[0])
    assert (levels, len(edges), left_out) == ({"r0": 0, "r1": -1, "r2": -2}, 3, 0)
    assert "see above" in Client().get(f"/runs/{runs[0]}/parameters/").content.decode()


@pytest.mark.slow
def test_a_tree_ends_after_twenty_levels_and_five_hundred_runs(api: APIClient, alice: User) -> None:
    chain = make_scored("chain", alice.personal_team, np.ones((24, 2)))
    wide = make_scored("wide", alice.personal_team, np.ones((521, 2)))
    edges = [(chain[number], chain[number + 1]) for number in range(23)]
    edges += [(child, wide[0]) for child in wide[1:]]
    RunParent.objects.bulk_create(
        RunParent(child_id=child, parent_id=parent, parent_name="x") for child, parent in edges
    )
    levels, nodes, left_out = tree(api, chain[0])
    assert (min(levels.values()), len(nodes), left_out) == (-20, 20, 1)
    levels, nodes, left_out = tree(api, wide[0])
    assert (len(levels), len(nodes), left_out) == (500, 499, 21)
    page = Client().get(f"/runs/{wide[0]}/parameters/").content.decode()
    assert page.count(">alice/r") == 200
    # Of the 520 children 499 are in the tree, and 200 have room.
    assert "320 more are not shown" in page


def test_an_edge_to_an_unseen_run_leaves_no_trace(
    api: APIClient, runs: list[str], bob: User
) -> None:
    """A participant's run was made from one that is blind to others, and is a parent of another."""
    lab = Team.objects.create(slug="lab", name="Lab")
    Membership.objects.create(team=lab, user=bob)
    (hidden,) = make_scored("dark", lab, np.ones((1, 3)))
    owner = Team.objects.create(slug="owner", name="Owner")
    Collection.objects.filter(slug="dark").update(blind=True, team=owner)
    Run.objects.filter(pk=runs[1]).update(team=lab)
    both = client_of(bob)
    assert put(api, runs[0], hidden).json()["code"] == "unknown_run"
    assert put(both, runs[1], hidden, runs[2], relation="fused").status_code == 200
    put(api, runs[3], runs[1])
    assert tree(both, runs[3])[0] == {"r3": 0, "r1": -1, "r0": -2, "r2": -2}
    levels, edges, left_out = tree(api, runs[3])
    assert (levels, left_out) == ({"r3": 0, "r1": -1, "r2": -2}, 0)
    assert edges == {("r3", "lab/r1", "derived"), ("r1", "alice/r2", "fused")}
    assert [
        parent["name"] for parent in api.get(f"/api/v1/runs/{runs[1]}/parents/").json()["parents"]
    ] == ["alice/r2"]
    assert "lab/r0" not in Client().get(f"/runs/{runs[1]}/parameters/").content.decode()
    tags = {
        text: sorted(row["run"]["tag"] for row in client.get(BOARD, {"filter": text}).json()["results"])
        for client in (api,) for text in ("has:parents", f"parent:{hidden}", "parent:r2", "parent:lab/r1")
    }  # fmt: skip
    assert tags == {
        "has:parents": ["r1", "r3"],
        f"parent:{hidden}": [],
        "parent:r2": ["r1"],
        "parent:lab/r1": ["r3"],
    }
    assert [
        row["run"]["tag"]
        for row in both.get(BOARD, {"filter": f"parent:{hidden}"}).json()["results"]
    ] == ["r1"]
    # Withdrawn, it stays unseen; and who does not see it replaces the others only.
    Run.objects.filter(pk=runs[1]).update(team=Team.objects.get(slug="alice"))
    Run.objects.filter(pk=hidden).update(deleted_at="2026-01-01T00:00Z")
    assert put(api, runs[1], runs[4]).json()["parents"][0]["name"] == "alice/r4"
    assert RunParent.objects.filter(child=runs[1], parent=hidden).exists()


def test_names_outlive_runs(api: APIClient, runs: list[str]) -> None:
    put(api, runs[1], runs[0], runs[2])
    assert api.delete(f"/api/v1/runs/{runs[0]}/").status_code == 204
    parents = api.get(f"/api/v1/runs/{runs[1]}/parents/").json()["parents"]
    assert [(parent["run"], parent["name"]) for parent in parents] == [
        (None, "alice/r0"),
        (runs[2], "alice/r2"),
    ]
    assert tree(api, runs[1])[1] == {("r1", "alice/r0", "derived"), ("r1", "alice/r2", "derived")}
    page = Client().get(f"/runs/{runs[1]}/parameters/").content.decode()
    assert "alice/r0 <span" in page
    # One that is gone for good: its name is for the team that knew it.
    RunParent.objects.filter(parent=runs[0]).update(parent=None)
    assert [
        parent["name"]
        for parent in client_of(None).get(f"/api/v1/runs/{runs[1]}/parents/").json()["parents"]
    ] == ["alice/r2"]
    assert len(put(api, runs[1], runs[3]).json()["parents"]) == 2


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)", "ftp://example.org/", "https://", "//example.org", "https://u:p@example.org/",
        "https://a b", "https://example.org/" + "x" * 2000, "http://[", 'https://a"b', "data:text/html,x",
        "https://a:port/", "",
    ],
)  # fmt: skip
def test_only_addresses_that_lead_somewhere_are_links(url: str) -> None:
    with pytest.raises(Unprocessable, match=":") as refused:
        check_url(url, "/links/0/url")
    assert (refused.value.code, refused.value.pointer) == ("bad_link", "/links/0/url")


def test_links_are_replaced(api: APIClient, runs: list[str]) -> None:
    path = f"/api/v1/runs/{runs[0]}/links/"
    link = {"kind": "code", "url": "https://example.org/?a=1&b=2", "commit": "3f2a", "title": "<b>"}
    assert (
        api.put(
            path, {"links": [link, {"kind": "data", "url": "http://a.de/x"}]}, format="json"
        ).status_code
        == 200
    )
    assert client_of(None).get(path).json()["links"] == [
        link, {"kind": "data", "url": "http://a.de/x", "commit": "", "title": ""},
    ]  # fmt: skip
    page = Client().get(f"/runs/{runs[0]}/parameters/").content.decode()
    assert (
        'href="https://example.org/?a=1&amp;b=2" rel="nofollow noopener noreferrer">&lt;b&gt;</a>'
        in page
    )
    for links, pointer in (
        ([{**link, "url": "javascript:x"}], "/links/0/url"), ([{**link, "commit": "a b"}], "/links/0/commit"),
        ([{**link, "title": "x" * 201}], "/links/0/title"),
        ([{"kind": "code", "url": f"https://a.de/{n}"} for n in range(21)], "/links"),
    ):  # fmt: skip
        refused = api.put(path, {"links": links}, format="json")
        assert (refused.status_code, refused.json()["code"], refused.json()["errors"][0]["pointer"]) == (
            422, "bad_link", pointer,
        )  # fmt: skip
    assert [
        row["run"]["tag"] for row in api.get(BOARD, {"filter": "has:links"}).json()["results"]
    ] == ["r0"]
    assert api.put(path, {"links": []}, format="json").json()["links"] == []
    assert AuditEvent.objects.filter(action="run.changed", object_id=runs[0]).count() == 2


def test_a_submission_brings_its_lineage(api: APIClient, collection: str, runs: list[str]) -> None:
    def send(content: str, **fields: str) -> Any:
        form = {"file": SimpleUploadedFile("run", content.encode()), **fields}
        return api.post("/api/v1/collections/small/runs/", form, format="multipart")

    parents = json.dumps([{"run": runs[0], "relation": "reranked"}])
    run = send(
        HEADER + GOOD,
        parents=parents,
        links='[{"kind": "code", "url": "https://example.org/mine"}]',
    ).json()
    assert tree(api, run["id"])[1] == {("good", "alice/r0", "reranked")}
    links = api.get(f"/api/v1/runs/{run['id']}/links/").json()["links"]
    assert [(link["kind"], link["url"], link["commit"]) for link in links] == [
        ("code", "https://example.org/mine", ""), ("paper", "https://doi.org/10.1145/1234.5678", ""),
        ("paper", "https://arxiv.org/abs/2104.05740", ""),
    ]  # fmt: skip
    assert run["warnings"]["counts"] == {"header_overridden": 1, "bad_ir_metadata": 1}
    alone = send(HEADER + GOOD, tag="alone").json()
    code = api.get(f"/api/v1/runs/{alone['id']}/links/").json()["links"][0]
    assert (code["kind"], code["url"], code["commit"]) == (
        "code",
        "https://github.com/lab/ranker",
        "3f2a1c",
    )
    # Again, and otherwise: nothing changes.
    again = send(HEADER + GOOD, tag="alone", parents=parents)
    assert (again.status_code, again.json()["warnings"]["counts"]["metadata_differs"]) == (200, 1)
    assert not RunParent.objects.filter(child=alone["id"]).exists()
    refused = send(GOOD, tag="x", parents=f'[{{"run": "{NOBODY}"}}]', dry_run="true")
    assert (refused.status_code, refused.json()["code"]) == (400, "unknown_run")
    for fields, status in (
        ({"parents": "{"}, 400),
        ({"links": '[{"kind": "code", "url": "x"}]'}, 422),
    ):
        assert send(GOOD, tag="x", **fields).status_code == status


def test_lines_of_a_form_say_what_a_run_was_made_from(
    api: APIClient, runs: list[str], alice: User
) -> None:
    browser = Client()
    browser.force_login(alice)
    path = f"/runs/{runs[0]}/lineage/"
    fields = {
        "parents": f"fused r1 0.4\n\nfused alice/r2\nderived {runs[3]}",
        "links": "code https://a.de/x commit=3f My code",
    }
    assert browser.post(path, fields).status_code == 303
    edges = RunParent.objects.order_by("position").values_list("parent__tag", "relation", "weight")
    assert list(edges) == [("r1", "fused", 0.4), ("r2", "fused", None), ("r3", "derived", None)]
    link = RunLink.objects.get()
    assert (link.kind, link.url, link.commit, link.title) == (
        "code",
        "https://a.de/x",
        "3f",
        "My code",
    )
    page = browser.get(path).content.decode()
    assert "fused alice/r1 0.4\nfused alice/r2\nderived alice/r3\n" in page
    assert "code https://a.de/x commit=3f My code\n" in page
    for text, message in (
        ("fused", "Line 1"), ("made r1", "Line 1: write one of reranked"),
        ("\nfused nobody", "Line 2: there is no run"),
        ("fused r1 x", "Line 1: &#x27;x&#x27; is not a number"), ("fused r0", "made from itself"),
    ):  # fmt: skip
        answer = browser.post(path, {**fields, "parents": text})
        assert (answer.status_code in (400, 409), message in answer.content.decode()) == (
            True,
            True,
        ), message
        assert text.strip() in answer.content.decode()
    assert (
        "line 1: write one of code" in browser.post(path, {"links": "x"}).content.decode().lower()
    )
    assert RunParent.objects.count() == 3


def test_the_baseline_of_a_header_is_offered_and_never_set_by_itself(
    api: APIClient, runs: list[str], alice: User
) -> None:
    goal = {"research goal": {"evaluation": {"baseline": ["r0", "nothing"]}}}
    Run.objects.filter(pk=runs[1]).update(ir_metadata=goal)
    browser = Client()
    browser.force_login(alice)
    offered = "Add r0 as a parent"
    assert offered not in Client().get(f"/runs/{runs[1]}/parameters/").content.decode()
    assert offered in browser.get(f"/runs/{runs[1]}/parameters/").content.decode()
    form = {"action": "baseline", "run": runs[0]}
    assert browser.post(f"/runs/{runs[1]}/lineage/", form).status_code == 303
    assert tree(api, runs[1])[1] == {("r1", "alice/r0", "derived")}
    assert offered not in browser.get(f"/runs/{runs[1]}/parameters/").content.decode()


def test_the_page_of_a_run_follows_its_lineage(api: APIClient, submit: Callable[..., Run]) -> None:
    browser = Client()
    path = f"/runs/{submit(GOOD).pk}/parameters/"
    before = browser.get(path)
    put(api, str(submit(POOR).pk), path.split("/")[2])
    after = browser.get(path, headers={"If-None-Match": before["ETag"]})
    assert (after.status_code, "Used for" in after.content.decode()) == (200, True)
    again = browser.get(path, headers={"If-None-Match": after["ETag"]})
    assert again.status_code == 304
    names = [model.__name__ for model in saved_models()]
    assert names.index("Run") < min(names.index("RunParent"), names.index("RunLink"))
