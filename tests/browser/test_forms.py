"""Every form that changes something, filled in a real browser as somebody would; the answers are accessible pages."""

from __future__ import annotations

import re
from contextlib import nullcontext
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.site import PASSWORD, Site
from tests.browser.visits import PHONE, address, faults_of_access, watched
from tests.reliability.servers import wait_until_evaluated

QRELS = b"1 0 a 1\n1 0 b 0\n2 0 c 2\n"
RUN = b"1 Q0 a 1 3 walk\n1 Q0 b 2 2 walk\n2 Q0 c 1 3 walk\n"
LOG = b'{"session_id": "s1", "topic_id": "1", "system": "A", "queries": [{"documents": ["a", "z"]}]}\n'


def press(
    page: Page, name: str, done: str = "", *, exact: bool = True, leads_on: bool = False
) -> None:
    """Press a button of the page; read what the answer says that was done, or wait for the page that it leads to."""
    with page.expect_navigation() if leads_on else nullcontext():
        page.get_by_role("main").get_by_role("button", name=name, exact=exact).first.click()
    if done:
        expect(page.get_by_role("status").filter(has_text=done).first).to_be_visible()


def choose(page: Page, name: str, content: bytes) -> None:
    page.locator("#file").set_input_files(
        {"name": name, "mimeType": "text/plain", "buffer": content}
    )


def check(page: Page) -> None:
    """The page, with what the form answered, has no grave fault."""
    assert faults_of_access(page) == []


def test_a_collection_is_made_and_managed(session: BrowserContext, site: Site) -> None:
    """Its name, description, topics and measures; what is uploaded is checked first."""
    with watched(session, site) as seen:
        page = seen.page
        page.goto("/new-collection/")
        page.get_by_label("Name", exact=True).fill("Walked")
        expect(page.get_by_label("Short name")).to_have_value("walked")
        press(page, "Create collection")
        expect(page.locator("h1")).to_contain_text("Walked")
        manage = "/collections/walked/manage/"
        page.goto(f"{manage}documents/")
        page.get_by_label("Document link").fill("https://example.org/{doc_id}")
        press(page, "Save", "")
        expect(page.get_by_label("Document link")).to_have_value("https://example.org/{doc_id}")
        check(page)
        page.goto(manage)
        page.get_by_label("Relevance levels").fill("0 = no\n1 = yes")
        press(page, "Save", "")
        expect(page.get_by_label("Relevance levels")).to_have_value(re.compile("1 = yes"))
        check(page)
        page.goto(f"{manage}topics/")
        choose(page, "topics.tsv", b"1\tcats\n2\tdogs\n")
        press(page, "Check only")
        expect(page.get_by_role("heading", name="The file can be uploaded")).to_be_visible()
        check(page)
        press(page, "Upload")
        expect(page.get_by_role("heading", name="2 topics")).to_be_visible()
        page.goto(f"{manage}measures/")
        page.get_by_label("Add measures").fill("P@3")
        press(page, "Add")
        press(page, "Rank by P@3")
        expect(page.locator("tbody tr").first).to_contain_text("P@3 ranks")
        press(page, "Remove P@3")
        expect(page.get_by_role("link", name="P@3")).to_have_count(0)
        page.get_by_label("Documents in the corpus").fill("100")
        press(page, "Save")
        expect(page.get_by_label("Documents in the corpus")).to_have_value("100")
        check(page)


def test_a_collection_is_judged_and_released(session: BrowserContext, site: Site) -> None:
    """Blind from the start, two versions of judgements, a quota, and the release of its scores."""
    with site.server.client() as api:
        api.post(
            "collections/", json={"slug": "judged", "name": "Judged", "measures": ["AP"]}
        ).raise_for_status()
    with watched(session, site) as seen:
        page, manage = seen.page, "/collections/judged/manage/"
        page.goto(f"{manage}access/")
        press(page, "Make it blind")
        expect(page.get_by_text("Blind: participants see")).to_be_visible()
        page.goto(f"{manage}judgements/")
        for number in (1, 2):
            choose(page, "qrels", QRELS + b"2 0 d 1\n" * (number - 1))
            press(page, "Check only")
            expect(page.get_by_role("heading", name="The file can be uploaded")).to_be_visible()
            press(page, "Upload")
            expect(page.get_by_role("link", name=f"v{number}", exact=True)).to_be_visible()
        press(page, "Activate version 1")
        expect(page.get_by_role("button", name="Activate version 2")).to_be_visible()
        check(page)
        page.goto(f"{manage}quota/")
        page.get_by_label("Submissions of a team per day").fill("7")
        press(page, "Save")
        expect(page.get_by_label("Submissions of a team per day")).to_have_value("7")
        page.goto(f"{manage}access/")
        page.get_by_label("Short name of the collection").fill("judged")
        check(page)
        press(page, "Release the scores")
        expect(page.get_by_text(re.compile("^Released on"))).to_be_visible()


