"""Every page in a real browser: nothing breaks, nothing comes from elsewhere, everybody can use it."""

from __future__ import annotations

import re
import time
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from tests.browser.site import ADMIN, PASSWORD, Site
from tests.browser.visits import PHONE, address, faults_of_access, watched

OPEN = (
    "home", "collections", "leaderboard", "leaderboard-columns", "parameters", "comparison", "two-runs", "long-comparison",
    "stored-comparison", "what-if", "blind", "empty", "run", "run-paired", "ranking", "run-stale",
    "run-curves", "run-made", "run-files",
    "sessions", "session-set", "session", "measures", "measure", "login", "not-found", "campaigns", "campaign",
)  # fmt: skip
# Other states of these, of the same parts.
STATES = (
    "no-parameters", "comparison-baseline", "no-comparison", "blind-comparison", "blind-what-if", "run-queued",
    "run-failed", "run-stale-failed", "no-sessions", "measures-none",
)  # fmt: skip
# Tables and a chart, which need no scripts.
TOPICS = ("topics", "topic", "heat-map")
STUDIES = ("importance", "frontier", "orders", "design", "judgements")
OWN = (
    "submit", "tokens", "webhooks", "run-parameters", "edit-parameters", "new-collection", "manage", "manage-judgements",
    "manage-documents", "manage-measures", "manage-blind", "submit-sessions", "teams", "run-change", "run-artifacts",
    "my-runs", "experiments", "experiment", "campaign-desk", "campaign-teams", "campaign-entries", "campaign-phase",
    "campaign-act", "campaign-team", "campaign-enter", "campaign-file", "phase-board",
)  # fmt: skip
# Of these, which have the parts of the others, one load is enough.
MORE = (
    "leaderboard-best", "system", "saved-views", "configurations", "no-configurations", "run-since",
    "comparison-kinds", "comparison-curves", "blind-topics", "blind-judgements", "no-frontier", "campaign-leaderboard",
    "campaign-rules", "campaign-cite", "campaign-take-part",
)  # fmt: skip
MORE_OWN = (
    "own-home", "own-views", "share", "shares", "run-lineage", "run-notes", "system-change", "manage-topics",
    "manage-access", "manage-quota", "manage-withdrawn", "manage-audit", "new-campaign", "campaign-new-phase",
    "campaign-agreements", "campaign-settings", "campaign-notices", "campaign-audit", "campaign-snapshot",
    "campaign-copy",
)  # fmt: skip


# Pages whose tables have cards or fewer columns on a phone.
FITS = {
    "leaderboard", "leaderboard-columns", "comparison", "importance", "frontier", "what-if", "orders", "design",
    "judgements", "parameters", "topics",
}  # fmt: skip
SIDEWAYS = """() => [...document.querySelectorAll(".scroll, pre")]
    .filter(one => one.checkVisibility() && one.scrollWidth > one.clientWidth + 1)
    .map(one => one.getAttribute("aria-label") || one.textContent.slice(0, 80))"""


@pytest.mark.parametrize("name", [*OPEN, *TOPICS, *STUDIES, *OWN])
def test_a_page_is_accessible_fits_a_phone_and_is_silent(
    session: BrowserContext, reader: BrowserContext, site: Site, name: str
) -> None:
    """On a desk in light colours, which becomes a phone in dark ones: to load a page is what takes the
    time."""
    with watched(session if name in OWN else reader, site) as seen:
        page = seen.page
        page.emulate_media(color_scheme="light")
        page.goto(address(site, name), wait_until="networkidle")
        assert faults_of_access(page) == []
        page.emulate_media(color_scheme="dark")
        page.set_viewport_size(PHONE)
        # Wide tables scroll in their own frame; the page itself never sideways, nor the tables of
        # most pages.
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        if name in FITS:
            assert page.evaluate(SIDEWAYS) == []
        # Of the rules, contrast is the one that other colours can break.
        assert faults_of_access(page, contrast_alone=True) == []


