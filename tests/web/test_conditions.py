"""Two people who change the same: the later one is told, where both say what they have read."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from runs.models import Collection, Run
from tests.conftest import evaluate_all
from tests.web.shared_people import module_data, module_people, people, run, values
from tests.web.worlds import People, add_qrels, make_collection, make_session_set, run_ids

__all__ = ["module_data", "module_people", "people", "run", "values"]

pytestmark = pytest.mark.words

COLLECTION = "/api/v1/collections/one/"
MALFORMED = (
    "nonsense",
    '"open',
    '"a" "b"',
    "W/",
    'w/"a"',
    '"a",',
    "",
    '"a\x7f"',
    '"' + "a" * 2000 + '"',
)


def send(client: APIClient, method: str, path: str, tag: str, body: Any = None) -> tuple[int, str]:
    answer = getattr(client, method)(path, body, headers={"If-Match": tag})
    return answer.status_code, answer.json().get("code", "") if answer.content else ""


def test_the_later_of_two_writers_is_told(people: People, values: dict[str, Any]) -> None:
    owner, staff = people.api["owner"], people.api["staff"]
    tag = owner.get(COLLECTION)["ETag"]
    assert staff.get(COLLECTION)["ETag"] == tag
    first = owner.patch(COLLECTION, {"name": "First"}, headers={"If-Match": tag})
    assert (first.status_code, first["ETag"] != tag) == (200, True)
    assert send(staff, "patch", COLLECTION, tag, {"name": "Second"}) == (412, "changed_meanwhile")
    assert Collection.objects.get().name == "First"
    # Whoever has read it again, and whoever does not ask, changes it.
    assert (
        send(staff, "patch", COLLECTION, owner.get(COLLECTION)["ETag"], {"name": "Second"})[0]
        == 200
    )
    assert send(staff, "patch", COLLECTION, "*", {"name": "Third"})[0] == 200
    assert owner.patch(COLLECTION, {"name": "Fourth"}).status_code == 200


@pytest.mark.queries
@pytest.mark.parametrize("kind", ["runs", "session-sets"])
def test_runs_and_session_sets_have_tags_as_well(
    people: People, values: dict[str, Any], kind: str
) -> None:
    guest = people.api["participant"]
    path = f"/api/v1/{kind}/{values['run' if kind == 'runs' else 'session_set']}/"
    tag = guest.get(path)["ETag"]
    changed = guest.patch(path, {"metadata": {"k": 1}}, headers={"If-Match": f'"other", W/{tag}'})
    assert (changed.status_code, changed["ETag"]) == (200, guest.get(path)["ETag"])
    assert send(guest, "patch", path, tag, {"description": "late"}) == (412, "changed_meanwhile")
    assert send(guest, "delete", path, tag) == (412, "changed_meanwhile")
    assert guest.get(path).json()["description"] == ""
    assert send(guest, "delete", path, changed["ETag"]) == (204, "")


def test_what_moves_by_itself_refuses_nobodys_change(
    people: People, values: dict[str, Any]
) -> None:
    run = f"/api/v1/runs/{values['run']}/"
    tags = [people.api["owner"].get(path)["ETag"] for path in (COLLECTION, run)]
    add_qrels(people, "one", "1 0 a 2\n")
    make_session_set(people, "one")
    evaluate_all()
    assert [people.api["owner"].get(path)["ETag"] for path in (COLLECTION, run)] == tags


@pytest.mark.queries
@pytest.mark.parametrize("tag", MALFORMED)
def test_a_condition_that_says_nothing_is_refused(
    people: People, values: dict[str, Any], tag: str
) -> None:
    guest, owner, run = (
        people.api["participant"],
        people.api["owner"],
        f"/api/v1/runs/{values['run']}/",
    )
    for client, method, path in (
        (guest, "patch", run), (guest, "delete", run), (guest, "get", run), (owner, "patch", COLLECTION),
        (owner, "get", f"{COLLECTION}leaderboard/"), (owner, "post", "/api/v1/collections/"),
    ):  # fmt: skip
        assert send(client, method, path, tag, {} if method != "get" else None) == (
            400,
            "bad_etag",
        ), path
    assert Run.objects.filter(pk=values["run"], deleted_at=None).exists()


def test_an_address_that_compares_nothing_says_so(people: People, values: dict[str, Any]) -> None:
    owner = people.api["owner"]
    for method, path in (
        ("post", "/api/v1/collections/"),
        ("put", f"{COLLECTION}topics/"),
        ("post", "/api/v1/teams/"),
    ):
        assert send(owner, method, path, '"any"', {"slug": "two", "name": "Two"}) == (
            400,
            "bad_etag",
        ), path
    assert send(people.api["anonymous"], "patch", COLLECTION, "nonsense", {}) == (
        401,
        "not_authenticated",
    )


def test_the_tag_of_what_is_blind_tells_nothing(people: People) -> None:
    make_collection(people, "dark", blind=True)
    guest, path = people.api["participant"], "/api/v1/collections/dark/"
    tag = guest.get(path)["ETag"]
    add_qrels(people, "dark")
    make_session_set(people, "dark")
    evaluate_all()
    assert (run_ids("dark"), guest.get(path)["ETag"]) == ([], tag)