@pytest.fixture(scope="module")
def forms(site: Site) -> str:
    """A collection with judgements, to which each test submits what it changes."""
    with site.server.client() as api:
        api.post(
            "collections/", json={"slug": "forms", "name": "Forms", "measures": ["AP"]}
        ).raise_for_status()
        api.post("collections/forms/qrels/", files={"file": ("file", QRELS)}).raise_for_status()
    return "/collections/forms/"


def submit(page: Page, forms: str, tag: str, system: str = "") -> str:
    """Submit a run by the form; return the address of its page."""
    page.goto(f"{forms}submit/")
    choose(page, f"{tag}.run", RUN)
    page.get_by_text("Options:").click()
    page.get_by_label("Tag", exact=True).fill(tag)
    page.get_by_label("System", exact=True).fill(system)
    press(page, "Submit")
    expect(page.locator("h1")).to_contain_text(tag)
    return page.url.partition("#")[0]


def test_what_is_said_of_a_run_is_changed(session: BrowserContext, site: Site, forms: str) -> None:
    """Its description, parameters, lineage and notes, its system, and the description of a key."""
    with watched(session, site) as seen:
        page = seen.page
        run = submit(page, forms, "said", "walker")
        page.goto(f"{run}change/")
        page.get_by_label("Description").fill("The plainest run.")
        press(page, "Save")
        expect(page.get_by_text("The plainest run.").first).to_be_visible()
        page.goto(f"{run}parameters/edit/")
        page.get_by_label("Parameters", exact=True).fill("bm25.k1 = 0.9\nmodel = BM25")
        page.get_by_label("Costs").fill("latency_ms = 12.1")
        press(page, "Save")
        expect(page.get_by_text("bm25.k1").first).to_be_visible()
        page.goto(f"{run}lineage/")
        page.get_by_label("Links").fill("code https://example.org/code commit=3f2a1c0 The code")
        press(page, "Save")
        expect(page.get_by_role("link", name="The code")).to_be_visible()
        check(page)
        page.goto(f"{run}notes/")
        page.get_by_label("Note", exact=True).fill("The index was old")
        press(page, "Add note")
        with page.expect_navigation():
            page.get_by_role("link", name="Edit the note").click()
        page.get_by_label("Note", exact=True).fill("The index was new")
        check(page)
        press(page, "Save")
        expect(page.locator(".notes")).to_contain_text("(edited)")
        page.get_by_role("link", name="Edit the note").click()
        press(page, "Delete the note")
        expect(page.get_by_text("No notes yet.")).to_be_visible()
        page.goto("/systems/root/walker/change/")
        page.get_by_label("Name", exact=True).fill("The walker")
        press(page, "Save")
        expect(page.locator("h1")).to_contain_text("The walker")
        page.goto("/systems/root/walker/change/")
        page.get_by_label("remove said").check()
        press(page, "Remove", leads_on=True)
        page.goto("/systems/root/walker/change/")
        page.get_by_label("add said").check()
        check(page)
        press(page, "Add")
        expect(page.get_by_role("link", name="said").first).to_be_visible()
        page.goto(f"{forms}parameters/")
        page.get_by_text("Describe").first.click()
        page.get_by_label("Note").first.fill("how strong terms count")
        page.get_by_role("button", name="Save").first.click()
        expect(page.get_by_text("how strong terms count").first).to_be_visible()
        check(page)