@pytest.mark.parametrize("name", [*MORE, *MORE_OWN])
def test_another_page_is_accessible_fits_a_phone_and_is_silent(
    session: BrowserContext, reader: BrowserContext, site: Site, name: str
) -> None:
    """Loaded once, on a desk in dark colours, which becomes as narrow as a phone."""
    with watched(session if name in MORE_OWN else reader, site) as seen:
        page = seen.page
        page.emulate_media(color_scheme="dark")
        page.goto(address(site, name))
        assert faults_of_access(page) == []
        page.set_viewport_size(PHONE)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_every_page_is_looked_at(site: Site) -> None:
    assert {*OPEN, *STATES, *TOPICS, *STUDIES, *OWN, *MORE, *MORE_OWN} == {
        *site.pages(),
        *site.own_pages(),
    }


@pytest.mark.parametrize("name", [*OPEN, *STATES])
def test_a_page_works_without_scripts(plain: BrowserContext, site: Site, name: str) -> None:
    with watched(plain, site) as seen:
        seen.page.goto(address(site, name))
        expect(seen.page.locator("h1")).to_be_visible()
        for summary in seen.page.locator("details:has(> figure.chart) > summary").all():
            summary.click()
        for drawing in seen.page.locator("figure.chart .wide svg").all():
            expect(drawing).to_be_visible()


@pytest.mark.parametrize(
    ("name", "table"), [("sessions", ".board"), ("topics", ".topics"), ("run-paired", ".topics")]
)
def test_the_page_scrolls_and_the_header_of_a_long_table_stays(
    reader: BrowserContext, site: Site, name: str, table: str
) -> None:
    with watched(reader, site) as seen:
        page = seen.page
        page.set_viewport_size({"width": 1500, "height": 300})
        page.goto(address(site, name))
        frame = page.locator(f".scroll:has(> {table})").first
        assert frame.evaluate("frame => getComputedStyle(frame).overflow") == "visible"
        frame.locator("tbody tr").last.evaluate("row => row.scrollIntoView({block: 'end'})")
        header = frame.locator("thead th").first.bounding_box()
        assert header
        assert 0 <= header["y"] < 200
        for width in (768, PHONE["width"]):
            page.set_viewport_size({"width": width, "height": 300})
            assert frame.evaluate("frame => frame.scrollHeight <= frame.clientHeight + 1")


def test_a_page_begins_with_a_way_past_its_head(reader: BrowserContext, site: Site) -> None:
    with watched(reader, site) as seen:
        seen.page.goto("/measures/")
        seen.page.keyboard.press("Tab")
        expect(seen.page.get_by_text("Skip to the content")).to_be_focused()
        seen.page.keyboard.press("Enter")
        expect(seen.page.locator("#content")).to_be_focused()
        seen.page.keyboard.press("Tab")
        expect(seen.page.locator("#content a").first).to_be_focused()


def test_a_printed_page_has_charts_and_no_controls(reader: BrowserContext, site: Site) -> None:
    with watched(reader, site) as seen:
        seen.page.goto(address(site, "run"), wait_until="networkidle")
        seen.page.emulate_media(media="print", color_scheme="dark")
        drawing = seen.page.locator("figure.chart .wide svg").first
        expect(drawing).to_be_visible()
        expect(drawing.locator("a path").first).to_have_css("fill", "rgb(31, 95, 191)")
        expect(seen.page.locator("form.ask").first).to_be_hidden()
        assert len(seen.page.pdf()) > 10_000


def test_the_administration_works_under_the_content_security_policy(
    chromium: Browser, session: BrowserContext, site: Site
) -> None:
    """Lists and an action, without a word of the console."""
    context = chromium.new_context(
        base_url=site.url, storage_state=session.storage_state(), color_scheme="dark"
    )
    with watched(context, site) as seen:
        page = seen.page
        for path in (
            "",
            "runs/user/",
            "runs/run/",
            "runs/collection/",
            "metrics/evaluation/",
            "runs/auditevent/",
        ):
            page.goto(f"/admin/{path}", wait_until="networkidle")
            expect(page.locator("#content h1, #content-start h1").first).to_be_visible()
        page.goto("/admin/metrics/evaluation/", wait_until="networkidle")
        page.locator("#result_list input[type=checkbox]").first.check()
        page.get_by_label("Action:").select_option("repeat")
        page.get_by_role("button", name="Go").click()
        expect(page.get_by_role("heading", name="Are you sure?")).to_be_visible()
        page.get_by_role("link", name="No, take me back").click()
        expect(page.locator("#result_list")).to_be_visible()
    context.close()


