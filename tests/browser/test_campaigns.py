"""A campaign from nothing to entries of two teams, in the browsers of those who run it and take part."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.site import PASSWORD, Site
from tests.browser.test_forms import check, choose, press
from tests.browser.visits import watched

TOPICS = b"1\twhat is a qrels file\n2\twho was cleverdon\n"
CUP = "/campaigns/errand-cup/"
PEOPLE = {"olga": "Lab", "ann": "Apples", "ben": "Berries"}


def run_of(tag: str, *documents: str) -> bytes:
    lines = [
        f"{topic} Q0 {document} {rank} {9 - rank} {tag}"
        for topic in "12"
        for rank, document in enumerate(documents, 1)
    ]
    return "\n".join([*lines, ""]).encode()


@pytest.fixture
def pages(chromium: Browser, site: Site) -> Iterator[dict[str, Page]]:
    """Olga, who organises, and Ann and Ben, who take part, each with a browser."""
    names = ", ".join(repr(name) for name in (*PEOPLE, "abe"))
    code = f"from runs.models import User\nfor name in ({names}): User.objects.create_user(name, password={PASSWORD!r})"
    site.server.manage("shell", "-v", "0", "-c", code)
    with ExitStack() as stack:
        pages_by_name = {}
        for name in (*PEOPLE, "abe"):
            context = chromium.new_context(base_url=site.url, timezone_id="Europe/Lisbon")
            stack.callback(context.close)
            pages_by_name[name] = stack.enter_context(watched(context, site)).page
            pages_by_name[name].goto("/login/?next=/teams/")
            pages_by_name[name].get_by_label("Name").fill(name)
            pages_by_name[name].get_by_label("Password").fill(PASSWORD)
            pages_by_name[name].get_by_role("main").get_by_role("button", name="Log in").click()
        yield pages_by_name


def set_up(olga: Page) -> None:
    """A team, a blind collection with topics, a campaign with a phase and an agreement; published."""
    olga.goto("/new-collection/")
    olga.get_by_label("Name", exact=True).fill("Errand questions")
    olga.get_by_label(re.compile("Public")).check()
    olga.get_by_label(re.compile("Blind")).first.check()
    press(olga, "Create collection")
    choose(olga, "topics", TOPICS)
    press(olga, "Upload", "2 topics uploaded")
    olga.goto("/campaigns/")
    olga.get_by_role("link", name="New campaign").click()
    olga.get_by_label("Name", exact=True).fill("Errand cup")
    unfold(olga, "Organisers", "What teams read")
    expect(olga.get_by_label("Short name")).to_have_value("errand-cup")
    olga.get_by_label("Team", exact=True).select_option("lab")
    olga.get_by_label("Guidelines").fill("# Task\n\nRank *all* topics.")
    check(olga)
    press(olga, "Create campaign", "It is a draft")
    olga.get_by_role("link", name="Add a phase").click()
    olga.get_by_label("Name", exact=True).fill("Task 1")
    olga.get_by_label("Collection", exact=True).select_option("errand-questions")
    olga.get_by_label("Opens: day").fill("2020-01-01")
    olga.get_by_label("Closes: day").fill("2090-05-31")
    unfold(olga, "Limits", "Questions")
    olga.get_by_label("Entries of a team", exact=True).fill("2")
    olga.get_by_label("Types of runs").fill("automatic = Automatic")
    olga.get_by_label("Label", exact=True).first.fill("First stage")
    olga.get_by_label("required", exact=True).first.check()
    check(olga)
    press(olga, "Add phase", "Task 1 added")
    olga.get_by_role("link", name="Agreements").click()
    olga.get_by_label("Title").fill("Use of the documents")
    olga.get_by_label("Text", exact=True).fill("They are **not** passed on.")
    press(olga, "Add agreement", "added")
    check(olga)
    olga.get_by_role("link", name="Overview").click()
    olga.get_by_role("link", name="Publish").first.click()
    check(olga)
    press(olga, "Publish", "is published")


def unfold(page: Page, *names: str) -> None:
    for name in names:
        page.locator("summary", has_text=name).click()


def register(page: Page, name: str) -> None:
    page.goto("/teams/")
    page.get_by_label("Name", exact=True).fill(PEOPLE[name])
    press(page, "Create team")
    page.goto(CUP)
    page.get_by_role("link", name="Register a team").click()
    page.get_by_label("Team", exact=True).select_option(PEOPLE[name].lower())
    page.get_by_label("I sign Use of the documents").check()
    page.get_by_label("Your name").fill(name.title())
    check(page)
    press(page, "Register", "organisers decide")


def enter(page: Page, tag: str, *documents: str) -> None:
    page.goto(f"{CUP}team/task-1/")
    choose(page, "run", run_of(tag, *documents))
    press(page, "Check only")
    expect(page.get_by_text("Before it can be entered: the type of the run")).to_be_visible()
    check(page)
    choose(page, "run", run_of(tag, *documents))
    page.get_by_label("Type of run").select_option("automatic")
    page.get_by_label("First stage").fill("BM25")
    press(page, "Enter the run", "received")


def test_an_organiser_runs_a_campaign_of_two_teams(pages: dict[str, Page], site: Site) -> None:
    olga, ann, ben, abe = (pages[name] for name in ("olga", "ann", "ben", "abe"))
    olga.goto("/teams/")
    olga.get_by_label("Name", exact=True).fill("Lab")
    press(olga, "Create team")
    set_up(olga)
    register(ann, "ann")
    register(ben, "ben")
    for team in ("Apples", "Berries"):
        olga.goto(f"{CUP}desk/")
        olga.get_by_role("link", name="Accept or decline teams").click()
        olga.get_by_role("link", name=f"Accept {team}").click()
        press(olga, "Accept", "is accepted now")
    ann.goto(f"{CUP}team/")
    closes = ann.get_by_text("end of 31 May 2090, anywhere on earth").first
    expect(closes).to_have_attribute(
        "title", "1 Jun 2090, 13:00, your time (Europe/Lisbon); 2090-06-01 12:00:00 UTC"
    )
    ann.get_by_label("Invite a user").fill("abe")
    press(ann, "Invite", "abe is invited")
    press(ann, "Withdraw the invitation of abe", "withdrawn")
    press(ann, "Create an invitation link")
    abe.goto(ann.locator("#link").inner_text().strip())
    press(abe, "Join as abe", exact=False)
    abe.get_by_label("Your name").fill("Abe")
    press(abe, "Sign Use of the documents", "signed as Abe")
    check(abe)
    ann.goto(f"{CUP}team/")
    press(ann, "Revoke link", "revoked", exact=False)
    enter(ann, "apple-1", "d1", "d2")
    enter(ann, "apple-2", "d2", "d1")
    enter(ben, "berry-1", "d1", "d3")
    ann.goto(f"{CUP}team/")
    ann.get_by_label("Priority of apple-2").fill("1")
    ann.get_by_label("Priority of apple-1").fill("2")
    press(ann, "Save the order", "apple-2, apple-1")
    check(ann)
    ann.get_by_role("link", name="Withdraw apple-1").click()
    check(ann)
    press(ann, "Withdraw", "withdrawn")
    ann.get_by_role("link", name="2 apple-2").click()
    ann.get_by_label("First stage").fill("BM25, then a cross-encoder")
    press(ann, "Save the answers", "Answers saved")
    check(ann)
    look_after(olga)
    abe.goto(f"{CUP}team/")
    press(abe, "Leave", "no longer takes part")
    release(olga, ann, site)
    olga.goto(f"{CUP}desk/")
    olga.get_by_role("link", name="Archive").click()
    press(olga, "Archive", "is archived")


def release(olga: Page, ann: Page, site: Site) -> None:
    """The phase is over and judged: its results are released, a team reads its packet, and a snapshot has them."""
    over = "from django.utils.timezone import now\nfrom runs.models import Extension, Phase\n"
    over += "Extension.objects.all().delete()\nPhase.objects.update(closes_at=now())"
    site.server.manage("shell", "-v", "0", "-c", over)
    olga.goto(f"{CUP}desk/")
    olga.get_by_role("link", name="Upload judgements for Task 1").click()
    choose(olga, "qrels", b"1 0 d1 1\n2 0 d2 1\n")
    press(olga, "Upload")
    expect(olga.get_by_role("link", name="v1", exact=True)).to_be_visible()
    for _ in range(60):
        olga.goto(f"{CUP}desk/")
        if "0 queued or running" in olga.get_by_role("main").inner_text():
            break
        olga.wait_for_timeout(500)
    olga.get_by_role("link", name="Release to public").click()
    check(olga)
    press(olga, "Release", "Results of phase Task 1 released to public")
    ann.goto(f"{CUP}team/")
    with ann.expect_download() as packet:
        ann.get_by_role("link", name="the packet of your team").click()
    assert packet.value.suggested_filename == "errand-cup-task-1-apples-v1.zip"
    olga.locator("a.button", has_text="Make a snapshot").click()
    olga.get_by_label("Label").fill("official results")
    check(olga)
    press(olga, "Make the snapshot", "Snapshot 1 made")
    expect(olga.get_by_role("heading", name="Cite these results")).to_be_visible()
    check(olga)
    olga.get_by_role("link", name=re.compile("official results")).first.click()
    expect(olga.get_by_text("apple-2").first).to_be_visible()
    check(olga)
    olga.goto(CUP)
    expect(olga.get_by_role("link", name="Cite these results")).to_be_visible()
    expect(olga.get_by_role("row", name=re.compile("apple-2"))).to_be_visible()
    check(olga)


def look_after(olga: Page) -> None:
    """What organisers do while a phase is open, each act on a page of its own."""
    olga.goto(f"{CUP}desk/")
    for act, reason, done in (
        ("Pause", "wrong topics", "is paused"),
        ("Resume", "", "takes runs again"),
    ):
        olga.get_by_role("link", name=act, exact=True).click()
        if reason:
            olga.get_by_label("Reason").fill(reason)
        press(olga, act, done)
    olga.get_by_role("link", name="Extend", exact=True).click()
    olga.get_by_label("New end: day").fill("2090-06-02")
    olga.get_by_label("Reason").fill("power cut")
    press(olga, "Extend")
    olga.get_by_label("The date is meant").check()
    press(olga, "Extend", "closes for all teams at")
    olga.get_by_role("link", name="Enter a run yourself").click()
    choose(olga, "run", run_of("base", "d3"))
    olga.get_by_label("Label").fill("BM25")
    press(olga, "Enter the run", "received")
    check(olga)
    olga.goto(f"{CUP}desk/entries/?team=berries")
    olga.get_by_role("link", name="Disqualify entry").click()
    olga.get_by_label("Reason").fill("copied")
    press(olga, "Disqualify", "disqualified")
    check(olga)
    olga.goto(f"{CUP}desk/settings/")
    unfold(olga, "What teams read")
    olga.get_by_label("Summary").fill("A cup for two teams")
    press(olga, "Save", "Changes saved")
    check(olga)
    olga.goto(f"{CUP}desk/phases/task-1/")
    unfold(olga, "Questions")
    press(olga, "More rows")
    olga.get_by_label("Description", exact=True).fill("Two topics")
    press(olga, "Save", "saved")