def test_a_parameter_is_renamed(session: BrowserContext, site: Site, forms: str) -> None:
    """In all runs of one's own that have it, after a check."""
    with watched(session, site) as seen:
        page = seen.page
        run = submit(page, forms, "renamed")
        page.goto(f"{run}parameters/edit/")
        page.get_by_label("Parameters", exact=True).fill("stem = porter")
        press(page, "Save", leads_on=True)
        page.goto(f"{forms}parameters/")
        page.get_by_role("link", name="Rename a parameter of your runs").click()
        page.get_by_label("Present name").fill("stem")
        page.get_by_label("New name").fill("index.stemmer")
        press(page, "Check only", "1 run would change")
        check(page)
        press(page, "Rename", "stem renamed to index.stemmer in 1 run.")
        page.goto(f"{run}parameters/")
        page.get_by_text("Edits of parameters and costs").click()
        expect(page.get_by_role("rowheader", name="index.stemmer")).to_be_visible()


def test_labels_are_moved_and_deleted(session: BrowserContext, site: Site, forms: str) -> None:
    """A label is made on the page of one run, moved on that of another, and goes with the run, where asked."""
    with watched(session, site) as seen:
        page = seen.page
        first, second = submit(page, forms, "labelled"), submit(page, forms, "better")
        page.goto(f"{first}change/")
        page.get_by_label("New label").fill("main")
        page.get_by_label("Note", exact=True).fill("the first")
        press(page, "Label labelled", "Label main names labelled now.")
        check(page)
        page.goto(f"{second}change/")
        press(page, "Move label main to better", "Label main names better now.")
        page.set_viewport_size(PHONE)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        page.get_by_label("Delete its label, too: main").check()
        press(page, "Withdraw better", "better withdrawn.")
        press(page, "Restore better", leads_on=True)
        page.goto(f"{first}change/")
        expect(page.get_by_role("button", name="Delete label main")).to_have_count(0)


def test_runs_are_withdrawn_and_restored(session: BrowserContext, site: Site, forms: str) -> None:
    """Selected in the list of one's runs, one by one on its page, and where a collection is managed."""
    with watched(session, site) as seen:
        page = seen.page
        run = submit(page, forms, "gone")
        page.goto("/runs/")
        page.get_by_label("Filter").fill("tag:gone")
        press(page, "Show")
        page.get_by_label("gone", exact=True).check()
        check(page)
        press(page, "Withdraw", leads_on=True)
        page.goto("/runs/")
        press(page, "Restore gone", "gone restored")
        page.set_viewport_size(PHONE)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        page.goto(f"{run}change/")
        press(page, "Withdraw gone", leads_on=True)
        check(page)
        press(page, "Restore gone")
        expect(page.get_by_role("heading", name="gone").first).to_be_visible()
        page.goto(f"{run}change/")
        press(page, "Withdraw gone", leads_on=True)
        page.goto(f"{forms}manage/withdrawn/")
        check(page)
        press(page, "Restore gone")
        expect(page.get_by_text("Nothing has been withdrawn.")).to_be_visible()


def test_parameters_are_edited_in_cells(session: BrowserContext, forms: str, site: Site) -> None:
    with watched(session, site) as seen:
        page = seen.page
        submit(page, forms, "celled")
        page.goto(f"{forms}parameters/edit/")
        page.get_by_label("New parameter").fill("stemmer, quoted")
        press(page, "Add a column")
        page.get_by_label("stemmer, quoted of celled").fill("porter")
        expect(page.get_by_text("1 cell changed")).to_be_visible()
        check(page)
        press(page, "Check only")
        expect(page.get_by_text("celled: stemmer, quoted not set → porter")).to_be_visible()
        press(page, "Save")
        expect(page.get_by_text("Parameters of 1 run changed.")).to_be_visible()
        expect(page.get_by_label("stemmer, quoted of celled")).to_have_value("porter")
        page.get_by_text("Paste or upload a CSV").click()
        page.get_by_label("A row for each run").fill("tag,k1\ncelled,0.9\nnowhere,1\n")
        expect(page.get_by_label("stemmer, quoted of celled")).to_be_hidden()
        press(page, "Save")
        expect(page.get_by_role("alert")).to_contain_text("no run nowhere")


