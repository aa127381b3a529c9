"""Organisers decide about many teams at once, and write to many."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from evalhub.campaigns.services.teams import MAX_AT_ONCE
from runs.models import AuditEvent, Campaign, CampaignNotice, Mail, Participation, User
from tests.campaigns.worlds import (
    CAMPAIGN,
    OPENS,
    PHASE,
    Clients,
    Clock,
    campaign,
    code_of,
    enter,
    make_campaign,
    make_team,
    register,
)

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]
DESK = "/campaigns/cup/desk/"


@pytest.fixture
def world(people: Clients) -> Clients:
    """Apples, berries and eves ask to take part in the campaign."""
    make_campaign(people["olga"])
    Campaign.objects.update(registration="approval")
    for name, team in (("ann", "apples"), ("ben", "berries"), ("eve", "eves")):
        assert register(people[name], team).json()["state"] == "requested"
    return people


def decide(people: Clients, by: str = "olga", **fields: Any) -> Any:
    return people[by].patch(f"{CAMPAIGN}teams/", fields, format="json")


def states() -> dict[str, str]:
    return dict(Participation.objects.values_list("team__slug", "state"))


def test_all_that_wait_are_accepted_in_one_request(world: Clients) -> None:
    answer = decide(world, state="accepted", all_requested=True).json()
    assert (answer["changed"], answer["refused"]) == (3, 0)
    assert [row["team"] for row in answer["decisions"]] == ["apples", "berries", "eves"]
    assert states() == dict.fromkeys(("apples", "berries", "eves"), "accepted")
    pseudonyms = Participation.objects.values_list("pseudonym", flat=True)
    assert None not in pseudonyms
    assert len(set(pseudonyms)) == 3
    # As if they were accepted one by one: each has its mail and its row in the audit trail.
    assert Mail.objects.filter(event="team.accepted").count() == 3
    changes = AuditEvent.objects.filter(action=AuditEvent.Action.PARTICIPATION_CHANGED)
    assert changes.count() == 3
    # The same request again changes nothing.
    assert decide(world, state="accepted", all_requested=True).json()["decisions"] == []


def test_each_team_has_its_answer(world: Clients) -> None:
    decide(world, state="accepted", teams=["apples"])
    named = ["berries", "nobody", "apples", "berries"]
    answer = decide(world, state="declined", teams=named).json()
    assert [(row["team"], row["changed"], row["code"]) for row in answer["decisions"]] == [
        ("berries", True, ""),
        ("nobody", False, "not_found"),
        ("apples", False, "conflict"),
    ]
    assert states() == {"apples": "accepted", "berries": "declined", "eves": "requested"}
    same = decide(world, state="accepted", teams=["apples"]).json()["decisions"]
    assert same == [
        {"team": "apples", "state": "accepted", "changed": False, "code": "", "detail": ""}
    ]


def test_refused_decisions_change_nothing(world: Clients) -> None:
    before = states()
    assert decide(world, "ann", state="accepted", teams=["apples"]).status_code == 403
    assert decide(world, state="withdrawn", teams=["apples"]).status_code == 400
    assert decide(world, state="accepted").status_code == 400
    both = decide(world, state="accepted", teams=["apples"], all_requested=True)
    assert both.status_code == 400
    many = [f"t{number}" for number in range(MAX_AT_ONCE + 1)]
    assert decide(world, state="accepted", teams=many).status_code == 400
    assert states() == before
    decide(world, state="accepted", teams=["apples"])
    assert code_of(decide(world, state="removed", teams=["apples"]))[1] == "required"
    assert states()["apples"] == "accepted"
    removed = decide(world, state="removed", teams=["apples"], reason="copied")
    assert removed.json()["changed"] == 1


def notice(people: Clients, by: str = "olga", **fields: Any) -> Any:
    body = {"title": "T", "text": "Read this.", **fields}
    return people[by].post(f"{CAMPAIGN}notices/", body, format="json")


def read(people: Clients, name: str) -> list[str]:
    return [row["title"] for row in people[name].get(f"{CAMPAIGN}notices/").json()["results"]]


def test_a_notice_to_chosen_teams_is_for_their_members(world: Clients) -> None:
    decide(world, state="accepted", all_requested=True)
    posted = notice(world, title="to two", audience="chosen", teams=["berries", "apples"])
    assert (posted.status_code, posted.json()["teams"]) == (201, ["apples", "berries"])
    assert [read(world, name) for name in ("olga", "ann", "ben")] == [["to two"]] * 3
    assert read(world, "eve") == read(world, "abe") == []
    # Names of teams may be hidden from others.
    rows = world["ann"].get(f"{CAMPAIGN}notices/").json()["results"]
    assert (rows[0]["audience"], rows[0]["teams"]) == ("chosen", None)
    mailed = Mail.objects.filter(event="notice.posted").values_list(
        "recipient__username", flat=True
    )
    assert sorted(mailed) == ["ann", "ben", "olga"]
    assert "to two" not in world["eve"].get("/campaigns/cup/").content.decode()
    assert code_of(notice(world, audience="chosen", teams=["nobody"])) == (400, "unknown_team")
    assert code_of(notice(world, audience="chosen")) == (400, "required")
    assert code_of(notice(world, teams=["apples"]))[0] == 400
    assert notice(world, "ann", audience="chosen", teams=["apples"]).status_code == 403


def test_notices_select_teams_without_entries_and_without_addresses(
    world: Clients, clock: Clock
) -> None:
    decide(world, state="accepted", all_requested=True)
    make_team("figs", "fay")
    clock.now = OPENS
    entry = enter(world["ann"], "dense").json()["id"]
    User.objects.filter(username="ben").update(email="ben@example.org")
    assert notice(world, audience="without_entries").json()["teams"] == ["berries", "eves"]
    assert notice(world, audience="without_address").json()["teams"] == ["apples", "eves"]
    assert code_of(notice(world, audience="without_entries", phase="none"))[0] == 400
    assert world["ann"].post(f"/api/v1/entries/{entry}/withdraw/").status_code == 200
    by_phase = notice(world, audience="without_entries", phase="task").json()["teams"]
    assert by_phase == ["apples", "berries", "eves"]
    User.objects.update(email="somebody@example.org")
    assert code_of(notice(world, audience="without_address")) == (409, "conflict")


def browser(name: str) -> Client:
    client = Client()
    client.force_login(User.objects.get(username=name))
    return client


def test_pages_accept_and_write_to_those_that_are_chosen(world: Clients) -> None:
    olga = browser("olga")
    page = olga.get(f"{DESK}teams/").content.decode()
    assert page.count('type="checkbox" name="teams"') == 3
    assert "acts/accept-teams/?teams=apples,berries,eves" in page
    act = "/campaigns/cup/acts/accept-teams/?teams=apples&teams=eves"
    assert "2 teams: apples, eves." in olga.get(act).content.decode()
    assert olga.post(act).status_code == 303
    assert states() == {"apples": "accepted", "berries": "requested", "eves": "accepted"}
    assert olga.post("/campaigns/cup/acts/decline-teams/?teams=berries").status_code == 303
    assert olga.get("/campaigns/cup/acts/accept-teams/").status_code == 404
    assert olga.post("/campaigns/cup/acts/accept-teams/?teams=apples,nobody").status_code == 404
    assert browser("ann").post("/campaigns/cup/acts/accept-teams/?teams=berries").status_code == 403
    form = olga.get(f"{DESK}notices/?teams=apples&teams=eves").content.decode()
    assert form.count('name="teams" value=') == form.count(" checked") == 2
    fields = {"title": "Hello", "text": "You.", "audience": "chosen", "teams": ["apples", "eves"]}
    assert olga.post(f"{DESK}notices/", fields).status_code == 303
    posted = CampaignNotice.objects.get(campaign=campaign())
    assert sorted(posted.teams.values_list("team__slug", flat=True)) == ["apples", "eves"]


def test_members_read_the_number_of_teams_once_a_phase_is_open(
    world: Clients, clock: Clock
) -> None:
    decide(world, state="accepted", all_requested=True)

    def numbers() -> list[int | None]:
        return [world[name].get(PHASE).json()["teams"] for name in ("olga", "ann", "abe")]

    assert numbers() == [3, None, None]
    clock.now = OPENS
    assert numbers() == [3, 3, None]
