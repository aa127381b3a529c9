"""Invitations to take part with a team: by user name, and by a link."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from django.test import Client

from runs.models import CampaignMember, InvitationLink, Membership, User
from tests.campaigns.test_pages import TEAM, browser, send
from tests.campaigns.worlds import (
    CAMPAIGN,
    CLOSES,
    OPENS,
    Clients,
    Clock,
    campaign,
    code_of,
    make_campaign,
    register,
)
from tests.web.test_pages import page, text_of

pytestmark = pytest.mark.words
INVITATIONS = f"{CAMPAIGN}teams/apples/invitations/"


def takes_part(name: str) -> bool:
    return CampaignMember.objects.filter(
        user__username=name, participation__team__slug="apples", left_at=None
    ).exists()


@pytest.mark.queries
def test_a_user_is_invited_and_takes_part(people: Clients, clock: Clock) -> None:
    """Eve, who is not in the team, becomes a member of it; Abe, who is, takes part alone."""
    make_campaign(people["olga"])
    assert register(people["ann"], "apples").status_code == 201
    ann, eve = browser("ann"), browser("eve")
    assert "eve is invited" in send(ann, TEAM, action="invite", username="eve")
    assert "invited already" in send(ann, TEAM, 409, action="invite", username="eve")
    assert "cannot take part" in send(ann, TEAM, 409, action="invite", username="olga")
    assert not takes_part("eve")
    assert "take part with it in Cup" in text_of(page(eve, "/account/"))
    answer = eve.post("/account/", {"action": "accept", "team": "apples"})
    assert answer.status_code == 200
    assert takes_part("eve")
    assert Membership.objects.get(user__username="eve", team__slug="apples").role == "member"
    invitation = people["ann"].post(INVITATIONS, {"username": "abe"}, format="json")
    assert (invitation.status_code, invitation.json()["url"]) == (201, None)
    assert people["abe"].post("/api/v1/invitations/apples/").status_code == 201
    assert takes_part("abe")
    # A member who is not an owner invites no one, and neither does an organiser.
    assert people["eve"].post(INVITATIONS, {"username": "ben"}, format="json").status_code == 403
    assert people["olga"].post(INVITATIONS, {"username": "ben"}, format="json").status_code == 403


def test_a_refused_invitation_changes_nothing(people: Clients, clock: Clock) -> None:
    """Ben is in another team of the campaign, which Ann is not told."""
    make_campaign(people["olga"])
    for name, team in (("ann", "apples"), ("ben", "berries")):
        assert register(people[name], team).status_code == 201
    assert people["ann"].post(INVITATIONS, {"username": "ben"}, format="json").status_code == 201
    assert code_of(people["ben"].post("/api/v1/invitations/apples/")) == (
        409,
        "already_in_campaign",
    )
    assert not Membership.objects.filter(user__username="ben", team__slug="apples").exists()
    assert User.objects.get(username="ben").invitations.count() == 1


@pytest.mark.queries
def test_a_link_is_for_one_campaign_expires_and_can_be_revoked(
    people: Clients, clock: Clock
) -> None:
    make_campaign(people["olga"])
    assert register(people["ann"], "apples").status_code == 201
    ann, eve = browser("ann"), browser("eve")
    html = ann.post(TEAM, {"action": "link"}).content.decode()
    address = urlsplit(html.partition("<code>")[2].partition("</code>")[0])
    path = f"{address.path}?{address.query}"
    assert "You also take part in" in page(eve, path)
    code = address.query.removeprefix("code=")
    answer = eve.post("/join/", {"code": code})
    assert answer["Location"] == TEAM
    assert takes_part("eve")
    link = InvitationLink.objects.get()
    assert link.expires_at > link.created_at + timedelta(days=6)
    assert "revoked" in send(ann, TEAM, action="revoke", key=link.key)
    assert Client().get(path).status_code == 404
    invitation = people["ann"].post(INVITATIONS, {}, format="json").json()
    assert invitation["url"].startswith("http://testserver/join/?code=")
    # Teams no longer change from the instant that the campaign says.
    clock.now = OPENS
    fields = {"roster_closes_at": OPENS.isoformat()}
    assert (
        people["olga"].patch(CAMPAIGN, fields, format="json").json()["roster_closes_at"]
        == "2027-04-02T12:00:00Z"
    )
    refused = people["ann"].post(INVITATIONS, {}, format="json")
    assert code_of(refused) == (409, "roster_closed")
    assert "eams stay as they were" in send(ann, TEAM, 409, action="link")
    again = browser("abe").post("/join/", {"code": invitation["url"].partition("code=")[2]})
    assert again.status_code == 409
    assert not takes_part("abe")
    assert clock.now < CLOSES
    assert campaign().roster_closes_at == OPENS


def test_a_link_is_revoked_over_the_api(people: Clients, clock: Clock) -> None:
    make_campaign(people["olga"])
    assert register(people["ann"], "apples").status_code == 201
    invitation = people["ann"].post(INVITATIONS, {}, format="json").json()
    path = f"/api/v1/teams/apples/invitations/{invitation['key']}/"
    assert people["olga"].delete(path).status_code in (403, 404)
    assert people["abe"].delete(path).status_code == 403
    assert people["ann"].delete(path).status_code == 204
    assert people["ann"].delete(path).status_code == 404
    code = invitation["url"].partition("code=")[2]
    assert browser("eve").post("/join/", {"code": code}).status_code == 404


def test_nobody_joins_a_team_that_was_removed(people: Clients, clock: Clock) -> None:
    make_campaign(people["olga"])
    assert register(people["ann"], "apples").status_code == 201
    invitation = people["ann"].post(INVITATIONS, {}, format="json").json()
    removed = {"state": "removed", "reason": "two teams"}
    assert (
        people["olga"].patch(f"{CAMPAIGN}teams/apples/", removed, format="json").status_code == 200
    )
    code = invitation["url"].partition("code=")[2]
    assert browser("eve").post("/join/", {"code": code}).status_code == 409
    assert not takes_part("eve")
    assert not Membership.objects.filter(user__username="eve", team__slug="apples").exists()
    refused = people["ann"].post(INVITATIONS, {}, format="json")
    assert code_of(refused) == (409, "team_not_accepted")