def test_a_session_log_is_checked_and_submitted(
    session: BrowserContext, site: Site, forms: str
) -> None:
    with watched(session, site) as seen:
        page = seen.page
        page.goto(f"{forms}submit-sessions/")
        choose(page, "log", LOG)
        page.get_by_label("Tag", exact=True).fill("log")
        press(page, "Check only")
        expect(page.get_by_role("heading", name="The log can be submitted")).to_be_visible()
        check(page)
        press(page, "Submit")
        expect(page.locator("h1")).to_contain_text("log")


def test_an_experiment_is_filled_by_a_filter_and_edited(
    session: BrowserContext, site: Site, forms: str
) -> None:
    with watched(session, site) as seen:
        page = seen.page
        submit(page, forms, "grouped")
        page.goto("/experiments/")
        page.get_by_label("Name", exact=True).fill("By a filter")
        press(page, "Create experiment")
        page.get_by_label("Collection", exact=True).select_option("forms")
        page.get_by_label("Filter", exact=True).fill("tag:grouped")
        press(page, "Add matching runs")
        page.get_by_label("grouped", exact=True).check()
        check(page)
        press(page, "Take selected runs out")
        expect(page.get_by_role("heading", name="No runs yet")).to_be_visible()
        page.get_by_label("Goal").fill("Which one?")
        page.locator("form[action='#edit']").get_by_role("button", name="Save").click()
        expect(page.locator("main .lead").first).to_contain_text("Which one?")


def test_views_are_saved_renamed_and_deleted(session: BrowserContext, site: Site) -> None:
    with watched(session, site) as seen:
        page = seen.page
        page.goto("/collections/open/?sort=AP", wait_until="networkidle")
        page.locator("#views-tool > summary").click()
        page.get_by_label("Save this view as").fill("By AP")
        page.locator("#views-tool").get_by_role("button", name="Save", exact=True).click()
        expect(page.locator("#views-tool > summary")).to_contain_text("By AP")
        page.goto("/collections/open/views/")
        page.locator("section").filter(
            has=page.get_by_role("button", name="Save By AP")
        ).get_by_label("Name").fill("AP")
        press(page, "Save By AP", leads_on=True)
        check(page)
        press(page, "Delete AP")
        expect(page.get_by_role("button", name="Delete AP")).to_have_count(0)


def test_a_share_link_opens_a_leaderboard_to_a_stranger_until_it_is_revoked(
    chromium: Browser, session: BrowserContext, site: Site
) -> None:
    with site.server.client() as api:
        fields = {"slug": "secret", "name": "Secret", "measures": ["AP"], "visibility": "private"}
        api.post("collections/", json=fields).raise_for_status()
        api.post("collections/secret/qrels/", files={"file": ("file", QRELS)}).raise_for_status()
        sent = (
            api.post("collections/secret/runs/", files={"file": ("file", RUN)})
            .raise_for_status()
            .json()
        )
        wait_until_evaluated(api, sent["url"])
    context = chromium.new_context(base_url=site.url, viewport=PHONE, color_scheme="dark")
    with watched(session, site) as owners, watched(context, site) as theirs:
        owner, page = owners.page, theirs.page
        owner.goto("/collections/secret/")
        owner.get_by_text("Share", exact=True).click()
        owner.get_by_role("link", name="Address and share link").click()
        owner.get_by_label("Expires after").select_option("7")
        press(owner, "Create a link")
        link = owner.locator("#link").inner_text().strip()
        check(owner)
        page.goto(link)
        expect(page.get_by_role("region", name="Leaderboard")).to_contain_text("walk")
        assert link.rstrip("/").rpartition("/")[2] not in page.url
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        check(page)
        page.goto("/collections/secret/")
        expect(page.locator("main")).not_to_contain_text("walk")
        press(owner, "Revoke link", exact=False)
        expect(owner.get_by_role("button", name="Revoke link")).to_have_count(0)
        page.goto(link)
        expect(page.locator("main")).to_contain_text("revoked")
        check(page)
    context.close()


