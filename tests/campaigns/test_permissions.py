"""Who may do what in a campaign: every act, tried by everybody in every state of a phase, with a frozen clock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.test import Client
from rest_framework.test import APIClient

from evalhub.campaigns.services.releases import plan_release
from runs.models import Phase, Release, User
from tests.campaigns.worlds import (
    CAMPAIGN,
    CLOSES,
    LATE,
    OPENS,
    PHASE,
    Clock,
    enter,
    make_campaign,
    register,
    run_of,
)
from tests.conftest import client_of, evaluate_all

# A anybody; U a user; M members of accepted teams, T those of the team whom the act is about, W the
# owner of this team; O organisers and staff. `-` nobody; `.` nobody, for there is nothing yet.
TABLE = """
| act | draft | planned | open | late | closed | teams | participants | public |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
| see the campaign, its phases and times | O | A | A | A | A | A | A | A |
| see on its page who takes part | . | O | O | O | O, M | O, M | O, M | A |
| register a team | - | U | U | - | - | - | - | U |
| accept, decline or remove a team | . | O | O | O | O | O | O | O |
| invite a member | . | W | W | - | - | - | - | W |
| leave a team; as its owner or an organiser, remove a member | . | O, T | O, T | O | O | O | O | O, T |
| check a run, which stores nothing | O | O, M | O, M | O, M | O, M | O, M | O, M | O, M |
| enter a run for the own team | - | - | M | M | - | - | - | - |
| enter a run for a team, as an organiser | . | - | O | O | O | O | - | - |
| enter a baseline | - | O | O | O | O | O | O | O |
| enter a run into a phase of kind `afterwards` | - | - | - | - | - | M | M | M |
| see an entry of a team, with its answers | . | . | O, T | O, T | O, T | O, T | O, T | O, T |
| see how many entries there are | O | O | O | O | O | O | O, M | A |
| order entries | - | - | T | - | - | - | - | - |
| choose an entry, or change its answers | . | . | T | - | - | - | - | - |
| withdraw an entry | . | . | O, T | O, T | O, W | O, W | O | O |
| disqualify an entry | . | . | O | O | O | O | O | O |
| read a team's results, its packet | . | O | O | O | O | O, T | O, T | O, T |
| read the leaderboard of the phase | O | O | O | O | O | O | O, M | A |
| read the judgements | O | O | O | O | O | O | O, M | A |
| download the file of a team's run | . | . | O, T | O, T | O, T | O, T | O, M | A |
| extend a phase | - | O | O | O | - | - | - | - |
| pause a phase | - | - | O | - | - | - | - | - |
| plan a release | - | O | O | O | O | O | O | - |
| release to more people at once | . | - | - | - | O | O | O | - |
| make a snapshot | - | - | - | - | O | O | O | O |
| read a snapshot | . | . | . | . | O | O | O, M | A |
| download a snapshot | . | . | . | . | O | O | O, M | A |
| read the trail of what was done | O | O | O | O | O | O | O | O |
"""
STATES = ("draft", "planned", "open", "late", "closed", "teams", "participants", "public")
# Ann owns apples, whose entry, results and file the acts are about, and Abe is a member; Ben is
# another team's.
WHO = {
    "A": {"nobody", "eve", "abe", "ann", "ben", "olga", "sam"}, "U": {"eve"}, "M": {"abe", "ann", "ben"},
    "T": {"abe", "ann"}, "W": {"ann", "sam"}, "O": {"olga", "sam"}, "-": set(), ".": set(),
}  # fmt: skip
# Who tries an act in every state: of those who may it in one of them. Others try it while the phase
# is open, and nobody again when everything is public.
TRIES = {
    "A": {"eve", "ben", "olga"}, "U": {"eve"}, "M": {"ben"}, "T": {"abe", "ann"}, "W": {"ann"},
    "O": {"olga"}, "-": set(), ".": set(),
}  # fmt: skip
# What answers to those who may not: to nobody, to whom it is not shown, to others who never may,
# and to those who may at another time.
REFUSED = {
    "404 404 404 404": ("see the campaign, its phases and times", "read a snapshot", "download a snapshot"),
    "403 403 403 403": (
        "see on its page who takes part", "see how many entries there are", "read the leaderboard of the phase",
        "read the judgements",
    ),
    "401 403 403 409": (
        "register a team", "check a run, which stores nothing", "enter a run for the own team",
        "enter a run for a team, as an organiser", "enter a baseline", "enter a run into a phase of kind `afterwards`",
        "order entries", "extend a phase", "pause a phase", "plan a release", "make a snapshot",
    ),
    "401 404 403 409": (
        "accept, decline or remove a team", "invite a member",
        "leave a team; as its owner or an organiser, remove a member", "choose an entry, or change its answers",
        "disqualify an entry", "release to more people at once",
    ),
    "401 404 403 403": ("withdraw an entry",),
    "404 404 404 404 ": ("see an entry of a team, with its answers", "download the file of a team's run"),
    "401 403 403 403": ("read a team's results, its packet", "read the trail of what was done"),
}  # fmt: skip
# Of the collection, which is there before the campaign is published.
OF_THE_COLLECTION = {"read the judgements"}
# Members of other teams see neither this team nor its entries; nobody but organisers sees a release
# that is planned.
HIDDEN = {
    "accept, decline or remove a team": {"ben"}, "invite a member": {"ben"}, "disqualify an entry": {"ben"},
    "leave a team; as its owner or an organiser, remove a member": {"ben"}, "withdraw an entry": {"ben"},
    "choose an entry, or change its answers": {"ben"}, "release to more people at once": {"abe", "ann", "ben"},
}  # fmt: skip
# Ben has other entries to order; that those who take part or organise register no team is tried
# elsewhere.
ELSEWHERE = {"order entries": {"ben"}, "register a team": {"abe", "ben", "olga"}}
TEAMS = {"ann": "apples", "ben": "berries"}
Clients = dict[str, APIClient]
Act = Callable[["World", str], int]


class World:
    """The campaign in one state after the other, and what the acts name; nothing of it is there in the draft."""

    # Packets have charts, which take long to draw.
    result_files = ("results",)

    def __init__(self, people: Clients, clock: Clock) -> None:
        sam = User.objects.create_user("sam", is_staff=True)
        self.people, self.clock = people | {"sam": client_of(sam), "nobody": APIClient()}, clock
        self.browsers = {who: Client() for who in WHO["A"]}
        for who, browser in self.browsers.items():
            if who != "nobody":
                browser.force_login(User.objects.get(username=who))
        self.apples = f"{CAMPAIGN}teams/apples/"
        self.entry = self.run = self.snapshot = "nothing"

    def reach(self, state: str) -> None:
        olga = self.people["olga"]
        if state == "draft":
            make_campaign(olga, publish=False, selection="chosen")
            times = {
                "opens_at": LATE.isoformat(),
                "closes_at": (LATE + timedelta(days=90)).isoformat(),
            }
            later = {
                "slug": "later",
                "name": "Later",
                "collection": "dark",
                "kind": "afterwards",
                **times,
            }
            assert olga.post(f"{CAMPAIGN}phases/", later, format="json").status_code == 201
        elif state == "planned":
            assert olga.post(f"{CAMPAIGN}publish/").status_code == 200
            assert {
                register(self.people[who], team).status_code for who, team in TEAMS.items()
            } == {201}
            assert self.people["abe"].post(f"{self.apples}members/").status_code == 201
        elif state == "open":
            self.clock.now = OPENS
            payload = [
                enter(self.people[who], tag).json()
                for who, tag in (("ann", "a"), ("ann", "aa"), ("ben", "b"))
            ]
            self.entry, self.run = payload[0]["url"], f"/api/v1/runs/{payload[0]['run']}/"
            evaluate_all()
        elif state == "late":
            self.clock.now = CLOSES
        elif state == "closed":
            self.clock.now = LATE
            self.result_files = ("results", "packet")
            payload = olga.post(
                f"{CAMPAIGN}snapshots/", {"phase": "task", "label": "first"}, format="json"
            ).json()
            self.snapshot = payload["url"]
        else:
            self.result_files = ("results",)
            self.clock.now += timedelta(days=1)
            body = {"audience": state, "with_run_files": True}
            assert olga.post(f"{PHASE}releases/", body, format="json").status_code == 201
            release = olga.get(f"{PHASE}releases/").json()["results"][-1]["url"]
            assert olga.post(f"{release}now/").status_code == 200


def status_of(answer: Any) -> int:
    answer.close()
    return int(answer.status_code)


def send(method: str, path: str, body: Any = None) -> Act:
    """An act that is one request; in braces is what the world has."""

    def act(world: World, who: str) -> int:
        answer = getattr(world.people[who], method)(path.format(world=world), body, format="json")
        return status_of(answer)

    return act


def who_takes_part(world: World, who: str) -> int:
    page = world.browsers[who].get("/campaigns/cup/")
    other = b"apples" if who == "ben" else b"berries"
    return 403 if page.status_code == 200 and other not in page.content else status_of(page)


def how_many(world: World, who: str) -> int:
    phase = world.people[who].get(PHASE)
    return 403 if phase.status_code == 200 and phase.json()["entries"] is None else status_of(phase)


def enter_into(path: str, **fields: Any) -> Act:
    def act(world: World, who: str) -> int:
        tag = f"{who}-more"
        file = SimpleUploadedFile("run", run_of(tag).encode())
        sent = {"file": file, "tag": tag, **fields}
        return status_of(world.people[who].post(f"{path}entries/", sent, format="multipart"))

    return act


def check_a_run(world: World, who: str) -> int:
    own = {"role": "baseline"} if who in WHO["O"] else {}
    return enter_into(PHASE, dry_run="true", **own)(world, who)


def results(world: World, who: str) -> int:
    team = "" if who in WHO["T"] else "?team=apples"
    seen = [
        status_of(world.people[who].get(f"{PHASE}{name}/{team}")) for name in world.result_files
    ]
    assert len(set(seen)) == 1
    return seen[0]


def release_now(world: World, who: str) -> int:
    phase, olga = (
        Phase.objects.select_related("campaign").get(slug="task"),
        User.objects.get(username="olga"),
    )
    if phase.campaign.state == "draft":
        return 404
    existing = Release.objects.filter(phase=phase, audience=Release.Audience.PUBLIC).first()
    release = existing or plan_release(phase=phase, audience=Release.Audience.PUBLIC, user=olga)
    return status_of(world.people[who].post(f"/api/v1/releases/{release.pk}/now/"))


UNTIL, REASON = (LATE + timedelta(days=9)).isoformat(), {"reason": "a reason"}
ACTS: dict[str, Act] = {
    "see the campaign, its phases and times": send("get", PHASE),
    "see on its page who takes part": who_takes_part,
    "register a team": send("post", f"{CAMPAIGN}teams/", {"team": "eves"}),
    "accept, decline or remove a team": send("patch", "{world.apples}", {"state": "removed", **REASON}),
    "invite a member": send("post", "{world.apples}invitations/", {"username": "eve"}),
    "leave a team; as its owner or an organiser, remove a member": send(
        "delete", "{world.apples}members/abe/?reason=x"
    ),
    "check a run, which stores nothing": check_a_run,
    "enter a run for the own team": enter_into(PHASE),
    "enter a run for a team, as an organiser": enter_into(PHASE, on_behalf_of="apples", **REASON),
    "enter a baseline": enter_into(PHASE, role="baseline"),
    "enter a run into a phase of kind `afterwards`": enter_into(f"{CAMPAIGN}phases/later/"),
    "see an entry of a team, with its answers": send("get", "{world.entry}"),
    "see how many entries there are": how_many,
    "order entries": send("put", f"{PHASE}priorities/", {"order": ["aa", "a"]}),
    "choose an entry, or change its answers": send("patch", "{world.entry}", {"chosen": True}),
    "withdraw an entry": send("post", "{world.entry}withdraw/", REASON),
    "disqualify an entry": send("post", "{world.entry}disqualify/", REASON),
    "read a team's results, its packet": results,
    "read the leaderboard of the phase": send("get", f"{PHASE}board/"),
    "read the judgements": send("get", "/api/v1/collections/dark/qrels/1/file/"),
    "download the file of a team's run": send("get", "{world.run}file/"),
    "extend a phase": send("post", f"{PHASE}extend/", {"closes_at": UNTIL, **REASON}),
    "pause a phase": send("post", f"{PHASE}pause/", REASON),
    "plan a release": send("post", f"{PHASE}releases/", {"audience": "public"}),
    "release to more people at once": release_now,
    "make a snapshot": send("post", f"{CAMPAIGN}snapshots/", {"phase": "task", "label": "another"}),
    "read a snapshot": send("get", "{world.snapshot}"),
    "download a snapshot": send("get", "{world.snapshot}archive/"),
    "read the trail of what was done": send("get", f"{CAMPAIGN}audit/"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.words
def test_everybody_may_in_every_state_what_the_table_says(people: Clients, clock: Clock) -> None:
    """The table is that of docs/api/campaigns.md, where users read it."""
    assert TABLE in Path("docs/api/campaigns.md").read_text()
    codes = {act: tuple(map(int, text.split())) for text, acts in REFUSED.items() for act in acts}
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in TABLE.strip().splitlines()[2:]
    ]
    assert ACTS.keys() == codes.keys() == {act for act, *_ in rows}
    world, wrong, tried = World(people, clock), [], 0
    for place, state in enumerate(STATES):
        world.reach(state)
        for act, *cells in rows:
            cell, ever = (
                cells[place].split(", "),
                {letter for cell in cells for letter in cell.split(", ")},
            )
            may, may_ever = (
                set().union(*(WHO[letter] for letter in letters)) for letters in (cell, ever)
            )
            trying = set().union(*(TRIES[number] for number in ever))
            trying |= {"nobody", "eve", "abe", "ben", "olga"} if state == "open" else set()
            trying |= {"sam"} if state == "closed" and "O" in cell else set()
            trying |= {"nobody"} if state == "public" else set()
            for who in sorted(trying - ELSEWHERE.get(act, set())):
                with transaction.atomic():
                    answer = ACTS[act](world, who)
                    transaction.set_rollback(True)
                nobody, hidden, never, later = codes[act]
                unseen = who == "eve" or who in HIDDEN.get(act, ())
                expected = [later if who in may_ever else hidden if unseen else never]
                if cell == ["."]:
                    expected = [400, 401, 403, 404]
                elif who == "nobody" and who not in may_ever:
                    expected = [nobody]
                elif state == "draft" and who not in WHO["O"] and act not in OF_THE_COLLECTION:
                    expected = [404]
                tried += 1
                if answer not in ([200, 201, 204] if who in may else expected):
                    wrong.append(f"{who} tries to {act} in state {state}: {answer}")
    assert not wrong, "\n".join(wrong)
    assert tried > 500
