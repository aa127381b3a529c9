"""Teams: who is in them, and who decides that."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError
from rest_framework.test import APIClient

from runs.models import AuditEvent, Invitation, Membership, Team, User
from tests.conftest import GOOD, SESSIONS, client_of, upload

pytestmark = pytest.mark.words

MEMBERS = "/api/v1/teams/lab/members/"
INVITED = "/api/v1/teams/lab/invitations/"
INVITATIONS = "/api/v1/invitations/"


@pytest.fixture
def lab(api: APIClient) -> str:
    assert api.post("/api/v1/teams/", {"slug": "lab", "name": "The Lab"}).status_code == 201
    return "lab"


def roles(client: APIClient) -> dict[str, str]:
    return {row["username"]: row["role"] for row in client.get(MEMBERS).json()["results"]}


def test_whoever_makes_a_team_owns_it(api: APIClient, lab: str) -> None:
    assert roles(api) == {"alice": "owner"}
    assert [team["slug"] for team in api.get("/api/v1/teams/").json()["results"]] == [
        "alice",
        "lab",
    ]
    again = api.post("/api/v1/teams/", {"slug": "lab", "name": "x"})
    assert (again.status_code, again.json()["code"]) == (409, "slug_taken")
    for slug in ("", "Lab", "a b", "-a", "a" * 65, "é"):
        assert api.post("/api/v1/teams/", {"slug": slug, "name": "x"}).status_code == 400, slug


def join(api: APIClient, user: User) -> None:
    """Invite a user into the lab, who accepts."""
    assert api.post(MEMBERS, {"username": user.username}).status_code == 201
    assert client_of(user).post(f"{INVITATIONS}lab/").status_code == 201


def test_owners_invite_change_and_remove_members(api: APIClient, bob: User, lab: str) -> None:
    invited = api.post(MEMBERS, {"username": "bob"})
    fields = {name: value for name, value in invited.json().items() if name != "created_at"}
    assert (invited.status_code, fields) == (201, {
        "team": "lab", "team_name": "The Lab", "username": "bob", "role": "member", "invited_by": "alice",
    })  # fmt: skip
    assert api.post(MEMBERS, {"username": "bob"}).json()["code"] == "already_invited"
    accepted = client_of(bob).post(f"{INVITATIONS}lab/")
    assert (accepted.status_code, accepted.json()) == (201, {"username": "bob", "role": "member"})
    assert api.post(MEMBERS, {"username": "bob"}).json()["code"] == "already_member"
    assert api.post(MEMBERS, {"username": "nobody"}).json()["code"] == "unknown_user"
    assert api.post(MEMBERS, {"username": "bob", "role": "king"}).status_code == 400
    assert api.patch(f"{MEMBERS}bob/", {"role": "owner"}).json()["role"] == "owner"
    assert roles(client_of(bob)) == {"alice": "owner", "bob": "owner"}
    assert client_of(bob).delete(f"{MEMBERS}alice/").status_code == 204
    assert api.get(MEMBERS).status_code == 404


def test_members_submit_but_decide_nothing(
    api: APIClient, bob: User, lab: str, collection: str
) -> None:
    join(api, bob)
    member = client_of(bob)
    assert upload(member, "collections/small/runs/", GOOD, team="lab").json()["team"] == "lab"
    assert member.post(MEMBERS, {"username": "alice"}).status_code == 403
    assert member.patch(f"{MEMBERS}bob/", {"role": "owner"}).status_code == 403
    assert member.delete(f"{MEMBERS}alice/").status_code == 403
    answer = member.post("/api/v1/collections/", {"slug": "x", "name": "x", "team": "lab"})
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (400, "not_owner")
    assert member.delete(f"{MEMBERS}bob/").status_code == 204
    assert roles(api) == {"alice": "owner"}


def test_members_of_the_team_of_a_collection_submit_for_it(
    api: APIClient, bob: User, lab: str
) -> None:
    api.post("/api/v1/collections/", {"slug": "ours", "name": "Ours", "team": lab})
    assert upload(client_of(bob), "collections/ours/runs/", GOOD).json()["team"] == "bob"
    join(api, bob)
    other = GOOD.replace(" bm25", " other")
    assert (
        upload(client_of(bob), "collections/ours/runs/", other, tag="of-lab").json()["team"] == lab
    )
    assert upload(client_of(bob), "collections/ours/sessions/", SESSIONS).json()["team"] == lab


def test_the_last_owner_cannot_leave(api: APIClient, bob: User, lab: str) -> None:
    join(api, bob)
    for answer in (
        api.delete(f"{MEMBERS}alice/"),
        api.patch(f"{MEMBERS}alice/", {"role": "member"}),
    ):
        assert (answer.status_code, answer.json()["code"]) == (409, "last_owner")
    assert api.patch(f"{MEMBERS}alice/", {"role": "owner"}).status_code == 200
    assert roles(api) == {"alice": "owner", "bob": "member"}


@pytest.mark.queries
def test_a_team_of_one_stays_a_team_of_one(api: APIClient, alice: User, bob: User) -> None:
    for answer in (
        api.post("/api/v1/teams/alice/members/", {"username": "bob"}),
        api.delete("/api/v1/teams/alice/members/alice/"),
        api.patch("/api/v1/teams/alice/members/alice/", {"role": "member"}),
    ):
        assert (answer.status_code, answer.json()["code"]) == (409, "personal_team")
    with pytest.raises(ValidationError):
        Membership(team=alice.personal_team, user=bob).full_clean()


@pytest.mark.queries
def test_an_invitation_gives_nothing_until_it_is_accepted(
    api: APIClient, bob: User, lab: str
) -> None:
    guest = client_of(bob)
    api.post(
        "/api/v1/collections/",
        {"slug": "ours", "name": "Ours", "team": "lab", "visibility": "team"},
    )
    api.post(MEMBERS, {"username": "bob", "role": "owner"})
    assert roles(api) == {"alice": "owner"}
    assert (
        guest.get(MEMBERS).status_code == guest.get("/api/v1/collections/ours/").status_code == 404
    )
    assert [team["slug"] for team in guest.get("/api/v1/teams/").json()["results"]] == ["bob"]
    for client, path in ((guest, INVITATIONS), (api, INVITED)):
        (row,) = client.get(path).json()["results"]
        assert (row["team"], row["username"], row["role"], row["invited_by"]) == (
            "lab",
            "bob",
            "owner",
            "alice",
        )
    assert api.get(INVITATIONS).json()["count"] == 0
    assert api.post(f"{INVITATIONS}lab/").status_code == 404
    assert guest.post(f"{INVITATIONS}lab/").json() == {"username": "bob", "role": "owner"}
    assert guest.get("/api/v1/collections/ours/").status_code == 200
    assert guest.get(INVITATIONS).json()["count"] == api.get(INVITED).json()["count"] == 0


def test_an_invitation_is_declined_or_taken_back(api: APIClient, bob: User, lab: str) -> None:
    guest = client_of(bob)
    for client, path in ((guest, f"{INVITATIONS}lab/"), (api, f"{INVITED}bob/")):
        assert api.post(MEMBERS, {"username": "bob"}).status_code == 201
        assert client.delete(path).status_code == 204
        assert (
            client.delete(path).status_code == guest.post(f"{INVITATIONS}lab/").status_code == 404
        )
    assert roles(api) == {"alice": "owner"}


@pytest.mark.parametrize("role", ["member", None])
def test_who_is_no_owner_any_more_lets_nobody_in(
    api: APIClient, bob: User, lab: str, role: str | None
) -> None:
    carol = User.objects.create_user("carol")
    join(api, bob)
    api.patch(f"{MEMBERS}bob/", {"role": "owner"})
    assert client_of(bob).post(MEMBERS, {"username": "carol", "role": "owner"}).status_code == 201
    answer = api.patch(f"{MEMBERS}bob/", {"role": role}) if role else api.delete(f"{MEMBERS}bob/")
    assert answer.status_code < 300
    assert client_of(carol).post(f"{INVITATIONS}lab/").status_code == 404


@pytest.mark.slow
def test_nobody_is_made_an_owner_of_many_teams_by_others(
    api: APIClient, alice: User, bob: User
) -> None:
    """Who submits under ever new teams has to keep them; who is invited has room for their own."""
    guest = client_of(bob)
    for number in range(25):
        slug = f"t{number}"
        assert api.post("/api/v1/teams/", {"slug": slug, "name": "x"}).status_code == (
            201 if number < 19 else 409
        )
        invited = api.post(f"/api/v1/teams/{slug}/members/", {"username": "bob", "role": "owner"})
        assert invited.status_code == (201 if number < 19 else 404)
    assert guest.get("/api/v1/teams/").json()["count"] == 1
    assert guest.post("/api/v1/teams/", {"slug": "own", "name": "x"}).status_code == 201
    answers = [guest.post(f"{INVITATIONS}t{number}/") for number in range(19)]
    assert [answer.status_code for answer in answers] == [201] * 18 + [409]
    assert answers[-1].json()["code"] == "too_many_teams"
    assert guest.delete("/api/v1/teams/t0/members/bob/").status_code == 204
    assert guest.post(f"{INVITATIONS}t18/").status_code == 201


@pytest.mark.queries
def test_an_empty_team_goes_with_its_last_member(api: APIClient, lab: str) -> None:
    assert api.delete(f"{MEMBERS}alice/").status_code == 204
    assert not Team.objects.filter(slug="lab").exists()
    assert list(AuditEvent.objects.order_by("-pk").values_list("action", flat=True)[:2]) == [
        "team.deleted", "member.removed",
    ]  # fmt: skip
    assert api.post("/api/v1/teams/", {"slug": "lab", "name": "Again"}).status_code == 201


@pytest.mark.queries
def test_an_empty_team_is_deleted_whoever_is_in_it(api: APIClient, bob: User, lab: str) -> None:
    join(api, bob)
    api.post(MEMBERS, {"username": User.objects.create_user("carol").username})
    assert client_of(bob).delete("/api/v1/teams/lab/").status_code == 403
    assert api.delete("/api/v1/teams/lab/").status_code == 204
    assert api.delete("/api/v1/teams/lab/").status_code == 404
    assert (Team.objects.filter(slug="lab").count(), Invitation.objects.count()) == (0, 0)
    answer = api.delete("/api/v1/teams/alice/")
    assert (answer.status_code, answer.json()["code"]) == (409, "personal_team")


@pytest.mark.parametrize("kind", ["collection", "run", "withdrawn", "session_set", "suite"])
def test_a_team_that_holds_something_stays(
    api: APIClient, collection: str, lab: str, kind: str
) -> None:
    """A run that was withdrawn counts, too: it was submitted under the quota of the team."""
    if kind == "collection":
        api.post("/api/v1/collections/", {"slug": "ours", "name": "Ours", "team": "lab"})
    elif kind == "suite":
        body = {"slug": "ours", "name": "Ours", "team": "lab", "members": [{"collection": "small"}]}
        assert api.post("/api/v1/suites/", body).status_code == 201
    else:
        path, content = ("sessions", SESSIONS) if kind == "session_set" else ("runs", GOOD)
        answer = upload(api, f"collections/small/{path}/", content, team="lab")
        assert answer.status_code == 202
        if kind == "withdrawn":
            assert api.delete(f"/api/v1/runs/{answer.json()['id']}/").status_code == 204
    for path, code in (("", "not_empty"), ("members/alice/", "last_owner")):
        answer = api.delete(f"/api/v1/teams/lab/{path}")
        assert (answer.status_code, answer.json()["code"]) == (409, code)
    assert roles(api) == {"alice": "owner"}


def test_a_user_is_in_twenty_teams_at_most(api: APIClient, alice: User) -> None:
    answers = [
        api.post("/api/v1/teams/", {"slug": f"t{number}", "name": "x"}) for number in range(20)
    ]
    assert [answer.status_code for answer in answers] == [201] * 19 + [409]
    assert answers[-1].json()["code"] == "too_many_teams"


def test_strangers_do_not_see_a_team(bob: User, lab: str) -> None:
    stranger = client_of(bob)
    assert stranger.get(MEMBERS).status_code == 404
    assert stranger.post(MEMBERS, {"username": "bob"}).status_code == 404
    assert stranger.delete(f"{MEMBERS}alice/").status_code == 404


@pytest.mark.queries
def test_a_locked_account_joins_no_team(api: APIClient, bob: User, lab: str) -> None:
    User.objects.filter(pk=bob.pk).update(is_active=False)
    assert api.post(MEMBERS, {"username": "bob"}).json()["code"] == "unknown_user"
    assert Team.objects.get(slug="lab").memberships.count() == 1