def test_a_webhook_is_created_disabled_and_deleted(session: BrowserContext, site: Site) -> None:
    with watched(session, site) as seen:
        page = seen.page
        page.goto("/collections/empty/webhooks/")
        page.get_by_label("Address").fill("https://93.184.215.14/hook")
        page.get_by_role("checkbox").first.check()
        press(page, "Create webhook", "created")
        expect(page.locator("#secret")).not_to_be_empty()
        check(page)
        press(page, "Disable 93.184.215.14", "disabled")
        press(page, "Enable 93.184.215.14", "enabled")
        press(page, "New secret for 93.184.215.14", "new secret")
        press(page, "Delete 93.184.215.14", "deleted")


def test_members_join_change_and_leave_a_team(
    chromium: Browser, session: BrowserContext, site: Site
) -> None:
    """The account of a colleague from the link that makes it to the end of all its sessions."""
    context = chromium.new_context(base_url=site.url)
    with watched(session, site) as owners, watched(context, site) as theirs:
        owner, page = owners.page, theirs.page
        owner.goto("/teams/")
        owner.get_by_label("Name", exact=True).fill("Passing")
        press(owner, "Create team")
        team = owner.url
        press(owner, "Create an invitation link")
        page.goto(owner.locator("#link").inner_text().strip())
        page.get_by_label("User name").fill("passer")
        for label in ("Password", "Password again"):
            page.get_by_label(label, exact=True).fill(PASSWORD)
        check(page)
        press(page, "Create an account and join")
        owner.goto(team)
        owner.get_by_label("Role of passer", exact=True).select_option("owner")
        press(owner, "Save the role of passer", "passer is owner now")
        check(owner)
        press(owner, "Remove passer", "removed")
        press(owner, "Revoke link", "revoked", exact=False)
        for answer in ("Decline", "Accept"):
            owner.get_by_label("User name").fill("passer")
            press(owner, "Invite", "is invited")
            page.goto("/account/")
            check(page)
            press(page, answer, "Invitation to" if answer == "Decline" else "You are now in team")
        page.goto(team)
        press(page, "Leave", "You have left")
        owner.get_by_label("User name").fill("passer")
        press(owner, "Invite", "is invited")
        press(owner, "Withdraw the invitation of passer", "withdrawn")
        press(owner, "Create an invitation link")
        page.goto(owner.locator("#link").inner_text().strip())
        press(page, "Join as passer", exact=False)
        press(page, "Leave", "You have left")
        press(owner, "Delete the team", "deleted")
        page.goto("/account/")
        page.get_by_label("Current password").fill(PASSWORD)
        for label in ("New password", "New password again"):
            page.get_by_label(label, exact=True).fill(f"{PASSWORD} 2")
        press(page, "Change password", "Password changed")
        press(page, "End other sessions", "ended")
        page.locator("header summary").last.click()
        page.get_by_role("button", name="Log out").click()
        page.goto("/account/")
        expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    context.close()


# Those that hold the forms which only ask.
ASKING = (
    "leaderboard-columns", "parameters", "configurations", "importance", "frontier", "comparison", "comparison-curves",
    "two-runs", "what-if", "judgements", "topics", "heat-map", "orders", "design", "run", "run-paired", "run-curves",
    "sessions", "session-set",
    "session", "system", "measures", "my-runs", "manage-judgements",
)  # fmt: skip
# What the forms of a page would ask as they stand, of each form once.
FILLED = """async page => {
    const there = new DOMParser().parseFromString(await (await fetch(page)).text(), "text/html");
    return [...there.querySelectorAll("main form:not([method=post])")].map(form => {
        const address = new URL(form.getAttribute("action") || page, new URL(page, location.href));
        return address.pathname + "?" + new URLSearchParams(new FormData(form));
    });
}"""


def test_every_form_that_asks_gets_an_answer(session: BrowserContext, site: Site) -> None:
    """Nothing is refused that a form asks as it stands, and nothing that it sends is unknown."""
    with watched(session, site) as seen:
        seen.page.goto("/account/")
        questions: dict[str, str] = {}
        for name in ASKING:
            for question in seen.page.evaluate(FILLED, address(site, name)):
                questions.setdefault(
                    urlsplit(question).path + str(sorted(parse_qs(question))), question
                )
        assert len(questions) > 25
        for question in questions.values():
            answer = session.request.get(question)
            assert answer.status == 200, question
            assert "Unknown parameter" not in answer.text(), question
