"""Campaigns: drafts, phases, teams and agreements; who sees and does what, and what their times allow."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from evalhub.campaigns.services.integrity import find_in_campaigns
from runs.models import AuditEvent, CampaignMember, Extension, Membership, Phase, Team, User
from tests.campaigns.test_pages import browser
from tests.campaigns.worlds import (
    CAMPAIGN,
    CLOSES,
    LATE,
    OPENS,
    PHASE,
    TICK,
    Clock,
    campaign,
    code_of,
    enter,
    make_campaign,
    register,
)
from tests.conftest import evaluate_all
from tests.web.test_pages import text_of

pytestmark = pytest.mark.words

Clients = dict[str, APIClient]


def test_a_draft_is_seen_by_its_organisers_until_it_is_published(
    people: Clients, anonymous: APIClient
) -> None:
    make_campaign(people["olga"], publish=False)
    assert people["olga"].get(CAMPAIGN).json()["state"] == "draft"
    assert {anonymous.get(CAMPAIGN).status_code, people["ann"].get(PHASE).status_code} == {404}
    assert code_of(register(people["ann"], "apples"))[0] == 404
    assert people["olga"].post(f"{CAMPAIGN}publish/").json()["state"] == "published"
    campaign = anonymous.get(CAMPAIGN).json()
    assert [(phase["phase"], phase["state"]) for phase in campaign["phases"]] == [
        ("task", "planned")
    ]
    assert (campaign["organiser"], campaign["your_team"], campaign["contact"]) == (
        False,
        None,
        None,
    )
    assert code_of(people["olga"].delete(CAMPAIGN)) == (409, "not_a_draft")
    assert code_of(people["ann"].post(f"{CAMPAIGN}archive/")) == (403, "not_allowed")
    assert people["olga"].post(f"{CAMPAIGN}archive/").json()["state"] == "archived"
    assert code_of(people["olga"].patch(CAMPAIGN, {"name": "x"}, format="json")) == (
        409,
        "campaign_archived",
    )


@pytest.mark.queries
def test_the_guidelines_of_every_version_are_in_the_audit_trail(people: Clients) -> None:
    make_campaign(people["olga"])
    digests = {
        people["olga"]
        .patch(CAMPAIGN, {"guidelines": text}, format="json")
        .json()["guidelines_sha256"]
        for text in ("first", "second")
    }
    events = AuditEvent.objects.filter(action="campaign.changed").order_by("id")
    assert (len(digests), [event.after["guidelines"] for event in events]) == (
        2,
        ["first", "second"],
    )


def test_an_evaluation_needs_a_blind_collection(people: Clients) -> None:
    make_campaign(people["olga"], publish=False)
    people["olga"].post(
        "/api/v1/collections/", {"slug": "light", "name": "Light", "team": "lab"}, format="json"
    )
    times = {"opens_at": "2027-05-01", "closes_at": "2027-05-31", "zone": "AoE"}
    fields = {"slug": "two", "name": "Two", "collection": "light", **times}
    refused = people["olga"].post(f"{CAMPAIGN}phases/", fields, format="json")
    assert code_of(refused) == (409, "evaluation_needs_blind")
    phase = (
        people["olga"]
        .post(f"{CAMPAIGN}phases/", {**fields, "kind": "training"}, format="json")
        .json()
    )
    assert (phase["closes_at"], phase["zone"]) == ("2027-06-01T12:00:00Z", "Etc/GMT+12")
    wrong = {**fields, "slug": "three", "kind": "training", "closes_at": "2027-04-30"}
    assert (
        people["olga"]
        .post(f"{CAMPAIGN}phases/", wrong, format="json")
        .json()["errors"][0]["pointer"]
        == "/closes_at"
    )


@pytest.mark.queries
def test_the_database_refuses_times_that_no_phase_has(people: Clients) -> None:
    make_campaign(people["olga"])
    for field, value in (("closes_at", OPENS), ("late_closes_at", CLOSES - TICK), ("slots", 0)):
        with pytest.raises(IntegrityError), transaction.atomic():
            Phase.objects.update(**{field: value})
    ann, abe = (User.objects.get(username=name) for name in ("ann", "abe"))
    teams = [
        campaign().participations.create(team=Team.objects.get(slug=slug), name=slug)
        for slug in ("apples", "eves")
    ]
    CampaignMember.objects.create(campaign=campaign(), user=ann, participation=teams[0])
    CampaignMember.objects.create(campaign=campaign(), user=abe, participation=teams[0])
    with pytest.raises(IntegrityError), transaction.atomic():
        CampaignMember.objects.create(campaign=campaign(), user=ann, participation=teams[1])


@pytest.mark.queries
def test_published_times_only_move_later_and_by_an_extension(people: Clients, clock: Clock) -> None:
    make_campaign(people["olga"])
    olga = people["olga"]
    for field, value, expected in (
        ("opens_at", OPENS - TICK, (409, "deadline_only_moves_later")),
        ("closes_at", CLOSES - TICK, (409, "deadline_only_moves_later")),
        ("closes_at", CLOSES + TICK, (400, "invalid")),
        ("kind", "training", (409, "campaign_published")),
    ):
        text = value if isinstance(value, str) else value.isoformat()
        assert code_of(olga.patch(PHASE, {field: text}, format="json")) == expected, field
    assert (
        olga.patch(PHASE, {"opens_at": (OPENS + TICK).isoformat()}, format="json").status_code
        == 200
    )
    clock.now = CLOSES - timedelta(hours=3)
    later = (CLOSES + timedelta(days=2)).isoformat()
    extended = olga.post(
        f"{PHASE}extend/", {"closes_at": later, "reason": "power cut"}, format="json"
    ).json()
    assert (extended["state"], extended["extensions"][0]["notice"]) == (
        "open",
        "announced 3 hours before the end",
    )
    same = olga.post(f"{PHASE}extend/", {"closes_at": later, "reason": "again"}, format="json")
    assert code_of(same) == (409, "deadline_only_moves_later")
    clock.now = LATE
    much = {"closes_at": (LATE + timedelta(days=9)).isoformat(), "reason": "too late"}
    assert code_of(olga.post(f"{PHASE}extend/", much, format="json")) == (409, "phase_closed")


def test_an_extension_of_one_team_is_seen_by_it_and_the_organisers(
    people: Clients, clock: Clock
) -> None:
    make_campaign(people["olga"])
    assert {
        register(people["ann"], "apples").status_code,
        register(people["ben"], "berries").status_code,
    } == {201}
    clock.now = CLOSES
    later = (CLOSES + timedelta(days=1)).isoformat()
    extension = {"closes_at": later, "reason": "storm", "team": "apples"}
    assert people["olga"].post(f"{PHASE}extend/", extension, format="json").status_code == 200
    seen = {name: people[name].get(PHASE).json() for name in ("ann", "ben", "olga")}
    assert [(phase["state"], len(phase["extensions"])) for phase in seen.values()] == [
        ("open", 1),
        ("late", 0),
        ("late", 1),
    ]
    assert seen["ann"]["yours"] == {
        "team": "apples",
        "closes_at": later.replace("+00:00", "Z"),
        "extended": True,
    }
    assert seen["ann"]["extensions"][0]["notice"] == "announced after the end"


def test_one_phase_asks_no_more_for_more_extensions_of_teams(people: Clients, clock: Clock) -> None:
    make_campaign(people["olga"])
    queries = []
    for name, team in (("ann", "apples"), ("ben", "berries")):
        assert register(people[name], team).status_code == 201
        later = {
            "closes_at": (CLOSES + timedelta(days=1)).isoformat(),
            "reason": "storm",
            "team": team,
        }
        assert people["olga"].post(f"{PHASE}extend/", later, format="json").status_code == 200
        with CaptureQueriesContext(connection) as captured:
            assert people["olga"].get(PHASE).json()["extensions"][-1]["team"] == team
        queries.append([query["sql"] for query in captured])
    assert len(queries[1]) <= len(queries[0]), queries[1]


@pytest.mark.queries
def test_teams_register_and_are_accepted_declined_and_removed(
    people: Clients, clock: Clock
) -> None:
    make_campaign(people["olga"])
    olga, ann = people["olga"], people["ann"]
    olga.patch(
        CAMPAIGN,
        {"registration": "approval", "registration_closes_at": OPENS.isoformat()},
        format="json",
    )
    assert register(ann, "apples").json()["state"] == "requested"
    assert code_of(register(ann, "apples")) == (409, "already_registered")
    assert code_of(register(people["abe"], "apples"))[0] == 400
    assert people["ben"].get(f"{CAMPAIGN}teams/").json()["count"] == 0
    apples = f"{CAMPAIGN}teams/apples/"
    assert people["ben"].get(apples).status_code == 404
    for client, state, expected in (
        (ann, "accepted", 403), (olga, "withdrawn", 403), (olga, "removed", 409), (olga, "declined", 200),
        (ann, "requested", 200), (olga, "accepted", 200), (olga, "removed", 200),
    ):  # fmt: skip
        assert client.patch(apples, {"state": state}, format="json").status_code == expected, state
    clock.now = OPENS
    assert code_of(register(people["ben"], "berries")) == (409, "registration_closed")


def test_a_person_is_in_one_team_and_organisers_in_none(people: Clients, clock: Clock) -> None:
    make_campaign(people["olga"], attempts_daily=3)
    register(people["ann"], "apples")
    register(people["ben"], "berries")
    members = f"{CAMPAIGN}teams/apples/members/"
    assert people["abe"].post(members).status_code == 201
    for name, team, expected in (
        ("ann", "berries", "already_in_campaign"),
        ("olga", "apples", "organiser_takes_part"),
    ):
        Membership.objects.create(
            team=Team.objects.get(slug=team), user=User.objects.get(username=name)
        )
        assert code_of(people[name].post(f"{CAMPAIGN}teams/{team}/members/")) == (409, expected)
    assert people["eve"].post(members).status_code == 404
    # Nothing is entered yet, so that Abe may leave for another team.
    assert people["abe"].delete(f"{members}abe/").status_code == 204
    Membership.objects.create(
        team=Team.objects.get(slug="berries"), user=User.objects.get(username="abe")
    )
    assert people["abe"].post(f"{CAMPAIGN}teams/berries/members/").status_code == 201
    clock.now = CLOSES
    Membership.objects.create(
        team=Team.objects.get(slug="apples"), user=User.objects.get(username="eve")
    )
    assert code_of(people["eve"].post(members)) == (409, "roster_closed")


def test_whoever_takes_part_becomes_no_organiser(people: Clients) -> None:
    make_campaign(people["olga"])
    register(people["ann"], "apples")
    olga, ann, abe = people["olga"], people["ann"], people["abe"]
    lab, owner = "/api/v1/teams/lab/", {"role": "owner"}
    invited = olga.post(f"{lab}members/", {"username": "ann", **owner}, format="json")
    assert invited.status_code == 201, invited.content
    refused = ann.post("/api/v1/invitations/lab/")
    assert code_of(refused) == (409, "organiser_takes_part")
    assert "leave that team in the campaign first" in refused.json()["detail"]
    # As a member of the lab she organises nothing, and as long as she takes part she is not made an
    # owner.
    Membership.objects.create(
        team=Team.objects.get(slug="lab"), user=User.objects.get(username="ann")
    )
    assert code_of(olga.patch(f"{lab}members/ann/", owner, format="json")) == (
        409,
        "organiser_takes_part",
    )
    assert ann.delete(f"{CAMPAIGN}teams/apples/members/ann/").status_code == 204
    assert olga.patch(f"{lab}members/ann/", owner, format="json").status_code == 200
    assert (
        olga.post(f"{lab}members/", {"username": "abe", **owner}, format="json").status_code == 201
    )
    assert abe.post("/api/v1/invitations/lab/").status_code in (200, 201)
    assert code_of(abe.post(f"{CAMPAIGN}teams/apples/members/")) == (409, "organiser_takes_part")


def test_agreements_are_signed_once_by_members(people: Clients) -> None:
    make_campaign(people["olga"])
    added = people["olga"].post(
        f"{CAMPAIGN}agreements/", {"title": "Data", "text": "No redistribution."}, format="json"
    )
    sha256 = added.json()["sha256"]
    signing = f"{CAMPAIGN}agreements/{sha256}/sign/"
    assert code_of(people["ann"].post(signing, {"typed_name": "Ann"}, format="json")) == (
        403,
        "not_allowed",
    )
    body = {"team": "apples", "agreements": [sha256[:12]], "typed_name": "Ann A."}
    assert people["ann"].post(f"{CAMPAIGN}teams/", body, format="json").status_code == 201
    first = people["ann"].get(f"{CAMPAIGN}agreements/").json()["results"][0]["signed_at"]
    assert (
        people["ann"].post(signing, {"typed_name": "Other"}, format="json").json()["signed_at"]
        == first
    )
    assert people["ben"].get(f"{CAMPAIGN}agreements/").json()["results"][0]["signed_at"] is None


def test_a_slip_of_the_year_is_asked_about_and_cancelled(people: Clients, clock: Clock) -> None:
    make_campaign(people["olga"])
    olga, extend = people["olga"], f"{PHASE}extend/"
    assert register(people["ann"], "apples").status_code == 201
    clock.now = OPENS
    before = olga.get(PHASE).json()
    slip = {"closes_at": "9999-12-31T23:59:59Z", "reason": "power cut"}
    assert code_of(olga.post(extend, slip, format="json")) == (409, "confirmation_needed")
    assert code_of(
        olga.patch(PHASE, {"late_closes_at": "2072-01-01T00:00:00Z"}, format="json")
    ) == (
        409,
        "confirmation_needed",
    )
    far = olga.post(extend, {**slip, "confirm": True}, format="json")
    assert far.status_code == 200, far.content
    of_team = {**slip, "closes_at": "2027-05-10T00:00:00Z", "team": "apples"}
    assert code_of(olga.post(extend, of_team, format="json")) == (409, "deadline_only_moves_later")

    cancelled = f"{extend}?closes_at=9999-12-31T23:59:59Z&reason=a slip"
    assert code_of(people["ann"].delete(cancelled)) == (403, "not_allowed")
    assert code_of(olga.delete(f"{extend}?reason=slip")) == (400, "invalid")
    assert olga.delete(cancelled).status_code == 204
    # A repeated request cancels no other extension.
    assert code_of(olga.delete(cancelled)) == (409, "no_extension")
    assert {**olga.get(PHASE).json(), "now": before["now"]} == before
    event = AuditEvent.objects.get(action="phase.extension_cancelled")
    assert event.after["reason"] == "a slip"
    assert not list(find_in_campaigns())

    assert olga.post(extend, of_team, format="json").status_code == 200
    ends = people["ann"].get(PHASE).json()["yours"]["closes_at"]
    assert ends == "2027-05-10T00:00:00Z"
    clock.now = CLOSES
    late = f"{extend}?closes_at=2027-05-10T00:00:00Z&reason=slip&team=apples"
    assert code_of(olga.delete(late)) == (409, "deadline_has_passed")
    clock.now = CLOSES - TICK
    assert olga.delete(late).status_code == 204
    assert people["ann"].get(PHASE).json()["yours"]["extended"] is False
    assert not list(find_in_campaigns())


def test_a_slip_of_the_year_on_the_pages(people: Clients, clock: Clock) -> None:
    make_campaign(people["olga"])
    assert register(people["ann"], "apples").status_code == 201
    clock.now = OPENS
    desk = Client()
    desk.force_login(User.objects.get(username="olga"))
    for team in ("", "&team=apples"):
        page = f"/campaigns/cup/acts/extend/?phase=task{team}"
        assert "can be cancelled until the end above" in desk.get(page).content.decode()
        form = {"closes_at_day": "2072-05-10", "zone": "UTC", "reason": "storm"}
        answer = desk.post(page, form)
        assert answer.status_code == 409
        assert 'name="confirm"' in answer.content.decode()
        assert desk.post(page, {**form, "confirm": "yes"}).status_code in (302, 303)
        extension = Extension.objects.get()
        link = (
            f"cancel-extension/?phase=task{team.replace('&', '&amp;')}&amp;extension={extension.pk}"
        )
        where = "teams" if team else "phases/task"
        assert link in desk.get(f"/campaigns/cup/desk/{where}/").content.decode()
        act = f"/campaigns/cup/acts/cancel-extension/?phase=task{team}&extension={extension.pk}"
        assert "instead of" in desk.get(act).content.decode()
        assert desk.post(act, {"reason": "a slip"}).status_code in (302, 303)
        assert not Extension.objects.exists()
    assert desk.get("/campaigns/cup/acts/cancel-extension/?phase=task").status_code == 404


def test_extensions_and_pauses_are_in_a_snapshot_and_on_its_page(
    people: Clients, clock: Clock
) -> None:
    olga = people["olga"]
    make_campaign(olga, kind="development", feedback="own")
    clock.now = OPENS
    assert olga.post(f"{PHASE}pause/", {"reason": "a flood"}, format="json").status_code == 200
    clock.now += timedelta(hours=3)
    assert olga.post(f"{PHASE}resume/").status_code == 200
    clock.now = CLOSES - timedelta(hours=5)
    later = {"closes_at": (CLOSES + timedelta(days=1)).isoformat(), "reason": "power cut in Pisa"}
    assert olga.post(f"{PHASE}extend/", later, format="json").status_code in (200, 201)
    assert enter(olga, "bm25", role="baseline", label="BM25").status_code == 201
    evaluate_all()
    clock.now = CLOSES + timedelta(days=9)
    snapshot = olga.post(f"{CAMPAIGN}snapshots/", {"phase": "task"}, format="json")
    assert snapshot.status_code == 201, snapshot.content
    (phase,) = olga.get(f"/api/v1/snapshots/{snapshot.json()['sha256']}/").json()["manifest"][
        "phases"
    ]
    assert phase["feedback"] == "own"
    assert phase["pauses"] == [
        {
            "from": "2027-04-02T12:00:00.000000Z",
            "to": "2027-04-02T15:00:00.000000Z",
            "reason": "a flood",
        }
    ]
    html = text_of(browser("olga").get(f"/s/{snapshot.json()['code']}/").content.decode())
    assert "to 2027-05-03 12:00:00 UTC, announced 5 hours before the end: power cut in Pisa" in html
    assert "Paused from 2027-04-02 12:00:00 UTC to 2027-04-02 15:00:00 UTC: a flood" in html
