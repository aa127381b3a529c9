"""Names of teams on the pages of a campaign: hidden by its settings, shown earlier by a team, listed to those who may
know who takes part."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from runs.models import Campaign, Collection, Disclosure, Participation
from runs.services.collections.collections import disclose
from tests.campaigns.test_pages import DESK, TEAM, browser, send
from tests.campaigns.worlds import (
    CLOSES,
    LATE,
    OPENS,
    Clients,
    Clock,
    campaign,
    make_campaign,
    register,
)
from tests.web.test_pages import page, text_of

pytestmark = pytest.mark.words


@pytest.mark.queries
def test_names_are_hidden_by_the_settings_and_shown_earlier_by_a_team(
    people: Clients, clock: Clock
) -> None:
    make_campaign(people["olga"])
    assert register(people["ann"], "apples").status_code == 201
    olga, ann, settings = browser("olga"), browser("ann"), f"{DESK}settings/"
    fields = {"name": "Cup", "registration": "open", "tag_scope": "campaign"}
    until = {"anonymous_until_day": "2027-08-31", "anonymous_until_time": ""}
    assert "Others see" not in page(ann, TEAM)
    assert "Changes saved." in send(olga, settings, **fields, **until, names="hidden_until_release")
    assert campaign().names == "hidden_until_release"
    # A form without the fields changes nothing of them.
    assert "Changes saved." in send(olga, settings, **fields)
    hidden = campaign().anonymous_until
    assert hidden
    assert hidden.isoformat() == "2027-09-01T00:00:00+00:00"
    assert 'value="2027-08-31"' in page(olga, settings)
    number = f"{Participation.objects.get().pseudonym:02}"
    text = text_of(page(ann, TEAM))
    assert f"Others see Team {number} in place of apples until end of 31 Aug 2027, UTC" in text
    assert "until results are released to participants" in text
    move = {"action": "show-name", "anonymous_until_time": ""}
    assert "Choose the day" in send(ann, TEAM, 400, **move, anonymous_until_day="")
    assert "ask an organiser" in send(ann, TEAM, 403, **move, anonymous_until_day="2027-09-02")
    assert "hidden until end of 1 Aug 2027" in send(
        ann, TEAM, **move, anonymous_until_day="2027-08-01"
    )
    moved = Participation.objects.get().anonymous_until
    assert moved
    assert moved.isoformat() == "2027-08-02T00:00:00+00:00"
    clock.now = moved
    Campaign.objects.update(names="shown")
    assert "Others see" not in page(ann, TEAM)


@pytest.mark.queries
def test_who_takes_part_is_listed_where_the_reader_may_know(people: Clients, clock: Clock) -> None:
    make_campaign(people["olga"])
    for name, team in (("ann", "apples"), ("ben", "berries")):
        assert register(people[name], team).status_code == 201
    numbers = dict(Participation.objects.values_list("team__slug", "pseudonym"))
    hidden = f"Team {numbers['berries']:02}"
    clock.now = OPENS
    later = {
        "closes_at": (CLOSES + timedelta(days=1)).isoformat(),
        "reason": "power cut",
        "team": "berries",
    }
    assert (
        people["olga"]
        .post("/api/v1/campaigns/cup/phases/task/extend/", later, format="json")
        .status_code
        == 200
    )

    def listed() -> dict[str, tuple[list[str], str]]:
        """What organisers, a team and anybody read: the teams, and for whom an extension is."""
        listed = {}
        for name in ("olga", "ann", ""):
            html = page(browser(name), "/campaigns/cup/")
            teams = re.search('id="teams".*?<p>(.*?)</p>', html, re.DOTALL)
            alone = re.search("for team (.*?) alone", text_of(html))
            listed[name] = teams[1].split(", ") if teams else [], alone[1] if alone else ""
        return listed

    both, nothing = ["apples", "berries"], ([], "")
    assert listed() == {"olga": (both, "berries"), "ann": nothing, "": nothing}
    clock.now = LATE
    assert listed() == {"olga": (both, "berries"), "ann": (both, ""), "": nothing}
    Campaign.objects.update(names="hidden_until_release", anonymous_until=LATE + timedelta(days=9))
    masked = sorted(["apples", hidden])
    assert listed()["ann"] == (masked, "")
    dark = Collection.objects.get()
    disclose(collection=dark, to=Disclosure.PARTICIPANTS)
    assert listed() == {"olga": (both, "berries"), "ann": (masked, hidden), "": ([], hidden)}
    disclose(collection=dark, to=Disclosure.PUBLIC)
    assert listed()[""] == (sorted(f"Team {number:02}" for number in numbers.values()), hidden)
    clock.now = LATE + timedelta(days=9)
    assert listed()[""] == (both, hidden)
