"""The pages of campaigns, as a browser without scripts sends their forms."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from runs.models import (
    Agreement,
    AuditEvent,
    Campaign,
    Collection,
    Entry,
    Participation,
    Phase,
    Release,
    User,
)
from tests.campaigns.worlds import (
    CLOSES,
    LATE,
    OPENS,
    Clients,
    Clock,
    campaign,
    enter,
    make_campaign,
    register,
    run_of,
)
from tests.conftest import evaluate_all
from tests.web.test_pages import page, text_of

pytestmark = pytest.mark.words
DESK = "/campaigns/cup/desk/"
TEAM = "/campaigns/cup/team/"
ACTS = "/campaigns/cup/acts/"


def browser(name: str = "") -> Client:
    client = Client()
    if name:
        client.force_login(User.objects.get(username=name))
    return client


def send(client: Client, path: str, status: int = 303, **fields: Any) -> str:
    """Send a form; returns the page that it leads to, or that says why it did nothing."""
    answer = client.post(path, fields)
    assert answer.status_code == status, text_of(answer.content.decode())
    return (
        text_of(page(client, answer["Location"]))
        if status == 303
        else text_of(answer.content.decode())
    )


def file_of(tag: str) -> SimpleUploadedFile:
    return SimpleUploadedFile("run", run_of(tag).encode())


def test_an_organiser_sets_up_a_campaign(people: Clients) -> None:
    """From nothing to a published campaign; a draft is not there for others."""
    olga, eve = browser("olga"), browser("eve")
    dark = {"slug": "dark", "name": "Dark", "team": "lab", "blind": True}
    assert people["olga"].post("/api/v1/collections/", dark, format="json").status_code == 201
    assert "New campaign" in page(olga, "/campaigns/")
    fields = {"name": "Cup 2027", "team": "lab", "registration": "open", "tag_scope": "campaign"}
    markup = send(olga, "/new-campaign/", 400, **{**fields, "name": ""})
    assert "name" in markup.lower()
    assert "It is a draft" in send(
        olga, "/new-campaign/", **fields, registration_closes_at_day="2027-04-20"
    )
    campaign = Campaign.objects.get(slug="cup-2027")
    assert (campaign.registration_closes_at or OPENS).isoformat() == "2027-04-21T00:00:00+00:00"
    for path in ("", "desk/", "team/", "acts/publish/"):
        assert eve.get(f"/campaigns/cup-2027/{path}").status_code == 404, path
    desk = "/campaigns/cup-2027/desk/"
    phase = {
        "name": "Task 1", "collection": "dark", "kind": "evaluation", "zone": "AoE", "opens_at_day": "2027-04-02",
        "opens_at_time": "00:00", "closes_at_day": "2027-05-01", "measures": "nDCG@10, AP", "slots": "3",
        "max_documents": "100", "naming": "{team}-{run_type}-{name}",
        "run_types": "automatic = Automatic\nmanual", "field-0-label": "First stage", "field-0-type": "choice",
        "field-0-choices": "BM25\nSPLADE", "field-0-required": "on", "field-1-label": "Mail", "field-1-private": "on",
        "field-1-type": "text", "field-2-type": "text",
    }  # fmt: skip
    more = page(olga, f"{desk}new-phase/")
    assert more.count('name="field-') == more.count('id="field-') + 2 * 3
    answer = olga.post(f"{desk}new-phase/", {**phase, "action": "rows"})
    assert 'value="First stage"' in answer.content.decode()
    assert 'name="field-4-label"' in answer.content.decode()
    markup = send(olga, f"{desk}new-phase/", 400, **{**phase, "field-0-choices": ""})
    assert "1 to 50 different texts" in markup
    assert "Phase Task 1 added." in send(olga, f"{desk}new-phase/", **phase)
    stored = Phase.objects.get()
    assert stored.closes_at.isoformat() == "2027-05-02T12:00:00+00:00"
    assert [(field["key"], field["type"], field["public"]) for field in stored.form] == [
        ("first_stage", "choice", True), ("mail", "text", False)
    ]  # fmt: skip
    assert (stored.max_documents, stored.naming) == (100, "{team}-{run_type}-{name}")
    assert stored.run_types == [
        {"key": "automatic", "label": "Automatic"},
        {"key": "manual", "label": "manual"},
    ]
    assert "Agreement Terms added." in send(olga, f"{desk}agreements/", title="Terms", text="*Be fair.*",
                                            required_of="each_member")  # fmt: skip
    text = (
        "# Rank <script>\n[x](javascript:alert(1)) ![p](http://a.example/p.png)\n\n|a|\n|-|\n|1|\n"
    )
    del fields["team"]
    changes = {**fields, "summary": "Find it", "guidelines": text, "contact": "olga@example.org"}
    assert "Changes saved." in send(olga, f"{desk}settings/", **changes)
    assert "1 phase" in text_of(page(olga, "/campaigns/cup-2027/acts/publish/"))
    assert "is published" in send(olga, "/campaigns/cup-2027/acts/publish/")
    html = page(eve, "/campaigns/cup-2027/rules/")
    assert "<h2>Rank &lt;script&gt;</h2>" in html
    assert "javascript:alert(1))" in text_of(html)
    assert "<img src=" not in html.partition("<main")[2]
    assert 'href="javascript' not in html
    assert "end of 1 May 2027, anywhere on earth" in html
    assert "Scores compared as float64" in text_of(html)
    assert "2027-05-02 12:00:00 UTC" in html
    assert "olga@example.org" not in html
    assert "Register a team" in page(eve, "/campaigns/cup-2027/")


@pytest.mark.django_db
def test_times_are_refused_where_a_zone_has_none(people: Clients) -> None:
    make_campaign(people["olga"], publish=False)
    form = {"name": "Task", "collection": "dark", "kind": "evaluation", "zone": "Europe/Lisbon",
             "opens_at_day": "2027-03-28", "opens_at_time": "01:30", "closes_at_day": "2027-05-01"}  # fmt: skip
    olga = browser("olga")
    assert "pass over" in send(olga, f"{DESK}phases/task/", 400, **form)
    assert "Choose the day" in send(
        olga, f"{DESK}phases/task/", 400, **{**form, "opens_at_day": ""}
    )
    assert "Unknown zone" in send(olga, f"{DESK}phases/task/", 400, **{**form, "zone": "Mars/Base"})
    assert "saved" in send(olga, f"{DESK}phases/task/", **{**form, "opens_at_time": "02:30"})
    assert Phase.objects.get().opens_at.isoformat() == "2027-03-28T01:30:00+00:00"


def test_other_pages_lead_to_the_campaign(people: Clients, clock: Clock) -> None:
    make_campaign(people["olga"])
    register(people["ann"], "apples")
    ann = browser("ann")
    assert "apples in Cup" in text_of(page(ann, "/"))
    assert " in Cup" not in text_of(page(browser("eve"), "/"))
    assert "Organiser’s dashboard of Cup" in text_of(page(browser("olga"), "/"))
    assert "a run that is submitted here does not count there" in text_of(
        page(ann, "/collections/dark/submit/")
    )


@pytest.mark.queries
def test_a_team_registers_signs_enters_and_orders(people: Clients, clock: Clock) -> None:
    form = [{"key": "first_stage", "label": "First stage", "required": True},
            {"key": "parts", "label": "Parts", "type": "choices", "choices": ["a", "b"]},
            {"key": "size", "label": "Size", "type": "number"},
            {"key": "neural", "label": "Neural", "type": "yes_no"}]  # fmt: skip
    make_campaign(
        people["olga"], form=form, slots=2, run_types=[{"key": "manual", "label": "Manual"}]
    )
    Agreement.objects.create(campaign=campaign(), title="Terms", text="Be fair.", sha256="ab" * 32)
    ann, abe, anybody = browser("ann"), browser("abe"), browser()
    assert "Register a team" in page(anybody, "/campaigns/cup/")
    assert "an invitation link: it creates account and team" in text_of(page(anybody, TEAM))
    assert anybody.post(TEAM, {"action": "register"}).status_code == 401
    text = send(ann, TEAM, 400, action="register", team="apples", agreements=["ab" * 32])
    assert "Type your name" in text
    text = send(
        ann,
        TEAM,
        action="register",
        team="apples",
        name="The Apples",
        agreements=["ab" * 32],
        typed_name="Ann",
    )
    assert "The Apples takes part." in text
    assert "Take part with The Apples" in page(abe, TEAM)
    assert "Sign the agreements next." in send(abe, TEAM, action="join", team="apples")
    assert "signed as Abe" in send(abe, TEAM, action="sign", agreement="ab" * 32, typed_name="Abe")
    clock.now = OPENS
    enter_page = f"{TEAM}task/"
    answers = {"answer-first_stage": "BM25", "answer-parts": ["a", "b"], "answer-size": "1.5", "answer-neural": "no",
               "run_type": "manual"}  # fmt: skip
    text = send(ann, enter_page, 200, action="check", file=file_of("one"), **answers)
    assert "The file can be entered" in text
    assert not Entry.objects.exists()
    broken = SimpleUploadedFile("run", b"1 Q0 a 1 x tag\n")
    assert "Not accepted" in send(ann, enter_page, 422, action="check", file=broken, **answers)
    text = send(ann, enter_page, 200, action="check", file=file_of("one"), run_type="manual")
    assert "Before it can be entered: First stage: an answer is required" in text
    text = send(ann, enter_page, 422, action="enter", file=file_of("one"), run_type="manual")
    assert "an answer is required" in text
    text = send(ann, enter_page, action="enter", file=file_of("one"), **answers)
    assert "Entry 1 received." in text
    assert "2027-04-02 12:00:00 UTC" in text
    entry = Entry.objects.get()
    assert entry.answers == {
        "first_stage": "BM25",
        "parts": ["a", "b"],
        "size": 1.5,
        "neural": False,
    }
    assert entry.run.sha256 in text
    assert "Entry 2 received." in send(
        abe, enter_page, action="enter", file=file_of("other"), **answers
    )
    assert "the most there are" in send(
        abe, enter_page, 409, action="enter", file=file_of("third"), **answers
    )
    first, second = Entry.objects.order_by("number")
    order = {f"priority-{first.pk}": "2", f"priority-{second.pk}": "1"}
    assert "Order saved: other, one." in send(abe, TEAM, action="order", phase="task", **order)
    same = dict.fromkeys(order, "1")
    assert "Two entries have priority 1" in send(
        abe, TEAM, 400, action="order", phase="task", **same
    )
    text = send(
        ann,
        f"/campaigns/cup/entries/{first.pk}/",
        action="save",
        **{**answers, "answer-first_stage": "BM25+"},
    )
    assert "Answers saved." in text
    assert "Later priorities close up" in page(ann, f"{ACTS}withdraw/?entry={second.pk}")
    assert "withdrawn" in send(ann, f"{ACTS}withdraw/?entry={second.pk}", reason="a bug")
    first.refresh_from_db()
    assert first.priority == 1
    evaluate_all()
    html = page(ann, TEAM)
    assert "received" in html
    assert "evaluated" not in html


def test_a_new_phase_says_which_other_campaign_has_its_collection(people: Clients) -> None:
    """What one of them releases is open for both."""
    make_campaign(people["olga"])
    olga, fields = (
        browser("olga"),
        {"name": "Other", "team": "lab", "registration": "open", "tag_scope": "campaign"},
    )
    send(olga, "/new-campaign/", **fields)
    adding = "/campaigns/other/desk/new-phase/"
    assert "(also in cup)" in text_of(page(olga, adding))
    phase = {
        "name": "Task", "collection": "dark", "kind": "evaluation", "zone": "UTC", "opens_at_day": "2027-04-02",
        "closes_at_day": "2027-05-01", "measures": "AP",
    }  # fmt: skip
    assert "Campaign cup has the same collection" in send(olga, adding, **phase)


def test_no_page_of_a_team_is_there_for_another(people: Clients, clock: Clock) -> None:
    make_campaign(people["olga"])
    for name, team in (("ann", "apples"), ("ben", "berries")):
        assert register(people[name], team).status_code == 201
    clock.now = OPENS
    assert enter(people["ann"], "one").status_code == 201
    entry = Entry.objects.get()
    ben, eve = browser("ben"), browser("eve")
    for client in (ben, eve, browser("abe")):
        assert client.get(f"/campaigns/cup/entries/{entry.pk}/").status_code == 404
        assert client.get(f"{ACTS}withdraw/?entry={entry.pk}").status_code == 404
        assert client.post(f"{ACTS}withdraw/?entry={entry.pk}").status_code == 404
        for path in (
            DESK,
            f"{DESK}entries/",
            f"{DESK}teams/",
            f"{DESK}enter/",
            f"{ACTS}remove/?team=apples",
        ):
            assert client.get(path).status_code == 403, path
    assert "one" not in re.findall(r">\d+ (\w+)</a>", page(ben, TEAM))
    assert eve.get(f"{TEAM}task/")["Location"] == TEAM
    # It names another team's entry, so that it names none of the own.
    assert "No entry was ordered." in send(
        ben, TEAM, action="order", phase="task", **{f"priority-{entry.pk}": "9"}
    )
    entry.refresh_from_db()
    assert (entry.state, entry.priority) == ("entered", 1)


@pytest.mark.queries
def test_the_desk_counts_and_acts(people: Clients, clock: Clock) -> None:
    make_campaign(people["olga"], run_types=[{"key": "manual", "label": "Manual"}])
    Campaign.objects.update(registration="approval")
    olga = browser("olga")
    for name, team in (("ann", "apples"), ("ben", "berries")):
        assert register(people[name], team).status_code == 201
    assert "2 teams wait" in page(olga, DESK)
    for team in ("apples", "berries"):
        assert "has 1 member and 0 entries" in text_of(page(olga, f"{ACTS}accept/?team={team}"))
        assert "is accepted now" in send(olga, f"{ACTS}accept/?team={team}")
    clock.now = OPENS
    same = run_of("same")
    Campaign.objects.update(tag_scope="team")
    for name in ("ann", "ben"):
        assert enter(people[name], "same", same, run_type="manual").status_code == 201, name
    html = text_of(page(olga, DESK))
    assert "With entries 2" in html
    assert "Without entries 0" in html
    assert "2 entries of 2 teams have the same file" in html
    assert "the same file as a baseline" not in html
    assert enter(people["olga"], "same", same, role="baseline", label="S").status_code == 201
    assert "2 entries of teams have the same file as a baseline" in text_of(page(olga, DESK))
    Entry.objects.filter(role="baseline").delete()
    assert "Manual 2" in html
    assert "is not public" not in html
    Collection.objects.update(visibility="team")
    assert "is not public: other teams do not see it" in text_of(page(olga, DESK))
    Collection.objects.update(visibility="public")
    text = send(olga, f"{ACTS}pause/?phase=task", reason="wrong topics")
    assert "is paused" in text
    assert "paused: wrong topics" in text_of(page(browser(), "/campaigns/cup/")).lower()
    assert "takes runs again" in send(olga, f"{ACTS}resume/?phase=task")
    later = {"closes_at_day": "2027-05-10", "zone": "AoE", "reason": "power cut"}
    earlier = {**later, "closes_at_day": "2027-04-10"}
    assert "is later than that" in send(olga, f"{ACTS}extend/?phase=task", 409, **earlier)
    assert "closes for all teams at" in send(olga, f"{ACTS}extend/?phase=task", **later)
    form = {**later, "closes_at_day": "2027-05-11"}
    assert "for team apples" in send(olga, f"{ACTS}extend/?phase=task&team=apples", **form)
    seen = text_of(page(browser(), "/campaigns/cup/"))
    assert "for all teams: power cut" in seen
    assert "apples" not in seen
    assert "for team apples alone" in text_of(page(olga, "/campaigns/cup/"))
    entry = Entry.objects.get(participation__team__slug="berries")
    assert "disqualified" in send(olga, f"{ACTS}disqualify/?entry={entry.pk}", reason="copied")
    assert send(olga, f"{ACTS}disqualify/?entry={entry.pk}", 409, reason="again")
    listed = text_of(page(olga, f"{DESK}entries/?team=berries"))
    assert "copied" in listed
    assert "apples" not in listed.partition("What you can do")[2]
    assert "Removed" not in send(olga, f"{ACTS}remove/?team=berries", 400)
    assert "is removed now" in send(olga, f"{ACTS}remove/?team=berries", reason="fraud")
    assert Participation.objects.get(team__slug="berries").state == "removed"


@pytest.mark.queries
def test_organisers_post_notices_and_read_the_outbox(people: Clients, clock: Clock) -> None:
    make_campaign(people["olga"])
    assert register(people["ann"], "apples").status_code == 201
    olga, path = browser("olga"), f"{DESK}notices/"
    assert "Title" in send(olga, path, 400, title="", text="x", audience="teams")
    html = send(olga, path, title="More topics", text="*Soon* <b>", audience="teams")
    assert "Notice More topics posted to the accepted teams." in html
    assert "mail is not set up" in html
    assert "Soon &lt;b&gt;" in text_of(page(browser("ann"), "/campaigns/cup/"))
    assert "More topics" not in page(browser("eve"), "/campaigns/cup/")
    send(olga, path, title="A prize", text="There is one.", audience="public")
    assert "A prize" in page(browser(), "/campaigns/cup/")


def queries(client: Client, path: str) -> list[str]:
    with CaptureQueriesContext(connection) as captured:
        page(client, path)
    return [query["sql"] for query in captured]


def test_more_teams_and_entries_need_no_more_queries(people: Clients, clock: Clock) -> None:
    make_campaign(people["olga"])
    clock.now = OPENS
    Campaign.objects.update(registration="open")
    paths = {
        "olga": (DESK, f"{DESK}teams/", f"{DESK}entries/", f"{ACTS}archive/"),
        "ann": (TEAM,),
        "eve": ("/campaigns/",),
    }
    before: dict[str, int] = {}
    for tags, name, team in ((("a", "b"), "ann", "apples"), (("c", "d", "e"), "ben", "berries")):
        assert register(people[name], team).status_code == 201
        for tag in tags:
            assert enter(people[name], f"{tag}-run").status_code == 201
        for reader, addresses in paths.items():
            for path in addresses:
                statements = queries(browser(reader), path)
                assert len(statements) <= before.setdefault(path, len(statements)), "\n".join(
                    [path, *statements]
                )
    assert max(before.values()) < 40, before


def test_organisers_let_somebody_join_another_team_on_the_desk(
    people: Clients, clock: Clock
) -> None:
    make_campaign(people["olga"])
    assert register(people["ann"], "apples").status_code == 201
    members = "/api/v1/campaigns/cup/teams/apples/members/"
    assert people["abe"].post(members).status_code == 201
    clock.now = OPENS
    assert enter(people["ann"], "one").status_code == 201
    teams, lift = f"{DESK}teams/", f"{ACTS}lift/?member=abe"
    assert lift not in page(browser("olga"), teams)
    assert people["abe"].delete(f"{members}abe/").status_code == 204
    olga = browser("olga")
    assert lift in page(olga, teams)
    assert browser("ann").get(lift).status_code == 403
    assert "abe left it on" in text_of(page(olga, lift))
    send(olga, lift, 400)
    assert "abe may join another team." in send(olga, lift, reason="changed labs")
    assert lift not in page(olga, teams)
    assert olga.get(lift).status_code == 404


@pytest.mark.queries
def test_results_are_released_from_the_desk(people: Clients, clock: Clock) -> None:
    make_campaign(people["olga"])
    assert register(people["ann"], "apples").status_code == 201
    clock.now = OPENS
    assert enter(people["ann"], "one").status_code == 201
    olga, teams = browser("olga"), f"{ACTS}release-to-teams/?phase=task"
    text = text_of(page(olga, teams))
    assert "1 entry, 0 late (counted separately)" in text
    assert "judgements of version 1" in text
    assert "1 evaluation is still to be done" in text
    assert "The phase is not over" in text
    assert "is not over" in send(olga, teams, 409)
    clock.now = LATE
    assert "still to be evaluated" in send(olga, teams, 409)
    assert "Say why" in send(olga, teams, 400, force="on")
    assert not Release.objects.exists()
    evaluate_all()
    assert "Release results of Task to teams it is over" in text_of(page(olga, DESK))
    assert "packet" not in page(browser("ann"), TEAM)
    planned = send(olga, teams, at_day="2027-06-01", zone="AoE")
    assert "planned for 1 Jun 2027, 12:00, UTC" in planned
    cancel = f"{ACTS}cancel-release/?release={Release.objects.get().pk}"
    assert browser("ann").get(cancel).status_code == 403
    assert "cancelled" in send(olga, cancel)
    assert "Results of phase Task released to teams" in send(olga, teams)
    assert "the packet of your team" in text_of(page(browser("ann"), TEAM))
    html = text_of(page(olga, DESK))
    assert "to teams: done 9 May 2027, 12:00" in html
    assert "Release to participants" in html
    assert "Make a snapshot freeze results" in html
    assert "Release to teams" not in html
    assert "Your results of Task" in text_of(page(browser("ann"), "/campaigns/cup/"))
    own, act = f"/campaigns/cup/entries/{Entry.objects.get().pk}/", f"{ACTS}withdraw/?entry="
    assert all(act in page(browser("ann"), path) for path in (TEAM, own))
    assert Collection.objects.get().disclosure == 1
    assert "released to participants" in send(olga, f"{ACTS}release-to-participants/?phase=task")
    assert not any(act in page(browser("ann"), path) for path in (TEAM, own))
    assert act in page(olga, own)


def test_organisers_enter_baselines_and_for_teams(people: Clients, clock: Clock) -> None:
    """Baselines have no type of run, and answer nothing."""
    make_campaign(
        people["olga"], run_types=[{"key": "manual"}], form=[{"key": "stage", "required": True}]
    )
    assert register(people["ann"], "apples").status_code == 201
    clock.now = LATE + timedelta(days=1)
    olga, path = browser("olga"), f"{DESK}enter/"
    fields = {"phase": "task", "action": "enter"}
    html = send(olga, path, role="baseline", label="BM25", file=file_of("bm"), **fields)
    assert "Entry 1 received." in html
    own = {
        "role": "competing",
        "on_behalf_of": "apples",
        "run_type": "manual",
        "answer-stage": "BM25",
        **fields,
    }
    assert "Say why" in send(olga, path, 400, file=file_of("late"), **own)
    html = send(olga, path, reason="mail", file=file_of("late"), **own)
    assert "late" in html
    assert Entry.objects.get(number=2).late
    assert "do not compete" in send(olga, path, 400, role="competing", file=file_of("x"), **fields)
    assert clock.now > CLOSES
    assert "closed; the last byte" in send(
        browser("ann"), f"{TEAM}task/", 409, action="enter", file=file_of("mine"), run_type="manual"
    )
    assert Collection.objects.get().runs.count() == 2


def test_tabs_show_no_result_before_the_release(people: Clients, clock: Clock) -> None:
    """Not even to organisers, who read values on the leaderboard, where that is recorded."""
    make_campaign(people["olga"], measures=["nDCG@10", "Judged@10"])
    assert register(people["ann"], "apples").status_code == 201
    clock.now = OPENS
    assert enter(people["ann"], "one").status_code == 201
    evaluate_all()
    cup, board = "/campaigns/cup/", "/campaigns/cup/phases/task/"
    olga, ann, anybody = browser("olga"), browser("ann"), browser()
    tabs = ("", "rules/", "cite/", "team/")
    value = re.compile(r"\b0\.\d{3,}\b|Judged@10 \d|one</a>")

    for now in (OPENS, LATE):
        clock.now = now
        for reader in (olga, ann, anybody):
            for tab in tabs:
                assert not value.search(text_of(page(reader, f"{cup}{tab}"))), (now, tab)
    assert not AuditEvent.objects.filter(action=AuditEvent.Action.VALUES_READ).exists()
    assert "No results yet" in page(anybody, f"{cup}leaderboard/")
    assert "No results yet" in page(ann, f"{cup}leaderboard/")
    assert olga.get(f"{cup}leaderboard/")["Location"] == board
    assert "Every phase is over" in page(anybody, cup)
    clock.now = OPENS
    html = page(anybody, cup)
    assert html.count('class="countdown"') == 1
    assert "Task closes in</span> <b>30 days</b>" in html


@pytest.mark.queries
def test_the_overview_has_results_after_the_release(people: Clients, clock: Clock) -> None:
    make_campaign(people["olga"], measures=["nDCG@10", "Judged@10"])
    assert register(people["ann"], "apples").status_code == 201
    clock.now = OPENS
    assert enter(people["ann"], "one").status_code == 201
    contradicting = "1 Q0 a 1 1 other\n1 Q0 b 2 2 other\n2 Q0 c 1 1 other\n"
    assert enter(people["ann"], "other", contradicting).status_code == 201
    clock.now = LATE
    evaluate_all()
    olga, anybody, cup = browser("olga"), browser(), "/campaigns/cup/"
    send(olga, f"{ACTS}release-to-participants/?phase=task")
    assert "Results of Task" not in page(anybody, cup)
    assert "Results of Task" in page(browser("ann"), cup)
    send(olga, f"{ACTS}release-to-public/?phase=task")
    html = page(anybody, cup)
    assert "Results of Task" in html
    assert "Cite these results" not in html
    assert "Nothing to cite yet" in page(anybody, f"{cup}cite/")
    assert "made" in send(olga, f"{DESK}snapshot/", label="official", phase="")
    assert "Cite these results" in page(anybody, cup)
    assert "@misc" in page(anybody, f"{cup}cite/")

    board = page(anybody, f"{cup}phases/task/")
    assert board.count("Judged@10<wbr>") + board.count("Judged@<wbr>10") == 1
    assert "ranks ≠ scores" in board
    assert 'class="interval"' in board
    assert "rank interval" in page(anybody, f"{cup}phases/task/?statistics=ranks")


def test_a_new_phase_asks_three_questions(people: Clients) -> None:
    """The collections are blind ones without released results; the newest unused one is preset."""
    make_campaign(people["olga"])
    for slug, blind in (("open", False), ("night", True), ("told", True)):
        fields = {"slug": slug, "name": slug, "team": "lab", "blind": blind}
        assert people["olga"].post("/api/v1/collections/", fields, format="json").status_code == 201
    Collection.objects.filter(slug="told").update(shown_to=2)
    olga, adding = browser("olga"), f"{DESK}new-phase/"
    html = page(olga, adding)
    assert re.findall(r'<option value="(\w+)"( selected)?>', html.partition("Opens")[0]) == [
        ("dark", ""), ("night", " selected")
    ]  # fmt: skip
    unfolded = re.sub(r"<details.*?</details>", "", html.partition("<main")[2], flags=re.DOTALL)
    names = ["name", "collection", "opens_at_day", "opens_at_time", "closes_at_day", "closes_at_time", "zone"]  # fmt: skip
    assert re.findall(r'name="(\w+)"', unfolded.replace("csrfmiddlewaretoken", ""))[:7] == names
    assert "no late runs; any number of entries" in text_of(html)
    assert 'value="open"' in page(olga, f"{adding}?kind=development")
    stored = text_of(page(olga, f"{DESK}phases/task/"))
    assert "late runs until 2027-05-09" in stored
    assert "official: every run" in stored


def test_the_dashboard_says_what_waits_for_what(people: Clients, clock: Clock) -> None:
    make_campaign(people["olga"])
    Collection.objects.get().qrels.update(active=False)
    assert register(people["ann"], "apples").status_code == 201
    clock.now = OPENS
    assert enter(people["ann"], "one").status_code == 201
    olga = browser("olga")
    html = text_of(page(olga, DESK))
    assert "1 waits for judgements" in html
    assert "Upload judgements for Task 1 run waits for them" in html
    assert "queued or running" not in html
    assert "Release to" not in html
    assert "They can be released once the phase is over: 9 May 2027, 12:00, UTC" in html
    assert "waits for judgements" in page(olga, f"{DESK}entries/")
    clock.now = LATE
    assert "They can be released once judgements are active" in text_of(page(olga, DESK))
    Collection.objects.get().qrels.update(active=True)
    assert "Release to teams" in text_of(page(olga, DESK))
