"""Teams: who is in them, and who decides that."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError
from rest_framework.test import APIClient

from runs.models import Membership, Team, User
from tests.conftest import GOOD, client_of, upload

MEMBERS = "/api/v1/teams/lab/members/"


@pytest.fixture
def lab(api: APIClient) -> str:
    assert api.post("/api/v1/teams/", {"slug": "lab", "name": "The Lab"}).status_code == 201
    return "lab"


def roles(client: APIClient) -> dict[str, str]:
    return {row["username"]: row["role"] for row in client.get(MEMBERS).json()["results"]}


def test_whoever_makes_a_team_owns_it(api: APIClient, lab: str) -> None:
    assert roles(api) == {"alice": "owner"}
    assert [team["slug"] for team in api.get("/api/v1/teams/").json()["results"]] == ["alice", "lab"]
    again = api.post("/api/v1/teams/", {"slug": "lab", "name": "x"})
    assert (again.status_code, again.json()["code"]) == (409, "slug_taken")
    for slug in ("", "Lab", "a b", "-a", "a" * 65, "é"):
        assert api.post("/api/v1/teams/", {"slug": slug, "name": "x"}).status_code == 400, slug


def test_owners_add_change_and_remove_members(api: APIClient, bob: User, lab: str) -> None:
    added = api.post(MEMBERS, {"username": "bob"})
    assert (added.status_code, added.json()) == (201, {"username": "bob", "role": "member"})
    assert api.post(MEMBERS, {"username": "bob"}).json()["code"] == "already_member"
    assert api.post(MEMBERS, {"username": "nobody"}).json()["code"] == "unknown_user"
    assert api.post(MEMBERS, {"username": "bob", "role": "king"}).status_code == 400
    assert api.patch(f"{MEMBERS}bob/", {"role": "owner"}).json()["role"] == "owner"
    assert roles(client_of(bob)) == {"alice": "owner", "bob": "owner"}
    assert client_of(bob).delete(f"{MEMBERS}alice/").status_code == 204
    assert api.get(MEMBERS).status_code == 404


def test_members_submit_but_decide_nothing(api: APIClient, bob: User, lab: str, collection: str) -> None:
    api.post(MEMBERS, {"username": "bob"})
    member = client_of(bob)
    assert upload(member, "collections/small/runs/", GOOD, team="lab").json()["team"] == "lab"
    assert member.post(MEMBERS, {"username": "alice"}).status_code == 403
    assert member.patch(f"{MEMBERS}bob/", {"role": "owner"}).status_code == 403
    assert member.delete(f"{MEMBERS}alice/").status_code == 403
    made = member.post("/api/v1/collections/", {"slug": "x", "name": "x", "team": "lab"})
    assert (made.status_code, made.json()["errors"][0]["code"]) == (400, "not_owner")
    assert member.delete(f"{MEMBERS}bob/").status_code == 204
    assert roles(api) == {"alice": "owner"}


def test_the_last_owner_cannot_leave(api: APIClient, bob: User, lab: str) -> None:
    api.post(MEMBERS, {"username": "bob"})
    for answer in (api.delete(f"{MEMBERS}alice/"), api.patch(f"{MEMBERS}alice/", {"role": "member"})):
        assert (answer.status_code, answer.json()["code"]) == (409, "last_owner")
    assert api.patch(f"{MEMBERS}alice/", {"role": "owner"}).status_code == 200
    assert roles(api) == {"alice": "owner", "bob": "member"}


def test_a_team_of_one_stays_a_team_of_one(api: APIClient, alice: User, bob: User) -> None:
    for answer in (
        api.post("/api/v1/teams/alice/members/", {"username": "bob"}),
        api.delete("/api/v1/teams/alice/members/alice/"),
        api.patch("/api/v1/teams/alice/members/alice/", {"role": "member"}),
    ):
        assert (answer.status_code, answer.json()["code"]) == (409, "personal_team")
    with pytest.raises(ValidationError):
        Membership(team=alice.personal_team, user=bob).full_clean()


def test_a_user_owns_twenty_teams_at_most(api: APIClient, alice: User) -> None:
    answers = [api.post("/api/v1/teams/", {"slug": f"t{number}", "name": "x"}) for number in range(20)]
    assert [answer.status_code for answer in answers] == [201] * 19 + [409]
    assert answers[-1].json()["code"] == "too_many_teams"


def test_strangers_do_not_see_a_team(bob: User, lab: str) -> None:
    stranger = client_of(bob)
    assert stranger.get(MEMBERS).status_code == 404
    assert stranger.post(MEMBERS, {"username": "bob"}).status_code == 404
    assert stranger.delete(f"{MEMBERS}alice/").status_code == 404


def test_a_locked_account_joins_no_team(api: APIClient, bob: User, lab: str) -> None:
    User.objects.filter(pk=bob.pk).update(is_active=False)
    assert api.post(MEMBERS, {"username": "bob"}).json()["code"] == "unknown_user"
    assert Team.objects.get(slug="lab").memberships.count() == 1