def test_sliders_order_the_board_at_once(reader: BrowserContext, site: Site) -> None:
    with watched(reader, site) as seen:
        seen.page.goto(address(site, "what-if"))
        seen.page.get_by_label("gain of level 1").focus()
        for _ in range(3):
            seen.page.keyboard.press("ArrowRight")
        expect(seen.page.locator("output[for=g1]")).to_have_text("2.5")
        expect(seen.page.locator("#result code").first).to_contain_text("1:2.5")
        assert "g1=2.5" in seen.page.url
        seen.page.get_by_label("RBP").check()
        expect(seen.page.locator("#result code").first).to_contain_text("RBP(p=0.8")


def test_the_board_is_ordered_without_scripts_by_a_button(
    plain: BrowserContext, site: Site
) -> None:
    with watched(plain, site) as seen:
        seen.page.goto(address(site, "what-if"))
        seen.page.get_by_label("RBP").check()
        seen.page.get_by_role("button", name="Rank the runs").click()
        expect(seen.page.locator("#result code").first).to_contain_text("RBP(p=0.8")


def test_two_runs_are_chosen_compared_and_looked_at_topic_by_topic(
    reader: BrowserContext, site: Site
) -> None:
    with watched(reader, site) as seen:
        page = seen.page
        page.goto(address(site, "comparison"))
        page.locator("details.question > summary").click()
        page.get_by_text("Runs: all evaluated runs").click()
        for tag in list(site.runs)[:2]:
            page.locator(f"input[name=runs][value='{site.runs[tag]}']").check()
        page.get_by_role("button", name="Compare").click()
        expect(page.locator(".verdict .said")).to_contain_text("nDCG@10")
        page.get_by_text("Values of each topic").click()
        topic = page.locator("table.topics tbody th a:first-child").nth(3)
        name = topic.inner_text()
        topic.click()
        expect(page.locator("#rankings ~ p strong")).to_have_text(f"Topic {name}")
        expect(page.get_by_label("Topic", exact=True)).to_have_value(name)
        # The curves come when their part is opened.
        page.locator("#curves > summary").click()
        page.get_by_label("Measure", exact=True).select_option("DCG")
        page.locator("form").filter(has=page.get_by_label("Measure", exact=True)).get_by_role(
            "button"
        ).click()
        expect(
            page.locator("figure.chart figcaption").filter(has_text="DCG at ranks 1 to 100")
        ).to_have_count(1)
        # The topic is still the one that was chosen.
        expect(page.get_by_label("Topic", exact=True)).to_have_value(name)


def test_a_cell_of_the_heat_map_leads_to_its_pair(reader: BrowserContext, site: Site) -> None:
    with watched(reader, site) as seen:
        seen.page.goto(address(site, "comparison"))
        seen.page.locator("figure.chart").first.locator(".wide svg a").first.click()
        expect(seen.page.locator(".verdict .said")).to_be_visible()


def test_a_point_of_a_topic_leads_to_both_rankings(reader: BrowserContext, site: Site) -> None:
    with watched(reader, site) as seen:
        seen.page.goto(address(site, "two-runs"))
        seen.page.locator("figure.chart").first.locator(".wide svg a").first.click()
        expect(seen.page.get_by_role("heading", name="Rankings of one topic")).to_be_visible()
        assert "topic=" in seen.page.url


@pytest.mark.parametrize("scripts", [True, False])
def test_a_long_comparison_is_left_to_a_worker_and_found_again(
    chromium: Browser, session: BrowserContext, site: Site, scripts: bool
) -> None:
    """With scripts the page turns into the tables by itself; without, it is loaded again."""
    context = chromium.new_context(
        base_url=site.url, java_script_enabled=scripts, storage_state=session.storage_state()
    )
    with watched(context, site) as seen:
        page = seen.page
        page.goto(f"{address(site, 'long-comparison')}&seed={int(scripts)}")
        page.get_by_role("button", name="Run in the background").click()
        expect(page.get_by_role("heading", name="Stored comparison")).to_be_visible()
        tables = page.get_by_role("heading", name="How to report this")
        if not scripts:
            deadline = time.monotonic() + 120
            while not tables.is_visible() and time.monotonic() < deadline:
                page.wait_for_timeout(500)
                page.reload()
        expect(tables).to_be_visible(timeout=120_000)
        stored = page.url
        page.goto(f"{address(site, 'long-comparison')}&seed={int(scripts)}")
        expect(page.get_by_role("heading", name="How to report this")).to_be_visible()
        identity = urlsplit(stored).path.rstrip("/").rsplit("/", 1)[-1]
        expect(page.locator(".page-actions a", has_text="API (JSON)")).to_have_attribute(
            "href", f"/api/v1/comparisons/{identity}/"
        )
    context.close()


def test_measures_are_found_while_they_are_typed(reader: BrowserContext, site: Site) -> None:
    with watched(reader, site) as seen:
        seen.page.goto("/measures/")
        seen.page.get_by_label("Search").press_sequentially("recip_rank")
        expect(seen.page.locator("#found li")).to_have_count(1)
        seen.page.get_by_role("link", name="RR", exact=True).click()
        expect(seen.page.get_by_role("heading", name="RR")).to_be_visible()
        seen.page.goto(address(site, "run"))
        seen.page.get_by_label("Measures").fill("AP, nDCG@7")
        expect(seen.page.locator("#measures-hint")).to_contain_text(
            "Normalised discounted cumulated gain"
        )


def test_keys_lead_through_topics_and_to_fields(reader: BrowserContext, site: Site) -> None:
    with watched(reader, site) as seen:
        page = seen.page
        page.goto(address(site, "ranking"))
        topic = page.locator("h1").inner_text()
        page.keyboard.press("]")
        expect(page.locator("h1")).not_to_have_text(topic)
        page.keyboard.press("[")
        expect(page.locator("h1")).to_have_text(topic)
        page.keyboard.press("?")
        expect(page.get_by_role("dialog")).to_contain_text("next topic")
        assert faults_of_access(page) == []
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
        page.goto(address(site, "run"))
        page.keyboard.press("c")
        field = page.get_by_label("Compare with")
        expect(field).to_be_focused()
        # A key that is typed is a letter.
        page.keyboard.press("c")
        expect(field).to_have_value("c")
        page.goto(address(site, "leaderboard"))
        page.keyboard.press("/")
        expect(page.get_by_label("Filter runs")).to_be_focused()


def test_a_run_is_checked_submitted_and_followed_to_its_values(
    session: BrowserContext, site: Site
) -> None:
    with watched(session, site) as seen:
        page = seen.page
        page.goto(address(site, "submit"))
        broken = {"name": "bad.run", "mimeType": "text/plain", "buffer": site.sample + b"1 Q0\n"}
        page.locator("#file").set_input_files(files=[broken])  # type: ignore[list-item]
        page.get_by_role("button", name="Check only").click()
        expect(page.get_by_role("heading", name="Not accepted")).to_be_visible()
        expect(page.locator(".report").first).to_contain_text("too_few_columns")
        whole = {"name": "good.run", "mimeType": "text/plain", "buffer": site.sample}
        page.locator("#file").set_input_files(files=[whole])  # type: ignore[list-item]
        page.get_by_role("button", name="Check only").click()
        expect(page.get_by_role("heading", name="The file can be submitted")).to_be_visible()
        page.get_by_text("Options:").click()
        page.get_by_label("Tag", exact=True).fill("by-hand")
        expect(page.get_by_text("Options:")).to_contain_text("tag by-hand")
        page.get_by_role("button", name="Submit").click()
        expect(page.get_by_role("heading", name="by-hand")).to_be_visible()
        expect(page.get_by_role("heading", name="Values")).to_be_visible(timeout=30_000)


def test_several_runs_are_submitted_with_a_row_for_each(
    session: BrowserContext, site: Site
) -> None:
    with watched(session, site) as seen:
        page = seen.page
        page.goto(address(site, "submit"))
        contents = {
            "first.run": site.sample,
            "bad.run": site.sample + b"1 Q0\n",
            "second.run.txt": site.sample,
        }
        files = [
            {"name": name, "mimeType": "text/plain", "buffer": content}
            for name, content in contents.items()
        ]
        page.locator("#file").set_input_files(files=files)  # type: ignore[arg-type]
        assert faults_of_access(page) == []
        page.get_by_text("Options:").click()
        expect(page.get_by_label("Tag", exact=True)).to_be_hidden()
        page.get_by_label("Tag of each file").select_option("name")
        expect(page.get_by_text("Options:")).to_contain_text("tags from the file names")
        expect(page.get_by_label("tag of second.run.txt")).to_have_value("second")
        page.get_by_label("Parameters", exact=True).fill("k1 = 0.9\nno sign")
        page.get_by_role("button", name="Submit").click()
        outcome = page.locator("#outcome")
        expect(outcome).to_contain_text("3 files")
        page.get_by_label("Parameters", exact=True).fill("k1 = 0.9")
        page.get_by_role("button", name="Check only").click()
        expect(outcome).to_have_text("2 of 3 can be submitted, 1 refused.")
        page.get_by_role("button", name="Submit").click()
        best = re.compile(
            r"2 new, 1 refused\. Best: \S+ \S+ [0-9.]+ \(\d+\w\w\)\. Open the leaderboard"
        )
        expect(outcome).to_have_text(best, timeout=30_000)
        expect(outcome).to_be_in_viewport()
        page.get_by_role("button", name="Submit").click()
        expect(outcome).to_contain_text("0 new, 2 were there already, 1 refused.")
        refused = page.locator("#rows tbody tr").nth(1)
        expect(refused).to_contain_text("a line needs 6 columns")
        assert faults_of_access(page) == []
        # The outcome, too, links the best of them, which of the equal two is open.
        page.locator("#rows").get_by_role("link", name="second", exact=True).click()
        expect(page.get_by_role("heading", name="second")).to_be_visible()


def test_a_taken_tag_becomes_the_next_version_from_its_row(
    session: BrowserContext, site: Site
) -> None:
    """Leaving meanwhile is asked about; afterwards nothing is lost, and nothing is asked."""
    with watched(session, site) as seen:
        page = seen.page
        page.goto(address(site, "submit"))
        # Of files with other content and the same tag the second is refused.
        lines = site.sample.splitlines(keepends=True)
        files = [
            {"name": name, "mimeType": "text/plain", "buffer": content}
            for name, content in (("v.run", site.sample), ("v.run.txt", b"".join(lines[:-1])))
        ]
        page.route(
            "**/api/v1/collections/*/runs/",
            lambda route: (page.wait_for_timeout(300), route.continue_()),
        )
        page.locator("#file").set_input_files(files=files)  # type: ignore[arg-type]
        page.get_by_text("Options:").click()
        page.get_by_label("Tag of each file").select_option("name")
        page.get_by_role("button", name="Submit").click()
        leaving = "() => !dispatchEvent(new Event('beforeunload', {cancelable: true}))"
        assert page.evaluate(leaving)
        expect(page.locator("#outcome")).to_contain_text("1 new, 1 refused.")
        assert not page.evaluate(leaving)
        page.get_by_role("button", name="make it the next version").click()
        expect(page.get_by_role("link", name="v-v2", exact=True)).to_be_visible()


def test_settings_of_single_runs_are_in_files_beside_them(
    session: BrowserContext, site: Site
) -> None:
    with watched(session, site) as seen:
        page = seen.page
        page.goto(address(site, "submit"))
        contents = {
            "low.run": site.sample,
            "high.run": site.sample,
            "low.json": b'{"b": 0.3, "stemmer": "porter"}',
            "high.json": b"[1]",
            "lost.json": b"{}",
        }
        files = [
            {"name": name, "mimeType": "text/plain", "buffer": content}
            for name, content in contents.items()
        ]
        page.locator("#file").set_input_files(files=files)  # type: ignore[arg-type]
        page.get_by_text("Options:").click()
        page.get_by_label("Tag of each file").select_option("name")
        page.get_by_label("Parameters", exact=True).fill("b = 0.9\nmodel = BM25")
        page.get_by_role("button", name="Submit").click()
        expect(page.locator("#outcome")).to_contain_text("1 new, 2 refused.")
        expect(page.locator("#rows")).to_contain_text("high.json: not a JSON object")
        expect(page.locator("#rows")).to_contain_text("there is no run file of this name")
        page.get_by_role("link", name="low", exact=True).click()
        page.get_by_role("link", name="Parameters", exact=True).click()
        for text in ("0.3", "porter", "BM25"):
            expect(page.locator("main")).to_contain_text(text)


def test_a_colleague_joins_by_a_link_without_scripts(
    chromium: Browser, session: BrowserContext, site: Site
) -> None:
    with watched(session, site) as seen:
        seen.page.goto("/teams/")
        seen.page.get_by_label("Name", exact=True).fill("Retrieval lab")
        expect(seen.page.get_by_label("Short name")).to_have_value("retrieval-lab")
        seen.page.get_by_role("button", name="Create team").click()
        seen.page.get_by_role("button", name="Create an invitation link").click()
        link = seen.page.locator("#link").inner_text().strip()
        assert faults_of_access(seen.page) == []
    context = chromium.new_context(base_url=site.url, java_script_enabled=False, viewport=PHONE)
    with watched(context, site) as seen:
        seen.page.goto(link)
        seen.page.get_by_label("User name").fill("colleague")
        for label in ("Password", "Password again"):
            seen.page.get_by_label(label, exact=True).fill("a long passphrase")
        seen.page.get_by_role("button", name="Create an account and join").click()
        expect(
            seen.page.get_by_text("Welcome, colleague. You are in team Retrieval lab.")
        ).to_be_visible()
    context.close()


def test_a_run_is_submitted_without_scripts(
    chromium: Browser, session: BrowserContext, site: Site
) -> None:
    context = chromium.new_context(
        base_url=site.url, java_script_enabled=False, storage_state=session.storage_state()
    )
    with watched(context, site) as seen:
        seen.page.goto(address(site, "submit"))
        whole = {"name": "good.run", "mimeType": "text/plain", "buffer": site.sample}
        seen.page.locator("#file").set_input_files(files=[whole])  # type: ignore[list-item]
        seen.page.get_by_text("Options:").click()
        seen.page.get_by_label("Tag", exact=True).fill("no-scripts")
        seen.page.get_by_role("button", name="Submit").click()
        expect(seen.page.get_by_role("heading", name="no-scripts")).to_be_visible()
    context.close()


def test_a_token_is_made_shown_once_and_revoked(session: BrowserContext, site: Site) -> None:
    with watched(session, site) as seen:
        page = seen.page
        page.goto("/tokens/")
        page.get_by_label("Name").fill("laptop")
        page.get_by_role("button", name="Create token").click()
        expect(page.locator("#token")).to_contain_text("evh_")
        page.goto("/tokens/")
        expect(page.locator("#token")).to_have_count(0)
        page.get_by_role("button", name="Revoke laptop").click()
        expect(page.get_by_role("heading", name="No token yet")).to_be_visible()


def test_logging_out_ends_the_session(chromium: Browser, site: Site) -> None:
    # In a session of its own: other tests go on with theirs.
    context = chromium.new_context(base_url=site.url)
    with watched(context, site) as seen:
        page = seen.page
        page.goto("/login/?next=/tokens/")
        page.get_by_label("Name").fill(ADMIN)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("main").get_by_role("button", name="Log in").click()
        expect(page.get_by_role("heading", name="Your tokens")).to_be_visible()
        page.locator("header summary").last.click()
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_role("link", name="Log in").first).to_be_visible()
        page.goto("/tokens/")
        expect(page).to_have_url(re.compile(r"/login/\?next=/tokens/"))
    context.close()


def test_a_file_is_attached_to_a_run_and_deleted_without_scripts(
    chromium: Browser, session: BrowserContext, site: Site
) -> None:
    cookies = session.cookies()
    context = chromium.new_context(base_url=site.url, java_script_enabled=False, viewport=PHONE)
    context.add_cookies(cookies)  # type: ignore[arg-type]
    with watched(context, site) as seen:
        page = seen.page
        page.goto(address(site, "run-files"))
        page.get_by_label("Attach a file").set_input_files(
            {"name": "config.yaml", "mimeType": "text/yaml", "buffer": b"k1: 0.9\n"}
        )
        page.get_by_role("button", name="Attach", exact=True).click()
        expect(page.get_by_role("status")).to_have_text("config.yaml attached.")
        with page.expect_download() as started:
            page.get_by_role("link", name="config.yaml").click()
        assert (started.value.suggested_filename, started.value.path().read_bytes()) == (
            "config.yaml",
            b"k1: 0.9\n",
        )
        page.get_by_role("button", name="Delete config.yaml").click()
        expect(page.get_by_text("No files are attached to this run.")).to_be_visible()
    context.close()
